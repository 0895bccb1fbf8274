"""Look at a table (CSV, TSV, XLSX) without printing it: one line for each column.

Prints how the file was read, rows, columns with type, gaps, distinct values and range, duplicate
rows, and what is odd. Changes nothing.

Example: python inspect_table.py "sales 2025.xlsx" --sheet Orders --rows 3
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import hashlib
import json
from collections import Counter
from decimal import Decimal
from typing import Any

from cells import Reading, is_percent, percent_note, plain, shown
from table_io import Table, add_reading_options, few, letter, open_table

_MOST_DISTINCT = 10_000
_MOST_COLUMNS = 60
_NUMERIC = {"integer", "number"}


class Column:
    """What is known of one column."""

    def __init__(self, name: str, place: int) -> None:
        self.name = name
        self.letter = letter(place)
        self.kinds: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.many = False
        self.sum = Decimal(0)
        self.low: Any = None
        self.high: Any = None
        self.padded = 0
        self.where: dict[str, int] = {}
        self.typed_text = 0
        self.percents: list[int] = []

    def add(self, cell: Any, row: int, reading: Reading, *, typed: bool) -> None:
        kind = reading.kind(cell)
        self.kinds[kind] += 1
        self.where.setdefault(kind, row)
        if kind == "empty":
            return
        if kind in _NUMERIC and is_percent(cell):
            self.percents.append(row)
        if isinstance(cell, str):
            self.padded += cell != cell.strip()
            self.typed_text += typed and kind in (*_NUMERIC, "date")
        if len(self.values) < _MOST_DISTINCT or shown(cell) in self.values:
            self.values[shown(cell)] += 1
        else:
            self.many = True
        value: Any = reading.number(cell) if kind in _NUMERIC else None
        if kind in _NUMERIC and value is not None:
            self.sum += value
        elif kind == "date":
            value = reading.date(cell)
            value = value.replace(tzinfo=None) if value is not None else None
        if value is not None and (self.low is None or type(value) is type(self.low)):
            self.low = value if self.low is None else min(self.low, value)
            self.high = value if self.high is None else max(self.high, value)

    @property
    def type(self) -> str:
        kinds = {k: n for k, n in self.kinds.items() if k not in ("empty", "error")}
        if not kinds:
            return "empty"
        if set(kinds) <= _NUMERIC:
            return "number" if "number" in kinds else "integer"
        if len(kinds) == 1:
            return next(iter(kinds))
        return "identifier" if set(kinds) <= {"identifier", "integer"} else "mixed"

    def report(self) -> dict[str, Any]:
        filled = sum(self.values.values())
        out: dict[str, Any] = {
            "column": self.letter,
            "name": self.name,
            "type": self.type,
            "missing": self.kinds["empty"],
            "distinct": f">{_MOST_DISTINCT}" if self.many else len(self.values),
        }
        if self.low is not None and self.type not in ("identifier", "text"):
            out["min"], out["max"] = shown(self.low), shown(self.high)
        if self.type in _NUMERIC:
            out["sum"] = plain(self.sum)
        if self.values:
            common = self.values.most_common(3)
            repeated = not self.many and len(self.values) < filled
            key = "most_common" if repeated else "examples"
            out[key] = [f"{v} ×{n}" if repeated else v for v, n in common]
        if self.type == "mixed" or self.kinds["error"]:
            out["kinds"] = {k: n for k, n in self.kinds.most_common() if k != "empty"}
            out["first_row_of_kind"] = {k: self.where[k] for k in out["kinds"]}
        return out

    def oddities(self) -> list[str]:
        name = repr(self.name)
        out = percent_note(name, self.percents, self.kinds["integer"] + self.kinds["number"])
        if self.padded:
            out.append(f"{name}: {self.padded} cell(s) begin or end with spaces")
        if self.kinds["error"]:
            row = self.where["error"]
            out.append(f"{name}: {self.kinds['error']} error value(s) (first in row {row})")
        if self.typed_text:
            out.append(f"{name}: {self.typed_text} number(s) or date(s) are stored as text")
        if self.type == "mixed":
            rest = self.kinds.copy()
            rest.pop("empty", None)
            (usual, _), *others = rest.most_common()
            odd = ", ".join(f"{n} {k} (first in row {self.where[k]})" for k, n in others)
            out.append(f"{name}: mostly {usual}, but {odd}")
        if self.type == "identifier":
            out.append(f"{name}: digits with leading zeros, or very long: kept as text, not summed")
        folded = Counter(v.casefold() for v in self.values)
        twins = [v for v in self.values if folded[v.casefold()] > 1] if not self.many else []
        if twins:
            out.append(f"{name}: values differ only in capitals: {', '.join(sorted(twins)[:4])}")
        return out


def inspect(table: Table, keep: int) -> dict[str, Any]:
    """Read the table to its end."""
    columns = [Column(name, n) for n, name in enumerate(table.header)]
    seen: dict[bytes, int] = {}
    doubles: list[tuple[int, int]] = []
    examples: list[list[str]] = []
    count, typed = 0, table.facts["kind"] == "workbook"
    for number, cells in table.rows():
        count += 1
        for column, cell in zip(columns, cells, strict=True):
            column.add(cell, number, table.reading, typed=typed)
        key = hashlib.blake2b(repr(cells).encode("utf-8", "replace"), digest_size=16).digest()
        if key in seen:
            doubles.append((number, seen[key]))
        else:
            seen[key] = number
        if count <= keep:
            examples.append([shown(c) for c in cells])
    notes = list(table.notes)
    if table.ragged:
        notes.append(
            f"{len(table.ragged)} row(s) have fewer or more cells than the header ("
            f"{few(table.ragged)}); cells beyond the header are not in this summary"
        )
    if table.totals:
        notes.append(
            f"row(s) {few(table.totals)} look like totals: the sums above count them; "
            "summarise_table.py leaves them out"
        )
    notes += [line for column in columns for line in column.oddities()]
    return {
        "read_as": table.facts,
        "rows": count,
        "columns": [column.report() for column in columns],
        "duplicate_rows": {"count": len(doubles), "examples": [list(d) for d in doubles[:5]]},
        "first_rows": examples,
        "notes": notes,
    }


def as_text(path: str, report: dict[str, Any]) -> str:
    facts = ", ".join(
        f"{key.replace('_', ' ')} {value}"
        for key, value in report["read_as"].items()
        if value not in (None, [], "") and key != "sheets"
    )
    lines = [f"{path}: {report['rows']:,} rows, {len(report['columns'])} columns ({facts})"]
    for column in report["columns"][:_MOST_COLUMNS]:
        parts = [f"missing {column['missing']:,}", f"distinct {column['distinct']}"]
        if "min" in column:
            parts.append(f"{column['min']} … {column['max']}")
        if "sum" in column:
            parts.append(f"sum {column['sum']}")
        for key in ("most_common", "examples"):
            if key in column and column["type"] not in ("integer", "number", "date"):
                parts.append(f"{key.replace('_', ' ')}: {' | '.join(column[key])}")
        head = f"{column['column']:>3} {column['name']} [{column['type']}]"
        lines.append(f"{head}  {'; '.join(parts)}")
    if len(report["columns"]) > _MOST_COLUMNS:
        lines.append(f"    {len(report['columns']) - _MOST_COLUMNS} more columns: see --json")
    doubles = report["duplicate_rows"]
    if doubles["count"]:
        pairs = ", ".join(f"{a} = {b}" for a, b in doubles["examples"])
        lines.append(f"duplicate rows: {doubles['count']:,} (rows {pairs})")
    else:
        lines.append("duplicate rows: none")
    if report["first_rows"]:
        lines.append("first rows:")
        lines += [f"    {' | '.join(row)}"[:400] for row in report["first_rows"]]
    lines += [f"note: {note}" for note in report["notes"]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    add_reading_options(parser)
    parser.add_argument("--rows", type=int, default=0, help="show so many first rows (at most 20)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report = inspect(open_table(options.file, options), min(max(options.rows, 0), 20))
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(as_text(options.file, report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
