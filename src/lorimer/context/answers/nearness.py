"""Near misses: values that are one slip away from a recorded one.

A slip is one digit or character that is another, missing or too many, two neighbours swapped, or
the point in another place. A near miss counts for more than a way to work the value out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from lorimer.context.answers.dates import Clock, Day
from lorimer.context.answers.evidence import Evidence, Fact
from lorimer.context.answers.numbers import shown

_MOST = 5_000
_LONG = 3


def one_slip(a: str, b: str) -> bool:
    """Whether one slip makes `b` of `a`; they differ."""
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    same = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1], zip(a, b, strict=False)))
    a, b = a[same:], b[same:]
    return a[1:] == b[1:] or a == b[1:] or a[1:] == b or (a[:2] == b[1::-1] and a[2:] == b[2:])


def near_number(evidence: Evidence, value: Decimal, *, short: bool = True) -> Fact | None:
    """A recorded number that `value` is a near miss of.

    Args:
        short: also for two digits, where a slip makes a tenth of all numbers.
    """
    wanted = _digits(value)
    if len(wanted) < (2 if short else _LONG):
        return None
    for known, facts in itertools.islice(evidence.numbers.items(), _MOST):
        text = _digits(known)
        if (
            len(text) < 2
            or abs(len(text) - len(wanted)) > 1
            or (len(text) < _LONG and len(wanted) >= _LONG)
        ):
            continue
        if len(wanted) < _LONG and len(text) != len(wanted):
            continue
        if one_slip(wanted, text) or (wanted == text and len(wanted) >= _LONG):
            return facts[0]
    return None


def near_name(text: str, known: Iterable[str]) -> str | None:
    """A recorded id or address that `text` is at most two slips away from."""
    for name in itertools.islice(known, _MOST):
        if len(name) >= 4 and (one_slip(text, name) or _two_apart(text, name)):
            return name
    return None


def near_day(evidence: Evidence, day: Day) -> Fact | None:
    """A recorded day of which one of year, month and day is another, or two are swapped."""
    for known, facts in itertools.islice(evidence.days.items(), _MOST):
        if not day.day or not known.day:
            same = [day.month == known.month, day.year == known.year]
            if sum(same) == 1:
                return facts[0]
            continue
        years = not day.year or not known.year or day.year == known.year
        swapped = (day.month, day.day) == (known.day, known.month)
        unlike = (not years) + (day.month != known.month) + (day.day != known.day)
        if unlike == 1 or (years and swapped):
            return facts[0]
    return None


def near_clock(evidence: Evidence, clock: Clock) -> Fact | None:
    """A recorded time with the same hour or, not on the hour, the same minute."""
    for known, facts in itertools.islice(evidence.clocks.items(), _MOST):
        hours = clock.hour == known.hour
        if hours or (clock.minute == known.minute != 0):
            return facts[0]
    return None


@lru_cache(maxsize=20_000)
def _digits(value: Decimal) -> str:
    return shown(value).replace(".", "").lstrip("0") or "0"


def _two_apart(a: str, b: str) -> bool:
    return len(a) == len(b) > 6 and sum(x != y for x, y in zip(a, b, strict=True)) == 2
