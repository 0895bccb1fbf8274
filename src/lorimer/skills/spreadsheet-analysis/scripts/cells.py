"""What a cell means: numbers, dates, gaps, identifiers; from text or from a typed cell."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

GAPS = frozenset({"", "na", "n/a", "#n/a", "null", "none", "nan", "-", "–", "—", "?"})
ERRORS = frozenset(
    {"#ref!", "#div/0!", "#value!", "#name?", "#num!", "#null!", "#spill!", "#calc!"}
)
_SIGNS = re.compile(r"[€$£¥₹%]|\b(?:EUR|USD|GBP|CHF|JPY)\b")
_DOT = re.compile(r"[-+]?(?:\d{1,3}(?:[,' \u00a0\u202f]\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")
_COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:[.' \u00a0\u202f]\d{3})+|\d+)?(?:,\d+)?(?:[eE][-+]?\d+)?")
_SURELY_COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:[. ]\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,})|0,\d+)")
_SURELY_DOT = re.compile(r"[-+]?(?:\d{1,3}(?:[, ]\d{3})+\.\d+|\d+\.(?:\d{1,2}|\d{4,})|0\.\d+)")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")


CUTS: dict[str, Callable[[dt.datetime], str]] = {
    "year": lambda d: f"{d.year}",
    "quarter": lambda d: f"{d.year}-Q{(d.month + 2) // 3}",
    "month": lambda d: f"{d.year}-{d.month:02}",
    "day": lambda d: d.strftime("%Y-%m-%d"),
}
"""Parts of a date by which rows are put together, as in `Date:month`."""
NO_DATE, MISSING = "(no date)", "(missing)"
_TOTALS = re.compile(
    r"\(?(?:(?:grand|overall) )?(?:sub-?)?totals?\)?|sum|\(all\)|"
    r"(?:gesamt|zwischen|end)?summe|(?:ins)?gesamt|(?:sous-)?total(?: g[eé]n[eé]ral)?|somme|"
    r"totale|suma|合計|总计|合计|小計|总和"
)


def is_total(cells: Iterable[Any]) -> bool:
    """Whether a row is a total of other rows: its first filled cell says so."""
    first = next((cell for cell in cells if not is_gap(cell)), None)
    if not isinstance(first, str):
        return False
    return _TOTALS.fullmatch(" ".join(first.casefold().split()).rstrip(": ")) is not None


def is_percent(cell: Any) -> bool:
    return isinstance(cell, str) and "%" in cell


def percent_note(name: str, rows: list[int], numbers: int) -> list[str]:
    """What is said of a column with `12%` in `rows` beside `numbers` other numbers."""
    if not rows or len(rows) >= numbers:
        return []
    few = ", ".join(map(str, rows[:5])) + (" …" if len(rows) > 5 else "")
    return [
        f"{name}: {len(rows)} cell(s) with % (rows {few}) stand among {numbers - len(rows)} "
        "numbers without; 12% counts as 0.12: ask what is meant"
    ]


class Reading:
    """How the cells of one file are read.

    Attributes:
        decimal: `.` or `,`.
        slashes: whether 3/4/2025 is `mdy` (March 4) or `dmy`; `?` where no cell tells.
        notes: what was guessed.
    """

    def __init__(self, decimal: str = ".", slashes: str = "mdy") -> None:
        self.decimal = decimal
        self.slashes = slashes
        self.notes: list[str] = []

    @classmethod
    def of(cls, cells: Iterable[Any], *, decimal: str = "auto", delimiter: str = "") -> Reading:
        """Guess from a sample of cells; what is not sure is noted."""
        comma = dot = unsure = month_first = day_first = slashed = 0
        for cell in cells:
            if not isinstance(cell, str):
                continue
            text = _SIGNS.sub("", cell).strip()
            comma += bool(_SURELY_COMMA.fullmatch(text))
            dot += bool(_SURELY_DOT.fullmatch(text))
            unsure += bool(re.fullmatch(r"[-+]?\d{1,3}[.,]\d{3}", text))
            if found := _SLASHED.fullmatch(text):
                slashed += 1
                month_first += int(found[2]) > 12
                day_first += int(found[1]) > 12
        one = cls(decimal if decimal != "auto" else "," if comma > dot else ".")
        if decimal == "auto":
            if comma and dot:
                one.notes.append(
                    f"numbers with a decimal comma ({comma}) and with a point ({dot}) stand in "
                    f"this file; read with {one.decimal!r}, the others stay text (--decimal)"
                )
            elif unsure and not (comma or dot):
                one.decimal = "," if delimiter == ";" else "."
                meaning = "1,234 as 1.234" if one.decimal == "," else "1,234 as 1234"
                one.notes.append(f"decimal sign is a guess: {meaning} (--decimal . or , says it)")
        one.slashes = "dmy" if day_first > month_first else "mdy"
        if day_first and month_first:
            one.notes.append("dates like 13/2/2025 and 2/13/2025 are mixed; some cannot be read")
        elif slashed and not (day_first or month_first):
            one.slashes = "?"
            one.notes.append(
                f"{slashed} dates like 3/4/2025 do not tell which is the month; kept as text"
            )
        return one

    def number(self, cell: Any) -> Decimal | None:
        """The number in a cell, exactly; `None` where there is none."""
        if isinstance(cell, bool) or cell is None:
            return None
        if isinstance(cell, (int, float)):
            value = Decimal(str(cell))
            return value if value.is_finite() else None
        if not isinstance(cell, str):
            return None
        text = cell.strip().replace("\u2212", "-")
        if not text or is_identifier(text):
            return None
        bare = _SIGNS.sub("", text).strip()
        negative = bare.startswith("(") and bare.endswith(")")
        if negative:
            bare = bare[1:-1].strip()
        shape = _COMMA if self.decimal == "," else _DOT
        if not re.search(r"\d", bare) or not shape.fullmatch(bare):
            return None
        for sign in "' \u00a0\u202f" + ("." if self.decimal == "," else ","):
            bare = bare.replace(sign, "")
        try:
            value = Decimal(bare.replace(",", "."))
        except InvalidOperation:
            return None
        if "%" in text:
            value /= 100
        return -value if negative else value

    def date(self, cell: Any) -> dt.datetime | None:
        """The date in a cell, without a zone; `None` where there is none or it is not sure."""
        if isinstance(cell, dt.datetime):
            return cell
        if isinstance(cell, dt.date):
            return dt.datetime(cell.year, cell.month, cell.day)
        if not isinstance(cell, str):
            return None
        text = cell.strip()
        try:
            if found := _ISO.fullmatch(text):
                return dt.datetime(*(int(part) for part in found.groups(default="0")))
            if found := _DAY_FIRST.fullmatch(text):
                return dt.datetime(int(found[3]), int(found[2]), int(found[1]))
            if (found := _SLASHED.fullmatch(text)) and self.slashes != "?":
                first, second = int(found[1]), int(found[2])
                day, month = (first, second) if self.slashes == "dmy" else (second, first)
                return dt.datetime(int(found[3]), month, day)
        except ValueError:
            return None
        return None

    def kind(self, cell: Any) -> str:
        """`empty`, `error`, `boolean`, `integer`, `number`, `date`, `identifier` or `text`."""
        if is_gap(cell):
            return "empty"
        if isinstance(cell, bool):
            return "boolean"
        if isinstance(cell, str):
            low = cell.strip().casefold()
            if low in ERRORS:
                return "error"
            if low in ("true", "false", "yes", "no"):
                return "boolean"
            if is_identifier(cell.strip()):
                return "identifier"
        if self.date(cell) is not None:
            return "date"
        value = self.number(cell)
        if value is None:
            return "text"
        return "integer" if value == value.to_integral_value() else "number"


def is_gap(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().casefold() in GAPS)


def is_identifier(text: str) -> bool:
    """Digits that are no number: a leading zero, or more digits than a float holds."""
    return text.isdigit() and ((len(text) > 1 and text[0] == "0") or len(text) > 15)


def shown(cell: Any, longest: int = 30) -> str:
    """A cell for a summary: short, on one line."""
    if cell is None:
        return ""
    if isinstance(cell, dt.datetime):
        midnight = (cell.hour, cell.minute, cell.second) == (0, 0, 0)
        return cell.strftime("%Y-%m-%d") if midnight else cell.isoformat(" ")
    if isinstance(cell, Decimal):
        return plain(cell)
    if isinstance(cell, float):
        return plain(Decimal(str(cell)))
    text = " ".join(str(cell).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain(value: Decimal) -> str:
    """A number with thousands commas and no more digits than it has, at most 10 after the point."""
    if value == value.to_integral_value():
        return f"{int(value):,}"
    rounded = round(value, 10)
    return f"{rounded.normalize():,f}"
