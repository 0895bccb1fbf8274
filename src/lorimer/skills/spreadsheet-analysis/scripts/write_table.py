"""Write a table as a formatted .xlsx, as CSV (UTF-8) or TSV; or as a new sheet of a workbook.

Numbers and dates become real ones, identifiers with leading zeros stay text, and text that begins
with '=' never becomes a formula. With --into the rows go into a copy of that workbook as a new
sheet; its other sheets and their formulas stay.

Examples:
  python write_table.py results.csv --out results.xlsx --sheet-name "By region"
  python write_table.py results.csv --into budget.xlsx --sheet-name Check --out budget-checked.xlsx
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from needs import fail, input_file, output_file
from table_io import (
    Table,
    add_reading_options,
    fill_sheet,
    load_workbook,
    open_table,
    sheet_title,
    write_table,
)

_LOST = {
    "xl/drawings/": "pictures, shapes and charts",
    "xl/pivotTables/": "pivot tables",
    "xl/slicers/": "slicers",
    "xl/vbaProject.bin": "macros",
}
_MOST_ROWS = 1_048_575


def typed(table: Table) -> Iterator[list[Any]]:
    """Rows with numbers and dates as such; what is not sure stays text."""
    reading = table.reading
    for _, cells in table.rows():
        out: list[Any] = []
        for cell in cells:
            kind = reading.kind(cell)
            if kind in ("integer", "number"):
                value: Any = reading.number(cell)
            elif kind == "date":
                found = reading.date(cell)
                value = found.replace(tzinfo=None) if found is not None else cell
            else:
                value = None if cell == "" else cell
            out.append(value)
        yield out


def counted(rows: Iterator[list[Any]], risky: list[int]) -> Iterator[list[Any]]:
    """Count text that a spreadsheet program would take for a formula when it opens a CSV."""
    for row in rows:
        risky[0] += sum(isinstance(c, str) and c[:1] in "=+-@" and len(c) > 1 for c in row)
        yield row


def add_sheet(table: Table, book_path: Path, name: str, out: Path) -> tuple[int, list[str]]:
    with zipfile.ZipFile(book_path) as packed:
        names = packed.namelist()
    lost = [what for start, what in _LOST.items() if any(n.startswith(start) for n in names)]
    book = load_workbook(book_path)
    if name.casefold() in {sheet.title.casefold() for sheet in book}:
        fail(f"{str(book_path)!r} has a sheet {name!r} already.", "choose another --sheet-name.")
    count = fill_sheet(book.create_sheet(name), table.header, typed(table))
    book.save(out)
    notes = ["saved values of formulas are gone until a spreadsheet program saves the copy"]
    if lost:
        notes.append(f"the copy may have lost {', '.join(lost)} of the workbook: tell the user")
    return count, notes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="CSV, TSV or XLSX with the rows")
    add_reading_options(parser)
    parser.add_argument("--out", required=True, help=".xlsx, .csv or .tsv")
    parser.add_argument("--into", metavar="WORKBOOK", help="add a sheet to a copy of this .xlsx")
    parser.add_argument("--sheet-name", default="Result")
    parser.add_argument("--force", action="store_true", help="replace --out where it exists")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    name = sheet_title(options.sheet_name)
    table = open_table(options.file, options)
    notes: list[str] = []
    suffixes = (".xlsx",) if options.into else (".xlsx", ".csv", ".tsv")
    for given in (options.file, options.into):
        if given and Path(given).resolve() == Path(options.out).resolve():
            fail("--out is one of the files that are read.", "write to another name.")
    with output_file(options.out, suffixes, force=options.force) as path:
        if options.into:
            count, notes = add_sheet(table, input_file(options.into), name, path)
        else:
            risky = [0]
            rows = counted(typed(table), risky)
            count = write_table(path, table.header, rows, name)
            if path.suffix != ".xlsx" and risky[0]:
                notes.append(
                    f"{risky[0]} texts begin with = + - or @: a spreadsheet program would run "
                    "them as formulas; an .xlsx is safe"
                )
        if count > _MOST_ROWS and path.suffix == ".xlsx":
            fail(f"{count:,} rows do not fit into a sheet.", "write a .csv.")
    if table.ragged:
        notes.append(f"{len(table.ragged)} rows were shorter or longer than the header")
    report = {"written": options.out, "rows": count, "notes": [*table.notes, *notes]}
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(f"written: {options.out} ({count:,} rows, {len(table.header)} columns)")
        for note in report["notes"]:
            print(f"note: {note}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
