"""What the bridge reads: pydantic-ai's stream events as ours, and whether the answer is whole.

pydantic-ai's end of a stream is not an end mark: an iteration that ends says only that nothing more
came. What is known is `finish_reason` (its word) and `provider_details["finish_reason"]` (the
provider's). See `end_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lorimer.core.calls import ToolCall
from lorimer.core.canonical import canonical_json
from lorimer.core.errors import BadAnswer, StreamCut
from lorimer.core.messages import ReasoningPart
from lorimer.core.usage import Usage
from lorimer.models.bridge_messages import WIRE, own_fields
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import StreamedResponse

_REASONS: Final = {
    "stop": StopReason.END,
    "tool_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
    "error": StopReason.OTHER,
}
_LOCAL: Final = {
    "pydantic_ai.models.function.FunctionStreamedResponse",
    "pydantic_ai.models.test.TestStreamedResponse",
}
"""Streams that are made in this process: they end by being exhausted, and nothing can cut them."""

_INVENTS: Final = "pydantic_ai.models.openai._chat_streaming.OpenAIStreamedResponse"
"""Gives `stop` for a stream that ended without a word, and does so for all its subclasses."""


def end_of(stream: StreamedResponse, response: ModelResponse, *, trust: bool) -> Stop:
    """The end mark of an answer whose stream was read to its end (G3).

    Args:
        trust: take the end of the stream for the end of the answer where nothing else is said.

    Raises:
        StreamCut: when nobody said that the answer is whole.
    """
    said = (response.provider_details or {}).get("finish_reason")
    reason = response.finish_reason
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(stream).__mro__}
    if response.state == "suspended":
        return Stop(StopReason.OTHER, str(said or "suspended"))
    if response.state != "complete":
        raise _cut(f"it is {response.state}")
    if said:
        return Stop(_REASONS.get(reason or "", StopReason.OTHER), str(said))
    if reason in ("length", "content_filter", "error"):
        return Stop(_REASONS[reason], reason)
    if reason is not None and _INVENTS not in names:
        return Stop(_REASONS[reason], reason)
    if trust or names & _LOCAL:
        calls = any(part.part_kind == "tool-call" for part in response.parts)
        return Stop(StopReason.CALLS if calls else StopReason.END, "end of stream")
    raise _cut("the provider gave no reason for the end")


def _cut(why: str) -> StreamCut:
    return StreamCut(
        f"The answer stopped before its end mark: {why}.",
        next="Ask again; nothing of this answer was run. For a server that never gives a reason: "
        "BridgeModel(…, end_without_reason=True).",
    )


def usage_of(response: ModelResponse, ttft_s: float | None) -> Usage:
    """The usage as pydantic-ai counts it; its price, if the provider told one or genai-prices knows
    the model. `raw` is pydantic-ai's object, not the provider's: that is not handed on."""
    used = response.usage
    cost = used.cost
    if cost is None and response.model_name and not used.unmeasured_requests:
        try:
            cost = response.cost().total_price
        except (LookupError, ValueError):
            cost = None  # no price is known
    raw = {k: v for k, v in vars(used).items() if v and isinstance(v, int | float | dict)}
    return Usage(
        input_tokens=used.input_tokens,
        cached_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        reasoning_tokens=used.output_reasoning_tokens,
        requests=1,
        cost=cost,
        ttft_s=ttft_s,
        raw=raw,
    )


class EventReader:
    """Reads the events of one answer.

    Calls that stand together are called complete together, when something else begins or at the
    end: some providers write them side by side.
    """

    def __init__(self, stream: StreamedResponse) -> None:
        self._stream = stream
        self._parts: dict[int, Any] = {}
        self._told: set[int] = set()
        self._ended: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._waiting: list[int] = []
        self._thoughts: list[tuple[int, Any]] = []

    def feed(self, event: ModelResponseStreamEvent) -> Iterator[ModelEvent]:
        """What `event` says.

        Raises:
            BadAnswer: for what an answer here cannot hold.
        """
        if event.event_kind == "part_start":
            yield from self._start(event.index, event.part)
        elif event.event_kind == "part_delta":
            yield from self._delta(event.index, event.delta)
        elif event.event_kind == "part_end":
            self._parts[event.index] = event.part
            self._ended.add(event.index)
            yield from self._end(event.index, event.part)

    def finish(self, stop: Stop) -> Iterator[ModelEvent]:
        """What is still open. Of an answer that did not end well the last call is half written."""
        if stop.reason not in (StopReason.END, StopReason.CALLS):
            last = max(self._parts, default=None)
            self._waiting = [index for index in self._waiting if index != last]
        yield from self._complete()
        for nth, (index, told) in enumerate(self._thoughts):
            if self._parts[index] != told:
                opaque = self._own(self._parts[index], "late", nth)
                yield ReasoningDone(ReasoningPart("", WIRE, opaque))

    def _start(self, index: int, part: Any) -> Iterator[ModelEvent]:
        if index in self._told:
            raise _bad("took back a part of its answer")
        self._parts[index] = part
        if part.part_kind == "tool-call":
            if index not in self._numbers:
                self._waiting.append(index)
                self._numbers[index] = len(self._numbers)
                yield CallStarted(self._numbers[index], part.tool_name)
            yield from self._say(index, CallDelta(self._numbers[index], _text(part.args)))
            return
        yield from self._complete()
        if part.part_kind == "text":
            yield from self._say(index, TextDelta(part.content))
        elif part.part_kind == "thinking":
            yield from self._say(index, ReasoningDelta(part.content))
        else:
            raise _bad(f"wrote a part of kind {part.part_kind!r}, which an answer here cannot hold")

    def _delta(self, index: int, delta: Any) -> Iterator[ModelEvent]:
        late = index in self._ended
        if late:
            self._parts[index] = delta.apply(self._parts[index])
        if delta.part_delta_kind == "tool_call":
            if index not in self._waiting:
                raise _bad("went on with a call that had ended")
            yield from self._say(index, CallDelta(self._numbers[index], _text(delta.args_delta)))
        elif delta.part_delta_kind == "thinking":
            yield from self._say(index, ReasoningDelta(delta.content_delta or ""))
        elif late:
            raise _bad("went on with a text that had ended")
        else:
            yield from self._say(index, TextDelta(delta.content_delta))

    def _say(
        self, index: int, event: TextDelta | ReasoningDelta | CallDelta
    ) -> Iterator[ModelEvent]:
        if event.text:
            self._told.add(index)
            yield event

    def _end(self, index: int, part: Any) -> Iterator[ModelEvent]:
        if part.part_kind == "thinking":
            self._thoughts.append((index, part))
            yield ReasoningDone(ReasoningPart(part.content, WIRE, self._own(part, "thinking")))
        elif part.part_kind == "text" and (part.id is not None or part.provider_details):
            # What belongs to a text stands behind it, in a part without words.
            yield ReasoningDone(ReasoningPart("", WIRE, self._own(part, "text")))

    def _complete(self) -> Iterator[ModelEvent]:
        for index in self._waiting:
            part, number = self._parts[index], self._numbers[index]
            raw = _text(part.args)
            if isinstance(part.args, dict):
                raw = canonical_json(part.args).decode()
                yield CallDelta(number, raw)
            kept = part.id is not None or part.provider_details
            opaque = self._own(part, "call") if kept else None
            call = ToolCall(part.tool_call_id, part.tool_name, raw, opaque=opaque)
            yield CallComplete(number, call)
        self._waiting = []

    def _own(self, part: Any, of: str, nth: int | None = None) -> dict[str, Any]:
        stream = self._stream
        names = ("provider_name", "provider_url", "canonical_system")
        facts = {name: getattr(stream, name) for name in names if getattr(stream, name, None)}
        if "@" in facts.get("provider_url", ""):
            del facts["provider_url"]  # It may hold a password.
        return own_fields(part, of=of, response=facts, nth=nth)


def _text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else ""


def _bad(what: str) -> BadAnswer:
    return BadAnswer(f"The model {what}.", next="Ask again; nothing of this answer was run.")
