"""Working out simple spreadsheet formulas from saved cell values.

Grammar: numbers, percent, + - * / ^, parentheses, references (A1, $B$2, Sheet!C3, 'My sheet'!C3),
ranges inside SUM, AVERAGE, MIN, MAX, COUNT, and ROUND, ABS. Everything else is `NotKnown`.
As in spreadsheets, `-2^2` is 4, and `^` binds from the left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)"
    r"|(?P<ref>(?:'(?:[^']|'')+'!|[A-Za-z_][\w.]*!)?\$?[A-Za-z]{1,3}\$?[1-9]\d*"
    r"(?::\$?[A-Za-z]{1,3}\$?[1-9]\d*)?)(?![\w(])"
    r"|(?P<name>[A-Za-z][\w.]*)\s*\((?P<open>)"
    r"|(?P<sign>[-+*/^%(),;]))"
)
_MOST_CELLS = 2_000_000


class NotKnown(Exception):
    """This formula, or a value in it, is not one that we work out; says why."""


def evaluate(formula: str, sheet: str, sheets: dict[str, Any]) -> float:
    """The value of a formula (without its `=`).

    Args:
        sheets: worksheets with saved values, by case-folded name.

    Raises:
        NotKnown: for anything beyond the grammar above.
    """
    reader = _Reader(formula, sheet, sheets)
    value = reader.sum()
    if reader.peek() != ("end", ""):
        raise NotKnown(f"sign {reader.peek()[1]}")
    if isinstance(value, list) or not math.isfinite(value):
        raise NotKnown("range as a value")
    return value


class _Reader:
    def __init__(self, formula: str, sheet: str, sheets: dict[str, Any]) -> None:
        self.sheet, self.sheets = sheet, sheets
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(formula.rstrip()):
            found = _TOKEN.match(formula, at)
            if found is None:
                raise NotKnown(f"sign {formula[at:].strip()[:1]}")
            kind = next(k for k in ("number", "ref", "name", "sign") if found[k] is not None)
            self.tokens.append((kind, found[kind]))
            at = found.end()
        self.tokens.append(("end", ""))
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def take(self) -> tuple[str, str]:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def sum(self) -> Any:
        value = self.product()
        while self.peek() in (("sign", "+"), ("sign", "-")):
            sign = self.take()[1]
            other = _one(self.product())
            value = _one(value) + other if sign == "+" else _one(value) - other
        return value

    def product(self) -> Any:
        value = self.power()
        while self.peek() in (("sign", "*"), ("sign", "/")):
            sign = self.take()[1]
            other = _one(self.power())
            if sign == "/" and other == 0:
                raise NotKnown("division by zero")
            value = _one(value) * other if sign == "*" else _one(value) / other
        return value

    def power(self) -> Any:
        value = self.signed()
        while self.peek() == ("sign", "^"):
            self.take()
            try:
                value = float(_one(value) ** _one(self.signed()))
            except (TypeError, ZeroDivisionError, OverflowError):
                raise NotKnown("a power that has no value") from None
        return value

    def signed(self) -> Any:
        if self.peek() in (("sign", "-"), ("sign", "+")):
            sign = self.take()[1]
            value = _one(self.signed())
            return -value if sign == "-" else value
        value = self.atom()
        while self.peek() == ("sign", "%"):
            self.take()
            value = _one(value) / 100
        return value

    def atom(self) -> Any:
        kind, text = self.take()
        if kind == "number":
            return float(text)
        if kind == "ref":
            return self.reference(text)
        if kind == "name":
            return self.function(text.upper())
        if text == "(":
            value = self.sum()
            self.close()
            return value
        raise NotKnown(f"sign {text}" if text else "an unfinished formula")

    def close(self) -> None:
        if self.take() != ("sign", ")"):
            raise NotKnown("parentheses")

    def function(self, name: str) -> float:
        arguments: list[Any] = []
        while self.peek() != ("sign", ")"):
            arguments.append(self.sum())
            if self.peek() in (("sign", ","), ("sign", ";")):
                self.take()
        self.close()
        if name == "ROUND" and len(arguments) == 2:
            place = Decimal(1).scaleb(-int(_one(arguments[1])))
            value = Decimal(str(_one(arguments[0])))
            return float((value / place).quantize(Decimal(1), ROUND_HALF_UP) * place)
        if name == "ABS" and len(arguments) == 1:
            return abs(_one(arguments[0]))
        if name not in _OVER:
            raise NotKnown(name)
        numbers: list[float] = []
        for argument in arguments:
            numbers += _numbers(argument) if isinstance(argument, list) else [_one(argument)]
        if not numbers and name == "AVERAGE":
            raise NotKnown("average of nothing")
        return _OVER[name](numbers)

    def reference(self, text: str) -> Any:
        name, _, cells = text.rpartition("!")
        name = name.strip("'").replace("''", "'") if name else self.sheet
        sheet = self.sheets.get(name.casefold())
        if sheet is None:
            raise NotKnown(f"sheet {name}")
        found = sheet[cells.replace("$", "").upper()]
        if not isinstance(found, tuple):
            return [found.value] if ":" in text else _Cell(found.value)
        values = [
            cell.value for row in found for cell in (row if isinstance(row, tuple) else [row])
        ]
        if len(values) > _MOST_CELLS:
            raise NotKnown("a very large range")
        return values


class _Cell(list[Any]):
    """A reference to one cell: a number where a value is needed, passed over as text in SUM."""

    def __init__(self, value: Any) -> None:
        super().__init__([value])


def _one(value: Any) -> float:
    if isinstance(value, _Cell):
        inner = value[0]
        if inner is None:
            return 0.0
        if isinstance(inner, bool) or not isinstance(inner, (int, float)):
            raise NotKnown("text or a date in a sum")
        return float(inner)
    if isinstance(value, list):
        raise NotKnown("range as a value")
    return float(value)


def _numbers(values: list[Any]) -> list[float]:
    if any(isinstance(v, str) and v.startswith("#") for v in values):
        raise NotKnown("an error value in a range")
    return [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]


_OVER: dict[str, Callable[[list[float]], float]] = {
    "SUM": math.fsum,
    "AVERAGE": lambda v: math.fsum(v) / len(v),
    "MIN": lambda v: min(v, default=0.0),
    "MAX": lambda v: max(v, default=0.0),
    "COUNT": lambda v: float(len(v)),
}
