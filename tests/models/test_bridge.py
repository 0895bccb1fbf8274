"""The bridge on real pydantic-ai: its local models, and its OpenAI and Anthropic classes against
the wire servers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, Settings, tool
from lorimer.core.errors import (
    AuthenticationFailed,
    BadAnswer,
    ConfigError,
    ContextTooLong,
    InvalidRequest,
    LorimerError,
    MissingExtra,
    ModelError,
    ProviderFailed,
    ProviderUnreachable,
    RateLimited,
    RequestRefused,
    StreamCut,
    UnknownModel,
)
from lorimer.core.messages import ImagePart, Kind, Part, ReasoningPart, TextPart
from lorimer.models.bridge import BridgeModel, open_bridge
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
)
from lorimer.models.registry import resolve
from lorimer.testing import ScriptedModel
from wire.answers import Cut, Fail, Raw, Say, SayCall, Usage
from wire.kit import (
    AT,
    Entry,
    answer_entry,
    assistant,
    called,
    calls_of,
    collect,
    drain,
    note,
    request,
    result,
    results,
    span_of_calls,
    stop_of,
    text_of,
    usage_of,
    user,
)
from wire.protocols import PROTOCOLS
from wire.server import KEY, WireServer

pydantic_ai = pytest.importorskip("pydantic_ai")
from pydantic_ai import messages as pai  # noqa: E402
from pydantic_ai.models import StreamedResponse  # noqa: E402
from pydantic_ai.models.function import (  # noqa: E402
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)
from pydantic_ai.models.test import TestModel as PaiTestModel  # noqa: E402

pytestmark = pytest.mark.anyio

KINDS = {"openai_chat": "openai-chat", "openai_responses": "openai", "anthropic": "anthropic"}
WIRES = tuple(KINDS)
ARGUMENTS = '{"city": "Zürich \\u00e9 😀", "n": -0, "big": 12345678901234567890123}'
CALL = SayCall("call_a1", "get_weather", ARGUMENTS)


def bridged(server: WireServer, name: str = "test-model", **more: Any) -> BridgeModel:
    """pydantic-ai's own model class for the wire of `server`."""
    kind = KINDS[server.protocol.name]
    if kind == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(api_key=KEY, base_url=server.origin)
        return BridgeModel(AnthropicModel(name, provider=provider), **more)
    made = open_bridge(f"{kind}:{name}", base_url=server.base_url, api_key=KEY)
    return BridgeModel(made.model, **more) if more else made


async def ask(server: WireServer, entries: list[Entry], **more: Any) -> list[ModelEvent]:
    model = bridged(server)
    try:
        return await collect(model.stream(request(model, entries, **more)))
    finally:
        await model.aclose()


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`code` in a new process that sees what the tests see."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        timeout=120,
    )


each_wire = pytest.mark.parametrize("wire", WIRES)


@each_wire
async def test_tool_round_trip_with_parallel_calls(wire: str) -> None:
    other = SayCall("call_b2", "get_time", '{"zone":"Z"}')
    with WireServer(wire, [Say("Let me see.", (CALL, other)), Say("It rains, 雨.")]) as server:
        model = bridged(server)
        entries = [user("Weather?")]
        events = await collect(model.stream(request(model, entries)))
        assert text_of(events) == "Let me see."
        assert stop_of(events).reason in (StopReason.CALLS, StopReason.END)
        got = calls_of(events)
        assert [(c.id, c.name, c.raw) for c in got] == [
            (c.id, c.name, c.arguments) for c in (CALL, other)
        ]
        entries += [
            answer_entry(events),
            results(result("call_a1"), result("call_b2", "get_time", "noon", error=True)),
            note("Be quick."),
        ]
        events = await collect(model.stream(request(model, entries)))
        await model.aclose()
    assert text_of(events) == "It rains, 雨."
    assert stop_of(events).reason is StopReason.END
    assert not server.faults
    sent = server.received[1].body.decode()
    assert "call_a1" in sent and "noon" in sent and "<note>Be quick.</note>" in sent


@each_wire
@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_arguments_are_recorded_as_they_were_written(wire: str, piece: int) -> None:
    with WireServer(wire, [Say(calls=(CALL, SayCall("c2", "get_time", "{}")), piece=piece)]) as s:
        events = await ask(s, [user("?")])
    assert [c.raw for c in calls_of(events)] == [ARGUMENTS, "{}"]
    for index, raw in enumerate([ARGUMENTS, "{}"]):
        deltas = [e.text for e in events if isinstance(e, CallDelta) and e.index == index]
        assert "".join(deltas) == raw
    started = [(e.index, e.name) for e in events if isinstance(e, CallStarted)]
    assert started == [(0, "get_weather"), (1, "get_time")]


@each_wire
async def test_length_is_length_and_the_last_call_is_not_complete(wire: str) -> None:
    cut = SayCall("c2", "get_weather", '{"city":"Zü')
    with WireServer(wire, [Say(calls=(CALL, cut), stop="length"), Say("half", stop="length")]) as s:
        model = bridged(s)
        events = await collect(model.stream(request(model, [user("?")])))
        assert stop_of(events).reason is StopReason.LENGTH
        assert [c.id for c in calls_of(events)] == ["call_a1"]
        events = await collect(model.stream(request(model, [user("?")])))
        assert stop_of(events).reason is StopReason.LENGTH
        await model.aclose()


@each_wire
async def test_refusal_is_refusal(wire: str) -> None:
    with WireServer(wire, [Say("", stop="refusal")]) as server:
        events = await ask(server, [user("?")])
    assert stop_of(events).reason is StopReason.REFUSAL


@each_wire
@pytest.mark.parametrize("cleanly", [False, True], ids=["broken", "clean end"])
async def test_a_cut_anywhere_in_the_calls_never_ends_well(wire: str, cleanly: bool) -> None:
    """G3, also for a body that ends as if all were well."""
    say = Say("Ok.", (SayCall("c1", "get_weather", '{"city":"Zü","a":1}'),), piece=6)
    whole = PROTOCOLS[wire].encode(say, {})
    first, last = span_of_calls(whole)
    if wire == "anthropic":  # The reason stands in message_delta; all calls are whole before it.
        last = whole.index(b"event: message_delta")
    with WireServer(wire) as server:
        model = bridged(server)
        asked = request(model, [user("?")])
        for at in range(first, last - 2, 17):
            server.script.append(Cut(say, at, cleanly=cleanly))
            events: list[ModelEvent] = []
            with pytest.raises((StreamCut, BadAnswer)) as caught:
                await drain(model.stream(asked), events)
            assert caught.value.retryable
            assert not any(isinstance(e, Stop) for e in events), at
        await model.aclose()


async def test_a_server_without_reasons_needs_a_word_of_trust() -> None:
    """pydantic-ai says `stop` for a chat stream that ended without a reason: no end mark."""
    stream = PROTOCOLS["openai_chat"].encode(Say("Well."), {})
    stream = stream.replace(b'"finish_reason": "stop"', b'"finish_reason": null')
    with WireServer("openai_chat", [Raw(stream), Raw(stream)]) as server:
        with pytest.raises(StreamCut, match="no reason"):
            await ask(server, [user("?")])
        model = bridged(server, end_without_reason=True)
        events = await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
    assert stop_of(events) == Stop(StopReason.END, "end of stream")


@each_wire
@pytest.mark.parametrize(
    ("fail", "expected", "retryable"),
    [
        (Fail(401, message=f"bad key {KEY}"), AuthenticationFailed, False),
        (Fail(403, message=f"not allowed for {KEY}"), AuthenticationFailed, False),
        (Fail(404, message="The model `test-model` does not exist"), UnknownModel, False),
        (Fail(400, message="maximum context length is 8192 tokens"), ContextTooLong, False),
        (Fail(400, message="bad field"), RequestRefused, False),
        (Fail(422, message="bad field"), RequestRefused, False),
        (Fail(429, headers={"Retry-After": "7"}), RateLimited, True),
        (Fail(500), ProviderFailed, True),
        (Fail(503, body=b"<html>down</html>"), ProviderFailed, True),
        (Fail(529, message="overloaded"), ProviderFailed, True),
    ],
)
async def test_http_errors_have_their_class_are_not_retried_and_never_show_the_key(
    wire: str, fail: Fail, expected: type[ModelError], retryable: bool
) -> None:
    with WireServer(wire, [fail, Say("again")]) as server, pytest.raises(ModelError) as caught:
        await ask(server, [user("?")])
    assert type(caught.value) is expected
    assert caught.value.retryable is retryable
    assert len(server.received) == 1
    assert KEY not in str(caught.value) and KEY[-8:] not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.next
    if fail.status == 429:
        assert caught.value.retry_after_s == 7


async def test_no_quota_is_not_worth_another_try() -> None:
    fail = Fail(429, message="no credit", code="insufficient_quota")
    with WireServer("openai_chat", [fail]) as server, pytest.raises(RateLimited) as caught:
        await ask(server, [user("?")])
    assert not caught.value.retryable


@each_wire
async def test_an_error_inside_the_stream_has_its_class(wire: str) -> None:
    code = "rate_limit_error" if wire == "anthropic" else "rate_limit_exceeded"
    event = PROTOCOLS[wire].error_event(code, "busy")
    start = PROTOCOLS[wire].encode(Say("Well,"), {})[:200].rpartition(b"\n\n")[0] + b"\n\n"
    with WireServer(wire, [Raw(start + event)]) as server, pytest.raises(RateLimited):
        await ask(server, [user("?")])


@each_wire
async def test_nothing_listening_is_unreachable(wire: str) -> None:
    with WireServer(wire, []) as server:
        model = bridged(server)
    with pytest.raises(ProviderUnreachable) as caught:
        await collect(model.stream(request(model, [user("?")])))
    assert caught.value.retryable
    await model.aclose()


@each_wire
async def test_usage(wire: str) -> None:
    written = 100 if wire == "anthropic" else 0
    told = Usage(input=1000, cached=600, written=written, output=200, reasoning=50)
    with WireServer(wire, [Say("x", usage=told)]) as server:
        used = usage_of(await ask(server, [user("?")]))
    assert (used.input_tokens, used.cached_tokens, used.cache_write_tokens) == (1000, 600, written)
    assert (used.output_tokens, used.requests) == (200, 1)
    assert used.reasoning_tokens == 50
    assert used.ttft_s is not None and used.ttft_s > 0
    assert used.raw


def test_a_known_model_has_a_price() -> None:
    from pydantic_ai.usage import RequestUsage

    from lorimer.models.bridge_events import usage_of as usage_from

    used = RequestUsage(input_tokens=1_000_000, output_tokens=0)
    answer = pai.ModelResponse([], usage=used, model_name="gpt-4o", provider_name="openai")
    assert (usage_from(answer, None).cost or 0) > Decimal(0)
    answer = pai.ModelResponse([], usage=used, model_name="no-such-model", provider_name="nobody")
    assert usage_from(answer, None).cost is None


@pytest.mark.parametrize("wire", ["openai_responses", "anthropic"])
async def test_reasoning_goes_back_untouched_with_its_call(wire: str) -> None:
    with WireServer(wire, [Say("", (CALL,), reasoning="Let me think… ü"), Say("ok")]) as server:
        model = bridged(server, "gpt-5" if wire == "openai_responses" else "test-model")
        entries = [user("?")]
        events = await collect(model.stream(request(model, entries)))
        said = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
        done = [e for e in events if isinstance(e, ReasoningDone)]
        assert said == done[0].part.text == "Let me think… ü"
        first_call = next(i for i, e in enumerate(events) if isinstance(e, CallStarted))
        assert events.index(done[0]) < first_call
        entries += [_stored(answer_entry(events)), results(result("call_a1"))]
        await collect(model.stream(request(model, entries)))
        await model.aclose()
    assert not server.faults
    sent = server.received[1].json
    if wire == "anthropic":
        block = sent["messages"][1]["content"][0]
        assert (block["type"], block["thinking"]) == ("thinking", "Let me think… ü")
        assert block["signature"]
    else:
        item = next(i for i in sent["input"] if i.get("type") == "reasoning")
        assert (item["id"], item["encrypted_content"]) == ("rs_1", "c2VjcmV0")


def _stored(entry: Entry) -> Entry:
    """`entry` as it comes back from disk."""
    return Entry.from_json(json.loads(json.dumps(entry.to_json())), 0)


async def test_reasoning_of_another_service_stays_here() -> None:
    with WireServer("anthropic", [Say("Hm.", reasoning="secret thought")]) as server:
        events = await ask(server, [user("?")])
    foreign = assistant(ReasoningPart("other", "anthropic", {"signature": "x"}), TextPart("Yes."))
    entries = [user("?"), answer_entry(events), user("!"), foreign, user("And?")]
    with WireServer("openai_responses", [Say("ok")]) as server:
        await ask(server, entries)
    sent = server.received[0].body.decode()
    assert "secret thought" not in sent and "other" not in sent
    assert "Hm." in sent and "Yes." in sent


# pydantic-ai's local models


def model_of(items: Callable[[list[Any], AgentInfo], AsyncIterator[Any]]) -> BridgeModel:
    return BridgeModel(FunctionModel(stream_function=items))


async def test_function_model_streams_text_thought_and_calls_side_by_side() -> None:
    seen: list[Any] = []

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append((messages, info))
        yield {0: DeltaThinkingPart(content="Hm, ")}
        yield {0: DeltaThinkingPart(content="yes.", signature="sig")}
        yield {1: DeltaToolCall(name="get_weather", json_args='{"ci', tool_call_id="a")}
        yield {2: DeltaToolCall(name="get_time", json_args="{", tool_call_id="b")}
        yield {1: DeltaToolCall(json_args='ty":1}')}
        yield {2: DeltaToolCall(json_args="}")}

    model = model_of(answer)
    entries = [user("?")]
    events = await collect(model.stream(request(model, entries)))
    assert [(c.id, c.raw) for c in calls_of(events)] == [("a", '{"city":1}'), ("b", "{}")]
    assert stop_of(events).reason is StopReason.CALLS
    (done,) = [e for e in events if isinstance(e, ReasoningDone)]
    assert (done.part.text, done.part.wire) == ("Hm, yes.", "bridge")
    assert done.part.opaque["pydantic_ai"]["fields"]["signature"] == "sig"  # type: ignore[index]
    messages, info = seen[0]
    assert [p.content for p in messages[0].parts] == ["Be brief.", "?"]
    assert [t.name for t in info.function_tools] == ["get_weather", "get_time"]
    entries += [_stored(answer_entry(events)), results(result("a"), result("b", "get_time"))]
    await collect(model.stream(request(model, entries)))
    messages, _ = seen[1]
    thought = messages[1].parts[0]
    assert (thought.content, thought.signature, thought.provider_name) == (
        "Hm, yes.", "sig", "function",
    )  # fmt: skip


async def test_a_signature_that_comes_after_its_thought_is_kept_with_it() -> None:
    seen: list[Any] = []

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append(messages)
        yield {0: DeltaThinkingPart(content="Hm.")}
        yield "Yes."
        yield {0: DeltaThinkingPart(content="", signature="late")}

    model = model_of(answer)
    entries = [user("?")]
    events = await collect(model.stream(request(model, entries)))
    entries += [_stored(answer_entry(events)), user("Sure?")]
    await collect(model.stream(request(model, entries)))
    thought, text = seen[1][1].parts
    assert (thought.content, thought.signature, text.content) == ("Hm.", "late", "Yes.")


async def test_a_router_of_pydantic_ai_is_a_model_too() -> None:
    from pydantic_ai.models.fallback import FallbackModel

    with (
        WireServer("openai_chat", [Fail(500)]) as bad,
        WireServer("anthropic", [Say("ok")]) as good,
    ):
        models = [bridged(bad), bridged(good)]
        model = BridgeModel(FallbackModel(*(m.model for m in models)))
        assert text_of(await collect(model.stream(request(model, [user("?")])))) == "ok"
        bad.script.append(Fail(500))
        good.script.append(Fail(429))
        with pytest.raises(RateLimited):
            await collect(model.stream(request(model, [user("?")])))
        await model.aclose()


async def test_a_failing_local_stream_gives_no_end() -> None:
    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        yield {1: DeltaToolCall(name="get_weather", json_args="{}", tool_call_id="a")}
        raise ValueError("Bearer abcdefghijklmnop")

    events: list[ModelEvent] = []
    model = model_of(answer)
    with pytest.raises(ModelError) as caught:
        await drain(model.stream(request(model, [user("?")])), events)
    assert not any(isinstance(e, CallComplete | Stop) for e in events)
    assert "abcdef" not in str(caught.value)


async def test_parsed_arguments_become_canonical_json() -> None:
    model = BridgeModel(PaiTestModel())
    events = await collect(model.stream(request(model, [user("?")])))
    calls = calls_of(events)
    assert [c.name for c in calls] == ["get_weather", "get_time"]
    assert [c.raw for c in calls] == ['{"city":"a"}', '{"zone":"a"}']
    for index, call in enumerate(calls):
        deltas = [e.text for e in events if isinstance(e, CallDelta) and e.index == index]
        assert "".join(deltas) == call.raw


class PlainStream(StreamedResponse):
    """A stream of someone's own class, over some network, that never gives a reason."""

    model_name = "plain"
    provider_name = None
    provider_url = None
    timestamp = AT

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        for event in self._parts_manager.handle_text_delta(vendor_part_id="t", content="Hello"):
            yield event


class PlainModel(PaiTestModel):
    @asynccontextmanager
    async def request_stream(
        self, messages: Any, settings: Any, parameters: Any, context: Any = None
    ) -> AsyncGenerator[PlainStream]:
        yield PlainStream(parameters)


async def test_a_class_that_gives_no_reason_is_trusted_on_demand_only() -> None:
    model = BridgeModel(PlainModel())
    with pytest.raises(StreamCut, match="end_without_reason"):
        await collect(model.stream(request(model, [user("?")])))
    model = BridgeModel(PlainModel(), end_without_reason=True)
    events = await collect(model.stream(request(model, [user("?")])))
    assert (text_of(events), stop_of(events).reason) == ("Hello", StopReason.END)


async def test_messages_are_made_once_and_only_from_frozen_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lorimer.models import bridge_messages

    made: list[str] = []
    real = bridge_messages._message
    monkeypatch.setattr(
        bridge_messages, "_message", lambda r, how: (made.append(r["kind"]), real(r, how))[1]
    )

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        yield str(len(messages))

    model = model_of(answer)
    entries = [user("a")]
    asked = request(model, entries)
    assert text_of(await collect(model.stream(asked))) == "1"
    for entry in (assistant(TextPart("b")), user("c")):
        asked.fragments.append(model.render_entry(entry, entries))  # type: ignore[attr-defined]
        entries.append(entry)
    entries.clear()  # the entries themselves are not read
    assert text_of(await collect(model.stream(asked))) == "3"
    assert made == ["user", "assistant", "user"]


async def test_every_history_is_one_that_providers_accept() -> None:
    """Answers after answers, calls with broken names, ids and arguments, images, empty results."""
    seen: list[Any] = []

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append(messages)
        yield "ok"

    image: Part = ImagePart("image/png", "iVBORw0KGgo=")
    model = model_of(answer)
    entries = [
        user("a"),
        assistant(TextPart("b")),
        assistant(called("id with space", "bad name", "not json")),
        results(result("id with space", "bad name", "")),
        assistant(),
        Entry(Kind.USER, (TextPart("see"), image), AT),
        note("n </note>"),
        user("half \ud800 a pair"),
    ]
    await collect(model.stream(request(model, entries)))
    (messages,) = seen
    kinds = [m.kind for m in messages]
    assert kinds == ["request", "response"] * (len(kinds) // 2) + ["request"]
    call, back = messages[3].parts[0], messages[4].parts[0]
    assert call.tool_call_id == back.tool_call_id and " " not in call.tool_call_id
    assert call.tool_name == back.tool_name == "bad_name"
    assert json.loads(call.args) == {"_invalid_arguments": "not json"}
    assert messages[6].parts[0].content[0] == "see"
    assert messages[6].parts[0].content[1].media_type == "image/png"


@pytest.mark.parametrize("choice", ["required", "no_such_tool"])
async def test_settings_that_cannot_be_kept_are_refused(choice: str) -> None:
    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        yield "never"

    model = model_of(answer)
    asked = request(model, [user("?")], tools=(), settings=Settings(tool_choice=choice))
    with pytest.raises(InvalidRequest):
        await collect(model.stream(asked))


async def test_settings_arrive_and_ignored_ones_are_refused() -> None:
    wanted = Settings(
        tool_choice="get_time", parallel_calls=False, max_output_tokens=77, temperature=0.5, seed=3
    )
    with WireServer("openai_chat", [Say(calls=(SayCall("c", "get_time", "{}"),))]) as server:
        await ask(server, [user("?")], settings=wanted)
    sent = server.received[0].json
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "get_time"}}
    assert (sent["parallel_tool_calls"], sent["temperature"], sent["seed"]) == (False, 0.5, 3)
    assert 77 in (sent.get("max_completion_tokens"), sent.get("max_tokens"))
    with WireServer("anthropic") as server, pytest.raises(InvalidRequest, match="seed"):
        await ask(server, [user("?")], settings=wanted)


TWO_LOOPS = """
import asyncio, sys
from wire.kit import collect, request, text_of, user
from lorimer.models.bridge import open_bridge

model = open_bridge("openai-chat:test-model", base_url=sys.argv[1], api_key=sys.argv[2])

async def once():
    print(text_of(await collect(model.stream(request(model, [user("?")])))))

asyncio.run(once())
asyncio.run(once())
"""


def test_two_event_loops_one_after_the_other() -> None:
    with WireServer("openai_chat", [Say("one"), Say("two")]) as server:
        run = run_python(TWO_LOOPS, server.base_url, KEY)
    assert run.stdout.split() == ["one", "two"], run.stderr


async def test_closing_the_stream_early_closes_the_connection() -> None:
    with WireServer("openai_chat", [Say("a" * 400_000, piece=1)]) as server:
        model = bridged(server)
        events: Any = model.stream(request(model, [user("?")]))
        await anext(events)
        await events.aclose()
        assert await asyncio.to_thread(server.gone.wait, 10)
        await model.aclose()


# Names


def test_resolve_makes_a_model_of_the_bridge() -> None:
    made = resolve("bridge:openai-chat:gpt-5", base_url="http://127.0.0.1:1/v1", api_key="k")
    assert isinstance(made, BridgeModel)
    assert (made.name, made.profile.wire) == ("bridge:openai-chat:gpt-5", "bridge")


@pytest.mark.parametrize(
    ("name", "expected", "match"),
    [
        ("bridge:", UnknownModel, "PROVIDER:MODEL"),
        ("bridge:nobody:x", UnknownModel, "nobody"),
        ("bridge:openai:gpt-5", AuthenticationFailed, "OPENAI_API_KEY"),
        ("bridge:deepseek:x", AuthenticationFailed, "DEEPSEEK_API_KEY"),
    ],
)
def test_a_name_that_cannot_be_opened_says_why(
    name: str, expected: type[LorimerError], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(expected, match=match):
        resolve(name)


def test_a_provider_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.groq", raising=False)
    with pytest.raises(ConfigError, match="groq"):
        resolve("bridge:groq:x", api_key="k")


def test_without_pydantic_ai_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.partition(".")[0] == "pydantic_ai"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(MissingExtra, match=r"lorimer\[bridge\]"):
        resolve("bridge:openai:x")


def test_a_tap_on_the_bridge_is_refused() -> None:
    with pytest.raises(ConfigError, match="tapped"):
        resolve("bridge:openai-chat:x", api_key="k", tap=lambda body: None)


def test_the_bridge_module_does_not_import_pydantic_ai() -> None:
    code = "import sys, lorimer.models.bridge; assert 'pydantic_ai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# A whole run


@tool(effects="read")
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


RESUME = """
import asyncio, sys
from lorimer import Agent
from lorimer.models.bridge import open_bridge
from models.test_bridge import KEY, add

async def main():
    model = open_bridge("openai-chat:test-model", base_url=sys.argv[1], api_key=KEY)
    async with Agent(model, [add], store=sys.argv[2]) as agent:
        async with agent.session(sys.argv[3]) as session:
            print((await session.send("And twice that?")).answer)
    await model.aclose()

asyncio.run(main())
"""


async def test_a_run_with_a_tool_goes_on_in_another_process(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    sum_call = SayCall("c1", "add", '{"a": 2, "b":3}')
    script = [Say("", (sum_call,)), Say("It is 5."), Say("It is 10.")]
    with WireServer("openai_chat", script) as server:
        model = bridged(server)
        async with Agent(model, [add], store=store) as agent:
            ended = await agent.run("2 + 3?")
        await model.aclose()
        assert (ended.ok, ended.answer) == (True, "It is 5.")
        run = await asyncio.to_thread(
            run_python, RESUME, server.base_url, str(store), ended.session
        )
    assert run.stdout.strip() == "It is 10.", run.stderr
    assert not server.faults
    before, after = server.received[1].json["messages"], server.received[2].json["messages"]
    assert after[: len(before)] == before
    roles = [m["role"] for m in after]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert after[3]["content"].strip().startswith("5")


async def test_a_session_of_another_wire_goes_on_over_the_bridge(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    first = ScriptedModel([{"name": "add", "arguments": {"a": 1, "b": 1}}, "2"])
    async with Agent(first, [add], store=store) as agent:
        ended = await agent.run("1 + 1?")
    with WireServer("anthropic", [Say("Four.")]) as server:
        model = bridged(server)
        async with (
            Agent(model, [add], store=store) as agent,
            agent.session(ended.session) as session,
        ):
            assert (await session.send("And twice that?")).answer == "Four."
        await model.aclose()
    assert not server.faults
