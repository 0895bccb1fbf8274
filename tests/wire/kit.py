"""Small tools for tests of models: entries, requests, and what came of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import CallPart, Entry, Kind, Part, ResultPart, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.models.profiles import Profile, profile_for
from lorimer.models.protocol import (
    CallComplete,
    ModelEvent,
    Prefix,
    ReasoningDone,
    Request,
    Settings,
    Stop,
    TextDelta,
    UsageReport,
)
from lorimer.models.wire_model import WireModel
from wire.server import KEY

AT = datetime(2026, 1, 1, tzinfo=UTC)
WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
FAMILY = {
    "openai_chat": "deepseek",
    "openai_responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
"""A family of each wire that hands reasoning back."""

ADAPTERS = {
    "openai_chat": ("lorimer.models.openai_chat", "OpenAIChat"),
    "openai_responses": ("lorimer.models.openai_responses", "OpenAIResponses"),
    "anthropic": ("lorimer.models.anthropic", "Anthropic"),
    "gemini": ("lorimer.models.gemini", "Gemini"),
}

WEATHER = ToolSpec(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "e.g. Vancouver"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    ({"city": "Oslo"},),
)
TIME = ToolSpec(
    "get_time",
    "The time in a zone.",
    {
        "type": "object",
        "properties": {"zone": {"type": "string"}, "short": {"type": "boolean"}},
        "required": ["zone"],
        "additionalProperties": False,
    },
)


def adapter(
    wire: str, base_url: str = "http://127.0.0.1:1/v1", profile: Profile | None = None, **more: Any
) -> WireModel:
    """An adapter for `wire`, of the family in `FAMILY` unless a profile is given."""
    module, cls = ADAPTERS[wire]
    more.setdefault("api_key", KEY)
    model = more.pop("model", "test-model")
    profile = profile or profile_for(FAMILY[wire], model)
    made = getattr(import_module(module), cls)(model, profile, base_url=base_url, **more)
    assert isinstance(made, WireModel)
    return made


def user(text: str) -> Entry:
    return Entry(Kind.USER, (TextPart(text),), AT)


def note(text: str) -> Entry:
    return Entry(Kind.NOTE, (TextPart(text),), AT)


def assistant(*parts: Part) -> Entry:
    return Entry(Kind.ASSISTANT, parts, AT)


def called(call_id: str, name: str = "get_weather", raw: str = '{"city":"Oslo"}') -> CallPart:
    return CallPart(ToolCall(call_id, name, raw))


def result(
    call_id: str, name: str = "get_weather", text: str = "rain", *, error: bool = False
) -> ResultPart:
    outcome = Outcome.FAILED_BEFORE_EFFECT if error else Outcome.DONE
    return ResultPart(call_id, name, (TextPart(text),) if text else (), error, outcome)


def results(*parts: ResultPart) -> Entry:
    return Entry(Kind.TOOL_RESULT, parts, AT)


def request(
    model: Any,
    entries: Sequence[Entry],
    *,
    system: str = "Be brief.",
    tools: Sequence[ToolSpec] = (WEATHER, TIME),
    settings: Settings | None = None,
) -> Request:
    """A request with each entry rendered on its own."""
    prefix = Prefix(system, tuple(tools), model.render_prefix(system, tools))
    fragments = [model.render_entry(entry, entries[:at]) for at, entry in enumerate(entries)]
    return Request(prefix, entries, fragments, settings or Settings())


async def collect(stream: AsyncIterator[ModelEvent]) -> list[ModelEvent]:
    return [event async for event in stream]


async def drain(stream: AsyncIterator[ModelEvent], into: list[ModelEvent]) -> None:
    """Like `collect`, for streams that end in a fault: `into` keeps what came before it."""
    async for event in stream:
        into.append(event)


def text_of(events: Sequence[ModelEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def calls_of(events: Sequence[ModelEvent]) -> list[ToolCall]:
    return [e.call for e in events if isinstance(e, CallComplete)]


def stop_of(events: Sequence[ModelEvent]) -> Stop:
    assert isinstance(events[-1], Stop), events
    assert sum(isinstance(e, Stop) for e in events) == 1
    return events[-1]


def usage_of(events: Sequence[ModelEvent]) -> Any:
    (report,) = [e for e in events if isinstance(e, UsageReport)]
    return report.usage


def answer_entry(events: Sequence[ModelEvent]) -> Entry:
    """The assistant entry that a loop would record; missing ids are given."""
    parts: list[Part] = []
    for event in events:
        match event:
            case TextDelta(text):
                if parts and isinstance(parts[-1], TextPart):
                    parts[-1] = TextPart(parts[-1].text + text)
                else:
                    parts.append(TextPart(text))
            case ReasoningDone(part):
                parts.append(part)
            case CallComplete(index, call):
                name, raw, opaque = call.name, call.raw, call.opaque
                parts.append(
                    CallPart(ToolCall(call.id or f"own_{index}", name, raw, opaque=opaque))
                )
    return assistant(*parts)


def span_of_calls(stream: bytes) -> tuple[int, int]:
    """From the first byte about a call to the end mark."""
    first = stream.index(b"get_weather")
    marks = [
        b'"finish_reason": "tool_calls"',
        b'"type": "response.completed"',
        b'"type": "message_stop"',
        b'"finishReason":"STOP"',
    ]
    mark = next(stream.rindex(mark) for mark in marks if mark in stream)
    return first, stream.index(b"\n\n", mark) + 2
