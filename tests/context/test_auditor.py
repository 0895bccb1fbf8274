"""The auditor by itself: segments cut out of real bodies, and what is said of each difference."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lorimer.context.auditor import Auditor, CacheBreak, Cause, Finding, Link, Unreadable
from lorimer.context.auditor.expected import Measured, cached_told, expected_tokens, is_miss
from lorimer.context.auditor.segments import WIRES, split
from lorimer.core.usage import Usage
from lorimer.models.profiles import Profile, profile_for
from wire.kit import (
    TIME,
    WEATHER,
    adapter,
    assistant,
    called,
    note,
    request,
    result,
    results,
    user,
)
from wire.kit import WIRES as HTTP_WIRES

Body = dict[str, Any]


def chat(*messages: Any, system: str = "Be brief.", tools: Any = (), **more: Any) -> Body:
    return {
        "model": "m",
        "messages": [{"role": "system", "content": system}, *messages],
        "tools": [{"type": "function", "function": tool} for tool in tools],
        **more,
    }


def said(text: str, role: str = "user") -> Body:
    return {"role": role, "content": text}


def pair(wire: str, before: Any, now: Any, **more: Any) -> Finding:
    """What is said of `now` after `before`; values are written as JSON, bytes stay."""
    auditor = Auditor(**more)
    first, second = (
        b if isinstance(b, bytes) else json.dumps(b, ensure_ascii=False).encode()
        for b in (before, now)
    )
    assert not auditor.check(wire, first).broken
    return auditor.check(wire, second)


class TestSegments:
    @pytest.mark.parametrize("wire", HTTP_WIRES)
    def test_they_are_the_bytes_of_the_body(self, wire: str) -> None:
        model = adapter(wire)
        entries = [
            user('go {"a": [1, "]"]} ü\u2028😀'),
            assistant(called("call_1"), called("call_2", raw='{"city": "Zürich"}')),
            results(result("call_1"), result("call_2", text='"],{')),
            note("mind \\ this"),
        ]
        asked = request(model, entries, system='Say "]" or \\ and ü.')
        body = model.body(asked)
        found = split(wire, body)
        assert [s.label for s in found.tools] == ["get_weather", "get_time"]
        assert len(found.system) == 1
        whole = b",".join(asked.fragments)
        assert b",".join(found.raw(s) for s in found.messages) == whole
        for segment in found.ordered():
            json.loads(found.raw(segment))
        assert found.grows_at == body.index(whole) + len(whole)
        assert found.settings.get("model", b'"test-model"') == b'"test-model"'

    def test_pretty_printed_and_in_any_order(self) -> None:
        record = chat(said("ü\n"), said("b", "assistant"), tools=[{"name": "t", "x": 1}])
        text = json.dumps(dict(reversed(record.items())), indent=3, ensure_ascii=False)
        found = split("openai_chat", text.encode())
        assert [s.label for s in found.messages] == ["user", "assistant"]
        assert json.loads(found.raw(found.messages[0])) == said("ü\n")
        assert [s.label for s in found.tools] == ["t"] and len(found.system) == 1

    @pytest.mark.parametrize("wire", WIRES)
    @pytest.mark.parametrize("body", [b"", b"{", b'{"messages": [', b"\xff\xfe", b"[]", b'{"a"}'])
    def test_what_is_no_request_is_unreadable_or_whole(self, wire: str, body: bytes) -> None:
        if wire == "local" or (wire == "scripted" and body == b"[]"):
            assert Auditor().check(wire, body).cause is Cause.NONE
            return
        with pytest.raises(Unreadable):
            Auditor().check(wire, body)

    @pytest.mark.parametrize("declared", [{"name": "x"}, [], "x", [{"name": "a"}, {"name": "b"}]])
    def test_lists_of_declarations_are_found_by_their_name(self, declared: Any) -> None:
        tools = [{"googleSearch": ["["], "functionDeclarations": declared}, {"codeExecution": {}}]
        found = split("gemini", json.dumps({"tools": tools, "contents": []}).encode())
        names = ["", ""]
        if isinstance(declared, list):
            names = [*(one["name"] for one in declared), ""]
        assert [s.label for s in found.tools] == names

    def test_an_unknown_wire_is_said(self) -> None:
        with pytest.raises(Unreadable, match="smoke signals"):
            Auditor().check("smoke signals", b"{}")

    def test_nested_deeper_than_python_reads(self) -> None:
        deep = b"[" * 20_000 + b"1" + b"]" * 20_000
        body = b'{"contents":[{"parts":[{"functionCall":{"args":' + deep + b"}}]},{}]}"
        found = split("gemini", body)
        assert len(found.messages) == 2
        grown = body.replace(b",{}]}", b',{},{"role":"user"}]}')
        assert pair("gemini", body, grown).new == 1

    def test_huge_numbers_are_no_fault(self) -> None:
        body = chat(said("x"))
        body["seed"] = 0
        text = json.dumps(body).replace('"seed": 0', '"seed": ' + "9" * 5000)
        assert not Auditor().check("openai_chat", text.encode()).broken


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=8)
    | st.just("User: a\nAI: b"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "name",
                    "function",
                    "functionDeclarations",
                    "type",
                    "parts",
                    "x",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
odd_bodies = st.dictionaries(
    st.sampled_from(
        ["model", "messages", "tools", "system", "input", "instructions", "contents", "prompt",
         "systemInstruction", "functions", "tool_choice"]
    ),
    odd,
    max_size=5,
)  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(WIRES), st.lists(odd_bodies, min_size=1, max_size=4), st.booleans())
def test_no_body_makes_it_fall_over(wire: str, bodies: list[Any], spaced: bool) -> None:
    auditor = Auditor()
    for body in bodies:
        text = json.dumps(body, ensure_ascii=False, indent=1 if spaced else None)
        with suppress(Unreadable):
            finding = auditor.check(wire, text.encode())
            assert finding.words() or not finding.broken
            json.dumps(finding.to_json())
    kept = Auditor()
    kept.load(wire, auditor.links())
    with suppress(Unreadable):
        kept.check(wire, json.dumps(bodies[-1]).encode())


class TestNotBroken:
    def test_settings_behind_the_prompt_may_change_and_some_are_said(self) -> None:
        finding = pair("openai_chat", chat(said("a")), chat(said("a"), model="n", temperature=1))
        assert not finding.broken and finding.other_cache
        assert "from m to n" in finding.notes[0]
        finding = pair(
            "openai_chat", chat(said("a")), chat(said("a"), response_format={"type": "json_object"})
        )
        assert not finding.broken and "response_format" in finding.notes[0]
        assert pair("openai_chat", chat(said("a")), chat(said("a"), temperature=1)).notes == ()

    def test_settings_that_stand_behind_the_messages(self) -> None:
        before = b'{"messages":[{"role":"user","content":"a"}],"model":"m","stream":true}'
        now = b'{"messages":[{"role":"user","content":"a"},{"x":1}],"model":"n","stream":true}'
        finding = pair("openai_chat", before, now)
        assert not finding.broken and finding.other_cache and finding.new == 1

    def test_tools_that_come_to_stand_behind_the_messages_are_seen(self) -> None:
        before = b'{"messages":[{"role":"user","content":"a"}],"model":"m"}'
        now = b'{"messages":[{"role":"user","content":"a"}],"model":"m","tools":[{"name":"t"}]}'
        assert pair("openai_chat", before, now).cause is Cause.TOOL_ADDED

    def test_the_same_request_again(self) -> None:
        finding = pair("openai_chat", chat(said("a")), chat(said("a")))
        assert not finding.broken and finding.new == 0

    def test_cache_marks_may_move(self) -> None:
        mark = {"cache_control": {"type": "ephemeral"}}
        before = {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"} | mark]}]}
        now = {
            "messages": [
                said("a"),
                said("b", "assistant"),
                {"role": "user", "content": [{"type": "text", "text": "c"} | mark]},
            ]
        }
        assert not pair("anthropic", before, now).broken
        now["messages"][0] = said("A")
        assert pair("anthropic", before, now).cause is Cause.MESSAGE_REWRITTEN

    def test_messages_taken_back_are_said(self) -> None:
        finding = pair("openai_chat", chat(said("a"), said("b")), chat(said("a")))
        assert not finding.broken and "its last 1 message" in finding.notes[0]

    def test_a_side_request_is_not_held_against_the_next(self) -> None:
        auditor = Auditor(strict=True)
        bodies = [chat(said("a")), chat(said("a"), said("summarise")), chat(said("a"), said("b"))]
        texts = [json.dumps(body).encode() for body in bodies]
        auditor.check("openai_chat", texts[0])
        auditor.check("openai_chat", texts[1], keep=False)
        assert not auditor.check("openai_chat", texts[2]).broken

    def test_a_bar_that_is_put_last_each_time(self) -> None:
        auditor = Auditor(strict=True)
        for turn in range(4):
            messages = [said(f"question {n}") for n in range(turn + 1)]
            body = json.dumps(chat(*messages, said(f"<agent_status>{turn}</agent_status>")))
            finding = auditor.check("openai_chat", body.encode(), transient=1)
            assert not finding.broken
        assert finding.new == 2


class TestCauses:
    def test_whitespace_and_escaping(self) -> None:
        before = json.dumps(chat(said("ü/"))).encode()
        now = json.dumps(chat(said("ü/"), said("b")), ensure_ascii=False, indent=1).encode()
        finding = pair("openai_chat", before, now)
        assert finding.cause is Cause.WHITESPACE and finding.segment == "system"

    def test_arguments_that_were_written_anew(self) -> None:
        def body(arguments: str) -> Body:
            call = {
                "id": "1",
                "type": "function",
                "function": {"name": "f", "arguments": arguments},
            }
            return chat(said("a"), {"role": "assistant", "tool_calls": [call]})

        first = body('{"b": 1, "a": 2}')
        assert pair("openai_chat", first, body('{"a": 2, "b": 1}')).cause is Cause.KEY_ORDER
        assert pair("openai_chat", first, body('{"b":1,"a":2}')).cause is Cause.WHITESPACE
        assert pair("openai_chat", first, body('{"b": 1, "a": 3}')).cause is Cause.MESSAGE_REWRITTEN

    def test_an_insertion_in_the_middle(self) -> None:
        before = chat(said("a"), said("b", "assistant"))
        now = chat(said("a"), said("between"), said("b", "assistant"), said("c"))
        finding = pair("openai_chat", before, now)
        assert finding.cause is Cause.MESSAGE_INSERTED and finding.segment == "message 1 (user)"

    def test_a_trim_in_the_middle_says_where(self) -> None:
        before = chat(*(said(str(n)) for n in range(6)))
        now = chat(said("0"), said("4"), said("5"), said("6"))
        finding = pair("openai_chat", before, now)
        assert finding.cause is Cause.HISTORY_TRIMMED
        assert finding.detail == "3 messages from message 1 on are gone"

    @pytest.mark.parametrize(
        ("before", "now", "cause"),
        [
            ("Now: 10:00", "Now: 10:01", Cause.TIME),
            ("It is Monday.", "It is Tuesday.", Cause.TIME),
            ("Today is March 3rd, 2026.", "Today is April 1st, 2026.", Cause.TIME),
            ("unix time 1764500000", "unix time 1764500009", Cause.TIME),
            ("Last seen 3 minutes ago.", "Last seen 9 minutes ago.", Cause.TIME),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z", Cause.TIME),
            ("You have 3 tries.", "You have 2 tries.", Cause.COUNTER),
            ("Session 9f8e7d6c5b4a3f21", "Session 1f8e7d6c5b4a3f29", Cause.RANDOM_ID),
            ("User: Ada, 41 points", "User: Ada, 42 points", Cause.USER_DATA),
            ("The customer likes tea.", "The customer likes coffee.", Cause.USER_DATA),
            ("Memories:\n- has a dog", "Memories:\n- has a dog\n- moved to Oslo", Cause.USER_DATA),
            ("User profile:\n- name: Ada\n- visits: 3", "User profile:\n- name: Ada\n- visits: 4",
             Cause.USER_DATA),
            ("<user_profile>\n{\n \"seen\": \"10:01\"\n}\n</user_profile>",
             "<user_profile>\n{\n \"seen\": \"10:07\"\n}\n</user_profile>", Cause.USER_DATA),
            ("You serve a customer. Current time: 9:15 AM", "You serve a customer. Current time: "
             "9:16 AM", Cause.TIME),
            ('{"user_name": "Ada", "plan": "free"}', '{"user_name": "Ada", "plan": "gold"}',
             Cause.USER_DATA),
            ("Be kind.", "Be strict.", Cause.SYSTEM_CHANGED),
            ("Be kind.", "Be kind. Be short.", Cause.SYSTEM_CHANGED),
            ("Answer in 10 words.\nBe kind.", "Answer in 20 words.\nBe strict.",
             Cause.SYSTEM_CHANGED),
        ],
    )  # fmt: skip
    def test_what_changed_in_the_system_text(self, before: str, now: str, cause: Cause) -> None:
        first = chat(said("hello"), system=f"You help. {before}")
        second = chat(said("hello"), said("so"), system=f"You help. {now}")
        finding = pair("openai_chat", first, second)
        assert finding.cause is cause, finding.words()

    @pytest.mark.parametrize(
        "form",
        [
            "Conversation so far:\n{turns}\n\nAnswer the last question.",
            "{turns}",
            "{turns}\nAssistant:",
            "### Talk\n{turns}\n### End",
        ],
    )
    @pytest.mark.parametrize("label", ["{}: {}", "[{}] {}", "### {}\n{}", "<{}> {}", "**{}**: {}"])
    def test_turns_written_into_one_text(self, form: str, label: str) -> None:
        talk = [("User", "hi there"), ("Assistant", "hello"), ("User", "what is tea?")]

        def body(count: int) -> Body:
            turns = "\n".join(label.format(*turn) for turn in talk[:count])
            return chat(said(form.format(turns=turns)))

        finding = pair("openai_chat", body(1), body(3))
        assert finding.cause is Cause.FLATTENED, finding.words()

    def test_a_message_that_grew_is_not_taken_for_turns(self) -> None:
        finding = pair("openai_chat", chat(said("a list:\none")), chat(said("a list:\none\ntwo")))
        assert finding.cause is Cause.MESSAGE_REWRITTEN

    def test_the_users_words_in_the_prefix(self) -> None:
        first = chat(said("hello"), system="You help. Keep in mind: nothing yet")
        second = chat(
            said("hello"), said("I sail to Bergen tomorrow"),
            system="You help. Keep in mind: sail Bergen tomorrow",
        )  # fmt: skip
        assert pair("openai_chat", first, second).cause is Cause.USER_DATA

    def test_secrets_are_taken_out_before_anything_is_cut(self) -> None:
        key = "sk-" + "q9Z8" * 12

        def redact(text: str) -> str:
            return text.replace(key, "[secret]")

        first = chat(said("x"), system=f"Key {key} one")
        second = chat(said("x"), system=f"Key {key} two")
        finding = pair("openai_chat", first, second, redact=redact)
        assert "q9Z8" not in finding.words() and "[secret]" in finding.was


class TestChain:
    def test_it_goes_on_from_what_was_kept(self) -> None:
        bodies = [
            json.dumps(chat(*(said(str(m)) for m in range(n + 1)))).encode() for n in range(4)
        ]
        auditor, whole = Auditor(), [Auditor() for _ in bodies]
        for body, alone in zip(bodies, whole, strict=True):
            assert (
                auditor.check("openai_chat", body).chain == alone.check("openai_chat", body).chain
            )
        kept = [link.to_json() for link in auditor.links()]
        later = Auditor(strict=True)
        later.load("openai_chat", map(Link.from_json, json.loads(json.dumps(kept))))
        assert later.links() == auditor.links()
        grown = json.dumps(chat(*(said(str(m)) for m in range(6)))).encode()
        finding = later.check("openai_chat", grown)
        assert finding.new == 2 and finding.shared_bytes == finding.before_bytes

    def test_strict_keeps_nothing_of_what_it_refused(self) -> None:
        auditor = Auditor(strict=True)
        good = json.dumps(chat(said("a"))).encode()
        auditor.check("openai_chat", good)
        with pytest.raises(CacheBreak):
            auditor.check("openai_chat", json.dumps(chat(said("b"))).encode())
        assert not auditor.check("openai_chat", good).broken

    def test_an_announcement_is_for_one_break(self) -> None:
        auditor = Auditor(strict=True)
        bodies = [json.dumps(chat(said(t))).encode() for t in "abc"]
        auditor.check("openai_chat", bodies[0])
        auditor.expect_break("compaction")
        finding = auditor.check("openai_chat", bodies[1])
        assert finding.broken and finding.announced == "compaction"
        with pytest.raises(CacheBreak):
            auditor.check("openai_chat", bodies[2])

    @settings(deadline=None, max_examples=150)
    @given(
        texts=st.lists(st.text(max_size=30), min_size=2, max_size=6),
        seed=st.integers(0, 10_000),
        wire=st.sampled_from(HTTP_WIRES),
    )
    def test_any_changed_byte_is_found(self, texts: list[str], seed: int, wire: str) -> None:
        """Turn one byte of the history of a real body into another: it never passes."""
        model = adapter(wire)
        entries = [user(t or "-") if n % 2 == 0 else note(t or "-") for n, t in enumerate(texts)]
        before = model.body(request(model, entries, tools=(WEATHER, TIME)))
        grown = model.body(request(model, [*entries, note("next")], tools=(WEATHER, TIME)))
        found = split(wire, before)
        segment = random.Random(seed).choice(found.ordered())
        at = random.Random(seed + 1).randrange(segment.start, segment.end)
        assert not pair(wire, before, grown).broken
        marks = re.finditer(rb'"cache_control":\{[^}]*\}', grown)
        assume(not any(m.start() <= at < m.end() for m in marks))  # those may move
        changed = bytearray(grown)
        changed[at] ^= 0x01
        auditor = Auditor()
        auditor.check(wire, before)
        with suppress(Unreadable):  # no JSON any more: nothing is said of a chain
            assert auditor.check(wire, bytes(changed)).broken


class TestExpected:
    def test_tokens_by_the_ratio_of_the_request_before(self) -> None:
        assert expected_tokens(None, 400) == 0
        assert expected_tokens(Measured(100, 400, 0.0), 400) == 100
        assert expected_tokens(Measured(100, 400, 0.0), 100) == 25
        assert expected_tokens(Measured(100, 0, 0.0), 100) == 0

    @pytest.mark.parametrize(
        ("family", "raw", "told"),
        [
            ("openai", {"prompt_tokens_details": {"cached_tokens": 0}}, 0),
            ("openai", {"prompt_tokens": 9}, None),
            ("vllm", {"prompt_tokens": 9, "prompt_tokens_details": None}, None),
            ("anthropic", {"cache_read_input_tokens": 0}, 0),
            ("ollama", {"prompt_tokens": 9}, None),
            ("deepseek", {"prompt_cache_hit_tokens": 0}, 0),
            ("llamacpp", {"timings": {"cache_n": 0}}, 0),
        ],
    )
    def test_no_counter_is_no_zero(self, family: str, raw: Any, told: int | None) -> None:
        assert cached_told(Usage(raw=raw), profile_for(family)) == told

    def test_a_miss_is_a_zero_of_a_prompt_long_enough_and_not_too_late(self) -> None:
        openai = profile_for("openai")
        assert is_miss(0, 2000, openai, 10)
        assert not is_miss(0, 900, openai, 10)
        assert not is_miss(0, 2000, openai, 4000)
        assert not is_miss(None, 2000, openai, 10)
        assert not is_miss(1024, 2000, openai, 10)
        assert is_miss(0, 100, Profile(name="x", wire="local"), 10)
