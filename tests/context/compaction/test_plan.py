"""What may be replaced: whole turns of calls and whole thinking loops, in any conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.context.compaction.digest import by_recall, digest_of
from lorimer.context.compaction.history import CLOSED, FAILED, TOKENS, History
from lorimer.context.compaction.notes import turn_note
from lorimer.context.compaction.plan import CALLS, characters_of, make, plan_of
from lorimer.context.compaction.scoring import best_lines, page_terms
from lorimer.context.compaction.units import OPEN_LOOP, UNSEEN, units_of
from lorimer.context.trajectory import Trajectory
from lorimer.context.validity import validate_body
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import (
    CallPart,
    Entry,
    ImagePart,
    Kind,
    Part,
    ReasoningPart,
    ResultPart,
    TextPart,
)
from lorimer.models.anthropic import Anthropic
from lorimer.models.gemini import Gemini
from lorimer.models.openai_chat import OpenAIChat
from lorimer.models.openai_responses import OpenAIResponses
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import Prefix, Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WIRES = [
    ("openai_chat", OpenAIChat("m", profile_for("openai"))),
    ("anthropic", Anthropic("m", profile_for("anthropic"))),
    ("openai_responses", OpenAIResponses("m", profile_for("openai-responses"))),
    ("gemini", Gemini("m", profile_for("gemini"))),
]

_step = st.one_of(
    st.just(("user",)), st.just(("note",)), st.just(("status",)), st.just(("answer",)),
    st.tuples(st.just("calls"), st.integers(1, 3), st.booleans(),
              st.sampled_from(["done", "failed", "unknown", "skill"])),
)  # fmt: skip


def conversation(steps: list[Any]) -> list[Entry]:
    """A valid conversation of these steps, ending so that the model can be asked."""
    entries = [Entry(Kind.USER, (TextPart("Find out, but never call before 9."),), NOW, 0)]
    count = 0

    def add(kind: Kind, *parts: Part) -> None:
        entries.append(Entry(kind, parts, NOW, len(entries)))

    def asked() -> bool:
        last = next(e for e in reversed(entries) if e.kind is not Kind.STATUS)
        return last.kind is not Kind.ASSISTANT

    for step in steps:
        if step[0] == "user":
            add(Kind.USER, TextPart("And more."))
        elif step[0] == "note":
            add(Kind.NOTE, TextPart("A word."))
        elif step[0] == "status":
            add(Kind.STATUS, TextPart("<agent_status>x</agent_status>"))
        elif asked():
            if step[0] == "answer":
                add(Kind.ASSISTANT, TextPart("So it is."))
                continue
            _, many, thinks, how = step
            name = "skill" if how == "skill" else "look"
            calls = [ToolCall(f"call_{count + n}", name, '{"word": "a"}') for n in range(many)]
            count += many
            block = {"type": "thinking", "thinking": "hm", "signature": "s"}
            thought = [ReasoningPart("hm", "anthropic", block)] if thinks else []
            add(Kind.ASSISTANT, *thought, TextPart("I look."), *map(CallPart, calls))
            outcome = {"failed": Outcome.FAILED_BEFORE_EFFECT, "unknown": Outcome.UNKNOWN}.get(
                how, Outcome.DONE
            )
            text = TextPart(f"Osk has {count} gates. " * 80)
            add(Kind.TOOL_RESULT, *(ResultPart(c.id, name, (text,), how == "failed", outcome)
                                    for c in calls))  # fmt: skip
    if not asked():
        add(Kind.USER, TextPart("Go on."))
    return entries


def digests(answer: Entry, results: Entry) -> list[Any]:
    calls = {c.id: c for c in answer.calls}
    return [digest_of(calls[r.call_id], r) for r in results.results]


@settings(max_examples=60, deadline=None)
@given(st.lists(_step, max_size=14))
def test_after_any_compaction_the_request_is_valid_for_every_provider(steps: list[Any]) -> None:
    entries = conversation(steps)
    for wire, model in WIRES:
        trajectory = Trajectory(model, Prefix("s", (), model.render_prefix("s", ())))
        trajectory.load([(e, None) for e in entries])
        units = units_of(trajectory.view, reasoning_goes_back=True)
        plan = plan_of(trajectory.view, trajectory.covers(), units, digests)
        spans = make(plan, by_recall(), NOW).spans
        if spans:
            meta = {"spans": [s.to_json() for s in spans]}
            compaction = Entry(Kind.COMPACTION, (), NOW, len(entries), meta)
            trajectory.load([(compaction, None)])
        assert validate_body(wire, model.body(trajectory.request(Settings()))) == []
        _nothing_is_cut(entries, trajectory)


def _nothing_is_cut(entries: list[Entry], trajectory: Trajectory) -> None:
    view = trajectory.view
    text = "\n".join(e.text for e in view)
    calls = {c.id for e in view for c in e.calls}
    assert calls == {r.call_id for e in view for r in e.results}
    for entry in entries:
        if entry.kind in (Kind.USER, Kind.NOTE):
            assert entry in view
        made = {c.id for c in entry.calls}
        assert made <= calls or made.isdisjoint(calls)  # a batch stays or goes whole
        if made and made.isdisjoint(calls):
            assert made <= {one for e in view for one in e.meta.get(CALLS, ())}
            assert "recall(call=" in text
    for result in (r for e in entries for r in e.results):
        if result.name == "skill" or result.outcome is Outcome.UNKNOWN:
            assert result.call_id in calls
    _loops_are_whole(entries, calls)


def _loops_are_whole(entries: list[Entry], calls: set[str]) -> None:
    loop: list[Entry] = []
    for entry in [*entries, Entry(Kind.USER, (), NOW)]:
        if entry.kind in (Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.STATUS):
            loop.append(entry)
            if not (entry.kind is Kind.ASSISTANT and not entry.calls):
                continue
        ids = {c.id for e in loop for c in e.calls}
        if any(isinstance(p, ReasoningPart) for e in loop for p in e.parts):
            assert ids <= calls or ids.isdisjoint(calls)
        loop = []


def test_what_the_model_has_not_seen_stays() -> None:
    calls = ("calls", 1, False, "done")
    view = conversation([calls, calls])
    units = units_of(view, reasoning_goes_back=True)
    assert [u.why_kept for u in units] == ["", UNSEEN]
    view = conversation([calls, ("note",)])  # a note of the harness is no answer
    assert [u.why_kept for u in units_of(view, reasoning_goes_back=True)] == [UNSEEN]


def test_an_open_thinking_loop_is_one_unit() -> None:
    view = conversation([("calls", 1, True, "done"), ("calls", 2, False, "done")])
    (unit,) = units_of(view, reasoning_goes_back=True)
    assert unit.why_kept == OPEN_LOOP and len(unit.turns) == 2
    assert len(units_of(view, reasoning_goes_back=False)) == 2


def test_images_are_no_characters() -> None:
    sizes = [
        characters_of(
            Entry(Kind.TOOL_RESULT, (ResultPart("c", "look", parts, False, Outcome.DONE),), NOW)
        )
        for parts in ((TextPart("ab"),), (TextPart("ab"), ImagePart("image/png", "A" * 9_000)))
    ]
    assert sizes[0] == sizes[1]


# --- history ---


def entry(kind: Kind, **meta: Any) -> Entry:
    return Entry(kind, (), NOW, meta=meta)


def usage(tokens: int) -> Entry:
    return entry(Kind.ASSISTANT, usage={"input_tokens": tokens})


def test_failures_in_a_row_open_the_breaker_and_a_success_resets_them() -> None:
    failed = entry(Kind.ARCHIVE, **{FAILED: "no"})
    compacted = entry(Kind.COMPACTION, **{TOKENS: 1_000})
    history = History()
    history.feed(entries := [failed, failed, compacted, usage(500)])
    assert history.failures == 0
    history.feed(entries := [*entries, failed, compacted, usage(1_000), failed])
    assert history.failures == 3 and history.open(3) and history.why == "no"
    history.feed([*entries, entry(Kind.ARCHIVE, **{CLOSED: True})])
    assert not history.open(3)


def test_a_provider_that_tells_no_usage_is_not_held_against_it() -> None:
    history = History()
    history.feed([entry(Kind.COMPACTION, **{TOKENS: 9}), usage(0), entry(Kind.ASSISTANT)])
    assert history.failures == 0


# --- choosing ---


def test_the_odd_line_is_kept_and_the_page_is_named_by_what_it_is_about() -> None:
    rows = [f"row {n}: all is well at 20 degrees" for n in range(200)]
    rows[117] = "Dr Ostrava found a crack of 3.7 mm in the Vellum arch."
    text = "\n".join(rows)
    (lines,) = best_lines([text], [200])
    assert rows[117] in lines and all(line in text for line in lines)
    from lorimer.context.compaction.pages import pages_of

    pages = pages_of(text, 2_000)
    (terms,) = page_terms([text], [pages], 0.1)
    holds = [p.number for p in pages if "Ostrava" in p.of(text)]
    assert [n for n, named in enumerate(terms, 1) if "Ostrava" in named] == holds


@given(st.lists(st.text(max_size=800), min_size=1, max_size=3), st.integers(0, 300))
def test_lines_are_word_for_word_and_fit(texts: list[str], room: int) -> None:
    for text, lines in zip(texts, best_lines(texts, [room] * len(texts)), strict=True):
        assert all(line in text for line in lines)
        assert sum(map(len, lines)) <= max(0, room)


@pytest.mark.parametrize("empty", [[], [Entry(Kind.NOTE, (TextPart("x"),), NOW, 0)]])
def test_a_turn_without_anything_has_no_note(empty: list[Entry]) -> None:
    note = turn_note(empty)
    assert note is None or note.empty
