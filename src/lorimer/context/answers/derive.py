"""Values that no result holds, and that follow from what results hold by one simple step.

Steps: writing fewer digits, a share as a percentage, counting a list, adding up or averaging a
field of a list, the difference of two values of one field, quantity times price, the days between
two dates, and the sum, difference or ratio of values that the answer itself gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal

from lorimer.context.answers.evidence import Evidence, Fact
from lorimer.context.answers.numbers import Reading, about, rounds_to, shown

_MOST_PAIRS = 60
_MOST_DAYS = 40
_MOST_LISTED = 14
_BYTES = (Decimal(10) ** 3, Decimal(10) ** 6, Decimal(10) ** 9, Decimal(1024), Decimal(1024) ** 2,
          Decimal(1024) ** 3)  # fmt: skip


class Derivations:
    """What can be worked out from `evidence`; made once for an answer."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.exact = Decimal(0)
        """The value that the last number was rounded from."""
        self._worked: list[tuple[Decimal, str]] | None = None
        self._spans: list[tuple[int, str]] | None = None

    def number(self, reading: Reading, listed: Sequence[Decimal], *, loosely: bool) -> str | None:
        """How this number follows; `None` when it does not.

        Args:
            listed: the borne-out numbers of the answer before it, of the same kind.
            loosely: the answer says that it is rounded.
        """
        known = self._evidence.numbers
        self.exact = reading.value
        for exact, facts in known.items():
            if rounds_to(exact, reading) or (loosely and about(exact, reading)):
                self.exact = exact
                return f"rounded from {facts[0]}"
        count = reading.value
        if count == count.to_integral_value() and count < 10**7:
            counted = self._evidence.counts.get(int(count))
            if counted is not None:
                return f"the number of {counted.where}"
        for value, how in self._values():
            near = rounds_to(value, reading) or (loosely and about(value, reading))
            if value == count or near:
                return how
        for value, how in _of_listed(listed):
            if value == count or rounds_to(value, reading):
                return how
        return None

    def percent(self, reading: Reading, listed: Sequence[Decimal]) -> str | None:
        """How this percentage follows."""
        for exact, facts in self._evidence.numbers.items():
            if 0 < exact < 10 and (exact * 100 == reading.value or rounds_to(exact * 100, reading)):
                return f"{facts[0]} as a percentage"
            if rounds_to(exact, reading):
                return f"rounded from {facts[0]}"
        for a, b in itertools.permutations(listed[-_MOST_LISTED:], 2):
            if not b:
                continue
            for value, what in ((a / b, "share"), (abs(a - b) / b, "change")):
                if value * 100 == reading.value or rounds_to(value * 100, reading):
                    return f"the {what} of {shown(a)} in {shown(b)}"
        return None

    def size(self, reading: Reading) -> str | None:
        """How a number of kB, MB or GB follows from a number of bytes."""
        for exact, facts in self._evidence.numbers.items():
            for unit in _BYTES:
                if exact >= unit and (
                    exact == reading.value * unit or rounds_to(exact / unit, reading)
                ):
                    return f"{facts[0]} bytes"
        return None

    def span_days(self, days: Decimal) -> str | None:
        """How a number of days follows: as the time between two recorded dates."""
        if self._spans is None:
            every = [(d.real, f[0]) for d, f in self._evidence.days.items() if d.real is not None]
            self._spans = [
                (abs((a - b).days), f"days from {min(fa, fb, key=str)} to {max(fa, fb, key=str)}")
                for (a, fa), (b, fb) in itertools.combinations(every[:_MOST_DAYS], 2)
                if a is not None and b is not None
            ]
        return next((how for span, how in self._spans if span == days), None)

    def span_minutes(self, minutes: Decimal) -> str | None:
        """How a number of minutes follows: as the time between two recorded times of day."""
        every = list(self._evidence.clocks.items())[:_MOST_DAYS]
        for (a, fa), (b, fb) in itertools.combinations(every, 2):
            if a.zone_min == b.zone_min and minutes == abs(
                (a.hour - b.hour) * 60 + a.minute - b.minute
            ):
                return f"minutes from {fa[0]} to {fb[0]}"
        return None

    def _values(self) -> list[tuple[Decimal, str]]:
        if self._worked is None:
            self._worked = list(self._work())
        return self._worked

    def _work(self) -> Iterator[tuple[Decimal, str]]:
        evidence = self._evidence
        for (where, key), column in evidence.columns.items():
            what = f"{key} in {where}" if key else where
            yield from _of_column(column, what)
        for (where, key, by, word), column in evidence.groups.items():
            if len(column) > 1:
                yield sum(column, Decimal(0)), f"sum of {key} in {where} with {by} {word}"
        for value, fact in evidence.products.items():
            yield value, str(fact)
        for value, fact in evidence.line_sums.items():
            yield value, str(fact)


def _of_column(column: Sequence[Decimal], what: str) -> Iterator[tuple[Decimal, str]]:
    if len(column) < 2:
        return
    total = sum(column, Decimal(0))
    yield total, f"sum of {what}"
    yield total / len(column), f"average of {what}"
    if len(column) <= _MOST_PAIRS:
        for a, b in itertools.combinations(column, 2):
            yield abs(a - b), f"difference of {shown(a)} and {shown(b)} in {what}"


def _of_listed(listed: Sequence[Decimal]) -> Iterator[tuple[Decimal, str]]:
    """Sums of the last two, three … numbers of the answer, and differences of two."""
    last = listed[-200:]
    total = last[-1] if last else Decimal(0)
    for at in range(len(last) - 2, -1, -1):
        total += last[at]
        yield total, f"sum of the {len(last) - at} values before it"
    for a, b in itertools.combinations(last[-_MOST_LISTED:], 2):
        yield abs(a - b), f"difference of {shown(a)} and {shown(b)}"


def nearest_number(evidence: Evidence, value: Decimal) -> Fact | None:
    """The recorded number that is most like `value`: most digits in the same places, then size."""
    if not evidence.numbers:
        return None
    wanted = shown(value)

    def distance(known: Decimal) -> tuple[int, Decimal]:
        text = shown(known)
        unlike = sum(a != b for a, b in itertools.zip_longest(wanted, text))
        return unlike, abs(known - abs(value))

    best = min(itertools.islice(evidence.numbers, 5_000), key=distance)
    unlike, away = distance(best)
    if unlike > max(1, len(wanted) // 2) and away > abs(value) / 2:
        return None
    return evidence.numbers[best][0]
