"""For every n the request of the first n entries is a byte prefix of that of n + 1: on every wire,
after a restart from a real store, and after an upgrade that renders everything in another way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lorimer.context.prefix.parts import KEY, Prompt, PromptPart, Stability, build, render
from lorimer.context.trajectory import Trajectory
from lorimer.context.view import Span
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import (
    CallPart,
    Entry,
    FilePart,
    ImagePart,
    Kind,
    Part,
    ReasoningPart,
    ResultPart,
    TextPart,
)
from lorimer.models.local.gguf import ModelFacts
from lorimer.models.local.model import LocalModel
from lorimer.models.local.template import CHATML, wrapper_of
from lorimer.models.profiles import Profile, profile_for
from lorimer.models.protocol import Prefix, Request, Settings
from lorimer.models.scripted import ScriptedModel
from lorimer.models.wire_model import WireModel
from lorimer.store import open_store
from lorimer.store.protocol import AppendEntry, CreateSession, SessionRecord
from wire.kit import TIME, WEATHER, adapter

RESULT = ResultPart("call_1", "get_time", (), False, Outcome.DONE)
MARK = b',"cache_control":{"type":"ephemeral"}'
AT = datetime(2026, 1, 1, tzinfo=UTC)
FAMILIES = ("deepseek", "mistral", "openai", "openai-responses", "anthropic", "gemini")
MODELS: dict[str, Any] = {
    family: adapter(profile_for(family).wire, profile=profile_for(family)) for family in FAMILIES
}
MODELS["scripted"] = ScriptedModel(name="scripted")


def _local() -> LocalModel:
    """The rendering of a local model, without its file and engine."""
    facts = ModelFacts(
        path=Path("x.gguf"), fingerprint="", name="x", architecture="x", parameters=1,
        context_length=1, chat_template=CHATML, bos_token="<s>", eos_token="</s>",
        control_tokens=("<|im_start|>", "<|im_end|>", "</s>", "<s>"),
    )  # fmt: skip
    made = object.__new__(LocalModel)
    made._name, made._wrapper = "local", wrapper_of(facts)
    made._profile = Profile("local", "local", reasoning="drop", template=made._wrapper.form)
    return made


MODELS["local"] = _local()
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))

texts = st.one_of(
    st.sampled_from(
        ["go", " ", "", "</note>", "\x00", "雨 😀", "<agent_status>", '{"a":', "\u2028"]
    ),
    st.text(max_size=20),
    st.text(st.characters(codec=None, categories=["Cs", "L"]), max_size=4),
)
reasoning = st.sampled_from(
    [
        ReasoningPart("hm", "anthropic", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        ReasoningPart("", "anthropic", {"type": "redacted_thinking", "data": "ZW5j"}),
        ReasoningPart("hm", "openai_chat", {"reasoning_content": "hm"}),
        ReasoningPart("hm", "gemini", {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}),
        ReasoningPart("hm"),
    ]
)  # fmt: skip
user_parts = st.lists(
    st.one_of(
        texts.map(TextPart),
        st.sampled_from(
            [ImagePart("image/png", data="aGk="), ImagePart("image/png", url="http://x/y.png"),
             ImagePart("image/png"), FilePart("application/pdf", "n.pdf", "aGk="),
             FilePart("text/plain", "n.txt", "aGk="), FilePart("text/csv", "n.csv", "@@")]
        ),
    ),
    max_size=3,
)  # fmt: skip
images = st.sampled_from([(), (ImagePart("image/png", data="aGk="),)])
raws = st.sampled_from(
    ['{"city":"Oslo"}', "{}", "", "{", '{"n": 1, "n": 2}', "[1]", '{"x": "\\ud800"}']
)
names = st.sampled_from(["get_weather", "get_time", "unknown", "näme", ""])


def entry(kind: Kind, *parts: Part, **meta: Any) -> Entry:
    return Entry(kind, parts, AT, meta=meta)


@st.composite
def beside(draw: Any) -> Entry:
    """An entry that may stand wherever no result is due, with its tags."""
    kind = draw(st.sampled_from([Kind.NOTE, Kind.EVENT, Kind.STATUS, Kind.SKILLS]))
    text = draw(texts)
    if kind is not Kind.NOTE:
        text = f"<{kind}>{text}</{kind}>"
    return entry(kind, TextPart(text))


@st.composite
def histories(draw: Any, changes: bool = True) -> list[Entry]:
    """A session: what is asked, answered, called, told; rebased now and then."""
    number = itertools.count(1)
    out: list[Entry] = []
    asked = False
    for _ in range(draw(st.integers(1, 8))):
        what = draw(st.integers(0, 9))
        if what <= 2 or not asked:
            if what == 1 and draw(st.booleans()):
                out.append(draw(beside()))
                asked = asked or out[-1].kind in (Kind.NOTE, Kind.EVENT)
                continue
            out.append(entry(Kind.USER, *draw(user_parts)))
            asked = True
        elif what <= 4:
            out.append(draw(beside()))
        elif what == 5 and changes:
            prompt = build([PromptPart("role", "app", Stability.GLOBAL, draw(texts) + "x")])
            meta = {"system": _encodable(prompt.text), "tools": [TIME.to_json()], "reason": "r"}
            out.append(entry(Kind.REBASE, **meta))
        else:
            parts: list[Part] = []
            if draw(st.booleans()):
                parts.append(draw(reasoning))
            parts.append(TextPart(draw(texts)))
            calls = [
                ToolCall(f"call_{next(number)}", draw(names), draw(raws))
                for _ in range(draw(st.integers(0, 3)))
            ]
            out.append(entry(Kind.ASSISTANT, *parts, *map(CallPart, calls)))
            asked = bool(calls)
            if calls:
                out.append(
                    entry(
                        Kind.TOOL_RESULT,
                        *(
                            ResultPart(
                                c.id, c.name,
                                (*draw(images), TextPart(draw(texts))),
                                draw(st.booleans()), Outcome.DONE,
                            )
                            for c in calls
                        ),
                    )
                )  # fmt: skip
    return [Entry(e.kind, e.parts, e.at, seq, e.meta) for seq, e in enumerate(out)]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


PROMPT: Prompt = build(
    [PromptPart("role", "app", Stability.GLOBAL, "Help."),
     PromptPart("shop", "app", Stability.DEPLOYMENT, "In euros."),
     PromptPart("who", "app", Stability.SESSION, "Ana.")]
)  # fmt: skip
TOOLS = (TIME, WEATHER)


def trajectory(model: Any) -> Trajectory:
    rendered = render(model, PROMPT.text, TOOLS, PROMPT.boundaries)
    return Trajectory(model, Prefix(PROMPT.text, TOOLS, rendered))


def body_of(model: Any, request: Request) -> bytes:
    """The prompt as it is sent, without the closing bracket and the settings."""
    if isinstance(model, WireModel):
        whole = model.body(request)
        empty = Request(request.prefix, [], [], request.settings, transient=request.transient)
        closing = model.body(empty)[len(request.prefix.rendered) :]
        assert whole.endswith(closing)
        return whole[: -len(closing)]
    return b"".join((request.prefix.rendered, *request.fragments))


def sent(one: Trajectory) -> bytes:
    view, fragments = one.view, one.fragments
    return body_of(one.model, Request(one.prefix, view, fragments, Settings()))


@pytest.mark.parametrize("family", MODELS)
class TestEveryRequestBeginsWithTheOneBefore:
    @given(history=histories(), bar=texts)
    @settings(COMMON, max_examples=60)
    def test_as_it_grows(self, family: str, history: list[Entry], bar: str) -> None:
        one = trajectory(MODELS[family])
        before = b""
        for new in history:
            one.add(new, one.render(new))
            now = sent(one)
            if new.kind is not Kind.REBASE:
                assert now.startswith(before), (before, now)
            before = now
            if one.open_calls or not one.asked:
                continue
            # A bar at the end of one request changes nothing of what follows.
            tail = Entry(Kind.STATUS, (TextPart(f"<agent_status>{bar}</agent_status>"),), AT)
            request = one.request(Settings(), tail)
            assert request.transient == 1
            # Where the cache ends is no part of what is read.
            with_bar = body_of(one.model, request).replace(MARK, b"")
            assert with_bar.startswith(now.replace(MARK, b"")) and len(with_bar) > len(now) - 99
            assert sent(one) == now

    @given(history=histories())
    @settings(COMMON, max_examples=12)
    def test_after_a_restart_and_an_upgrade(self, family: str, history: list[Entry]) -> None:
        with TemporaryDirectory() as folder:
            _stored_and_read(MODELS[family], history, Path(folder) / "s.db")


def _stored_and_read(model: Any, history: Sequence[Entry], path: Path) -> None:
    one = trajectory(model)
    form = model.profile.rendering
    store = open_store(path)
    record = SessionRecord(
        "s_1", AT, "user", model.name, model.profile.wire, PROMPT.text,
        [tool.to_json() for tool in TOOLS], one.prefix.rendered, {KEY: PROMPT.to_json()},
    )  # fmt: skip
    _commit(store, CreateSession(record))
    steps = []
    for new in history:
        rendering = one.render(new)
        _commit(store, AppendEntry("s_1", new.seq, new, form, rendering, "user"))
        one.add(new, rendering)
        steps.append(sent(one))
    store.close()
    for version in (model, Upgraded(model)):
        store = open_store(path)
        kept = store.session("s_1")
        again = Trajectory(version, Prefix(kept.system, TOOLS, kept.prefix))
        for step, (stored, rendering) in zip(steps, store.entries("s_1", form), strict=True):
            assert again.load([(stored, rendering)]) == []
            assert body_of(model, again_request(again)) == step
        fresh = trajectory(version)
        changed = isinstance(version, Upgraded)
        assert (fresh.prefix.rendered != trajectory(model).prefix.rendered) == changed
        said = Entry(Kind.USER, (TextPart("new"),), AT, 0)
        assert (fresh.render(said) != model.render_entry(said, ())) == changed
        store.close()


def again_request(one: Trajectory) -> Request:
    return Request(one.prefix, one.view, one.fragments, Settings())


def _commit(store: Any, change: Any) -> None:
    import asyncio

    asyncio.run(store.commit(change))


class Upgraded:
    """The next version of a model's adapter: it renders everything in another way."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def render_prefix(self, *given: Any) -> bytes:
        return self._model.render_prefix(*given).replace(b"Help.", b"HELP!")  # type: ignore[no-any-return]

    def render_entry(self, one: Entry, earlier: Sequence[Entry]) -> bytes:
        return self._model.render_entry(one, earlier) + b" "  # type: ignore[no-any-return]


def test_the_request_of_a_session_with_parts_has_no_more_breakpoints_than_allowed() -> None:
    from lorimer.context.validity import validate_body

    model = MODELS["anthropic"]
    one = trajectory(model)
    said = Entry(Kind.USER, (TextPart("go"),), AT, 0)
    one.add(said, one.render(said))
    body = model.body(one.request(Settings()))
    assert validate_body("anthropic", body) == []
    assert body.count(b"cache_control") == 3
    for more, allowed in ((1, True), (2, False)):
        value = json.loads(body)
        block = {**value["messages"][0]["content"][0], "cache_control": {"type": "ephemeral"}}
        value["messages"][0]["content"] = [block] * more
        faults = validate_body("anthropic", json.dumps(value).encode())
        assert faults == ([] if allowed else ["5 cache breakpoints; there may be 4"])


@st.composite
def spans(draw: Any, length: int) -> list[Span]:
    """Spans over `length` entries, sound or not."""
    out = []
    for n in range(draw(st.integers(1, 3))):
        first = draw(st.integers(-1, length))
        last = draw(st.integers(first - 1, length + 1))
        inside = [
            draw(
                st.sampled_from(
                    [
                        entry(Kind.COMPACTION, TextPart(f"<context_summary>{n}</context_summary>")),
                        entry(Kind.NOTE, TextPart("kept")),
                        entry(Kind.USER, TextPart("what the user said")),
                        entry(Kind.ASSISTANT, TextPart("what was answered")),
                        entry(Kind.COMPACTION),
                        entry(Kind.ASSISTANT, CallPart(ToolCall("call_1", "get_time", "{}"))),
                        entry(Kind.ASSISTANT, CallPart(ToolCall("made_up", "get_time", "{}"))),
                        entry(Kind.TOOL_RESULT, RESULT),
                    ]
                )
            )
            for _ in range(draw(st.integers(0, 3)))
        ]  # fmt: skip
        out.append(Span(first, last, tuple(inside)))
    return out


def _valid_everywhere(one: Trajectory, system: str) -> None:
    """What is sent is valid for all providers."""
    from lorimer.context.validity import validate_body

    for model in MODELS.values():
        if not isinstance(model, WireModel):
            continue
        view = list(one.view)
        if not one.asked:
            view.append(Entry(Kind.USER, (TextPart("next"),), AT))
        made = [model.render_entry(e, view[:at]) for at, e in enumerate(view)]
        prefix = Prefix(system, TOOLS, model.render_prefix(system, TOOLS))
        body = model.body(Request(prefix, view, made, Settings()))
        rules = model.profile
        faults = validate_body(
            rules.wire, body, alternate=rules.alternate, id_pattern=rules.id_pattern
        )
        assert faults == [], (model.name, faults)


@given(data=st.data(), family=st.sampled_from([*MODELS]), other=st.sampled_from([*MODELS]))
@settings(COMMON, max_examples=300)
def test_a_compaction_is_valid_or_changes_nothing(data: Any, family: str, other: str) -> None:
    model = MODELS[family]
    history = data.draw(histories(changes=False))
    one = trajectory(model)
    stored: list[tuple[Entry, bytes]] = []

    def add(new: Entry) -> None:
        new = Entry(new.kind, new.parts, new.at, one.next_seq, new.meta)
        rendering = one.render(new)
        one.add(new, rendering)
        stored.append((new, rendering))

    for new in history:
        add(new)
    assume(not one.open_calls)
    taken = 0
    for _ in range(3):
        before = (list(one.view), list(one.fragments), list(one.covers()), len(one.entries))
        meta = {"spans": [s.to_json() for s in data.draw(spans(len(one.entries)))]}
        try:
            add(entry(Kind.COMPACTION, **meta))
        except InvalidRequest:
            assert (
                list(one.view),
                list(one.fragments),
                list(one.covers()),
                len(one.entries),
            ) == before
        else:
            taken += 1
            covers = one.covers()
            assert all(a[0] <= a[1] for a in covers)
            assert all(a[1] < b[0] or a == b for a, b in itertools.pairwise(covers))
        if data.draw(st.booleans()):
            add(entry(Kind.USER, TextPart("and on")))
    if one.view:
        _valid_everywhere(one, PROMPT.text)
    if not one.asked:
        add(entry(Kind.USER, TextPart("last")))
    one.request(Settings())
    # The same bytes after a restart, by whatever version.
    for version in (model, Upgraded(model)):
        again = Trajectory(version, one.prefix)
        assert again.load(stored) == []
        assert list(again.fragments) == list(one.fragments)
        assert list(again.view) == list(one.view) and again.covers() == one.covers()
    # Another model goes on after it.
    theirs = Trajectory(MODELS[other], trajectory(MODELS[other]).prefix)
    made = theirs.load([(e, None) for e, _ in stored])
    assert len(made) == len(stored) and list(theirs.view) == list(one.view)
    theirs.request(Settings())
    _valid_everywhere(theirs, PROMPT.text)


def test_compactions_that_are_sound_are_taken() -> None:
    """So that the property above is not one of refusals only."""
    one = trajectory(MODELS["mistral"])
    for n in range(4):
        for new in (entry(Kind.USER, TextPart(f"q{n}")), entry(Kind.ASSISTANT, TextPart(f"a{n}"))):
            new = Entry(new.kind, new.parts, AT, one.next_seq)
            one.add(new, one.render(new))
    told = entry(Kind.COMPACTION, TextPart("<context_summary>x</context_summary>"))
    meta = {"spans": [Span(0, 3, (told,)).to_json()]}
    new = Entry(Kind.COMPACTION, (), AT, one.next_seq, meta)
    one.add(new, one.render(new))
    assert [e.text for e in one.view] == [told.text, "q2", "a2", "q3", "a3"]
    assert b"x</context_summary>" in sent(one) and b"q0" not in sent(one)
