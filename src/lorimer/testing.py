"""For tests of agents: a scripted model and a clock that stands still.

from lorimer.testing import ScriptedModel, call, reply
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lorimer.core.messages import ReasoningPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import StopReason
from lorimer.models.scripted import Item, Reply, ScriptedModel, ScriptExhausted

__all__ = ["Item", "ManualClock", "Reply", "ScriptExhausted", "ScriptedModel", "call", "reply"]


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """One call of the tool `name`, as a script item or in `reply(calls=…)`. For arguments that are
    not valid JSON, write `{"name": …, "arguments": "text as it is"}` instead."""
    return {"name": name, "arguments": arguments}


def reply(
    text: str = "",
    *calls: Mapping[str, Any],
    reasoning: str | ReasoningPart = "",
    stop: StopReason | None = None,
    usage: Usage | None = None,
    cut_after: int | None = None,
) -> Reply:
    """One answer: text, then calls. See `Reply` for the rest."""
    return Reply(text, calls, reasoning, stop, usage, cut_after)


class ManualClock:
    """A clock that moves only when it is told to.

    Args:
        start: the time at first, with a time zone.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start.astimezone(UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move the time forward.

        Raises:
            ValueError: for a negative number: time does not run backwards.
        """
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
