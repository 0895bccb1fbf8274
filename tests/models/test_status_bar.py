"""The status bar on the wires: in whose role it is told, and where the cache ends before it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.context.auditor import Auditor
from lorimer.context.auditor.segments import message_count
from lorimer.context.validity import validate_body
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.models.profiles import Profile, families, known_models, profile_for
from lorimer.models.protocol import Prefix, Request, Settings
from wire.kit import AT, adapter, assistant, called, note, result, results, user

OPUS = profile_for("anthropic", "claude-opus-5")
BAR = "<agent_status>\n[calls]\n- pay: 1/3\n</agent_status>"
TEXTS = '<agent_status_texts>\n1: "acme"\n</agent_status_texts>'
PROFILES = {
    "openai": ("openai_chat", profile_for("openai", "gpt-5.6-terra")),
    "openai-responses": ("openai_responses", profile_for("openai-responses", "gpt-5.6-terra")),
    "opus": ("anthropic", OPUS),
    "haiku-4": ("anthropic", profile_for("anthropic", "claude-haiku-4-5")),
    "gemini": ("gemini", profile_for("gemini")),
    "deepseek": ("openai_chat", profile_for("deepseek")),
    "mistral": ("openai_chat", profile_for("mistral")),
}
LISTS = {"openai_responses": "input", "gemini": "contents"}


def bar(text: str = BAR, texts: str = "", *, apart: bool = True) -> Entry:
    before = (TextPart(texts, Trust.USER_DATA, "status"),) if texts else ()
    meta = {"apart": True} if apart else {}
    return Entry(Kind.STATUS, (*before, TextPart(text)), AT, meta=meta)


def body_of(
    name: str, entries: list[Entry], transient: int = 0, **options: Any
) -> tuple[bytes, Any]:
    wire, profile = PROFILES[name]
    model = adapter(wire, profile=profile)
    prefix = Prefix("Be brief.", (), model.render_prefix("Be brief.", ()))
    fragments = [model.render_entry(e, entries[:at]) for at, e in enumerate(entries)]
    made = Request(prefix, entries, fragments, Settings(**options), transient=transient)
    body = model.body(made)
    faults = validate_body(
        wire, body, alternate=profile.alternate, id_pattern=profile.id_pattern,
        status_role=profile.status_role,
    )  # fmt: skip
    assert faults == []
    return body, json.loads(body)[LISTS.get(wire, "messages")]


CALL_ID = "abcdefghi"
LOOP = [user("go"), assistant(called(CALL_ID)), results(result(CALL_ID))]


def role_and_text(message: Any) -> tuple[str, str]:
    content = message.get("content", message.get("parts"))
    text = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
    return message["role"], text


@pytest.mark.parametrize(
    ("name", "role"),
    [("openai", "developer"), ("openai-responses", "developer"), ("opus", "system"),
     ("haiku-4", "user"), ("gemini", "user"), ("deepseek", "user"), ("mistral", "user")],
)  # fmt: skip
@pytest.mark.parametrize("after", ["user", "results"])
def test_the_bar_is_told_in_the_models_own_role(name: str, role: str, after: str) -> None:
    entries = LOOP if after == "results" else LOOP[:1]
    _, messages = body_of(name, [*entries, bar(texts=TEXTS)])
    if role == "user":
        assert role_and_text(messages[-1]) == ("user", f"{TEXTS}\n\n{BAR}")
    else:
        assert [role_and_text(m) for m in messages[-2:]] == [("user", TEXTS), (role, BAR)]


@pytest.mark.parametrize("name", ["openai", "openai-responses", "opus"])
def test_a_bar_with_texts_in_it_is_never_told_with_more_authority_than_the_users(name: str) -> None:
    """A session may have begun with a model that has no role of its own for it."""
    _, messages = body_of(name, [*LOOP, bar(apart=False)])
    assert role_and_text(messages[-1]) == ("user", BAR)


FOLLOWERS: dict[str, list[Entry]] = {
    "an answer": [assistant(TextPart("so")), user("on")],
    "a message of the user": [user("on")],
    "a note": [note("stopped")],
    "another bar": [bar(BAR + " ")],
    "another bar with texts": [bar(texts=TEXTS)],
    "a bar of the old form": [bar(apart=False)],
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("texts", ["", TEXTS])
@pytest.mark.parametrize("follower", FOLLOWERS.values(), ids=FOLLOWERS)
def test_whatever_follows_a_bar_the_request_is_valid(
    name: str, texts: str, follower: list[Entry]
) -> None:
    """A system message of Anthropic must stand between the user and an answer: also after a request
    that failed, or was stopped."""
    body_of(name, [*LOOP, bar(texts=texts), *follower])


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("texts", ["", TEXTS])
def test_a_bar_may_come_first_or_after_an_answer(name: str, texts: str) -> None:
    """After a compaction that left nothing before it."""
    body_of(name, [bar(texts=texts), user("go")])
    body_of(name, [user("go"), assistant(TextPart("so")), bar(texts=texts), user("on")])


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_bars_anywhere_leave_a_valid_request_on_every_wire(data: Any) -> None:
    """Random histories with bars of every form wherever a session may put one."""
    entries: list[Entry] = [user("go")]
    asked = True
    for number in range(data.draw(st.integers(1, 12))):
        kinds = ["bar", "bar apart", "bar with texts", "user", "note"]
        match data.draw(st.sampled_from([*kinds, "answer", "calls"] if asked else kinds)):
            case "bar":
                entries.append(bar(apart=False))
            case "bar apart":
                entries.append(bar())
            case "bar with texts":
                entries.append(bar(texts=TEXTS))
            case "user":
                entries.append(user("on"))
                asked = True
            case "note":
                entries.append(note("a word"))
                asked = True
            case "answer":
                entries.append(assistant(TextPart("so")))
                asked = False
            case _:
                call_id = f"abcdefg{number:02}"
                entries += [assistant(called(call_id)), results(result(call_id))]
    if not asked:
        entries.append(user("on"))
    tail = data.draw(st.sampled_from([None, bar(), bar(texts=TEXTS), bar(apart=False)]))
    for name in PROFILES:
        body_of(
            name, [*entries, *([] if tail is None else [tail])], transient=int(tail is not None)
        )


PLACES: dict[str, list[str]] = {
    "first": ["system", "user"],
    "after an answer": ["user", "assistant", "system"],
    "before the user": ["user", "system", "user"],
}


@pytest.mark.parametrize("roles", PLACES.values(), ids=PLACES)
def test_the_validator_knows_where_anthropic_takes_system_messages(roles: list[str]) -> None:
    blocks = [{"type": "text", "text": "x"}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": r, "content": blocks} for r in roles],
    }
    assert validate_body("anthropic", json.dumps(body).encode(), status_role="system")
    body["messages"] = [{"role": r, "content": blocks} for r in ("user", "system", "system")]
    assert validate_body("anthropic", json.dumps(body).encode(), status_role="system") == []
    assert validate_body("anthropic", json.dumps(body).encode())


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
def test_the_validator_refuses_the_role_where_the_model_has_none(name: str) -> None:
    wire, _ = PROFILES[name]
    body, _ = body_of(name, [*LOOP, bar()])
    assert any("developer" in fault for fault in validate_body(wire, body))


def test_every_role_and_bound_model_has_a_source() -> None:
    for family in families():
        for model in ("", *known_models(family)):
            profile = profile_for(family, model)
            if profile.status_role:
                assert profile.sources["status_role"].startswith("https://")
            if profile.bound_reasoning:
                assert profile.sources["bound_reasoning"].startswith("https://")


def test_two_models_of_a_wire_share_no_renderings_where_their_roles_differ() -> None:
    assert OPUS.rendering != PROFILES["haiku-4"][1].rendering
    same = [Profile("a", "anthropic", id_pattern="x"), Profile("b", "anthropic", id_pattern="x")]
    assert same[0].rendering == same[1].rendering


# --- where the cache ends ---


def marks(body: bytes) -> list[tuple[int, int]]:
    """Message and block of every breakpoint in the messages."""
    return [
        (at, number)
        for at, message in enumerate(json.loads(body)["messages"])
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


@pytest.mark.parametrize("name", ["opus", "haiku-4"])
def test_the_breakpoint_stands_before_a_bar_that_is_replaced(name: str) -> None:
    body, messages = body_of(name, [*LOOP, bar(texts=TEXTS)], transient=1)
    whole = json.loads(body)
    assert marks(body) == [(2, 0)]
    assert messages[2]["content"][-1]["type"] == "tool_result"
    assert messages[2]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in whole  # the automatic one would end in the bar
    assert whole["system"][-1]["cache_control"]
    assert json.dumps(whole).count("cache_control") <= 4


def test_without_a_bar_that_is_replaced_the_breakpoint_moves_by_itself() -> None:
    body, _ = body_of("opus", [*LOOP, bar(texts=TEXTS)])
    assert marks(body) == []
    assert json.loads(body)["cache_control"] == {"type": "ephemeral"}


def test_a_breakpoint_of_ones_own_kind_is_kept() -> None:
    own = {"type": "ephemeral", "ttl": "1h"}
    body, messages = body_of("opus", [*LOOP, bar()], transient=1, extra={"cache_control": own})
    assert messages[2]["content"][-1]["cache_control"] == own
    assert "cache_control" not in json.loads(body)


def test_with_nothing_before_the_bar_no_message_is_marked() -> None:
    body, _ = body_of("haiku-4", [bar(apart=False)], transient=1)
    assert marks(body) == []


@pytest.mark.parametrize("name", PROFILES)
def test_replaced_bars_are_no_break_for_the_auditor(name: str) -> None:
    """Three requests, each with another bar last; also from a chain that was kept."""
    wire, profile = PROFILES[name]
    model = adapter(wire, profile=profile)
    steps = [LOOP[:1], LOOP, [*LOOP, assistant(TextPart("so")), user("on")]]
    auditor, again = Auditor(strict=True), Auditor(strict=True)
    links: list[Any] = []
    for number, entries in enumerate(steps):
        tail = bar(f"{BAR} {number}", TEXTS if number % 2 else "")
        body, _ = body_of(name, [*entries, tail], transient=1)
        count = message_count(wire, [model.render_entry(tail, entries)])
        finding = auditor.check(wire, body, transient=count)
        assert not finding.broken
        if links:
            again.load(wire, links)
            assert not again.check(wire, body, transient=count).broken
        links = auditor.links()
        assert number == 0 or finding.shared_bytes > 0


@pytest.mark.parametrize("name", ["opus", "deepseek", "openai-responses", "gemini"])
def test_a_changed_message_before_a_replaced_bar_is_still_found(name: str) -> None:
    wire, _ = PROFILES[name]
    auditor = Auditor()
    body, _ = body_of(name, [*LOOP, bar(apart=False)], transient=1)
    auditor.check(wire, body, transient=1)
    other = [user("go!"), *LOOP[1:], assistant(TextPart("so")), user("on")]
    body, _ = body_of(name, [*other, bar(apart=False)], transient=1)
    assert auditor.check(wire, body, transient=1).broken


def test_only_a_breakpoint_may_come_and_go() -> None:
    def body(block: str) -> bytes:
        return b'{"messages":[{"role":"user","content":[%s]}]}' % block.encode()

    plain = '{"type":"text","text":"a"}'
    marked = '{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}'
    auditor = Auditor()
    auditor.check("anthropic", body(plain))
    assert not auditor.check("anthropic", body(marked)).broken
    assert not auditor.check("anthropic", body(plain)).broken
    assert auditor.check("anthropic", body(marked.replace('"a"', '"b"'))).broken
