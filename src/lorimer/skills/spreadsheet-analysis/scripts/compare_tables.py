"""Compare two tables by a key: rows added, removed, changed; for each column how many changes.

Numbers are compared as numbers (1,000.0 equals 1000), dates as dates, text exactly except for
spaces at its ends. Without --key whole rows are compared, in any order.

Exit code 0: the same. 1: they differ.

Example: python compare_tables.py old.csv new.xlsx --key "Order ID" --tolerance 0.005
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import Any

from cells import Reading, is_gap, plain, shown
from needs import fail, output_file
from table_io import Table, add_reading_options, open_table, write_table

_EXAMPLES = 5


def meaning(cell: Any, reading: Reading) -> Any:
    """What is compared: a number, a date, or a text."""
    if is_gap(cell):
        return None
    number = reading.number(cell)
    if number is not None:
        return number.normalize() if number else Decimal(0)
    date = reading.date(cell)
    if date is not None:
        return date.replace(tzinfo=None)
    return str(cell).strip()


def load(table: Table, columns: list[str], keys: list[str]) -> tuple[dict[Any, Any], list[str]]:
    """Rows by key, as (row number, raw cells), and keys that stand more than once."""
    places = [table.column(name) for name in columns]
    key_places = [table.column(name) for name in keys]
    rows: dict[Any, Any] = {}
    doubles: Counter[Any] = Counter()
    for number, cells in table.rows():
        key = tuple(meaning(cells[place], table.reading) for place in key_places)
        if key in rows:
            doubles[key] += 1
            continue
        rows[key] = (number, [cells[place] for place in places])
    return rows, [" / ".join(shown(part) for part in key) for key in doubles]


def compare(old: Table, new: Table, keys: list[str], tolerance: Decimal) -> dict[str, Any]:
    for name in keys:
        old.column(name), new.column(name)
    both = [name for name in old.header if name in new.header]
    report: dict[str, Any] = {
        "columns_only_in_old": [n for n in old.header if n not in new.header],
        "columns_only_in_new": [n for n in new.header if n not in old.header],
        "notes": [f"old: {n}" for n in old.notes] + [f"new: {n}" for n in new.notes],
    }
    if not both:
        fail("the two tables have no column in common.", "check the header rows (--header ROW).")
    if not keys:
        return report | _whole_rows(old, new, both)
    before, double_old = load(old, both, keys)
    after, double_new = load(new, both, keys)
    for side, found in (("old", double_old), ("new", double_new)):
        if found:
            report["notes"].append(
                f"{side}: {len(found)} key(s) stand more than once ({', '.join(found[:3])}); only "
                "the first row of each was compared: choose a --key that is unique"
            )
    changes: list[list[Any]] = []
    per_column: Counter[str] = Counter()
    changed: set[Any] = set()
    for key in before.keys() & after.keys():
        for name, a, b in zip(both, before[key][1], after[key][1], strict=True):
            if not _same(meaning(a, old.reading), meaning(b, new.reading), tolerance):
                per_column[name] += 1
                changed.add(key)
                where = before[key][0]
                changes.append([_key(key), name, shown(a, 60), shown(b, 60), where, after[key][0]])
    changes.sort(key=lambda change: change[4])
    removed = sorted((before[k][0], _key(k)) for k in before.keys() - after.keys())
    added = sorted((after[k][0], _key(k)) for k in after.keys() - before.keys())
    return report | {
        "rows_old": len(before), "rows_new": len(after),
        "added": len(added), "removed": len(removed), "changed_rows": len(changed),
        "changes_by_column": dict(per_column.most_common()),
        "keys_added": [key for _, key in added], "keys_removed": [key for _, key in removed],
        "changes": changes,
        "double_keys": {"old": len(double_old), "new": len(double_new)},
    }  # fmt: skip


def _whole_rows(old: Table, new: Table, both: list[str]) -> dict[str, Any]:
    sides = []
    for table in (old, new):
        places = [table.column(name) for name in both]
        sides.append(
            Counter(tuple(meaning(c[p], table.reading) for p in places) for _, c in table.rows())
        )
    gone, come = sides[0] - sides[1], sides[1] - sides[0]
    return {
        "rows_old": sides[0].total(), "rows_new": sides[1].total(),
        "added": come.total(), "removed": gone.total(), "changed_rows": 0,
        "changes_by_column": {}, "changes": [],
        "keys_added": [_key(row) for row in come.elements()],
        "keys_removed": [_key(row) for row in gone.elements()],
        "double_keys": {"old": 0, "new": 0},
    }  # fmt: skip


def _same(a: Any, b: Any, tolerance: Decimal) -> bool:
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return abs(a - b) <= tolerance
    return bool(a == b)


def _key(parts: tuple[Any, ...]) -> str:
    return " / ".join(plain(p) if isinstance(p, Decimal) else shown(p, 60) for p in parts)


def as_text(report: dict[str, Any]) -> str:
    lines = [
        f"old {report['rows_old']:,} rows, new {report['rows_new']:,} rows: "
        f"{report['added']:,} added, {report['removed']:,} removed, "
        f"{report['changed_rows']:,} changed"
    ]
    for side in ("old", "new"):
        names = report[f"columns_only_in_{side}"]
        if names:
            lines.append(f"columns only in {side}: {', '.join(map(repr, names))}")
    for name, count in report["changes_by_column"].items():
        lines.append(f"  {name}: {count:,} changes")
    for what in ("added", "removed"):
        keys = report[f"keys_{what}"]
        if keys:
            more = f" and {len(keys) - _EXAMPLES:,} more" if len(keys) > _EXAMPLES else ""
            lines.append(f"{what}: {'; '.join(keys[:_EXAMPLES])}{more}")
    for key, name, a, b, _, row in report["changes"][:_EXAMPLES]:
        lines.append(f"changed: {key}: {name}: {a!r} → {b!r} (row {row})")
    if len(report["changes"]) > _EXAMPLES:
        lines.append(f"{len(report['changes']) - _EXAMPLES:,} more changes: --out FILE has all")
    lines += [f"note: {note}" for note in report["notes"]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old")
    parser.add_argument("new")
    add_reading_options(parser)
    parser.add_argument("--key", action="append", default=[], metavar="COLUMN")
    parser.add_argument("--tolerance", default="0", help="numbers so near count as the same")
    parser.add_argument("--out", metavar="FILE", help="all differences: .xlsx, .csv or .tsv")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        tolerance = Decimal(options.tolerance)
    except InvalidOperation:
        fail(f"--tolerance {options.tolerance!r} is no number.", "e.g. 0.005")
    old = open_table(options.old, options)
    report = compare(old, open_table(options.new, options), options.key, tolerance)
    if options.out:
        rows = [["added", key, None, None, None] for key in report["keys_added"]]
        rows += [["removed", key, None, None, None] for key in report["keys_removed"]]
        rows += [["changed", key, name, a, b] for key, name, a, b, _, _ in report["changes"]]
        with output_file(options.out, (".xlsx", ".csv", ".tsv"), force=options.force) as path:
            write_table(path, ["what", "key", "column", "old", "new"], rows, "Differences")
        report["written"] = options.out
    if options.json:
        for name in ("keys_added", "keys_removed", "changes"):
            report[f"{name}_left_out_here"] = max(0, len(report[name]) - 50)
            report[name] = report[name][:50]
        print(json.dumps(report, ensure_ascii=False, indent=1, default=str))
    else:
        print(as_text(report))
        if options.out:
            print(f"written: {options.out}")
    structure = report["columns_only_in_old"] or report["columns_only_in_new"]
    differ = report["added"] or report["removed"] or report["changed_rows"] or structure
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
