"""The strict validator finds each break of a provider's message rules; the entry check does too."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from lorimer.context.trajectory import Trajectory
from lorimer.context.validity import EntryCheck, validate_body
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import Entry, ReasoningPart, TextPart
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import Prefix, Settings
from wire.kit import FAMILY, WIRES, adapter, assistant, called, note, request, result, results, user

HISTORY = [
    user("go"),
    assistant(TextPart("I look."), called("a1"), called("a2", "get_time", '{"zone":"UTC"}')),
    results(result("a1"), result("a2", "get_time")),
    assistant(TextPart("It rains.")),
    note("a word"),
]
LIST = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}


def body(wire: str) -> Any:
    return json.loads(adapter(wire).body(request(adapter(wire), HISTORY)))


@pytest.mark.parametrize("wire", WIRES)
def test_a_sound_history_is_valid(wire: str) -> None:
    assert validate_body(wire, json.dumps(body(wire)).encode()) == []


BREAKS: dict[str, Callable[[str, list[Any]], Any]] = {
    "no messages": lambda wire, items: items.clear(),
    "nothing to answer": lambda wire, items: items.pop(),
    "an unknown role": lambda wire, items: items[-1].update(role="robot"),
    "something that is no object": lambda wire, items: items.append("x"),
    "the results are gone": lambda wire, items: [items.remove(i) for i in [*items] if _is_result(i)],
    "the calls are gone": lambda wire, items: [items.remove(i) for i in [*items] if _is_call(i)],
    "results twice": lambda wire, items: items.extend([i for i in items if _is_result(i)]),
    "the calls twice": lambda wire, items: items.extend([i for i in items if _is_call(i)]),
    "a word between calls and results": lambda wire, items: items.insert(
        next(n for n, i in enumerate(items) if _is_result(i)), items[-1]
    ),
    "results before their calls": lambda wire, items: items.insert(1, next(i for i in items if _is_result(i))),
    "an empty message": lambda wire, items: items[-1].update({"parts": []} if wire == "gemini" else {"content": ""}),
    "a block of another wire": lambda wire, items: items[-1].update(
        {"parts": [{"colour": "red"}]} if wire == "gemini" else {"content": [{"type": "colour", "text": "x"}]}
    ),
}  # fmt: skip


def _is_result(item: Any) -> bool:
    text = json.dumps(item)
    return any(
        w in text
        for w in ('"role": "tool"', "function_call_output", "tool_result", "functionResponse")
    )


def _is_call(item: Any) -> bool:
    text = json.dumps(item)
    return any(
        w in text for w in ('"tool_calls"', '"function_call"', '"tool_use"', '"functionCall"')
    )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", BREAKS)
def test_each_break_is_found(wire: str, name: str) -> None:
    broken = body(wire)
    BREAKS[name](wire, broken[LIST[wire]])
    assert validate_body(wire, json.dumps(broken).encode())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "data",
    [b"", b"[", b"[]", b"null", b'{"a": NaN}', b"\xff", b"{" * 100_000],
    ids=lambda d: repr(d[:6]),
)
def test_what_is_no_body_at_all_is_found(wire: str, data: bytes) -> None:
    assert validate_body(wire, data)


OWN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "chat: arguments that are no object": ("openai_chat", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(arguments="[]")),
    "chat: a picture as a result": ("openai_chat", lambda b: b["messages"][3].update(content=[{"type": "image_url", "image_url": {}}])),
    "chat: no calls in the list": ("openai_chat", lambda b: b["messages"][2].update(tool_calls=[])),
    "chat: system in the middle": ("openai_chat", lambda b: b["messages"].insert(2, {"role": "system", "content": "x"})),
    "chat: a name with a space": ("openai_chat", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(name="a b")),
    "responses: an item id twice": ("openai_responses", lambda b: [i.update(id="fc_1") for i in b["input"] if i["type"] == "function_call"]),
    "responses: reasoning that led to nothing": ("openai_responses", lambda b: b["input"].insert(-1, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"})),
    "responses: the user in output text": ("openai_responses", lambda b: b["input"][0].update(content=[{"type": "output_text", "text": "x"}])),
    "anthropic: results behind text": ("anthropic", lambda b: b["messages"][2]["content"].insert(0, {"type": "text", "text": "x"})),
    "anthropic: an odd id": ("anthropic", lambda b: b["messages"][1]["content"][1].update(id="a b")),
    "anthropic: no max_tokens": ("anthropic", lambda b: b.pop("max_tokens")),
    "anthropic: text of spaces": ("anthropic", lambda b: b["messages"][-1].update(content=" ")),
    "anthropic: the assistant first": ("anthropic", lambda b: b["messages"].insert(0, {"role": "assistant", "content": "x"})),
    "gemini: fewer results than calls": ("gemini", lambda b: b["contents"][2]["parts"].pop()),
    "gemini: a call right after the model": ("gemini", lambda b: b["contents"].insert(1, {"role": "model", "parts": [{"text": "x"}]})),
    "gemini: two things in one part": ("gemini", lambda b: b["contents"][1]["parts"][0].update(functionCall={"id": "z", "name": "t", "args": {}})),
    "gemini: a result of another name": ("gemini", lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(name="other")),
    "a tool twice": ("anthropic", lambda b: b["tools"].append(b["tools"][0])),
    "a tool choice that is no tool": ("anthropic", lambda b: b.update(tool_choice={"type": "tool", "name": "none"})),
}  # fmt: skip


@pytest.mark.parametrize("case", OWN.values(), ids=OWN)
def test_each_rule_of_a_provider_is_found(case: tuple[str, Callable[[Any], Any]]) -> None:
    wire, change = case
    broken = body(wire)
    change(broken)
    assert validate_body(wire, json.dumps(broken).encode())


def test_alternation_and_id_pattern_are_found_where_they_are_asked_for() -> None:
    two = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        }
    ).encode()
    assert validate_body("openai_chat", two) == []
    assert validate_body("openai_chat", two, alternate=True)
    data = json.dumps(body("openai_chat")).encode()
    assert validate_body("openai_chat", data, id_pattern="^[a-z0-9]{9}$")


SOUND = [
    user("go"),
    note("n"),
    assistant(called("a")),
    results(result("a")),
    assistant(TextPart("x")),
]
WRONG: dict[str, list[Entry]] = {
    "an answer first": [assistant(TextPart("x"))],
    "results first": [results(result("a"))],
    "results without calls": [user("go"), results(result("a"))],
    "a message between": [user("go"), assistant(called("a")), user("x")],
    "a note between": [user("go"), assistant(called("a")), note("x")],
    "an answer between": [user("go"), assistant(called("a")), assistant(TextPart("x"))],
    "a result missing": [user("go"), assistant(called("a"), called("b")), results(result("a"))],
    "a result too many": [user("go"), assistant(called("a")), results(result("a"), result("b"))],
    "results in another order": [user("go"), assistant(called("a"), called("b")), results(result("b"), result("a"))],
    "the result of another": [user("go"), assistant(called("a")), results(result("b"))],
    "an id twice in one answer": [user("go"), assistant(called("a"), called("a"))],
    "an id used before": [*SOUND, user("x"), assistant(called("a"))],
    "a call without id": [user("go"), assistant(called(""))],
    "reasoning of the user": [Entry(user("x").kind, (ReasoningPart("hm"),), user("x").at)],
    "calls of the user": [Entry(user("x").kind, (called("a"),), user("x").at)],
}  # fmt: skip


@pytest.mark.parametrize("entries", WRONG.values(), ids=WRONG)
def test_the_entry_check_refuses_the_last_entry_and_stays_as_it_was(entries: list[Entry]) -> None:
    check = EntryCheck()
    for one in entries[:-1]:
        check.feed(one)
    before = check.open_calls
    with pytest.raises(InvalidRequest, match="cannot stand here"):
        check.feed(entries[-1])
    assert check.open_calls == before


def test_the_entry_check_says_when_the_model_can_be_asked() -> None:
    check = EntryCheck()
    ready = []
    for one in [None, *SOUND]:
        if one is not None:
            check.feed(one)
        try:
            check.check_ready()
        except InvalidRequest:
            ready.append(False)
        else:
            ready.append(True)
    assert ready == [False, True, True, False, True, False]


@pytest.mark.parametrize("wire", WIRES)
def test_each_request_is_a_prefix_of_the_next_and_survives_a_reload(wire: str) -> None:
    model = adapter(wire, profile=profile_for(FAMILY[wire]))
    prefix = Prefix("s", (), model.render_prefix("s", ()))
    trajectory = Trajectory(model, prefix)
    bodies = []
    for one in HISTORY:
        trajectory.add(one, trajectory.render(one))
        try:
            sent = trajectory.request(Settings())
        except InvalidRequest:
            continue
        start = prefix.rendered if prefix.rendered.endswith(b"[") else prefix.rendered + b","
        joined = start + b",".join(trajectory.fragments)
        assert model.body(sent).startswith(joined + b"]")
        bodies.append(joined)
    assert len(bodies) == 3
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(bodies))
    again = Trajectory(model, prefix)
    assert again.load(zip(HISTORY, trajectory.fragments, strict=True)) == []
    made = Trajectory(model, prefix).load((e, None) for e in HISTORY)
    assert [data for _, data in made] == trajectory.fragments
