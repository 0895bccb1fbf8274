"""What can be seen to be wrong in the text of a formula, without any saved value."""

from __future__ import annotations

import re

_STRINGS = re.compile(r'"(?:[^"]|"")*"')
_PLACE = re.compile(
    r"(?:(?P<sheet>'(?:[^']|'')+'|[^\W\d][\w.]*)!)?\$?(?P<c1>[A-Za-z]{1,3})\$?(?P<r1>[1-9]\d*)"
    r"(?::\$?(?P<c2>[A-Za-z]{1,3})\$?(?P<r2>[1-9]\d*))?(?![\w(!])"
)
_SHEET = re.compile(r"('(?:[^']|'')+'|[^\W\d][\w.]*)!")
_FUNCTION = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\s*\(")
_ONE_RANGE = re.compile(
    r"=\s*([A-Z]+)\(\s*\$?([A-Z]{1,3})\$?(\d+):\$?([A-Z]{1,3})\$?(\d+)\s*\)", re.IGNORECASE
)
Cell = tuple[int, int]


def _number(letters: str) -> int:
    number = 0
    for sign in letters.upper():
        number = number * 26 + ord(sign) - 64
    return number


def faults_of(
    formula: str, row: int, column: int, sheet: str, sheets: set[str]
) -> list[tuple[str, str]]:
    """(kind of fault, what) of one formula.

    Args:
        sheets: the case-folded names of all sheets of the workbook.
    """
    from openpyxl.utils import FORMULAE

    bare = _STRINGS.sub('""', formula)
    out = []
    if "#REF!" in bare.upper():
        out.append(("broken reference", "it refers to a cell that was deleted"))
    for found in _SHEET.finditer(bare):
        name = found[1].strip("'").replace("''", "'")
        inner = "[" in name or ":" in name or bare[found.start() - 1] in "]#"
        if not inner and name.casefold() not in sheets:
            out.append(("sheet is missing", f"there is no sheet {name!r}"))
    plain = re.sub(r"'(?:[^']|'')+'!", "", bare)
    for name in dict.fromkeys(n.upper() for n in _FUNCTION.findall(plain)):
        if name not in FORMULAE and name not in _NEWER and not name.startswith("_XL"):
            out.append(("unknown function", f"{name} is no function of Excel"))
    if re.search(r"/\s*0+(?:\.0*)?(?![\d.])(?!\s*[%^])", plain):
        out.append(("division by zero", ""))
    for found in _PLACE.finditer(bare):
        name = (found["sheet"] or sheet).strip("'").replace("''", "'")
        if name.casefold() != sheet.casefold():
            continue
        c1, r1 = _number(found["c1"]), int(found["r1"])
        c2, r2 = _number(found["c2"] or found["c1"]), int(found["r2"] or r1)
        own = min(c1, c2) <= column <= max(c1, c2) and min(r1, r2) <= row <= max(r1, r2)
        if own and not re.search(r"\b(ROWS?|COLUMNS?|CELL|OFFSET|ADDRESS)\(", bare.upper()):
            out.append(("refers to itself", found[0]))
            break
    return out


_NEWER = frozenset(
    """
    LET LAMBDA FILTER SORT SORTBY UNIQUE SEQUENCE XLOOKUP XMATCH TEXTJOIN CONCAT IFS SWITCH
    MAXIFS MINIFS TEXTSPLIT TEXTBEFORE TEXTAFTER VSTACK HSTACK TAKE DROP IFNA FORMULATEXT
    ISFORMULA IFERROR SUMIFS COUNTIFS AVERAGEIF AVERAGEIFS AGGREGATE SHEET SHEETS DAYS
    NETWORKDAYS.INTL WORKDAY.INTL STDEV.S STDEV.P VAR.S VAR.P PERCENTILE.INC PERCENTILE.EXC
    QUARTILE.INC RANK.EQ RANK.AVG MODE.SNGL NUMBERVALUE XOR ISOWEEKNUM GETPIVOTDATA HYPERLINK
    RTD FIELDVALUE
    """.split()  # noqa: SIM905
)
"""Functions that openpyxl's list, of an older Excel, does not know."""


def shorter_ranges(formulas: dict[Cell, str]) -> list[tuple[Cell, str]]:
    """Cells beside each other that work on ranges of which one ends or begins too early.

    Compared are formulas of one function and one range: in a row, over the cell's own column; in a
    column, over the cell's own row. Only the one with the shorter range is told.
    """
    parts: dict[Cell, tuple[str, str, int, int]] = {}
    for (row, column), text in formulas.items():
        found = _ONE_RANGE.fullmatch(text.strip())
        if found is None:
            continue
        left, right, top, bottom = (
            _number(found[2]),
            _number(found[4]),
            int(found[3]),
            int(found[5]),
        )
        if left == right == column:
            parts[row, column] = (found[1].upper(), "across", top, bottom)
        elif top == bottom == row:
            parts[row, column] = (found[1].upper(), "down", left, right)
    out: dict[Cell, str] = {}
    for (row, column), (name, way, first, last) in parts.items():
        down, across = (0, 1) if way == "across" else (1, 0)
        for side in (-1, 1):
            beside = (row + side * down, column + side * across)
            other = parts.get(beside)
            if other is None or other[:2] != (name, way):
                continue
            inside = other[2] <= first and last <= other[3]
            if inside and other[2:] != (first, last):
                mine, theirs = formulas[row, column], formulas[beside]
                out[row, column] = f"{mine}, beside it {theirs}"
    return sorted(out.items())
