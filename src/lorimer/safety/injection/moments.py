"""Dates, times and durations as people write them, and as tools take them.

Only what a text says by itself is read: "tomorrow" or "next Monday" need a calendar and are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
         "august aug", "september sep sept", "october oct", "november nov", "december dec"), 1
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<y>\d{4})\b)?"
_WRITTEN = (
    re.compile(rf"\b(?P<m>{_MONTH})\b\.?\s+(?:the\s+)?{_DAY}\b(?!:){_YEAR}", re.I),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?(?P<m>{_MONTH})\b\.?{_YEAR}", re.I),
)
_ISO = re.compile(r"(?<![\w-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")
_FIGURES = re.compile(r"(?<![\w./-])(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\w/-])")
_TIME = re.compile(r"(?<![\w:.])(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s*([ap])\.?m\b", re.I)
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?![\d:])(?!\s*[ap]\.?m)", re.I)
_NUMBERS = [
    "a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
]  # fmt: skip
_LASTS = re.compile(
    rf"(?<![\w.:])(\d{{1,3}}(?:\.\d)?|{'|'.join(_NUMBERS)})[\s-]*(hour|hr|h|minute|min)s?\b", re.I
)
_VALUE = re.compile(
    r"(\d{4}-\d{2}-\d{2})?(?:(?(1)[T ]|)(\d{2}:\d{2})(?::\d{2}(?:\.0+)?)?)?(?:Z|[+-]\d{2}:\d{2})?"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a time of day, or both."""

    day: date | None
    clock: time | None


def moment(value: str) -> Moment | None:
    """What `2024-05-19`, `2024-05-19 12:00`, `2024-05-19T12:00:00Z` or `12:00` says; `None` for
    anything else."""
    match = _VALUE.fullmatch(value.strip())
    if match is None or not (match.group(1) or match.group(2)):
        return None
    try:
        day = date.fromisoformat(match.group(1)) if match.group(1) else None
        clock = time.fromisoformat(match.group(2)) if match.group(2) else None
    except ValueError:
        return None
    return Moment(day, clock)


@dataclass(frozen=True, slots=True)
class Said:
    """What one text says of time. `days` of no year are `yearless`, as (month, day)."""

    days: frozenset[date]
    yearless: frozenset[tuple[int, int]]
    years: frozenset[int]
    clocks: frozenset[time]
    durations: frozenset[timedelta]

    def has_day(self, day: date) -> bool:
        """A day without a year is that of any year, or of the years that the text names."""
        if day in self.days:
            return True
        fits = not self.years or day.year in self.years
        return fits and (day.month, day.day) in self.yearless

    def has(self, wanted: Moment) -> bool:
        return (wanted.day is None or self.has_day(wanted.day)) and (
            wanted.clock is None or wanted.clock in self.clocks
        )

    def has_end(self, wanted: Moment, start: Moment) -> bool:
        """Whether `wanted` is `start`, which the text gives, and a duration that it gives too."""
        if None in (wanted.day, wanted.clock, start.day, start.clock) or not self.has(start):
            return False
        assert wanted.day and wanted.clock is not None and start.day and start.clock is not None
        gap = datetime.combine(wanted.day, wanted.clock) - datetime.combine(start.day, start.clock)
        return gap in self.durations


@lru_cache(maxsize=512)
def said(text: str) -> Said:
    """Every date, time and duration that `text` writes."""
    days, yearless, clocks, durations = set(), set(), set(), set()
    for shape in _WRITTEN:
        for match in shape.finditer(text):
            month, day = _MONTHS[match["m"].casefold()], int(match["d"])
            if match["y"]:
                days |= _day(int(match["y"]), month, day)
            elif _day(2024, month, day):
                yearless.add((month, day))
    for year, month_, day_ in _ISO.findall(text):
        days |= _day(int(year), int(month_), int(day_))
    for first, _, second, year in _FIGURES.findall(text):
        days |= _day(int(year), int(second), int(first)) | _day(int(year), int(first), int(second))
    for hour, minute, half in _TIME.findall(text):
        if 1 <= int(hour) <= 12:
            clocks |= _clock(int(hour) % 12 + 12 * (half in "pP"), int(minute or 0))
    for hour, minute in _CLOCK.findall(text):
        clocks |= _clock(int(hour), int(minute))
    for amount, unit in _LASTS.findall(text):
        word = amount.casefold()
        count = float(max(1, _NUMBERS.index(word) - 1)) if word in _NUMBERS else float(amount)
        durations.add(timedelta(hours=count) if unit[0] in "hH" else timedelta(minutes=count))
    years = frozenset(int(y) for y in re.findall(r"(?<![\w.,])(?:19|20)\d\d(?![\w])", text))
    return Said(
        frozenset(days), frozenset(yearless), years, frozenset(clocks), frozenset(durations)
    )


def _day(year: int, month: int, day: int) -> set[date]:
    try:
        return {date(year, month, day)}
    except ValueError:
        return set()


def _clock(hour: int, minute: int) -> set[time]:
    return {time(hour, minute)} if hour < 24 and minute < 60 else set()
