"""The watcher that makes spans and metrics, by the table in `mapping.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome
from lorimer.core.clock import Clock, SystemClock
from lorimer.core.watch import (
    Alert,
    ApprovalAsked,
    ApprovalEnded,
    CallBegan,
    CallEnded,
    RequestBegan,
    RequestEnded,
    RunBegan,
    RunEnded,
)
from lorimer.runtime.telemetry.mapping import (
    ALERT,
    CALL,
    ENDS,
    INSTRUMENTS,
    LISTS,
    STARTS,
    Attributes,
    Instrument,
    SpanOf,
    provider_of,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import Span, TracerProvider

_MOST_NAMES = 200
_OTHER = "_OTHER"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]{0,127}")
_CONTENT_CHARACTERS = 8_192


class Telemetry:
    """Makes the watchers of sessions. One for an agent, or for several.

    Args:
        redact: takes secrets out of every text before it becomes an attribute.
        content: whether arguments and results are put on spans, cut to 8,192 characters.
        tracer_provider, meter_provider: instead of the global ones.
    """

    def __init__(
        self,
        *,
        redact: Callable[[str], str] | None = None,
        content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        clock: Clock | None = None,
    ) -> None:
        from opentelemetry import metrics, trace

        from lorimer import __version__

        if redact is None:
            from lorimer.safety.secrets.keeper import SecretKeeper

            redact = SecretKeeper().redact
        self.redact = redact
        self.content = content
        self.clock = clock or SystemClock()
        self.tracer = trace.get_tracer("lorimer", __version__, tracer_provider)
        meter = metrics.get_meter("lorimer", __version__, meter_provider)
        self._instruments = {one.name: _instrument(meter, one) for one in INSTRUMENTS}
        self._names: set[str] = set()

    def of_session(self, session: str) -> SessionTelemetry:
        """The watcher of one session."""
        return SessionTelemetry(self, session)

    def add(self, name: str, amount: float, attributes: Mapping[str, Any]) -> None:
        """Count, or record, `amount`."""
        instrument = self._instruments[name]
        do = getattr(instrument, "record", None) or instrument.add
        do(amount, {key: value for key, value in attributes.items() if value not in ("", None)})

    def bounded(self, name: str) -> str:
        """`name` for a metric: what a model makes up does not make more and more series."""
        if name in self._names:
            return name
        if len(self._names) >= _MOST_NAMES or not _NAME.fullmatch(name):
            return _OTHER
        self._names.add(name)
        return name

    def attributes(self, event: Any, table: Attributes) -> dict[str, Any]:
        """The attributes that `table` makes of `event`, redacted."""
        out: dict[str, Any] = {}
        for name, path in table:
            value: Any = event
            for step in path.split("."):
                value = getattr(value, step, None)
            if value is None or value == "":
                continue
            out[name] = [self._plain(value)] if name in LISTS else self._plain(value)
        return out

    def _plain(self, value: Any) -> Any:
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, Enum):
            return str(value)
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, default=repr)
        clean = self.redact(value)
        if len(clean) <= _CONTENT_CHARACTERS:
            return clean
        left_out = len(clean) - _CONTENT_CHARACTERS
        return f"{clean[:_CONTENT_CHARACTERS]}[… {left_out} characters left out]"


def _instrument(meter: Meter, one: Instrument) -> Any:
    make = getattr(meter, f"create_{one.kind}")
    more: dict[str, Any] = {}
    if one.buckets:
        more["explicit_bucket_boundaries_advisory"] = one.buckets
    return make(one.name, unit=one.unit, description=one.description, **more)


class SessionTelemetry:
    """A watcher: spans of one session's runs, requests and calls, and their metrics."""

    def __init__(self, telemetry: Telemetry, session: str) -> None:
        self._telemetry = telemetry
        self._session = session
        self._run: Span | None = None
        self._provider = ""
        self._open: dict[str, Span] = {}
        self._request_began = 0.0

    def __call__(self, event: Any) -> None:
        match event:
            case RunBegan():
                self._provider = provider_of(event.model, event.wire)
                self._run = self._start(event, "")
            case RunEnded():
                self._run_ended(event)
            case RequestBegan():
                self._request_began = self._telemetry.clock.monotonic()
                self._open[f"request {event.step}"] = self._start(event, event.model)
            case RequestEnded():
                self._request_ended(event)
            case CallBegan():
                self._open[event.call_id] = self._start(event, event.tool)
            case CallEnded():
                self._call_ended(event)
            case ApprovalAsked():
                tool = self._telemetry.bounded(event.tool)
                self._telemetry.add("lorimer.approval.waiting", 1, {"gen_ai.tool.name": tool})
            case ApprovalEnded():
                self._approval_ended(event)
            case Alert():
                self._telemetry.add("lorimer.alert.count", 1, {"lorimer.alert.kind": event.kind})
                if self._run is not None:
                    about = self._telemetry.attributes(event, ALERT)
                    self._run.add_event("lorimer.alert", about)
            case _:
                pass

    def _start(self, event: Any, name: str) -> Span:
        from opentelemetry import trace

        how: SpanOf = STARTS[type(event)]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": how.operation,
            "gen_ai.conversation.id": self._session,
        }
        if how is CALL:
            attributes["gen_ai.tool.type"] = "function"
        else:
            attributes["gen_ai.provider.name"] = self._provider
        attributes |= self._telemetry.attributes(event, how.at_start)
        if self._telemetry.content:
            attributes |= self._telemetry.attributes(event, how.content_at_start)
        return self._telemetry.tracer.start_span(
            self._telemetry.redact(f"{how.operation} {name}".rstrip()),
            context=None if self._run is None else trace.set_span_in_context(self._run),
            kind=trace.SpanKind.CLIENT if how.client else trace.SpanKind.INTERNAL,
            attributes=attributes,
        )

    def _end(self, span: Span, event: Any) -> None:
        from opentelemetry.trace import Status, StatusCode

        how = ENDS[type(event)]
        attributes = self._telemetry.attributes(event, how.at_end)
        if self._telemetry.content:
            attributes |= self._telemetry.attributes(event, how.content_at_end)
        span.set_attributes(attributes)
        if "error.type" in attributes:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def _run_ended(self, event: RunEnded) -> None:
        for span in self._open.values():  # a call that was left behind, a request that was stopped
            span.end()
        self._open.clear()
        self._telemetry.add(
            "lorimer.run.count", 1, {"lorimer.stop": event.stop, "error.type": event.error}
        )
        if self._run is not None:
            self._end(self._run, event)
            self._run = None

    def _request_ended(self, event: RequestEnded) -> None:
        span = self._open.pop(f"request {event.step}", None)
        if span is not None:
            self._end(span, event)
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": event.model,
        }
        took = self._telemetry.clock.monotonic() - self._request_began
        self._telemetry.add(
            "gen_ai.client.operation.duration", took, about | {"error.type": event.error}
        )
        if event.usage is None:
            return
        for kind, tokens in (
            ("input", event.usage.input_tokens), ("output", event.usage.output_tokens),
        ):  # fmt: skip
            self._telemetry.add(
                "gen_ai.client.token.usage", tokens, about | {"gen_ai.token.type": kind}
            )

    def _call_ended(self, event: CallEnded) -> None:
        span = self._open.pop(event.call_id, None)
        if span is None:  # it was refused before it began
            began = CallBegan(event.call_id, event.tool, {}, "")
            span = self._start(began, self._telemetry.bounded(event.tool))
        self._end(span, event)
        about = {
            "gen_ai.tool.name": self._telemetry.bounded(event.tool),
            "lorimer.outcome": str(event.outcome),
        }
        self._telemetry.add("lorimer.call.count", 1, about | {"error.type": event.code})
        if event.duration_s is not None:
            self._telemetry.add("lorimer.call.duration", event.duration_s, about)
        if event.code or event.outcome is not Outcome.DONE:
            code = event.code or str(event.outcome)
            self._telemetry.add(
                "lorimer.refusal.count", 1,
                {"gen_ai.tool.name": about["gen_ai.tool.name"], "error.type": code},
            )  # fmt: skip

    def _approval_ended(self, event: ApprovalEnded) -> None:
        about = {"gen_ai.tool.name": self._telemetry.bounded(event.tool)}
        self._telemetry.add("lorimer.approval.waiting", -1, about)
        about["lorimer.answer"] = event.answer
        self._telemetry.add("lorimer.approval.count", 1, about)
        if event.waited_s is not None:
            self._telemetry.add("lorimer.approval.duration", event.waited_s, about)
