"""C-10: reasoning goes back, stays out or is replaced exactly as each provider's rules say.

Every test reads an answer off the wire and looks at the bytes of the next request.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.context.validity import validate_body
from lorimer.core.messages import Entry
from lorimer.core.watch import Warned
from lorimer.models.profiles import families, profile_for
from lorimer.models.sse import SseDecoder
from lorimer.models.wire_model import WireModel
from lorimer.store import open_store
from lorimer.testing import ScriptedModel
from wire.kit import ADAPTERS, adapter, answer_entry, request, result, results, user

pytestmark = pytest.mark.anyio

CALL = {"id": "call_aaaa1", "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}  # fmt: skip
STAND_IN = b"[no reasoning was recorded]"


def sse(*records: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(r).encode() + b"\n\n" for r in records)


def model_of(family: str, name: str = "test-model") -> WireModel:
    profile = profile_for(family, name)
    return adapter(profile.wire, profile=profile, model=name, name=f"{family}:{name}")


def answer(model: WireModel, stream: bytes) -> Entry:
    """The entry that a session records for this stream."""
    reader, decoder = model._reader(), SseDecoder()
    events = [e for event in decoder.feed(stream) for e in reader.feed(event)]
    entry = answer_entry([*events, *reader.finish()])
    return replace(entry, meta={"model": model.name})


def asked(model: WireModel, *entries: Entry) -> bytes:
    """The next request; it must be valid."""
    body = model.body(request(model, list(entries)))
    faults = validate_body(
        model.profile.wire, body, alternate=model.profile.alternate,
        id_pattern=model.profile.id_pattern,
    )  # fmt: skip
    assert faults == []
    return body


def chat(*deltas: Any, finish: str = "tool_calls") -> bytes:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return sse(*({"choices": [{"index": 0, "delta": d}]} for d in deltas), last)


def chat_call(**thought: Any) -> bytes:
    return chat(thought, {"tool_calls": [{"index": 0, **CALL}]})


def claude(*blocks: Any) -> bytes:
    out: list[Any] = [{"type": "message_start", "message": {"usage": {"input_tokens": 1}}}]
    for n, block in enumerate(blocks):
        out += [{"type": "content_block_start", "index": n, "content_block": block},
                {"type": "content_block_stop", "index": n}]  # fmt: skip
    stop = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return sse(*out, stop, {"type": "message_stop"})


def items(*of_output: Any) -> bytes:
    done = ({"type": "response.output_item.done", "output_index": n, "item": item}
            for n, item in enumerate(of_output))  # fmt: skip
    return sse(*done, {"type": "response.completed", "response": {}})


def google(*parts: Any) -> bytes:
    content = {"role": "model", "parts": list(parts)}
    return sse({"candidates": [{"content": content, "finishReason": "STOP"}]})


THINKING = {"type": "thinking", "thinking": "weigh ü ", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "YmxvYg=="}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0FB"}
FUNCTION = {"type": "function_call", "id": "fc_1", "call_id": "call_aaaa1", "name": "get_weather",
            "arguments": '{"city":"Oslo"}'}  # fmt: skip
GOOGLE_CALL = {"functionCall": {"name": "get_weather", "id": "call_aaaa1",
                                "args": {"city": "Oslo"}}}  # fmt: skip
DETAILS = [{"type": "reasoning.text", "text": "hm", "signature": "s1", "format": "x", "index": 0},
           {"type": "reasoning.encrypted", "data": "Z0FB", "id": None, "index": 1}]  # fmt: skip

CONTENT = '"reasoning_content":"weigh ü "'.encode()
SHOWS: list[tuple[str, bytes, bytes]] = [
    # family, an answer with reasoning and a call, the bytes that must stand in the next request
    ("anthropic", claude(THINKING, REDACTED, TOOL_USE),
     '{"signature":"c2lnbmVk","thinking":"weigh ü ","type":"thinking"},'
     '{"data":"YmxvYg==","type":"redacted_thinking"},{"id":"toolu_1"'.encode()),
    ("openai-responses", items(REASONING, FUNCTION),
     b'{"encrypted_content":"Z0FB","id":"rs_1","summary":[],"type":"reasoning"},'
     b'{"arguments":"{\\"city\\":\\"Oslo\\"}","call_id":"call_aaaa1","id":"fc_1"'),
    ("xai-responses", items(REASONING, FUNCTION),
     b'{"encrypted_content":"Z0FB","id":"rs_1","summary":[],"type":"reasoning"},'),
    ("gemini", google({"text": "hm", "thought": True}, {**GOOGLE_CALL, "thoughtSignature": "c2ln"}),
     b'"args":{"city": "Oslo"}},"thoughtSignature":"c2ln"}'),
    ("deepseek", chat_call(reasoning_content="weigh ü "), CONTENT),
    ("moonshot", chat_call(reasoning_content="weigh ü "), CONTENT),
    ("qwen", chat_call(reasoning_content="weigh ü "), CONTENT),
    ("llamacpp", chat_call(reasoning_content="hm"), b'"reasoning_content":"hm"'),
    ("vllm", chat_call(reasoning="hm"), b'"reasoning":"hm"'),
    ("openrouter", chat_call(reasoning="hm", reasoning_details=DETAILS),
     b'"reasoning_details":[{"format":"x","index":0,"signature":"s1","text":"hm",'
     b'"type":"reasoning.text"},{"data":"Z0FB","id":null,"index":1,"type":"reasoning.encrypted"}]'),
    ("mistral",
     chat({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "weigh"}]}]},
          {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": " ü"}],
                        "closed": True, "signature": "s1"}]},
          {"tool_calls": [{"index": 0, **CALL, "id": "callaaaa1"}]}),
     '"content":[{"closed":true,"signature":"s1","thinking":[{"text":"weigh ü","type":"text"}],'
     '"type":"thinking"}]'.encode()),
]  # fmt: skip
HIDES: list[tuple[str, bytes]] = [
    ("openai", chat_call(reasoning_content="secret thought")),
    ("xai", chat_call(reasoning_content="secret thought")),
    ("groq", chat_call(reasoning="secret thought")),
    ("ollama", chat_call(reasoning="secret thought")),
    ("compatible", chat_call(reasoning_content="secret thought")),
]


def outcome(entry: Entry) -> Entry:
    return results(*(result(call.id) for call in entry.calls))


def test_every_family_has_a_rule_with_a_source() -> None:
    tested = {family for family, *_ in (*SHOWS, *HIDES)}
    assert tested == set(families())
    for family in families():
        profile = profile_for(family)
        assert profile.reasoning in ("keep", "turn", "drop"), family
        assert "https://" in profile.sources["reasoning"], family
    kept = {family for family, *_ in SHOWS}
    assert kept == {f for f in families() if profile_for(f).reasoning != "drop"}


@pytest.mark.parametrize(("family", "stream", "there"), SHOWS, ids=[s[0] for s in SHOWS])
async def test_reasoning_goes_back_as_it_came(family: str, stream: bytes, there: bytes) -> None:
    model = model_of(family)
    entry = answer(model, stream)
    body = asked(model, user("?"), entry, outcome(entry))
    assert body.count(there) == 1
    # And it still does after the next message of the user: what was sent is never changed.
    later = asked(model, user("?"), entry, outcome(entry), answer_to(model), user("and now?"))
    assert later.startswith(body[: body.index(there) + len(there)]) and later.count(there) == 1


def answer_to(model: WireModel) -> Entry:
    """A plain answer of `model`."""
    stream = {
        "anthropic": claude({"type": "text", "text": "It rains."}),
        "openai_responses": items(REASONING | {"id": "rs_2", "encrypted_content": "Mg=="}),
        "gemini": google({"text": "It rains."}),
    }.get(model.profile.wire, chat({"content": "It rains."}, finish="stop"))
    return answer(model, stream)


@pytest.mark.parametrize(("family", "stream"), HIDES, ids=[h[0] for h in HIDES])
async def test_where_a_server_takes_none_back_none_is_sent(family: str, stream: bytes) -> None:
    model = model_of(family)
    entry = answer(model, stream)
    assert any("secret thought" in getattr(p, "text", "") for p in entry.parts)  # but kept
    body = asked(model, user("?"), entry, outcome(entry), answer_to(model), user("!"))
    assert b"secret" not in body and b"reasoning" not in body.partition(b'"messages"')[2]


@pytest.mark.parametrize(("family", "stream", "there"), SHOWS, ids=[s[0] for s in SHOWS])
async def test_reasoning_of_another_model_stays_out(
    family: str, stream: bytes, there: bytes
) -> None:
    entry = answer(model_of(family, "one"), stream)
    others = [model_of(family, "another"), *(model_of(f) for f in families() if f != family)]
    for other in others:
        body = asked(other, user("?"), entry, outcome(entry))
        assert there not in body, other.name
        for secret in (b"c2ln", b"YmxvYg", b"Z0FB", b"weigh", b'"s1"', b"rs_1", b"fc_1", b'"hm"'):
            assert secret not in body, (other.name, secret)
        assert b"Oslo" in body  # the call itself stays


@pytest.mark.parametrize("family", ["deepseek", "moonshot"])
async def test_a_call_without_reasoning_gets_a_stand_in_where_it_is_demanded(family: str) -> None:
    model = model_of(family)
    entry = answer(model, chat_call())
    assert asked(model, user("?"), entry, outcome(entry)).count(STAND_IN) == 1
    plain = answer(model, chat({"content": "no"}, finish="stop"))
    assert STAND_IN not in asked(model, user("?"), plain, user("!"))


async def test_gemini_calls_without_a_signature() -> None:
    foreign = answer(
        model_of("anthropic"), claude(THINKING, TOOL_USE, TOOL_USE | {"id": "toolu_2"})
    )
    for name, count in (("gemini-3.8-flash", 1), ("gemini-4-argon", 1), ("gemini-2.5-pro", 0)):
        body = asked(model_of("gemini", name), user("?"), foreign, outcome(foreign))
        assert body.count(b'"thoughtSignature":"skip_thought_signature_validator"') == count
    own = model_of("gemini", "gemini-3.8-flash")
    first = GOOGLE_CALL | {"thoughtSignature": "c2ln"}
    second = {"functionCall": {"name": "get_time", "id": "call_bbbb2", "args": {}}}
    entry = answer(own, google(first, second))  # of parallel calls only the first is signed
    body = asked(own, user("?"), entry, results(*(result(c.id, c.name) for c in entry.calls)))
    assert b"skip_thought" not in body and body.count(b"thoughtSignature") == 1


@pytest.mark.parametrize(
    ("family", "stream"),
    [
        ("anthropic", claude(THINKING | {"signature": ""}, TOOL_USE)),
        ("openai-responses", items({k: v for k, v in REASONING.items() if k != "encrypted_content"},
                                   FUNCTION)),
        ("gemini", google({"text": "weigh", "thought": True}, GOOGLE_CALL)),
    ],
    ids=["anthropic", "openai-responses", "gemini"],
)  # fmt: skip
async def test_reasoning_without_a_signature_stays_out(family: str, stream: bytes) -> None:
    model = model_of(family)
    entry = answer(model, stream)
    body = asked(model, user("?"), entry, outcome(entry))
    assert b"weigh" not in body and b"rs_1" not in body and b"fc_1" not in body


async def test_bound_thinking_is_left_out_by_the_server_instead_of_refused() -> None:
    bound = model_of("anthropic", "claude-fable-5-1")
    assert bound.profile.bound_reasoning
    body = json.loads(asked(bound, user("?")))
    binding = {"prefix_mismatch_behavior": "drop_block"}
    assert body["thinking"] == {"type": "adaptive", "block_binding": binding}
    beta = bound._headers("k")["anthropic-beta"].split(",")
    assert "thinking-binding-controls-2026-08-01" in beta
    assert "thinking" not in json.loads(asked(model_of("anthropic", "claude-haiku-4-5"), user("?")))
    dropped = [{"path": "messages.1.content.0", "type": "block_dropped"}]
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 1},
                                                  "input_transformations": dropped}}  # fmt: skip
    reader, decoder = bound._reader(), SseDecoder()
    stream = sse(start) + claude({"type": "text", "text": "a"})[len(sse({})) :].split(b"\n\n", 1)[1]
    for event in decoder.feed(stream):
        list(reader.feed(event))
    (usage, _) = reader.finish()
    assert usage.usage.raw["input_transformations"] == dropped  # type: ignore[union-attr]


# --- a session that goes on with another model ---


async def test_a_switch_of_models_is_said_once_and_what_was_sent_stays(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    first, second = model_of("anthropic", "claude-haiku-4-5"), model_of("anthropic", "claude-x")
    async with Agent(ScriptedModel([]), store=store) as agent:
        agent.model = first
        async with agent.session() as session:
            entry = answer(first, claude(THINKING, {"type": "text", "text": "It rains."}))
            await session.record(user("?"), "user")
            await session.record(entry, "model")
            sent = list(session.trajectory.fragments)
    assert b"c2lnbmVk" in sent[1]
    for model, notices, has in ((second, 1, False), (second, 0, False), (first, 0, True)):
        told: list[Any] = []
        async with Agent(ScriptedModel([]), store=store, watch=told.append) as agent:
            agent.model = model
            async with agent.session(session.id) as again:
                now = list(again.trajectory.fragments)
        words = [e.message for e in told if isinstance(e, Warned) and "reasoning" in e.message]
        assert len(words) == notices
        assert (b"c2lnbmVk" in now[1]) is has and b"It rains." in now[1]
        if notices:
            assert "anthropic:claude-haiku-4-5" in words[0] and "claude-x" in words[0]
        if has:
            assert now == sent
    store.close()


def test_every_wire_is_looked_at() -> None:
    assert {profile_for(family).wire for family, *_ in SHOWS} == set(ADAPTERS)


def test_the_table_shows_every_rule() -> None:
    from lorimer.cli.reasoning import rows

    found = {str(row["provider"]): row for row in rows()}
    assert set(found) == set(families()) and all(row["sources"] for row in found.values())
    assert "claude-fable-5-1" in str(found["anthropic"]["bound"])
    assert found["deepseek"]["stand_in"] == STAND_IN.decode()
