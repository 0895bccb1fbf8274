"""The strict validators find what providers refuse, and pass what they take."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.context.validity import EntryCheck, validate_body
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import Entry, ReasoningPart, TextPart
from wire.kit import WIRES, adapter, assistant, called, note, request, result, results, user


def valid(wire: str) -> dict[str, Any]:
    thought = {
        "openai_chat": {"reasoning_content": "hm"},
        "openai_responses": {
            "type": "reasoning",
            "id": "r",
            "summary": [],
            "encrypted_content": "x",
        },
        "anthropic": {"type": "thinking", "thinking": "hm", "signature": "s"},
        "gemini": {"text": "hm", "thought": True, "thoughtSignature": "s"},
    }[wire]
    model = adapter(wire)
    entries = [
        user("q"),
        assistant(ReasoningPart("hm", wire, thought), TextPart("look"), called("c1"), called("c2")),
        results(result("c1"), result("c2")),
    ]
    body: dict[str, Any] = json.loads(model.body(request(model, entries)))
    assert validate_body(wire, json.dumps(body).encode()) == []
    return body


def messages(body: dict[str, Any]) -> list[Any]:
    return body.get("messages") or body.get("input") or body["contents"]  # type: ignore[no-any-return]


Change = Callable[[dict[str, Any]], Any]


def rename(body: dict[str, Any], old: str, new: str) -> None:
    text = json.dumps(messages(body)).replace(json.dumps(old), json.dumps(new), 1)
    messages(body)[:] = json.loads(text)


EVERYWHERE: dict[str, Change] = {
    "results missing": lambda b: messages(b).__delitem__(
        slice(-1, None) if "input" not in b else slice(-2, None)
    ),
    "one id renamed": lambda b: rename(b, "c2", "c9"),
    "an id used twice": lambda b: rename(b, "c2", "c1"),
    "an id that is empty": lambda b: rename(b, "c1", ""),
    "a name that is no name": lambda b: rename(b, "get_weather", "get weather"),
    "no messages": lambda b: messages(b).clear(),
    "results first": lambda b: messages(b).insert(0, messages(b).pop()),
    "user between call and result": lambda b: messages(b).insert(
        -1 if "input" not in b else -2,
        {"role": "user", "content": [{"type": "text", "text": "x"}], "parts": [{"text": "x"}]},
    ),
    "results doubled": lambda b: messages(b).append(copy.deepcopy(messages(b)[-1])),
    "unknown role": lambda b: messages(b)[0].__setitem__("role", "robot"),
    "tool named twice": lambda b: (b["tools"][0].get("functionDeclarations") or b["tools"]).append(
        copy.deepcopy((b["tools"][0].get("functionDeclarations") or b["tools"])[0])
    ),
}
ONLY: dict[str, dict[str, Change]] = {
    "openai_chat": {
        "arguments no JSON": lambda b: b["messages"][2]["tool_calls"][0]["function"].__setitem__(
            "arguments", "{"
        ),
        "arguments a list": lambda b: b["messages"][2]["tool_calls"][0]["function"].__setitem__(
            "arguments", "[]"
        ),
        "empty answer": lambda b: b["messages"].__setitem__(
            slice(2, None), [{"role": "assistant", "content": ""}, {"role": "user", "content": "x"}]
        ),
        "no model": lambda b: b.pop("model"),
        "choice of no tool": lambda b: b.__setitem__(
            "tool_choice", {"type": "function", "function": {"name": "zzz"}}
        ),
        "system in the middle": lambda b: b["messages"].append({"role": "system", "content": "x"}),
        "answer last": lambda b: b["messages"].append({"role": "assistant", "content": "x"}),
    },
    "openai_responses": {
        "reasoning of nothing": lambda b: b["input"].insert(0, b["input"].pop(1)),
        "reasoning not encrypted": lambda b: b["input"][1].pop("encrypted_content"),
        "output missing": lambda b: b["input"][-1].pop("output"),
    },
    "anthropic": {
        "no bound": lambda b: b.pop("max_tokens"),
        "empty text": lambda b: b["messages"][0]["content"][0].__setitem__("text", " \n"),
        "no signature": lambda b: b["messages"][1]["content"][0].__setitem__("signature", ""),
        "ends in thinking": lambda b: b["messages"][1]["content"].append(
            b["messages"][1]["content"].pop(0)
        ),
        "thinking not first": lambda b: (
            b.__setitem__("thinking", {"type": "enabled", "budget_tokens": 2048}),
            b["messages"][1]["content"].pop(0),
        ),
        "text before results": lambda b: b["messages"][2]["content"].insert(
            0, {"type": "text", "text": "x"}
        ),
        "input no object": lambda b: b["messages"][1]["content"][2].__setitem__("input", "{}"),
        "assistant first": lambda b: b["messages"].pop(0),
        "odd id": lambda b: json.dumps(b) and rename(b, "c1", "c:1"),
    },
    "gemini": {
        "args no object": lambda b: b["contents"][1]["parts"][2]["functionCall"].__setitem__(
            "args", []
        ),
        "response no object": lambda b: b["contents"][2]["parts"][0][
            "functionResponse"
        ].__setitem__("response", "x"),
        "result under another name": lambda b: b["contents"][2]["parts"][0][
            "functionResponse"
        ].__setitem__("name", "get_time"),
        "no parts": lambda b: b["contents"][0].__setitem__("parts", []),
        "empty text": lambda b: b["contents"][0].__setitem__("parts", [{"text": ""}]),
    },
}
CASES = [(w, n, c) for w in WIRES for n, c in [*EVERYWHERE.items(), *ONLY[w].items()]]


@pytest.mark.parametrize(
    ("wire", "change"), [(w, c) for w, _, c in CASES], ids=[f"{w}-{n}" for w, n, _ in CASES]
)
def test_a_broken_body_is_found(wire: str, change: Change) -> None:
    body = valid(wire)
    change(body)
    assert validate_body(wire, json.dumps(body).encode()) != []


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"{}", b'{"a":NaN}', b"null", b'{"messages":5}', b"\xff"]
)
def test_a_body_that_is_no_request_is_found(wire: str, body: bytes) -> None:
    assert validate_body(wire, body) != []


def test_a_key_that_stands_twice_is_found() -> None:
    assert validate_body(
        "openai_chat", b'{"model":"a","model":"b","messages":[{"role":"user","content":"x"}]}'
    )


def test_ids_are_held_against_the_pattern_of_the_profile() -> None:
    body = json.dumps(valid("openai_chat")).encode()
    assert validate_body("openai_chat", body, id_pattern="^[a-z0-9]{9}$") != []


def test_an_unknown_wire_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        validate_body("telex", b"{}")


class TestEntryCheck:
    def check(self, *entries: Entry) -> EntryCheck:
        check = EntryCheck()
        for entry in entries:
            check.feed(entry)
        return check

    def test_a_whole_conversation_passes(self) -> None:
        check = self.check(
            user("a"),
            note("n"),
            assistant(called("c1"), called("c2")),
            results(result("c1"), result("c2")),
            note("n"),
            assistant(TextPart("x")),
            user("b"),
        )
        check.check_ready()

    @pytest.mark.parametrize(
        "entries",
        [
            [assistant(TextPart("x"))],
            [results(result("c1"))],
            [user("a"), results(result("c1"))],
            [user("a"), assistant(called(""))],
            [user("a"), assistant(called("c1"), called("c1"))],
            [user("a"), assistant(called("c1")), user("b")],
            [user("a"), assistant(called("c1")), note("b")],
            [user("a"), assistant(called("c1")), assistant(TextPart("b"))],
            [user("a"), assistant(called("c1")), results(result("c2"))],
            [user("a"), assistant(called("c1"), called("c2")), results(result("c1"))],
            [user("a"), assistant(called("c1"), called("c2")), results(result("c2"), result("c1"))],
            [user("a"), assistant(called("c1")), results(result("c1"), result("c1"))],
            [user("a"), assistant(called("c1")), results(result("c1")), assistant(called("c1"))],
            [user("a"), assistant(result("c1"))],
            [Entry(user("a").kind, (called("c1"),), user("a").at)],
        ],
    )
    def test_what_cannot_stand_is_refused_and_changes_nothing(self, entries: list[Entry]) -> None:
        check = self.check(*entries[:-1])
        before = check.open_calls
        with pytest.raises(InvalidRequest):
            check.feed(entries[-1])
        assert check.open_calls == before
        # What is right still passes.
        if before:
            check.feed(results(*(result(i) for i in before)))
        else:
            check.feed(user("on"))
        check.check_ready()

    @pytest.mark.parametrize(
        "entries",
        [
            [],
            [user("a"), assistant(TextPart("x"))],
            [user("a"), assistant(called("c1"))],
        ],
    )
    def test_not_ready(self, entries: list[Entry]) -> None:
        with pytest.raises(InvalidRequest):
            self.check(*entries).check_ready()


entry_moves = st.lists(
    st.sampled_from(["user", "note", "say", "call", "calls", "think", "odd", "result"]), max_size=14
)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("alternate", [False, True])
@given(moves=entry_moves)
@settings(max_examples=60)
def test_what_the_entry_check_passes_renders_valid_on_every_wire(
    wire: str, alternate: bool, moves: list[str]
) -> None:
    """G12 in the small: any sequence that the cheap check lets through makes a valid body."""
    from dataclasses import replace

    from lorimer.models.profiles import profile_for
    from wire.kit import FAMILY

    model = adapter(wire, profile=replace(profile_for(FAMILY[wire]), alternate=alternate))
    check, entries, number = EntryCheck(), [], 0
    for move in moves:
        number += 2
        entry = {
            "user": user(" " if number % 4 else "hi"),
            "note": note("n"),
            "say": assistant(TextPart("s")),
            "call": assistant(TextPart("t"), called(f"c{number}")),
            "calls": assistant(
                called(f"c{number}", "x.y", ""), called(f"c{number + 1}", raw="[1]")
            ),
            "think": assistant(ReasoningPart("hm", wire, None)),
            "odd": assistant(),
            "result": results(
                *(
                    result(
                        i,
                        "x.y"
                        if i == check.open_calls[0] and len(check.open_calls) == 2
                        else "get_weather",
                        "",
                    )
                    for i in check.open_calls
                )
            ),
        }[move]
        try:
            check.feed(entry)
        except InvalidRequest:
            continue
        entries.append(entry)
    try:
        check.check_ready()
    except InvalidRequest:
        return
    body = model.body(request(model, entries))
    strict = alternate and wire != "openai_responses"
    assert validate_body(wire, body, alternate=strict, id_pattern=model.profile.id_pattern) == []
