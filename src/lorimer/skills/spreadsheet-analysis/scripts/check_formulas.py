"""Formulas of a workbook against the values that were saved with them.

Lists each formula once per pattern, and finds: error values, formulas without a saved value,
saved values that are no longer right, broken references, missing sheets, unknown functions, cells
that refer to themselves, division by 0, a range shorter than its neighbour's (worked out again
for + - * / ^ and SUM, AVERAGE, MIN, MAX, COUNT, ROUND, ABS), a formula unlike its neighbours, a
number typed over a formula, links to other files. Changes nothing and runs no macro.

Exit code 0: nothing found. 1: something was found.

Example: python check_formulas.py budget.xlsx --sheet Plan
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse
import json
import re
from collections import Counter, defaultdict
from typing import Any

from arithmetic import NotKnown, evaluate
from formula_faults import faults_of, shorter_ranges
from needs import fail, input_file
from table_io import choose_sheet, letter, load_workbook, refuse_others

_REFERENCE = re.compile(r"(\$?)([A-Z]{1,3})(\$?)([1-9]\d*)(?![\w(])")
_EXTERNAL = re.compile(r"\[\d+\]|\[[^\]]+\.xls[xmb]?\]", re.IGNORECASE)
_MOST = 40


def column_number(letters: str) -> int:
    number = 0
    for sign in letters:
        number = number * 26 + ord(sign) - 64
    return number


def relative(formula: str, row: int, column: int) -> str:
    """A formula with its references as distances, so that copies of it read the same."""

    def one(found: re.Match[str]) -> str:
        fixed_column, letters, fixed_row, digits = found.groups()
        across = letters if fixed_column else f"C{column_number(letters) - column:+d}"
        down = digits if fixed_row else f"R{int(digits) - row:+d}"
        return f"⟨{down},{across}⟩"

    parts = re.split(r"(\"(?:[^\"]|\"\")*\")", formula)
    return "".join(p if n % 2 else _REFERENCE.sub(one, p) for n, p in enumerate(parts))


class Findings:
    """What is wrong, by kind, with the first places."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, text: str) -> None:
        self.found[kind].append(text)


def check(sheet: Any, values: Any, books: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """Look at each formula of one sheet."""
    patterns: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    at: dict[tuple[int, int], str] = {}
    texts: dict[tuple[int, int], str] = {}
    checked = unknown = unsaved = 0
    why: Counter[str] = Counter()
    for row in sheet.iter_rows():
        for cell in row:
            text = getattr(cell.value, "text", cell.value)
            if not (isinstance(text, str) and text.startswith("=") and cell.data_type != "s"):
                continue
            place = f"{sheet.title}!{cell.coordinate}"
            saved = values[cell.coordinate].value
            pattern = relative(text, cell.row, cell.column)
            patterns[pattern].append((cell.row, cell.column, text))
            at[cell.row, cell.column] = pattern
            if _EXTERNAL.search(text):
                findings.add("link to another file", f"{place} {text}"[:120])
            for kind, what in faults_of(text, cell.row, cell.column, sheet.title, set(books)):
                findings.add(kind, f"{place} {text}"[:120] + (f": {what}" if what else ""))
            texts[cell.row, cell.column] = text
            if saved is None:
                unsaved += 1
                findings.add("no saved value", f"{place} {text}"[:120])
                continue
            if isinstance(saved, str) and saved.startswith("#"):
                findings.add("error value", f"{place} is {saved}: {text}"[:120])
                continue
            try:
                right = evaluate(text[1:], sheet.title, books)
            except NotKnown as fault:
                unknown += 1
                why[str(fault)] += 1
                continue
            checked += 1
            if isinstance(saved, bool) or not isinstance(saved, (int, float)):
                continue
            if abs(right - saved) > max(1e-9, abs(right) * 1e-9):
                findings.add(
                    "saved value is not right",
                    f"{place} {text} is saved as {saved:g}, but gives {right:g}",
                )
    _neighbours(sheet, at, findings)
    for (row, column), what in shorter_ranges(texts):
        place = f"{sheet.title}!{letter(column - 1)}{row}"
        findings.add("range shorter than its neighbour's", f"{place} {what}")
    return {
        "sheet": sheet.title,
        "state": sheet.sheet_state,
        "formulas": len(at),
        "patterns": [
            {"formula": cells[0][2], "cells": len(cells), "where": _range(cells)}
            for cells in sorted(patterns.values(), key=len, reverse=True)
        ],
        "worked_out_again": checked,
        "not_worked_out": unknown,
        "without_saved_value": unsaved,
        "because": dict(why.most_common(5)),
    }


def _neighbours(sheet: Any, at: dict[tuple[int, int], str], findings: Findings) -> None:
    """A cell whose neighbours on both sides hold the same formula, but not it itself."""
    for (row, column), pattern in at.items():
        for down, across in ((1, 0), (0, 1)):
            beyond = at.get((row + 2 * down, column + 2 * across))
            if beyond != pattern:
                continue
            between = sheet.cell(row + down, column + across)
            mine = at.get((between.row, between.column))
            place = f"{sheet.title}!{between.coordinate}"
            if mine is None and isinstance(between.value, (int, float)):
                findings.add("number typed over a formula", f"{place} is {between.value}")
            elif mine is not None and mine != pattern:
                findings.add("formula unlike its neighbours", f"{place} {between.value}"[:120])


def _range(cells: list[tuple[int, int, str]]) -> str:
    rows, columns = [c[0] for c in cells], [c[1] for c in cells]
    first = f"{letter(min(columns) - 1)}{min(rows)}"
    last = f"{letter(max(columns) - 1)}{max(rows)}"
    full = (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1) == len(cells)
    return first if first == last else f"{first}:{last}" + ("" if full else " (with gaps)")


def as_text(path: str, report: dict[str, Any], most: int = 8) -> str:
    lines = [f"{path}: {sum(s['formulas'] for s in report['sheets']):,} formulas"]
    for sheet in report["sheets"]:
        hidden = "" if sheet["state"] == "visible" else f" ({sheet['state']})"
        lines.append(
            f"{sheet['sheet']}{hidden}: {sheet['formulas']:,} formulas in "
            f"{len(sheet['patterns'])} patterns"
        )
        parts = [f"{sheet['worked_out_again']:,} compared with their saved value"]
        if sheet["without_saved_value"]:
            parts.append(f"{sheet['without_saved_value']:,} without a saved value to compare with")
        if sheet["not_worked_out"]:
            why = ", ".join(sheet["because"])
            parts.append(f"{sheet['not_worked_out']:,} beyond this check ({why})")
        lines.append(f"    {'; '.join(parts)}")
        for pattern in sheet["patterns"][:15]:
            formula = pattern["formula"][:90]
            lines.append(f"    {pattern['where']} ×{pattern['cells']}: {formula}")
        if len(sheet["patterns"]) > 15:
            lines.append(f"    {len(sheet['patterns']) - 15} more patterns: see --json")
    for kind, places in report["findings"].items():
        lines.append(f"FOUND {kind}: {len(places):,}")
        lines += [f"    {place}" for place in places[:most]]
        if len(places) > most:
            lines.append(f"    and {len(places) - most:,} more: --all shows them")
    if not report["findings"]:
        lines.append("nothing found")
    if "no saved value" in report["findings"]:
        lines.append(
            "next: values without a saved value appear when a spreadsheet program opens and saves "
            "the file; until then work them out yourself and say so"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--sheet", help="only this one; default: all")
    parser.add_argument("--all", action="store_true", help="show every place, not the first 8")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    path = input_file(options.file)
    with path.open("rb") as file:
        start = file.read(8)
    if not start.startswith(b"PK\x03\x04"):
        refuse_others(path, start)
        fail(f"{options.file!r} is a text file; it has no formulas.", "use inspect_table.py.")
    formulas = load_workbook(path)
    values = load_workbook(path, data_only=True)
    chosen = [choose_sheet(formulas, options.sheet, path)] if options.sheet else formulas.worksheets
    books = {sheet.title.casefold(): values[sheet.title] for sheet in formulas.worksheets}
    findings = Findings()
    sheets = [check(one, values[one.title], books, findings) for one in chosen]
    report = {
        "sheets": sheets,
        "findings": dict(findings.found),
        "charts": [s.title for s in formulas.chartsheets],
    }
    if options.json:
        print(json.dumps(report, ensure_ascii=False, indent=1, default=str))
    else:
        print(as_text(options.file, report, sys.maxsize if options.all else 8))
    return 1 if findings.found else 0


if __name__ == "__main__":
    raise SystemExit(main())
