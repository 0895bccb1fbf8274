"""Which event gives which span, attribute and metric: the OpenTelemetry GenAI conventions as data.

Attributes are pairs of the conventional name and the event's field (with dots for a field of a
field). Empty values are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lorimer.core import watch

Attributes = tuple[tuple[str, str], ...]

PROVIDER_OF_WIRE = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "local": "lorimer.local",
    "scripted": "lorimer.scripted",
}
"""`gen_ai.provider.name` by the wire a model speaks, where the model's own name does not say it."""

PROVIDER_OF_PREFIX = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "groq": "groq",
    "deepseek": "deepseek",
    "xai": "x_ai",
    "perplexity": "perplexity",
    "ollama": "ollama",
}
"""The same by what stands before the colon in a model's name."""


@dataclass(frozen=True, slots=True)
class SpanOf:
    """A span: its operation, the field that its name ends with, its kind, and its attributes at
    the start and at the end."""

    operation: str
    named_by: str
    client: bool
    at_start: Attributes
    at_end: Attributes
    content_at_start: Attributes = ()
    content_at_end: Attributes = ()


RUN = SpanOf(
    "invoke_agent",
    "",
    client=False,
    at_start=(("gen_ai.conversation.id", "session"), ("gen_ai.request.model", "model")),
    at_end=(("lorimer.stop", "stop"), ("error.type", "error")),
)
REQUEST = SpanOf(
    "chat",
    "model",
    client=True,
    at_start=(("gen_ai.request.model", "model"), ("lorimer.step", "step")),
    at_end=(
        ("gen_ai.response.finish_reasons", "stop"),
        ("gen_ai.usage.input_tokens", "usage.input_tokens"),
        ("gen_ai.usage.output_tokens", "usage.output_tokens"),
        ("gen_ai.usage.cache_read.input_tokens", "usage.cached_tokens"),
        ("gen_ai.usage.cache_creation.input_tokens", "usage.cache_write_tokens"),
        ("gen_ai.usage.reasoning.output_tokens", "usage.reasoning_tokens"),
        ("gen_ai.response.time_to_first_chunk", "usage.ttft_s"),
        ("lorimer.attempts", "attempts"),
        ("error.type", "error"),
    ),
)
CALL = SpanOf(
    "execute_tool",
    "tool",
    client=False,
    at_start=(("gen_ai.tool.name", "tool"), ("gen_ai.tool.call.id", "call_id"),
              ("lorimer.effects", "effects")),
    at_end=(("lorimer.outcome", "outcome"), ("error.type", "code")),
    content_at_start=(("gen_ai.tool.call.arguments", "arguments"),),
    content_at_end=(("gen_ai.tool.call.result", "text"),),
)  # fmt: skip

LISTS = frozenset({"gen_ai.response.finish_reasons"})
"""Attributes whose value is a list."""

ALERT: Attributes = (
    ("lorimer.alert.kind", "kind"),
    ("lorimer.alert.message", "message"),
    ("lorimer.alert.count", "count"),
    ("lorimer.alert.limit", "limit"),
    ("lorimer.alert.window", "window_s"),
)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `kind` is `counter`, `up_down_counter` or `histogram`."""

    name: str
    kind: str
    unit: str
    description: str
    buckets: tuple[float, ...] = ()


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(float(4**n) for n in range(14))

INSTRUMENTS = (
    Instrument("gen_ai.client.operation.duration", "histogram", "s",
               "Duration of a model request.", _SECONDS),
    Instrument("gen_ai.client.token.usage", "histogram", "{token}",
               "Input and output tokens of a model request.", _TOKENS),
    Instrument("lorimer.call.count", "counter", "{call}", "Tool calls by outcome."),
    Instrument("lorimer.call.duration", "histogram", "s", "Duration of tool calls that ran.",
               _SECONDS),
    Instrument("lorimer.refusal.count", "counter", "{call}", "Calls that failed, by code."),
    Instrument("lorimer.approval.waiting", "up_down_counter", "{approval}",
               "Questions that wait for a person."),
    Instrument("lorimer.approval.count", "counter", "{approval}", "Questions by answer."),
    Instrument("lorimer.approval.duration", "histogram", "s", "How long a person was waited for.",
               _SECONDS),
    Instrument("lorimer.alert.count", "counter", "{alert}", "Alerts by kind."),
    Instrument("lorimer.run.count", "counter", "{run}", "Runs by how they ended."),
)  # fmt: skip

STARTS: dict[type[Any], SpanOf] = {
    watch.RunBegan: RUN,
    watch.RequestBegan: REQUEST,
    watch.CallBegan: CALL,
}
ENDS: dict[type[Any], SpanOf] = {
    watch.RunEnded: RUN,
    watch.RequestEnded: REQUEST,
    watch.CallEnded: CALL,
}


def provider_of(model: str, wire: str) -> str:
    """`gen_ai.provider.name` of a model."""
    prefix = model.partition(":")[0]
    return PROVIDER_OF_PREFIX.get(prefix) or PROVIDER_OF_WIRE.get(wire) or wire or "unknown"
