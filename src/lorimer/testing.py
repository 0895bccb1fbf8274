"""For tests of agents: a scripted model and a clock that stands still.

from lorimer.testing import ScriptedModel, call, reply
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lorimer.core.calls import ToolCall
from lorimer.core.messages import ReasoningPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import StopReason
from lorimer.models.script import CallForm, Item, Reply
from lorimer.models.scripted import ScriptedModel, ScriptExhausted

__all__ = [
    "Item",
    "ManualClock",
    "Reply",
    "ScriptExhausted",
    "ScriptedModel",
    "StopReason",
    "ToolCall",
    "call",
    "reply",
]


def call(name: str, /, *given: Mapping[str, Any] | str | bytes, **arguments: Any) -> dict[str, Any]:
    """One call of the tool `name`, as a script item or in `reply(…)`: `call("add", a=1)` or
    `call("add", {"a": 1})`. Text instead of a mapping is used as it is, valid JSON or not.

    Raises:
        TypeError: for both at once, or for something else.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool is text, not {name!r}")
    if not given:
        return {"name": name, "arguments": arguments}
    if len(given) > 1 or arguments or not isinstance(given[0], Mapping | str | bytes):
        raise TypeError(
            f"call({name!r}, …) takes keywords, or one mapping, or one text: "
            f"call({name!r}, a=1), call({name!r}, {{'a': 1}})"
        )
    return {"name": name, "arguments": given[0]}


def reply(
    *parts: str | CallForm | Iterable[CallForm],
    text: str = "",
    calls: Iterable[CallForm] | CallForm = (),
    reasoning: str | ReasoningPart = "",
    stop: StopReason | str | None = None,
    usage: Usage | None = None,
    cut_after: int | None = None,
) -> Reply:
    """One answer: text, then calls: `reply("text", call(…))`, `reply(call(…))`,
    `reply(calls=[…])`. See `Reply` for the rest.

    Raises:
        TypeError: for a second text, or text after a call.
    """
    every: list[Any] = []
    for at, part in enumerate(parts):
        if isinstance(part, str):
            if at or text:
                raise TypeError(f"reply() takes one text, before the calls; {part!r} is not")
            text = part
        else:
            every += _calls(part)
    return Reply(text, (*every, *_calls(calls)), reasoning, stop, usage, cut_after)


def _calls(given: Any) -> list[Any]:
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)
    if pair or isinstance(given, Mapping | str | bytes) or not isinstance(given, Iterable):
        return [given]
    return list(given)


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
