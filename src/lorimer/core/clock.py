"""Time, injected: code that needs it takes a `Clock`, so that tests can move it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow; for durations and deadlines."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def to_rfc3339(moment: datetime) -> str:
    """`moment` as RFC 3339 in UTC with microseconds, e.g. `2026-11-30T16:00:00.000000Z`."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def from_rfc3339(text: str) -> datetime:
    """The moment that `to_rfc3339` wrote; any RFC 3339 text with an offset is accepted.

    Raises:
        ValueError: when the text is not RFC 3339 or has no offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without an offset: {text!r}")
    return moment.astimezone(UTC)
