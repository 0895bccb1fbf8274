"""Numbers as people write them, and which values they may stand for.

`1,234.50`, `1.234,50`, `1 234,50` and `1'234.50` are one number. `1.234` alone can be two: then the
other numbers of the text decide, and without them a point is a decimal point and a comma groups
thousands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_GAP = "[\u00a0\u202f\u2009]"
NUMBER: Final = (
    rf"\d{{1,3}}(?:{_GAP}\d{{3}})+(?:[.,]\d+)?(?!\d)"
    r"|\d{1,3}(?:[ '’]\d{3})+[.,]\d{2}(?!\d)"
    r"|\d{1,3}(?:['’]\d{3})+(?!\d)"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])"
    r"|\d{1,3}(?:\.\d{3})+,\d+(?!\d)"
    r"|\d{1,3}(?:\.\d{3}){2,}(?![\d.])"
    r"|\d+\.\d+(?!\d)"
    r"|\d+,\d{1,2}(?![\d,])"
    r"|\d+"
)
"""One number; no sign, no unit."""

SCALES: Final = {
    "k": 3, "thousand": 3, "tausend": 3, "m": 6, "million": 6, "millions": 6, "mio": 6, "mn": 6,
    "b": 9, "bn": 9, "billion": 9, "billions": 9, "mrd": 9, "trillion": 12, "trillions": 12,
}  # fmt: skip
SCALE: Final = (
    r"(?:[ \u00a0]?(?:[kKmMbB](?![\w.]*\w)|[bm]n\b|[Mm]io\b|[Mm]rd\b)"
    r"|[ \u00a0](?:[Tt]housand|[Tt]ausend|[Mm]illions?|[Bb]illions?|[Tt]rillions?)\b)"
)
"""A word that multiplies the number before it."""

_COMMA_DECIMAL = re.compile(r"\d\.\d{3},\d|(?<![\d.,])\d+,\d{2}(?![\d,])[ \u00a0]?(?:€|EUR|%)")
_SEPARATORS = re.compile(r"[ \u00a0\u202f\u2009'’]")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value that a written number may have, and the smallest step it was written in
    (`1.2 million`: 1200000, step 100000)."""

    value: Decimal
    step: Decimal


def comma_decimal(text: str) -> bool:
    """Whether numbers in `text` have decimal commas, as far as any of them shows it."""
    return _COMMA_DECIMAL.search(text) is not None


def read(written: str, scale: str = "", *, comma: bool = False) -> Reading:
    """The value of a number that `NUMBER` matched.

    Args:
        scale: the word of `SCALE` behind it.
        comma: what `comma_decimal` says of the text it stands in.
    """
    text = _SEPARATORS.sub("", written)
    if "," in text and "." in text:
        if text.rindex(",") > text.rindex("."):
            text = text.replace(".", "").replace(",", ".")
        else:
            text = text.replace(",", "")
    elif "," in text:
        groups = text.split(",")
        thousands = all(len(g) == 3 for g in groups[1:]) and not (comma and len(groups) == 2)
        text = text.replace(",", "" if thousands else ".")
    elif "." in text:
        groups = text.split(".")
        if len(groups) > 2 or (comma and len(groups[1]) == 3 and len(groups[0]) <= 3):
            text = text.replace(".", "")
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    step = Decimal(1).scaleb(min(exponent, 0))
    power = SCALES.get(scale.strip().lower(), 0)
    return Reading(value.scaleb(power), step.scaleb(power))


def rounds_to(exact: Decimal, reading: Reading) -> bool:
    """Whether `exact`, written in fewer digits, is `reading`. Halves may go either way: people and
    programs round them differently."""
    return 0 < abs(exact - reading.value) <= reading.step / 2


def about(exact: Decimal, reading: Reading) -> bool:
    """Whether `reading` is `exact` with its last digits taken for zeros (1200 for 1234); more than
    a twentieth away is no rounding any more."""
    return rounds_to(exact, coarse(reading)) and abs(exact - reading.value) * 20 <= abs(exact)


def coarse(reading: Reading) -> Reading:
    """`reading` with its ending zeros taken for rounding: 1200 for 1234."""
    value = reading.value
    if value == 0 or value != value.to_integral_value() or reading.step != 1:
        return reading
    digits = str(int(value))
    zeros = len(digits) - len(digits.rstrip("0"))
    return Reading(value, Decimal(1).scaleb(zeros))


def shown(value: Decimal) -> str:
    """A value for people: no exponent, no ending zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
