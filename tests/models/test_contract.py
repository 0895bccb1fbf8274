"""The contract that all four adapters keep, on real sockets against a strict server."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import anyio
import pytest

from lorimer.context.validity import validate_body
from lorimer.core.errors import (
    AuthenticationFailed,
    BadAnswer,
    ContextTooLong,
    InvalidRequest,
    ModelError,
    ProviderFailed,
    ProviderUnreachable,
    RateLimited,
    RequestRefused,
    StreamCut,
    UnknownModel,
)
from lorimer.core.messages import ReasoningPart, TextPart
from lorimer.models.profiles import Price, profile_for
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
from wire.answers import Cut, Fail, Raw, Say, SayCall, Usage
from wire.kit import (
    FAMILY,
    TIME,
    WEATHER,
    WIRES,
    adapter,
    answer_entry,
    assistant,
    calls_of,
    collect,
    drain,
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

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("wire", WIRES)]

ARGUMENTS = (
    '{"city": "Zürich \\u00e9 \\ud83d\\ude00 😀 \\"q\\"", "n": -0, "big": 12345678901234567890123}'
)
CALL = SayCall("call_a1", "get_weather", ARGUMENTS)


async def ask(server: WireServer, entries, **more):  # type: ignore[no-untyped-def]
    model = adapter(server.protocol.name, server.base_url)
    try:
        return await collect(model.stream(request(model, entries, **more)))
    finally:
        await model.aclose()


async def test_text_answer_streams_and_stops(wire: str) -> None:
    with WireServer(wire, [Say("Grüße, 世界 😀!")]) as server:
        events = await ask(server, [user("Hello")])
    assert text_of(events) == "Grüße, 世界 😀!"
    assert stop_of(events).reason is StopReason.END
    assert not server.faults


async def test_tool_round_trip(wire: str) -> None:
    """Question, call, result, answer: the second request is valid and holds the exact call."""
    with WireServer(wire, [Say(calls=(CALL,)), Say("It rains.")]) as server:
        model = adapter(wire, server.base_url)
        entries = [user("Weather?")]
        events = await collect(model.stream(request(model, entries)))
        assert stop_of(events).reason is StopReason.CALLS
        (call,) = calls_of(events)
        assert (call.id, call.name, call.raw) == ("call_a1", "get_weather", ARGUMENTS)
        entries += [answer_entry(events), results(result("call_a1"))]
        events = await collect(model.stream(request(model, entries)))
        await model.aclose()
    assert text_of(events) == "It rains."
    assert not server.faults
    sent = server.received[1].body
    if wire in ("anthropic", "gemini"):  # Object wires: the arguments go back byte for byte.
        assert ARGUMENTS.encode() in sent
    else:
        assert json.dumps(ARGUMENTS, ensure_ascii=False).encode() in sent


async def test_parallel_calls_keep_order_ids_and_arguments(wire: str) -> None:
    calls = tuple(SayCall(f"id{n}", "get_time", f'{{"zone":"Z{n}"}}') for n in range(4))
    with WireServer(wire, [Say("Let me see.", calls), Say("Done.")]) as server:
        model = adapter(wire, server.base_url)
        entries = [user("Times?")]
        events = await collect(model.stream(request(model, entries)))
        got = calls_of(events)
        assert [(c.id, c.name, c.raw) for c in got] == [(c.id, c.name, c.arguments) for c in calls]
        entries += [answer_entry(events), results(*(result(c.id, "get_time") for c in got))]
        await collect(model.stream(request(model, entries)))
        await model.aclose()
    assert not server.faults
    started = [e for e in events if isinstance(e, CallStarted)]
    assert [(e.index, e.name) for e in started] == [(n, "get_time") for n in range(4)]
    for index in range(4):
        deltas = "".join(e.text for e in events if isinstance(e, CallDelta) and e.index == index)
        assert deltas == calls[index].arguments


@pytest.mark.parametrize(
    "raw",
    [
        ARGUMENTS,
        "{}",
        '{ "a" :\t[1, 2.50, 1e400, -0.0] }',
        '{"a":1,"a":2}',
        '{"s":"\\u0000\\ud800"}',
        '{"q":"“curly” ‘quotes’"}',
        '{"n":' + "9" * 5000 + "}",
        '{"deep":' + "[" * 200 + "]" * 200 + "}",
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
async def test_arguments_arrive_exactly_as_written(wire: str, raw: str, piece: int) -> None:
    with WireServer(wire, [Say(calls=(SayCall("c1", "get_weather", raw),), piece=piece)]) as server:
        events = await ask(server, [user("?")])
    assert calls_of(events)[0].raw == raw
    assert stop_of(events).reason is StopReason.CALLS


async def test_length_stop_is_no_success_and_the_last_call_is_not_complete(wire: str) -> None:
    if wire == "gemini":
        pytest.skip("on this wire a call is sent whole or not at all")
    cut = SayCall("c2", "get_weather", '{"city":"Zü')
    with WireServer(wire, [Say(calls=(CALL, cut), stop="length")]) as server:
        events = await ask(server, [user("?")])
    assert stop_of(events).reason is StopReason.LENGTH
    assert "c2" not in [c.id for c in calls_of(events)]


async def test_length_stop_of_text_is_length(wire: str) -> None:
    with WireServer(wire, [Say("half a sen", stop="length")]) as server:
        events = await ask(server, [user("?")])
    assert stop_of(events).reason is StopReason.LENGTH


async def test_refusal_is_refusal(wire: str) -> None:
    with WireServer(wire, [Say("", stop="refusal")]) as server:
        events = await ask(server, [user("?")])
    assert stop_of(events).reason is StopReason.REFUSAL


async def test_cut_at_every_byte_of_the_calls_never_ends_well(wire: str) -> None:
    """G3: whatever byte the connection breaks at, no stop reason comes and the fault is an error.
    (The same with a clean end of the body: `test_readers.py`.)"""
    say = Say("Ok.", (SayCall("c1", "get_weather", '{"city":"Zü","a":1}'),), piece=6)
    with WireServer(wire) as server:
        model = adapter(wire, server.base_url)
        asked = request(model, [user("?")])
        whole = PROTOCOLS[wire].encode(say, {})
        first, last = span_of_calls(whole)
        for at in range(first, last):
            server.script.append(Cut(say, at))
            events: list[ModelEvent] = []
            with pytest.raises(StreamCut):
                await drain(model.stream(asked), events)
            assert not any(isinstance(e, Stop) for e in events), at
        await model.aclose()


async def test_half_a_character_at_the_end_is_a_cut(wire: str) -> None:
    stream = PROTOCOLS[wire].encode(Say("ä" * 5, piece=99), {})
    at = stream.index("ä".encode()) + 1
    with (
        WireServer(wire, [Cut(Raw(stream), at, cleanly=True)]) as server,
        pytest.raises(StreamCut, match="middle of a character"),
    ):
        await ask(server, [user("?")])


async def test_invalid_utf8_is_a_bad_answer(wire: str) -> None:
    stream = (
        PROTOCOLS[wire].encode(Say("ä" * 5, piece=99), {}).replace("ä".encode(), b"\xc3\x28", 1)
    )
    with WireServer(wire, [Raw(stream)]) as server, pytest.raises(BadAnswer, match="UTF-8"):
        await ask(server, [user("?")])


async def test_an_event_that_is_not_json_is_a_bad_answer(wire: str) -> None:
    with (
        WireServer(wire, [Raw(b"data: {nope\n\n")]) as server,
        pytest.raises(BadAnswer, match="not JSON"),
    ):
        await ask(server, [user("?")])


async def test_unknown_events_and_fields_are_tolerated(wire: str) -> None:
    unknown = PROTOCOLS[wire].unknown_event()
    stream = PROTOCOLS[wire].encode(Say("fine"), {})
    with WireServer(wire, [Raw(b": comment\n\n" + unknown + stream)]) as server:
        events = await ask(server, [user("?")])
    assert text_of(events) == "fine"
    assert stop_of(events).reason is StopReason.END


CODES = {
    "openai_chat": ("rate_limit_exceeded", "server_error", "context_length_exceeded"),
    "openai_responses": ("rate_limit_exceeded", "server_error", "context_length_exceeded"),
    "anthropic": ("rate_limit_error", "overloaded_error", "invalid_request_error"),
    "gemini": ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INVALID_ARGUMENT"),
}


@pytest.mark.parametrize(
    ("which", "expected"), list(enumerate([RateLimited, ProviderFailed, ContextTooLong]))
)
async def test_an_error_inside_the_stream_has_its_class(
    wire: str, which: int, expected: type
) -> None:
    event = PROTOCOLS[wire].error_event(
        CODES[wire][which], "the context length is exceeded" if which == 2 else "busy"
    )
    start = PROTOCOLS[wire].encode(Say("Well,"), {})[:200].rpartition(b"\n\n")[0] + b"\n\n"
    with WireServer(wire, [Raw(start + event)]) as server, pytest.raises(expected):
        await ask(server, [user("?")])


@pytest.mark.parametrize(
    ("fail", "expected", "retryable"),
    [
        (Fail(401, message=f"bad key {KEY}"), AuthenticationFailed, False),
        (Fail(403, message=f"not allowed for {KEY}"), AuthenticationFailed, False),
        (Fail(404, message="The model `test-model` does not exist"), UnknownModel, False),
        (Fail(404, message="no such page"), RequestRefused, False),
        (Fail(400, message="maximum context length is 8192 tokens"), ContextTooLong, False),
        (Fail(413, message="too large"), ContextTooLong, False),
        (Fail(400, message="bad field"), RequestRefused, False),
        (Fail(422, message="bad field"), RequestRefused, False),
        (
            Fail(307, message="elsewhere", headers={"location": "http://127.0.0.1:1/"}),
            RequestRefused,
            False,
        ),
        (Fail(429), RateLimited, True),
        (Fail(500), ProviderFailed, True),
        (Fail(503, body=b"<html>down</html>"), ProviderFailed, True),
        (Fail(529, message="overloaded"), ProviderFailed, True),
    ],
)
async def test_http_errors_have_their_class_and_never_show_the_key(
    wire: str, fail: Fail, expected: type[ModelError], retryable: bool
) -> None:
    with WireServer(wire, [fail]) as server, pytest.raises(ModelError) as caught:
        await ask(server, [user("?")])
    assert type(caught.value) is expected
    assert caught.value.retryable is retryable
    assert KEY not in str(caught.value) and KEY[-8:] not in repr(caught.value)
    assert caught.value.next


async def test_wrong_key_names_the_variable_and_not_the_key(wire: str) -> None:
    key = "sk-wrong-key-abcdefgh12345678"
    with WireServer(wire, []) as server:
        model = adapter(wire, server.base_url, api_key=key)
        with pytest.raises(AuthenticationFailed) as caught:
            await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
    assert profile_for(FAMILY[wire]).key_env in str(caught.value)
    assert key not in str(caught.value) and "12345678" not in str(caught.value)


async def test_a_key_with_a_line_end_is_refused_before_it_is_sent(wire: str) -> None:
    with WireServer(wire, []) as server:
        model = adapter(wire, server.base_url, api_key="sk-abcdefgh\n")
        with pytest.raises(AuthenticationFailed) as caught:
            await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
    assert not server.received
    assert "abcdefgh" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7, 7),
        ("1.5", 1.5, 1.5),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 1e9, 1e12),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("soon", None, None),
    ],
)
async def test_retry_after_is_read_as_seconds_or_date(wire: str, value: str, low, high) -> None:  # type: ignore[no-untyped-def]
    with (
        WireServer(wire, [Fail(429, headers={"Retry-After": value})]) as server,
        pytest.raises(RateLimited) as caught,
    ):
        await ask(server, [user("?")])
    if low is None:
        assert caught.value.retry_after_s is None
    else:
        assert low <= (caught.value.retry_after_s or 0) <= high


async def test_nothing_listening_is_unreachable(wire: str) -> None:
    with WireServer(wire, []) as server:
        url = server.base_url
    model = adapter(wire, url)
    with pytest.raises(ProviderUnreachable) as caught:
        await collect(model.stream(request(model, [user("?")])))
    assert caught.value.retryable
    await model.aclose()


async def test_usage_is_mapped_and_priced(wire: str) -> None:
    usage = Usage(
        input=1000, cached=600, written=100 if wire == "anthropic" else 0, output=200, reasoning=50
    )
    with WireServer(wire, [Say("x", usage=usage)]) as server:
        price = Price(Decimal(2), Decimal(10), Decimal("0.5"), Decimal(3), "2026-01-01", "test")
        model = adapter(wire, server.base_url, replace(profile_for(FAMILY[wire]), price=price))
        events = await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
    used = usage_of(events)
    assert (used.input_tokens, used.cached_tokens, used.cache_write_tokens) == (
        1000,
        600,
        usage.written,
    )
    assert (used.output_tokens, used.reasoning_tokens, used.requests) == (200, 50, 1)
    plain = 1000 - 600 - usage.written
    cost = (plain * 2 + 600 * Decimal("0.5") + usage.written * 3 + 200 * 10) / Decimal(1_000_000)
    assert used.cost == cost
    assert used.ttft_s is not None and used.ttft_s > 0
    assert used.raw


async def test_reasoning_goes_back_untouched_with_its_call(wire: str) -> None:
    with WireServer(wire, [Say("", (CALL,), reasoning="Let me think… ü"), Say("ok")]) as server:
        model = adapter(wire, server.base_url)
        entries = [user("?")]
        events = await collect(model.stream(request(model, entries)))
        assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "Let me think… ü"
        (done,) = [e for e in events if isinstance(e, ReasoningDone)]
        assert done.part.text == "Let me think… ü"
        assert events.index(done) < next(
            i for i, e in enumerate(events) if isinstance(e, CallStarted)
        )
        entries += [answer_entry(events), results(result("call_a1"))]
        await collect(model.stream(request(model, entries)))
        await model.aclose()
    assert not server.faults
    sent = server.received[1].json
    if wire == "openai_chat":
        assert sent["messages"][2]["reasoning_content"] == "Let me think… ü"
    elif wire == "openai_responses":
        item = sent["input"][1]
        assert (item["type"], item["id"], item["encrypted_content"]) == (
            "reasoning",
            "rs_1",
            "c2VjcmV0",
        )
        assert "status" not in item and sent["input"][2]["id"] == "fc_0"
    elif wire == "anthropic":
        block = sent["messages"][1]["content"][0]
        assert block == {
            "type": "thinking",
            "thinking": "Let me think… ü",
            "signature": "c2lnbmF0dXJl",
        }
    else:
        assert sent["contents"][1]["parts"][0]["thoughtSignature"] == "c2lnbmF0dXJl"


async def test_reasoning_of_another_wire_is_not_sent(wire: str) -> None:
    model = adapter(wire)
    foreign = ReasoningPart("hm", "some_other_wire", {"secret": "blob"})
    body = model.body(request(model, [user("?"), assistant(foreign, TextPart("a")), user("b")]))
    assert b"blob" not in body
    assert validate_body(wire, body) == []


async def test_frozen_fragments_are_sent_byte_for_byte(wire: str) -> None:
    """Bytes that were rendered once are joined, never parsed: even odd spacing survives."""
    with WireServer(wire, [Say("ok")]) as server:
        model = adapter(wire, server.base_url)
        seen: list[bytes] = []
        model.tap = seen.append
        asked = request(model, [user("odd")])
        odd = asked.fragments[0].replace(b'"odd"', b'  "odd"  ')
        await collect(model.stream(replace(asked, fragments=[odd])))
        await model.aclose()
    assert odd in server.received[0].body
    assert seen == [server.received[0].body]


async def test_the_tap_of_a_request_sees_its_bytes_and_can_stop_it(wire: str) -> None:
    seen: list[bytes] = []

    def refuse(body: bytes) -> None:
        raise RuntimeError("not this one")

    with WireServer(wire, [Say("x"), Say("y")]) as server:
        model = adapter(wire, server.base_url)
        asked = request(model, [user("?")])
        await collect(model.stream(replace(asked, tap=seen.append)))
        with pytest.raises(RuntimeError):
            await collect(model.stream(replace(asked, tap=refuse)))
        await collect(model.stream(asked))  # a tap is for its own request only
        await model.aclose()
    assert [r.body for r in server.received] == [seen[0], seen[0]]


async def test_a_tap_that_raises_stops_the_request(wire: str) -> None:
    def tap(body: bytes) -> None:
        raise InvalidRequest("no")

    with WireServer(wire, [Say("ok")]) as server:
        model = adapter(wire, server.base_url, tap=tap)
        with pytest.raises(InvalidRequest):
            await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
    assert not server.received


async def test_closing_the_stream_early_closes_the_connection(wire: str) -> None:
    with WireServer(wire, [Say("x" * 3_000_000, piece=100)]) as server:
        model = adapter(wire, server.base_url)
        stream = model.stream(request(model, [user("?")]))
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        assert await anyio.to_thread.run_sync(server.gone.wait, 10)
        await model.aclose()


async def test_connection_is_used_again(wire: str) -> None:
    with WireServer(wire, [Say("a"), Say("b"), Say("c")]) as server:
        model = adapter(wire, server.base_url)
        for _ in range(3):
            await collect(model.stream(request(model, [user("?")])))
        await model.aclose()
        assert server.connections == 1


async def test_call_events_have_one_completion_each(wire: str) -> None:
    with WireServer(wire, [Say("t", (CALL, SayCall("c2", "get_time", "{}")))]) as server:
        events = await ask(server, [user("?")], tools=(WEATHER, TIME))
    done = [e.index for e in events if isinstance(e, CallComplete)]
    assert done == [0, 1]
