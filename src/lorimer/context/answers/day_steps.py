"""Days and times that follow from recorded ones: some recorded number of days later or earlier,
months between two days, today and tomorrow, minutes before a time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from lorimer.context.answers.dates import Clock, Day
from lorimer.context.answers.evidence import Evidence

_COUNT = re.compile(
    r"\b(\d{1,3})(?: |-)(?:business )?(days?|nights?|weeks?|Tage?n?|Wochen?)\b", re.I
)
_MINUTES = re.compile(r"\b(\d{1,3})(?: |-)?(min(?:ute)?s?|h|hours?)\b", re.I)
_MONTHS = re.compile(r"[ \u00a0-](months?|Monate?n?)\b")
_YEARS = re.compile(r"[ \u00a0-](years?|Jahre?n?)\b")
_TODAY = {"today": 0, "tomorrow": 1, "yesterday": -1}
_LAST = re.compile(r"\b(?:last|final|ends?|until|runs?)\b", re.I)
_MONTHS_KEY = re.compile(r"(?:.*_)?(?:months?|term|duration)(?:_.*)?", re.I)
_MOST = 60


def day_follows(days: Sequence[Day], evidence: Evidence, sentence: str) -> str | None:
    """How a day follows from a recorded day or today."""
    known = [(d.real, f[0]) for d, f in evidence.days.items() if d.real is not None][:_MOST]
    counts = dict(itertools.islice(evidence.day_counts.items(), _MOST))
    for match in _COUNT.finditer(sentence):
        many = int(match[1]) * (7 if match[2].lower().startswith("w") else 1)
        counts.setdefault(many, match[0])
    today = evidence.today
    for day in days:
        if today is not None:
            for word, offset in _TODAY.items():
                if word in sentence.lower() and day.fits(_day(today + timedelta(offset))):
                    return f"{word}, by the clock"
        for real, fact in known:
            for many, said in counts.items():
                for sign in (1, -1):
                    if real is not None and day.fits(_day(real + timedelta(many * sign))):
                        return f"{said} {'after' if sign > 0 else 'before'} {fact}"
            if real is not None and _LAST.search(sentence):
                for many, said in _months(evidence):
                    if any(day.fits(_day(_later(real, n))) for n in (many, many - 1)):
                        return f"{said} months after {fact}"
    return None


def span_follows(value: Decimal, behind: str, evidence: Evidence) -> str | None:
    """How a number of days, months or years follows as the time between two days."""
    months, years = _MONTHS.match(behind), _YEARS.match(behind)
    known = [(d.real, f[0]) for d, f in evidence.days.items() if d.real is not None][:_MOST]
    spans = [
        (abs((a - b).days), f"from {fa} to {fb}")
        for (a, fa), (b, fb) in itertools.combinations(known, 2)
        if a is not None and b is not None
    ]
    if evidence.today is not None:
        spans += [(abs((evidence.today - a).days), f"from {f} to today") for a, f in known if a]
    for days, how in spans:
        if months or years:
            exact = Decimal(days) / (Decimal("30.44") if months else Decimal("365.25"))
            if value >= 1 and (0 <= exact - value < 1 or abs(exact - value) <= Decimal("0.6")):
                return how
        elif value == days and re.match(r"[ \u00a0-](?:days?|Tagen?)\b", behind):
            return how
    return None


def clock_follows(clock: Clock, evidence: Evidence, sentence: str) -> str | None:
    """How a time follows from a recorded one and the minutes or hours that the sentence gives."""
    wanted = clock.hour * 60 + clock.minute
    for match in _MINUTES.finditer(sentence):
        many = int(match[1]) * (60 if match[2].lower().startswith("h") else 1)
        for known, facts in itertools.islice(evidence.clocks.items(), _MOST):
            at = known.hour * 60 + known.minute
            if wanted in ((at + many) % 1440, (at - many) % 1440):
                return f"{match[0]} from {facts[0]}"
    return None


def _months(evidence: Evidence) -> list[tuple[int, str]]:
    return [
        (int(value), str(fact))
        for value, facts in itertools.islice(evidence.numbers.items(), 2_000)
        for fact in facts[:3]
        if _MONTHS_KEY.fullmatch(fact.key) and value == int(value) and value < 1_000
    ]


def _later(start: date, months: int) -> date:
    years, month = divmod(start.month - 1 + months, 12)
    return date(min(start.year + years, 9999), month + 1, min(start.day, 28))


def _day(day: date) -> Day:
    return Day(day.year, day.month, day.day)
