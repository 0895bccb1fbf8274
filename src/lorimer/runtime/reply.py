"""From the stream of model events to one reply: what was said, which calls may run."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import ToolCall
from lorimer.core.clock import Clock
from lorimer.core.errors import BadAnswer, ConfigError
from lorimer.core.ids import new_id
from lorimer.core.messages import CallPart, Part, TextPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    Discarded,
    ModelEvent,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)

if TYPE_CHECKING:
    from lorimer.runtime.foresight import Foresight

_LETTERS = string.ascii_letters + string.digits


@dataclass(slots=True)
class Reply:
    """A whole answer of the model. `cut` is set when it was cut off: then no call of it may run,
    whatever parses (G3). `unfinished` says that a call was begun and never called complete."""

    parts: list[Part] = field(default_factory=list)
    stop: StopReason = StopReason.OTHER
    raw_stop: str = ""
    usage: Usage = field(default_factory=Usage)
    unfinished: bool = False

    @property
    def calls(self) -> list[ToolCall]:
        return [p.call for p in self.parts if isinstance(p, CallPart)]

    @property
    def text(self) -> str:
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))

    @property
    def cut(self) -> bool:
        return self.unfinished or self.stop not in (StopReason.END, StopReason.CALLS)


async def read_reply(
    events: AsyncIterator[ModelEvent],
    watch: Callable[[Any], None] | None,
    foresight: Foresight | None = None,
) -> Reply:
    """Read `events` to their end mark. `foresight` sees each call as soon as it is complete.

    Raises:
        ModelError: what the stream raised; nothing of a broken answer is returned.
    """
    reply = Reply()
    text: list[str] = []
    unfinished: dict[int, tuple[str, list[str]]] = {}

    def flush() -> None:
        if text:
            reply.parts.append(TextPart("".join(text)))
            text.clear()

    async for event in events:
        if watch is not None:
            watch(event)
        match event:
            case TextDelta(piece):
                text.append(piece)
            case CallStarted(index, name):
                flush()
                unfinished[index] = (name, [])
            case CallDelta(index, piece):
                unfinished.setdefault(index, ("", []))[1].append(piece)
            case CallComplete(index, call):
                flush()
                unfinished.pop(index, None)
                reply.parts.append(CallPart(call))
                if foresight is not None:
                    foresight.see(call)
            case ReasoningDone(part):
                flush()
                reply.parts.append(part)
            case UsageReport(usage):
                reply.usage = usage
            case Stop(reason, raw):
                reply.stop, reply.raw_stop = reason, raw
            case Discarded():
                reply = Reply()
                text.clear()
                unfinished.clear()
                if foresight is not None:
                    foresight.drop_soon()
    flush()
    reply.unfinished = bool(unfinished)
    for name, pieces in unfinished.values():
        if name:  # cut in the middle: kept as it was written, never run
            reply.parts.append(CallPart(ToolCall("", name, "".join(pieces))))
    _whole_characters(reply)
    return reply


def _whole_characters(reply: Reply) -> None:
    """Raises `BadAnswer` for half a surrogate pair: no request could hold it any more. The adapters
    refuse it themselves; a model of someone else's may not."""
    for part in reply.parts:
        match part:
            case TextPart(text=text):
                written = text
            case CallPart(call):
                written = f"{call.name}{call.id}{call.raw}"
            case _:
                continue
        if not written.isascii() and any("\ud800" <= c <= "\udfff" for c in written):
            raise BadAnswer(
                "The model wrote half a surrogate pair, which is no character.",
                next="Ask again; nothing of this answer was run.",
            )


def make_call_id(pattern: str, clock: Clock) -> str:
    """A new call id that fits `pattern`: one that sorts by time, or where that does not fit
    (Mistral wants nine letters and digits) a random one."""
    chosen = new_id("call", clock)
    if re.fullmatch(pattern, chosen):
        return chosen
    for length in (9, 24, 32):
        chosen = "".join(secrets.choice(_LETTERS) for _ in range(length))
        if re.fullmatch(pattern, chosen):
            return chosen
    raise ConfigError(f"No call id can be made that fits the pattern {pattern!r}.")


def with_ids(
    parts: list[Part], used: set[str], pattern: str, make: Callable[[], str]
) -> tuple[Part, ...]:
    """`parts` with a usable id on every call: the provider's own where it is new and fits the wire,
    else one of ours. The ids are added to `used`. A call that stands there twice, with the same id,
    name and arguments, is one call."""
    out: list[Part] = []
    fits = re.compile(pattern)
    written: set[tuple[str, str, str]] = set()
    for part in parts:
        if isinstance(part, CallPart):
            chosen = part.call.id
            same = (chosen, part.call.name, part.call.raw)
            if chosen and same in written:
                continue  # delivered twice: one call (G2)
            written.add(same)
            if not chosen or chosen in used or not fits.fullmatch(chosen):
                chosen = make()
                part = CallPart(replace(part.call, id=chosen))
            used.add(chosen)
        out.append(part)
    return tuple(out)
