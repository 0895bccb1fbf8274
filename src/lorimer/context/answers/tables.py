"""Tables in results that are text: CSV, tab-separated, and with bars, read as lists of records."""

from __future__ import annotations

import csv
import re
from typing import Any, Final

from lorimer.context.answers.records import Numeral

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_RULE = re.compile(r"[\s|:+=-]*")
_MOST_LINES: Final = 20_000


def table_in(text: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of the longest table in `text`, by the names in its first line, and the text without
    it; `[]` and the whole text without one.

    A table is at least two lines that follow each other, with the same number (two or more) of
    fields. Numbers are `Numeral`.
    """
    lines = text.split("\n")[:_MOST_LINES]
    for mark in ("\t", ",", ";", "|"):
        rows, used = _rows(lines, mark)
        if rows:
            rest = [line for n, line in enumerate(lines) if n not in used]
            return rows, "\n".join(rest)
    return [], text


def _rows(lines: list[str], mark: str) -> tuple[list[dict[str, Any]], set[int]]:
    """The rows, and the numbers of their lines."""
    run = _longest(
        [(n, _fields(line, mark)) for n, line in enumerate(lines) if not _RULE.fullmatch(line)]
    )
    if len(run) < 2:
        return [], set()
    names = [name.strip() for name in run[0][1]]
    if len(set(names)) != len(names) or not all(names):
        return [], set()
    if all(_NUMBER.fullmatch(name) for name in names):
        return [], set()
    rows = [dict(zip(names, map(_field, fields), strict=True)) for _, fields in run[1:]]
    return rows, {n for n, _ in run}


def _fields(line: str, mark: str) -> list[str]:
    if mark not in line:
        return []
    if mark == "|":
        return [field.strip() for field in line.strip().strip("|").split("|")]
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:
        return []


def _longest(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """The longest run of rows with one number of fields."""
    runs: list[list[tuple[int, list[str]]]] = [[]]
    for n, row in rows:
        if len(row) < 2 or (runs[-1] and len(runs[-1][0][1]) != len(row)):
            runs.append([])
        if len(row) >= 2:
            runs[-1].append((n, row))
    return max(runs, key=len)


def _field(text: str) -> str:
    text = text.strip()
    return Numeral(text) if _NUMBER.fullmatch(text) else text
