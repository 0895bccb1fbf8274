"""Spans and metrics through the real OpenTelemetry SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from lorimer import Agent, Limits, tool
from lorimer.core.calls import Outcome
from lorimer.core.errors import ModelError
from lorimer.core.usage import Usage
from lorimer.core.watch import Alert, ApprovalAsked, ApprovalEnded, CallEnded
from lorimer.runtime.telemetry import Telemetry
from lorimer.runtime.telemetry.mapping import provider_of
from lorimer.safety.secrets import MemoryVault
from lorimer.testing import ScriptedModel, call, reply

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-0815"


@tool(effects="read")
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(effects="read")
async def broken(a: int) -> int:
    """Fail."""
    raise RuntimeError("no")


@tool(effects="read")
async def login(token: str) -> str:
    """Log in."""
    return f"in with {token}"


@dataclass
class Seen:
    """What was exported."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider
    meters: MeterProvider

    def telemetry(self, **options: Any) -> Telemetry:
        return Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    def spans(self, operation: str = "") -> list[ReadableSpan]:
        every = self.exporter.get_finished_spans()
        return [
            s for s in every if not operation or attributes(s)["gen_ai.operation.name"] == operation
        ]

    def metric(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and value (histograms: count and sum) of each series."""
        read = self.reader.get_metrics_data()
        out = []
        for resource in read.resource_metrics if read is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == name:
                        for point in metric.data.data_points:
                            value: Any = getattr(point, "value", None)
                            if value is None:
                                value = (point.count, point.sum)  # type: ignore[union-attr]
                            out.append((dict(point.attributes or {}), value))
        return out


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def seen() -> Iterator[Seen]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(metric_readers=[reader])
    yield Seen(exporter, reader, tracers, meters)
    tracers.shutdown()
    meters.shutdown()


async def run(
    seen: Seen, script: list[Any], tools: Any = (add, broken, login), **options: Any
) -> Any:
    telemetry = options.pop("telemetry", None) or seen.telemetry()
    async with Agent(
        ScriptedModel(script), tools, store=":memory:", telemetry=telemetry, **options
    ) as agent:
        return await agent.run("go")


async def test_a_run_is_one_tree_of_spans(seen: Seen) -> None:
    usage = Usage(
        input_tokens=100, cached_tokens=60, output_tokens=7, reasoning_tokens=2, requests=1
    )
    result = await run(seen, [reply(call("add", a=1, b=2), usage=usage), "3"])
    (whole,) = seen.spans("invoke_agent")
    chats, (tool_span,) = seen.spans("chat"), seen.spans("execute_tool")
    assert whole.name == "invoke_agent" and whole.parent is None
    assert len(chats) == 2 and {s.name for s in chats} == {"chat scripted"}
    assert tool_span.name == "execute_tool add"
    for span in (*chats, tool_span):
        assert span.parent is not None and whole.context is not None
        assert span.parent.span_id == whole.context.span_id
        assert attributes(span)["gen_ai.conversation.id"] == result.session
    assert {s.kind for s in chats} == {SpanKind.CLIENT} and tool_span.kind is SpanKind.INTERNAL
    about = attributes(chats[0])
    assert about["gen_ai.request.model"] == "scripted"
    assert about["gen_ai.provider.name"] == "lorimer.scripted"
    assert about["gen_ai.usage.input_tokens"] == 100
    assert about["gen_ai.usage.cache_read.input_tokens"] == 60
    assert about["gen_ai.usage.output_tokens"] == 7
    assert about["gen_ai.usage.reasoning.output_tokens"] == 2
    assert about["gen_ai.response.finish_reasons"] == ("calls",)
    about = attributes(tool_span)
    assert about["gen_ai.tool.name"] == "add" and about["gen_ai.tool.type"] == "function"
    assert about["gen_ai.tool.call.id"] == result.calls[0].id
    assert about["lorimer.outcome"] == "done" and about["lorimer.effects"] == "read"
    assert "error.type" not in about and tool_span.status.status_code is StatusCode.UNSET
    assert attributes(whole)["lorimer.stop"] == "answered"


async def test_the_run_is_a_child_of_the_programs_own_span(seen: Seen) -> None:
    with seen.tracers.get_tracer("mine").start_as_current_span("request") as mine:
        await run(seen, ["ok"])
    (whole,) = (s for s in seen.spans() if s.name == "invoke_agent")  # `mine` has no operation
    assert whole.parent is not None and whole.parent.span_id == mine.get_span_context().span_id


async def test_failures_have_their_code_and_an_error_status(seen: Seen) -> None:
    script = [reply(calls=[call("broken", a=1), call("nothing"), call("add", a="x", b=1)]), "ok"]
    result = await run(seen, script)
    spans = {attributes(s)["gen_ai.tool.name"]: s for s in seen.spans("execute_tool")}
    assert {name: attributes(s)["error.type"] for name, s in spans.items()} == {
        one.name: one.code for one in result.calls
    }
    assert all(s.status.status_code is StatusCode.ERROR for s in spans.values())
    assert attributes(spans["broken"])["lorimer.outcome"] == "failed_before_effect"
    counted = {(a["gen_ai.tool.name"], a["error.type"]): v
               for a, v in seen.metric("lorimer.refusal.count")}  # fmt: skip
    assert counted == {(one.name, one.code): 1 for one in result.calls}


async def test_a_model_that_fails_ends_both_spans_with_the_error(seen: Seen) -> None:
    with pytest.raises(ModelError):
        await run(seen, [])
    (chat,), (whole,) = seen.spans("chat"), seen.spans("invoke_agent")
    assert attributes(chat)["error.type"] == attributes(whole)["error.type"] != ""
    assert chat.status.status_code is whole.status.status_code is StatusCode.ERROR


async def test_metrics(seen: Seen) -> None:
    usage = Usage(input_tokens=100, output_tokens=7, requests=1)
    script = [
        reply(call("add", a=1, b=2), usage=usage),
        reply(call("add", a=2, b=2), usage=usage),
        "x",
    ]
    await run(seen, script)
    base = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "lorimer.scripted",
            "gen_ai.request.model": "scripted"}  # fmt: skip
    ((about, (count, total)),) = seen.metric("gen_ai.client.operation.duration")
    assert about == base and count == 3 and total >= 0
    tokens = {a["gen_ai.token.type"]: v for a, v in seen.metric("gen_ai.client.token.usage")}
    assert tokens["input"][0] == 3 and tokens["input"][1] >= 200 and tokens["output"][1] >= 14
    assert seen.metric("lorimer.call.count") == [
        ({"gen_ai.tool.name": "add", "lorimer.outcome": "done"}, 2)
    ]
    ((about, (count, _)),) = seen.metric("lorimer.call.duration")
    assert about == {"gen_ai.tool.name": "add", "lorimer.outcome": "done"} and count == 2
    assert seen.metric("lorimer.run.count") == [({"lorimer.stop": "answered"}, 1)]


async def test_approvals_are_counted_while_they_wait_and_by_answer(seen: Seen) -> None:
    watcher = seen.telemetry().of_session("s_1")
    for n in range(3):
        watcher(ApprovalAsked(f"c{n}", "send"))
    watcher(ApprovalEnded("c0", "send", "approved", 2.0))
    watcher(ApprovalEnded("c1", "send", "rejected", 3.0))
    assert seen.metric("lorimer.approval.waiting") == [({"gen_ai.tool.name": "send"}, 1)]
    answers = {a["lorimer.answer"]: v for a, v in seen.metric("lorimer.approval.count")}
    assert answers == {"approved": 1, "rejected": 1}
    assert sum(v[1] for _, v in seen.metric("lorimer.approval.duration")) == 5.0


async def test_no_content_unless_asked_and_never_a_secret(seen: Seen) -> None:
    script = [call("login", token="secret:github"), call("login", token=VALUE), "ok"]
    vault = MemoryVault({"github": VALUE}, tools=["login"])
    for content in (False, True):
        seen.exporter.clear()
        from lorimer.safety.secrets.keeper import SecretKeeper

        telemetry = seen.telemetry(content=content, redact=SecretKeeper(vault).redact)
        await run(seen, script, secrets=vault, mode="trusted", telemetry=telemetry)
        spans = seen.spans("execute_tool")
        assert len(spans) == 2
        for span in spans:
            about = attributes(span)
            assert ("gen_ai.tool.call.arguments" in about) is content
            assert ("gen_ai.tool.call.result" in about) is content
        assert VALUE not in "".join(span.to_json() for span in seen.spans())
        if content:
            assert "secret:github" in str(attributes(spans[0])["gen_ai.tool.call.arguments"])
            assert "in with [secret:github]" in str(attributes(spans[0])["gen_ai.tool.call.result"])


async def test_names_that_a_model_makes_up_do_not_make_series(seen: Seen) -> None:
    watcher = seen.telemetry().of_session("s_1")
    for n in range(1000):
        watcher(CallEnded(f"c{n}", f"made_up_{n}", Outcome.NOT_STARTED, "unknown_tool", "", None))
    watcher(CallEnded("x", "a name\nwith lines", Outcome.NOT_STARTED, "unknown_tool", "", None))
    assert len(seen.metric("lorimer.call.count")) <= 201


async def test_calls_together_keep_their_own_spans(seen: Seen) -> None:
    gates = {n: asyncio.Event() for n in range(3)}

    @tool(effects="read")
    async def wait(n: int) -> int:
        """Wait for the next one, so that they end in the other order."""
        if n < 2:
            await gates[n + 1].wait()
        gates[n].set()
        return n

    await run(seen, [reply(calls=[call("wait", n=n) for n in range(3)]), "ok"], tools=[wait])
    spans = seen.spans("execute_tool")
    assert len({attributes(s)["gen_ai.tool.call.id"] for s in spans}) == 3
    assert all(s.end_time is not None for s in spans)


async def test_an_alert_is_on_the_run_and_counted(seen: Seen) -> None:
    told: list[Any] = []
    script = [call("broken", a=n) for n in range(8)]
    await run(seen, [*script, "x"], watch=told.append, limits=Limits(max_failures=50))
    (whole,) = seen.spans("invoke_agent")
    alerts = [e for e in told if isinstance(e, Alert)]
    assert [e.name for e in whole.events] == ["lorimer.alert"] * len(alerts) and alerts
    assert seen.metric("lorimer.alert.count")[0][1] == len(alerts)


def test_off_means_not_imported(tmp_path: Any) -> None:
    code = (
        "import asyncio, sys\n"
        "from lorimer import Agent\n"
        "from lorimer.testing import ScriptedModel\n"
        "async def go():\n"
        "    async with Agent(ScriptedModel(['ok']), store=':memory:') as agent:\n"
        "        await agent.run('hi')\n"
        "    return agent\n"
        "agent = asyncio.run(go())\n"
        "print(agent.telemetry is not None, 'opentelemetry' in sys.modules)\n"
    )
    for value, words in (("", b"False False"), ("0", b"False False"), ("1", b"True True")):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True,
            env={"LORIMER_OTEL": value, "LORIMER_HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.stdout.strip() == words


@pytest.mark.parametrize(
    ("model", "wire", "provider"),
    [
        ("openai:gpt-5", "openai_responses", "openai"),
        ("anthropic:claude-x", "anthropic", "anthropic"),
        ("gemini:g", "gemini", "gcp.gemini"),
        ("groq:llama", "openai_chat", "groq"),
        ("qwen2.5-coder-0.5b", "local", "lorimer.local"),
        ("x", "somewire", "somewire"),
        ("x", "", "unknown"),
    ],
)
def test_the_provider_of_a_model(model: str, wire: str, provider: str) -> None:
    assert provider_of(model, wire) == provider
