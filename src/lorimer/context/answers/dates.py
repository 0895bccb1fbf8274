"""Dates and times of day as people write them. English, German, French and Spanish month names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_NAMES: Final = (
    MONTHS,
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    ("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
     "Oktober", "November", "Dezember"),
    ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre",
     "octobre", "novembre", "décembre"),
    ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
     "octubre", "noviembre", "diciembre"),
)  # fmt: skip
_MONTH_OF: Final = {name: n + 1 for names in _NAMES for n, name in enumerate(names)} | {"Sept": 9}
_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
WEEKDAYS: Final = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
_WEEKDAY = r"(?:(?P<weekday>" + "|".join(f"{d[:3]}(?:{d[3:]})?" for d in WEEKDAYS) + r")\.?,? )?"
_ZONE = r"(?:[ \u00a0]?(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})(?!\w))?"
_CLOCK = rf"(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d+)?)?{_ZONE}"

_DATES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![\w-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?!\d|-\d)",
        r"(?<![\w/])(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})(?![\w/])",
        r"(?<![\w.])(?P<d>\d{1,2})\.[ \u00a0]?(?P<m>\d{1,2})\.[ \u00a0]?(?P<y>\d{4})(?![\w])",
        r"(?<![\w/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>\d{4})(?![\w/])",
        rf"\b{_WEEKDAY}(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.)?(?: of| de)?[ \u00a0]"
        rf"(?P<name>{_MONTH})\b"
        r"\.?(?:,?(?: de)? (?P<y>\d{4})\b)?",
        rf"\b(?P<name>{_MONTH})\.? (?P<y>\d{{4}})\b",
        rf"\b{_WEEKDAY}(?P<name>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
        r"(?:,? (?P<y>\d{4})\b)?",
        r"(?<![\w-])(?P<y>(?:19|20)\d{2})-(?P<m>0[1-9]|1[0-2])(?![\w-])",
    )
)
_TIMES: Final = (
    re.compile(
        rf"(?:(?<![\w.:,-])|(?<=\d[T])|(?<=\d-)){_CLOCK}"
        r"(?:[ \u00a0]?(?P<half>[AaPp])\.?[Mm]\b\.?)?(?![\d:])"
    ),
    re.compile(r"(?<![\w.:,])(?P<hour>1[0-2]|[1-9])[ \u00a0]?(?P<half>[AaPp])\.?[Mm]\b"),
)


@dataclass(frozen=True, slots=True)
class Day:
    """A day; what was not said is 0. `weekday` is as written, or empty."""

    year: int
    month: int
    day: int
    weekday: str = ""

    def fits(self, other: Day) -> bool:
        """Whether `other`, which may say more, is this day."""
        return (
            (not self.year or not other.year or self.year == other.year)
            and self.month == other.month
            and (not self.day or self.day == other.day)
        )

    @property
    def real(self) -> date | None:
        try:
            return date(self.year, self.month, self.day)
        except ValueError:
            return None

    @property
    def wrong_weekday(self) -> str:
        """The weekday it is, where another one was written."""
        real = self.real
        if not self.weekday or real is None:
            return ""
        is_one = WEEKDAYS[real.weekday()]
        return "" if is_one.startswith(self.weekday[:3]) else is_one

    def __str__(self) -> str:
        if not self.day:
            return f"{self.year:04}-{self.month:02}"
        if not self.year:
            return f"{MONTHS[self.month - 1]} {self.day}"
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day.

    Attributes:
        second: -1 where none was written.
        zone_min: minutes east of UTC, where that was written.
        twelve: it may as well be twelve hours later: `2:30`, but not `02:30`.
    """

    hour: int
    minute: int
    second: int = -1
    zone_min: int | None = None
    twelve: bool = False

    def fits(self, other: Clock) -> bool:
        """Whether `other`, which may say more, is this time. Where both say their zone and these
        differ, that is counted in."""
        ours, theirs = self.hour * 60 + self.minute, other.hour * 60 + other.minute
        if self.second >= 0 and other.second >= 0 and self.second != other.second:
            return False
        zones = (self.zone_min, other.zone_min)
        if zones[0] is not None and zones[1] is not None and zones[0] != zones[1]:
            return (ours - zones[0]) % 1440 == (theirs - zones[1]) % 1440
        return ours % 1440 == theirs % 1440 or (self.twelve and ours % 720 == theirs % 720)

    def __str__(self) -> str:
        return f"{self.hour:02}:{self.minute:02}"


def find_days(text: str) -> Iterator[tuple[int, int, tuple[Day, ...]]]:
    """Each date in `text`: where, and what it may be (`3/4/2026` may be two)."""
    for pattern in _DATES:
        for match in pattern.finditer(text):
            days = tuple(d for d in _days(match.groupdict()) if d is not None)
            if days:
                yield match.start(), match.end(), days


def _days(found: dict[str, str | None]) -> Iterator[Day | None]:
    year = int(found.get("y") or 0)
    weekday = found.get("weekday") or ""
    if found.get("a"):
        a, b = int(found["a"] or 0), int(found["b"] or 0)
        yield _day(year, b, a, "")
        if a != b:
            yield _day(year, a, b, "")
        return
    name = found.get("name")
    month = _MONTH_OF[name] if name else int(found.get("m") or 0)
    yield _day(year, month, int(found.get("d") or 0), weekday)


def _day(year: int, month: int, day: int, weekday: str) -> Day | None:
    try:
        date(year or 2000, month, day or 1)
    except ValueError:
        return None
    return Day(year, month, day, weekday)


def find_clocks(text: str) -> Iterator[tuple[int, int, Clock]]:
    """Each time of day in `text`."""
    for pattern in _TIMES:
        for match in pattern.finditer(text):
            found = match.groupdict()
            hour, half = int(match["hour"]), (found.get("half") or "").lower()
            if half:
                if not 1 <= hour <= 12:
                    continue
                hour = hour % 12 + (12 if half == "p" else 0)
            second = int(found.get("second") or -1)
            yield (
                match.start(), match.end(),
                Clock(hour, int(found.get("minute") or 0), second, _offset(found.get("zone")),
                      not half and 1 <= hour <= 12 and match["hour"][0] != "0"),
            )  # fmt: skip


def _offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 60 + int(digits[2:]))


def in_utc(day: Day, clock: Clock) -> tuple[Day, Clock] | None:
    """Date and time of a moment whose zone is known, in UTC."""
    if clock.zone_min is None or day.real is None:
        return None
    zone = timezone(timedelta(minutes=clock.zone_min))
    try:
        moment = datetime(
            day.year, day.month, day.day, clock.hour % 24, clock.minute, max(clock.second, 0), 0,
            zone,
        ).astimezone(UTC)  # fmt: skip
    except (ValueError, OverflowError):
        return None
    second = -1 if clock.second < 0 else moment.second
    return Day(moment.year, moment.month, moment.day), Clock(moment.hour, moment.minute, second, 0)


def of_epoch(seconds: int) -> tuple[Day, Clock]:
    """A moment in seconds since 1970, in UTC."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return (
        Day(moment.year, moment.month, moment.day),
        Clock(moment.hour, moment.minute, moment.second, 0),
    )
