"""Totals, groups and pivots of a table, exactly (decimal numbers), with what was left out.

Measures: sum:COLUMN, mean:COLUMN, median:COLUMN, min:COLUMN, max:COLUMN, distinct:COLUMN, count.
Dates can be cut for grouping: "Date:year", "Date:month", "Date:quarter", "Date:day".
Conditions of --where: "Region=North", "Status!=open", "Amount>=100", "Name~text" (contains);
several count together; dates as 2025-01-31.

Examples:
  python summarise_table.py sales.csv --by Region --measure sum:Amount --measure count
  python summarise_table.py sales.csv --by Date:month --pivot Region --measure sum:Amount \\
      --out months.xlsx
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import operator
import re
import statistics
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from cells import (
    CUTS,
    MISSING,
    NO_DATE,
    Reading,
    is_gap,
    is_percent,
    percent_note,
    plain,
    shown,
)
from needs import fail, output_file
from table_io import Table, add_reading_options, few, open_table, write_table

_NUMBERS = ("sum", "mean", "median", "min", "max")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne, "<=": operator.le, ">=": operator.ge,
    "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
Condition = Callable[[list[Any]], bool]


class Measure:
    """One thing to work out for each group."""

    def __init__(self, text: str, table: Table) -> None:
        self.name = text
        how, _, column = text.partition(":")
        if how not in (*_NUMBERS, "distinct", "count") or (how != "count") != bool(column):
            fail(f"{text!r} is no measure.", "e.g. sum:Amount, distinct:Customer, or count.")
        self.how = how
        self.place = table.column(column) if column else -1
        self.groups: dict[tuple[str, ...], list[Any]] = defaultdict(list)
        self.every: list[Any] = []
        self.not_numbers: list[int] = []
        self.gaps = 0
        self.percents: list[int] = []

    def add(self, key: tuple[str, ...], cells: list[Any], row: int, reading: Reading) -> None:
        value: Any = 1
        if self.how != "count":
            cell = cells[self.place]
            if is_gap(cell):
                self.gaps += 1
                return
            value = reading.number(cell) if self.how in _NUMBERS else shown(cell, 200)
            if value is None:
                self.not_numbers.append(row)
                return
            if self.how in _NUMBERS and is_percent(cell):
                self.percents.append(row)
        self.groups[key].append(value)
        self.every.append(value)

    def of(self, values: list[Any]) -> Any:
        """The result for one group; `None` where there is nothing to work with."""
        if self.how == "count":
            return len(values)
        if self.how == "distinct":
            return len(set(values))
        if not values:
            return None
        if self.how == "mean":
            return sum(values, Decimal(0)) / len(values)
        if self.how == "median":
            return statistics.median(values)
        return {"sum": lambda v: sum(v, Decimal(0)), "min": min, "max": max}[self.how](values)

    def left_out(self) -> list[str]:
        out = percent_note(self.name, self.percents, len(self.every))
        if self.gaps:
            out.append(f"{self.name}: {self.gaps:,} empty cell(s) left out")
        if self.not_numbers:
            few = ", ".join(map(str, self.not_numbers[:5]))
            out.append(
                f"{self.name}: {len(self.not_numbers):,} cell(s) that are no numbers left out "
                f"(rows {few}{' …' if len(self.not_numbers) > 5 else ''})"
            )
        return out


def grouping(text: str, table: Table) -> Callable[[list[Any]], str]:
    """A column to group by, or a part of its dates."""
    column, _, cut = text.rpartition(":")
    if cut in CUTS and column and text not in table.header:
        place, form = table.column(column), CUTS[cut]

        def by_date(cells: list[Any]) -> str:
            date = table.reading.date(cells[place])
            return form(date) if date is not None else NO_DATE

        return by_date
    place = table.column(text)
    return lambda cells: MISSING if is_gap(cells[place]) else shown(cells[place], 80).strip()


def condition(text: str, table: Table) -> Condition:
    found = re.fullmatch(r"(.+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*)", text)
    if found is None:
        return fail(f"{text!r} is no condition.", 'e.g. --where "Region=North" or "Amount>=100".')
    place, sign, wanted = table.column(found[1]), found[2], found[3]
    reading = table.reading
    if sign == "~":
        return lambda cells: wanted.casefold() in shown(cells[place], 10_000).casefold()
    compare = _SIGNS[sign]
    number, date = reading.number(wanted), reading.date(wanted)

    def holds(cells: list[Any]) -> bool:
        cell = cells[place]
        if is_gap(cell):
            return (sign == "=" and wanted == "") or (sign == "!=" and wanted != "")
        for value, given in ((number, reading.number(cell)), (date, reading.date(cell))):
            if value is not None and given is not None:
                return compare(given, value)
        if sign in ("=", "!="):
            return compare(shown(cell, 10_000).casefold(), wanted.casefold())
        return False

    return holds


def summarise(table: Table, options: Any) -> dict[str, Any]:
    """Read the table to its end and work out each group."""
    groups = [grouping(text, table) for text in options.by]
    pivot = grouping(options.pivot, table) if options.pivot else None
    if pivot is not None and len(options.measure) != 1:
        fail("a pivot takes one --measure.", "run it once for each measure.")
    conditions = [condition(text, table) for text in options.where]
    measures = [Measure(text, table) for text in options.measure]
    table.keep_totals = options.keep_totals
    read = used = 0
    keys: dict[tuple[str, ...], int] = {}
    columns: set[str] = set()
    for row, cells in table.rows():
        read += 1
        if not all(one(cells) for one in conditions):
            continue
        used += 1
        key = tuple(group(cells) for group in groups)
        keys[key] = keys.get(key, 0) + 1
        if pivot is not None:
            across = pivot(cells)
            columns.add(across)
            key = (*key, across)
        for measure in measures:
            measure.add(key, cells, row, table.reading)
    if pivot is not None:
        header, rows, total = _pivoted(options, measures[0], list(keys), sorted(columns))
    else:
        header = [*options.by, *[m.name for m in measures]]
        rows = [[*key, *[m.of(m.groups.get(key, [])) for m in measures]] for key in keys]
        total = [*["(all)"] * len(options.by), *[m.of(m.every) for m in measures]]
    _sort(rows, options, header)
    notes = [*table.notes, *[line for m in measures for line in m.left_out()]]
    if table.ragged:
        notes.append(f"row(s) {few(table.ragged)} are shorter or longer than the header")
    return {
        "rows_read": read, "rows_used": used, "header": header, "groups": len(rows),
        "rows": rows, "total": total, "notes": notes,
    }  # fmt: skip


def _pivoted(
    options: Any, measure: Measure, keys: list[tuple[str, ...]], columns: list[str]
) -> tuple[list[str], list[list[Any]], list[Any]]:
    header = [*options.by, *columns, "(all)"]
    rows = []
    for key in keys:
        parts = [measure.groups.get((*key, column), []) for column in columns]
        together = [value for part in parts for value in part]
        found = [measure.of(part) if part else None for part in parts]
        rows.append([*key, *found, measure.of(together)])
    total: list[Any] = ["(all)"] * len(options.by)
    for column in columns:
        every = [v for key in keys for v in measure.groups.get((*key, column), [])]
        total.append(measure.of(every))
    return header, rows, [*total, measure.of(measure.every)]


def _sort(rows: list[list[Any]], options: Any, header: list[str]) -> None:
    width = len(options.by)
    if options.sort == "value" and len(header) > width:
        last = -1 if options.pivot else width
        rows.sort(key=lambda row: (row[last] is None, -(row[last] or 0), row[:width]))
    else:
        rows.sort(key=lambda row: row[:width])


def as_text(report: dict[str, Any], top: int) -> str:
    lines = [f"{report['rows_used']:,} of {report['rows_read']:,} rows, {report['groups']} groups"]
    shown_rows = report["rows"][:top]
    table = [report["header"], *[[_cell(c) for c in row] for row in shown_rows]]
    if len(report["rows"]) > 1:
        table.append([_cell(c) for c in report["total"]])
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    numeric = [all(not isinstance(r[n], str) for r in report["rows"]) for n in range(len(widths))]
    for row in table:
        cells = [
            c.rjust(w) if right else c.ljust(w)
            for c, w, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    if len(report["rows"]) > top:
        lines.append(f"{len(report['rows']) - top} more groups: --top, or --out FILE for all")
    lines += [f"note: {note}" for note in report["notes"]]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return plain(round(value, 4)) if isinstance(value, Decimal) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    add_reading_options(parser)
    parser.add_argument("--by", action="append", default=[], metavar="COLUMN")
    parser.add_argument("--pivot", metavar="COLUMN", help="its values become columns")
    parser.add_argument("--measure", action="append", default=[], metavar="HOW:COLUMN")
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION")
    parser.add_argument(
        "--keep-totals", action="store_true", help="count rows like 'Total' as well"
    )
    parser.add_argument("--sort", choices=("value", "name"), default="name")
    parser.add_argument("--top", type=int, default=20, help="show so many groups (default 20)")
    parser.add_argument("--out", metavar="FILE", help="write all groups: .xlsx, .csv or .tsv")
    parser.add_argument("--force", action="store_true", help="replace --out where it exists")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.measure = options.measure or ["count"]
    report = summarise(open_table(options.file, options), options)
    if options.out:
        rows = [*report["rows"], *([report["total"]] if len(report["rows"]) > 1 else [])]
        with output_file(options.out, (".xlsx", ".csv", ".tsv"), force=options.force) as path:
            write_table(path, report["header"], rows, "Summary")
        report["written"] = options.out
    if options.json:
        report["rows_left_out_here"] = max(0, len(report["rows"]) - options.top)
        report["rows"] = report["rows"][: options.top]
        print(json.dumps(report, ensure_ascii=False, indent=1, default=str))
    else:
        print(as_text(report, max(options.top, 1)))
        if options.out:
            print(f"written: {options.out} ({report['groups']} groups)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
