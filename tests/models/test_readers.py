"""Readers without a network: quirks of servers, split characters, exact slices."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.core.errors import BadAnswer, ProviderFailed, StreamCut
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import ModelEvent, ReasoningDone, Stop, StopReason
from lorimer.models.rawjson import is_object, slice_at
from lorimer.models.sse import SseDecoder, SseEvent
from wire.answers import Say, SayCall
from wire.kit import (
    FAMILY,
    WIRES,
    adapter,
    answer_entry,
    calls_of,
    request,
    span_of_calls,
    stop_of,
    text_of,
    user,
)
from wire.protocols import PROTOCOLS


def read(wire: str, stream: bytes) -> list[ModelEvent]:
    """All events of a stream that ends cleanly."""
    reader = adapter(wire)._reader()
    decoder = SseDecoder()
    out = [e for event in decoder.feed(stream) for e in reader.feed(event)]
    decoder.close()
    return out + list(reader.finish())


def sse(*records: object) -> bytes:
    return b"".join(b"data: " + json.dumps(r).encode() + b"\n\n" for r in records)


def chunk(delta: object, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


json_text = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=8), json_text, max_size=4)


@pytest.mark.parametrize("wire", WIRES)
@given(value=objects, ascii_only=st.booleans(), spaces=st.booleans(), piece=st.integers(1, 9))
def test_any_arguments_arrive_exactly(
    wire: str, value: object, ascii_only: bool, spaces: bool, piece: int
) -> None:
    """G4, over Unicode, escapes, numbers, spacing, cut into pieces of any size."""
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=1 if spaces else None)
    try:
        raw.encode()
    except UnicodeEncodeError:
        return  # A lone surrogate cannot stand on the wire.
    if wire == "gemini" and spaces:
        raw = raw.replace("\n", "\t")
    events = read(wire, PROTOCOLS[wire].encode(Say("", (SayCall("c", "t", raw),), piece=piece), {}))
    assert [c.raw for c in calls_of(events)] == [raw]
    assert stop_of(events).reason is StopReason.CALLS


@pytest.mark.parametrize("wire", WIRES)
@given(data=st.data())
def test_a_stream_that_ends_anywhere_before_its_mark_is_cut(wire: str, data: st.DataObject) -> None:
    say = Say("Hi", (SayCall("c", "t", '{"a":"b"}'),), reasoning="r", piece=3)
    stream = PROTOCOLS[wire].encode(say, {})
    end = stream.index(b'"finish_reason": "tool_calls"') if wire == "openai_chat" else len(stream)
    at = data.draw(st.integers(0, end - 1))
    with pytest.raises(StreamCut):
        read(wire, stream[:at])


@pytest.mark.parametrize("wire", WIRES)
def test_a_clean_end_at_every_byte_of_the_calls_is_cut(wire: str) -> None:
    say = Say("Ok.", (SayCall("c1", "get_weather", '{"city":"Zü","a":1}'),), piece=1)
    stream = PROTOCOLS[wire].encode(say, {})
    first, last = span_of_calls(stream)
    assert last - first > 40
    for at in range(first, last):
        with pytest.raises(StreamCut):
            read(wire, stream[:at])


@pytest.mark.parametrize("wire", WIRES)
def test_no_stop_event_and_no_complete_call_before_the_end(wire: str) -> None:
    """What `feed` yields never holds a stop: only `finish` does, after the end mark."""
    stream = PROTOCOLS[wire].encode(Say("x", (SayCall("c", "t", "{}"),)), {})
    reader = adapter(wire)._reader()
    events = [e for event in SseDecoder().feed(stream) for e in reader.feed(event)]
    assert not any(isinstance(e, Stop) for e in events)


def test_a_surrogate_pair_split_between_two_chunks_is_one_character() -> None:
    stream = (
        rb'data: {"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}' + b"\n\n"
        rb'data: {"choices":[{"index":0,"delta":{"content":"\ude00b"}}]}' + b"\n\n"
        rb'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":'
        rb'{"name":"t","arguments":"{\"x\":\"\ud83d"}}]}}]}' + b"\n\n"
        rb'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":'
        rb'{"arguments":"\ude00\"}"}}]},"finish_reason":"tool_calls"}]}' + b"\n\ndata: [DONE]\n\n"
    )
    events = read("openai_chat", stream)
    assert text_of(events) == "a😀b"
    assert calls_of(events)[0].raw == '{"x":"😀"}'


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "a\ud83d"},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": "\ud83d"}}]},
        {"reasoning_content": "\ude00"},
    ],
)
def test_half_a_surrogate_pair_that_stays_alone_is_a_bad_answer(delta: object) -> None:
    with pytest.raises(BadAnswer, match="surrogate"):
        read("openai_chat", sse(chunk(delta), chunk({"content": "x"}), chunk({}, "stop")))


class TestChatQuirks:
    """Servers that speak the chat wire with an accent."""

    def one(self, *records: object) -> list[ModelEvent]:
        return read("openai_chat", sse(*records))

    def test_calls_without_an_index_are_told_apart(self) -> None:
        def call(call_id: str, arguments: str) -> dict[str, object]:
            return {
                "tool_calls": [{"id": call_id, "function": {"name": "t", "arguments": arguments}}]
            }

        events = self.one(
            chunk(call("a", '{"n":1}')), chunk(call("b", '{"n":2}')), chunk({}, "stop")
        )
        assert [(c.id, c.raw) for c in calls_of(events)] == [("a", '{"n":1}'), ("b", '{"n":2}')]
        assert stop_of(events) == Stop(StopReason.CALLS, "stop")

    def test_calls_that_share_index_0_are_told_apart_by_id(self) -> None:
        def call(call_id: str) -> dict[str, object]:
            function = {"name": "t", "arguments": "{}"}
            return {"tool_calls": [{"index": 0, "id": call_id, "function": function}]}

        events = self.one(chunk(call("a")), chunk(call("b")), chunk({}, "tool_calls"))
        assert [c.id for c in calls_of(events)] == ["a", "b"]

    def test_interleaved_calls_are_kept_apart(self) -> None:
        def part(index: int, **function: str) -> dict[str, object]:
            call_id = {"id": f"c{index}"} if "name" in function else {}
            return {"tool_calls": [{"index": index, **call_id, "function": function}]}

        events = self.one(
            chunk(part(0, name="x", arguments="{")),
            chunk(part(1, name="y", arguments="[")),
            chunk(part(0, arguments="}")),
            chunk(part(1, arguments="]")),
            chunk({}, "tool_calls"),
        )
        assert [(c.name, c.raw) for c in calls_of(events)] == [("x", "{}"), ("y", "[]")]

    def test_arguments_sent_as_an_object_are_taken_as_they_stand(self) -> None:
        data = (
            b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":'
            b'{"name":"t","arguments": { "a" : 1.0 } }}]},"finish_reason":"tool_calls"}]}\n\n'
        )
        assert calls_of(read("openai_chat", data))[0].raw == '{ "a" : 1.0 }'

    def test_a_name_repeated_in_each_chunk_stays_one_name(self) -> None:
        def part(arguments: str) -> dict[str, object]:
            function = {"name": "t", "arguments": arguments}
            return {"tool_calls": [{"index": 0, "id": "c", "function": function}]}

        events = self.one(chunk(part('{"a"')), chunk(part(":1}")), chunk({}, "tool_calls"))
        assert [(c.name, c.raw) for c in calls_of(events)] == [("t", '{"a":1}')]

    def test_a_server_without_done_ends_with_the_body(self) -> None:
        assert (
            stop_of(self.one(chunk({"content": "a"}), chunk({}, "stop"))).reason is StopReason.END
        )

    def test_done_without_a_finish_reason_is_cut(self) -> None:
        with pytest.raises(StreamCut):
            read("openai_chat", sse(chunk({"content": "a"})) + b"data: [DONE]\n\n")

    def test_refusal_text_is_text_and_a_refusal(self) -> None:
        events = self.one(chunk({"refusal": "No."}), chunk({}, "stop"))
        assert (text_of(events), stop_of(events).reason) == ("No.", StopReason.REFUSAL)

    def test_missing_resources_are_a_fault_of_the_provider(self) -> None:
        with pytest.raises(ProviderFailed):
            self.one(chunk({"content": "a"}), chunk({}, "insufficient_system_resource"))

    def test_mistral_parts_are_text_and_reasoning(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
        events = self.one(
            chunk({"content": [thinking]}),
            chunk({"content": [{"type": "text", "text": "Yes"}]}),
            chunk({}, "stop"),
        )
        assert text_of(events) == "Yes"
        assert [e.part.text for e in events if isinstance(e, ReasoningDone)] == ["hm"]

    def test_openrouter_details_go_back_as_they_came(self) -> None:
        details = [{"type": "reasoning.encrypted", "data": "x", "index": 0, "id": None}]
        events = self.one(
            chunk({"reasoning": "hm", "reasoning_details": details[:1]}),
            chunk({"content": "Yes"}),
            chunk({}, "stop"),
        )
        model = adapter("openai_chat", profile=profile_for("openrouter"))
        body = json.loads(model.body(request(model, [user("?"), answer_entry(events), user("!")])))
        message = body["messages"][2]
        assert message["reasoning_details"] == details and "reasoning" not in message

    def test_a_profile_that_drops_reasoning_sends_none(self) -> None:
        events = self.one(
            chunk({"reasoning_content": "hm"}), chunk({"content": "a"}), chunk({}, "stop")
        )
        model = adapter("openai_chat", profile=profile_for("groq"))
        assert b"hm" not in model.body(request(model, [user("?"), answer_entry(events), user("!")]))

    def test_usage_of_llama_cpp_counts_its_cache(self) -> None:
        reader = adapter("openai_chat", profile=profile_for("llamacpp"))._reader()
        usage = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
        record = chunk({}, "stop", usage=usage, timings={"cache_n": 40, "prompt_n": 10})
        list(reader.feed(SseEvent("", json.dumps(record))))
        report = next(iter(reader.finish()))
        assert (report.usage.input_tokens, report.usage.cached_tokens) == (50, 40)  # type: ignore[union-attr]

    def test_unknown_finish_reason_runs_nothing(self) -> None:
        call = {
            "tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": "{}"}}]
        }
        events = self.one(chunk(call), chunk({}, "surprise"))
        assert calls_of(events) == []
        assert stop_of(events) == Stop(StopReason.OTHER, "surprise")


class TestAnthropicQuirks:
    def test_input_in_the_start_event_is_taken_as_it_stands(self) -> None:
        stream = (
            b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use",'
            b'"id":"c","name":"t","input":{ "a" :1.0}}}\n\n'
            b'data: {"type":"content_block_stop","index":0}\n\n'
            b'data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n'
            b'data: {"type":"message_stop"}\n\n'
        )
        assert calls_of(read("anthropic", stream))[0].raw == '{ "a" :1.0}'

    def test_thinking_without_a_signature_does_not_go_back(self) -> None:
        stream = sse(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "hm"},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        )
        (done,) = [e for e in read("anthropic", stream) if isinstance(e, ReasoningDone)]
        assert (done.part.text, done.part.opaque) == ("hm", None)

    def test_redacted_thinking_goes_back_whole(self) -> None:
        block = {"type": "redacted_thinking", "data": "blob"}
        stream = sse(
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        )
        model = adapter("anthropic")
        asked = request(model, [user("?"), answer_entry(read("anthropic", stream)), user("!")])
        assert json.loads(model.body(asked))["messages"][1]["content"][0] == block

    def test_a_stop_reason_without_message_stop_is_cut(self) -> None:
        with pytest.raises(StreamCut):
            read("anthropic", sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))

    @pytest.mark.parametrize(
        ("word", "reason"),
        [
            ("pause_turn", StopReason.OTHER),
            ("model_context_window_exceeded", StopReason.LENGTH),
            ("stop_sequence", StopReason.END),
            ("brand_new", StopReason.OTHER),
        ],
    )
    def test_stop_reasons(self, word: str, reason: StopReason) -> None:
        stream = sse(
            {"type": "message_delta", "delta": {"stop_reason": word}}, {"type": "message_stop"}
        )
        assert stop_of(read("anthropic", stream)) == Stop(reason, word)


class TestGeminiQuirks:
    def test_a_call_without_an_id_has_none(self) -> None:
        stream = PROTOCOLS["gemini"].encode(Say("", (SayCall("", "t", "{}"),)), {})
        assert calls_of(read("gemini", stream))[0].id == ""

    def test_a_blocked_prompt_is_a_refusal(self) -> None:
        events = read("gemini", sse({"promptFeedback": {"blockReason": "SAFETY"}}))
        assert stop_of(events) == Stop(StopReason.REFUSAL, "blocked: SAFETY")

    @pytest.mark.parametrize("word", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "NEW"])
    def test_a_malformed_call_runs_nothing(self, word: str) -> None:
        events = read("gemini", sse({"candidates": [{"finishReason": word}]}))
        assert stop_of(events) == Stop(StopReason.OTHER, word)

    def test_a_signature_of_a_text_goes_back_in_a_part_of_its_own(self) -> None:
        part = {"text": "Hi", "thoughtSignature": "c2ln"}
        record = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
        model = adapter("gemini")
        asked = request(model, [user("?"), answer_entry(read("gemini", sse(record))), user("!")])
        assert json.loads(model.body(asked))["contents"][1]["parts"] == [
            {"text": "Hi"},
            {"text": "", "thoughtSignature": "c2ln"},
        ]


class TestResponsesQuirks:
    def test_a_failed_response_has_its_class(self) -> None:
        error = {"code": "server_error", "message": "boom"}
        with pytest.raises(ProviderFailed, match="boom"):
            read("openai_responses", sse({"type": "response.failed", "response": {"error": error}}))

    def test_reasoning_without_encrypted_content_does_not_go_back(self) -> None:
        item = {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
        }
        events = read(
            "openai_responses",
            sse(
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": {}},
            ),
        )
        (done,) = [e for e in events if isinstance(e, ReasoningDone)]
        assert (done.part.text, done.part.opaque) == ("hm", None)

    def test_a_call_beside_no_reasoning_goes_back_without_its_item_id(self) -> None:
        stream = PROTOCOLS["openai_responses"].encode(Say("", (SayCall("c", "t", "{}"),)), {})
        model = adapter("openai_responses")
        entry = answer_entry(read("openai_responses", stream))
        assert b"fc_0" not in model.render_entry(entry, [])


@given(objects, st.sampled_from(["", " ", "\n\t "]))
def test_slices_are_what_stood_there(value: dict[str, object], space: str) -> None:
    inner = json.dumps(value, indent=2)
    text = f'{space}{{"x":[1,{{"a]}}\\"":2}},{space}{inner}{space}],{space}"y":{space}null}}{space}'
    assert slice_at(text, ("x", 2)) == inner
    assert slice_at(text, ("y",)) == "null"
    assert slice_at(text, ()) == text.strip()
    for path in [("z",), ("x", 9), ("y", "a"), ("y", 0)]:
        with pytest.raises(KeyError):
            slice_at(text, path)


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("{}", True),
        (' {"a":1e999} ', True),
        ('{"n":' + "1" * 9000 + "}", True),
        ("[]", False),
        ("", False),
        ('{"a":NaN}', False),
        ('{"a":Infinity}', False),
        ("{} {}", False),
        ("{'a':1}", False),
        ('{"a":' + "[" * 100_000, False),
        ("\ufeff{}", False),
        ('{"a":"\n"}', False),
        ('{"a":1,}', False),
    ],
)
def test_is_object(text: str, yes: bool) -> None:
    assert is_object(text) is yes


def test_all_families_have_a_reader() -> None:
    assert set(FAMILY) == set(WIRES)
