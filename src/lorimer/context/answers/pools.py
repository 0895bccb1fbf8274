"""Which numbers of a result stand together, so that something may be reckoned from two of them:
those of an object, a line, a field of a list, a column, or of a result that is short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from lorimer.context.answers.records import Numeral
from lorimer.context.answers.results import leaves, lists

_NO_AMOUNT = re.compile(r"(?:.*_)?(?:id|no|nr|number|year|zip|phone|port|version|line)", re.I)
_POOLED = re.compile(r"(?<![\w.,:/#-])\d{1,15}(?:\.\d{1,6})?(?![\d:./-]*[\d:/])")
MOST_POOLED = 60
_MOST_OF_TEXT = 14
_MOST_COLUMNS = 8
MONEY_TEXT = re.compile(r"-?\d{1,20}\.\d{1,20}")


def text_pools(text: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Decimal]]:
    """Of a text, and of the table that was found in it."""
    for row in rows[:500]:
        yield [a for v in row.values() if (a := decimal_of(v)) is not None]
    for name in rows[0] if rows else ():
        yield [a for row in rows if (a := decimal_of(row.get(name))) is not None]
    lines = text.split("\n")[:500]
    of_lines = [[Decimal(one) for one in _POOLED.findall(line[:400])] for line in lines]
    every = [one for here in of_lines for one in here]
    if not rows:
        yield from of_lines
        fields = [line[:400].split() for line in lines[:200]]
        for at in range(_MOST_COLUMNS):  # columns between blanks
            cells = [f[at] for f in fields if len(f) > max(at, 2)]
            yield [Decimal(m[0]) for cell in cells if (m := _POOLED.match(cell)) is not None]
    if len(every) <= _MOST_OF_TEXT:
        yield every


def tree_pools(value: Any) -> Iterator[list[Decimal]]:
    """Of JSON data; ids, years and the like are no amounts."""
    every: list[Decimal] = []
    objects: dict[int, list[Decimal]] = {}
    for _, key, one, around in leaves(value):
        amount = _amount(one)
        if amount is None or _NO_AMOUNT.fullmatch(key):
            continue
        every.append(amount)
        objects.setdefault(id(around), []).append(amount)
    yield from objects.values()
    for _, _, items in lists(value):
        rows = [item for item in items if isinstance(item, Mapping)]
        for key in rows[0] if rows and len(rows) <= MOST_POOLED else ():
            yield [a for row in rows if (a := _amount(row.get(key))) is not None]
    if len(objects) > 1 and len(every) <= _MOST_OF_TEXT:
        yield every


def decimal_of(value: Any) -> Decimal | None:
    """The value of a JSON number; `None` for anything else, and where it is too large."""
    if not isinstance(value, Numeral):
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    exponent = amount.as_tuple().exponent
    return amount if isinstance(exponent, int) and -30 < amount.adjusted() < 30 else None


def _amount(value: Any) -> Decimal | None:
    if isinstance(value, str) and not isinstance(value, Numeral) and MONEY_TEXT.fullmatch(value):
        return Decimal(value)
    return decimal_of(value)
