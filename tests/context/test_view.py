"""What a compaction may do to the view, and what it may not. The property is in
`test_render_prefix_property.py`; here are its corners."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lorimer.context.trajectory import Trajectory
from lorimer.context.view import Span, pack, unpack
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import Prefix, Settings
from wire.kit import adapter, assistant, called, result, results, user

AT = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = adapter("openai_chat", profile=profile_for("mistral"))
SUMMARY = Entry(Kind.COMPACTION, (TextPart("<context_summary>s</context_summary>"),), AT)
HISTORY = [
    user("q0"), assistant(called("call_1"), called("call_2")),
    results(result("call_1"), result("call_2")), assistant(TextPart("a0")),
    user("q1"), assistant(TextPart("a1")), user("q2"),
]  # fmt: skip


def talked(*more: Entry) -> Trajectory:
    one = Trajectory(MODEL, Prefix("s", (), MODEL.render_prefix("s", ())))
    for entry in (*HISTORY, *more):
        add(one, entry)
    return one


def add(one: Trajectory, entry: Entry) -> None:
    entry = Entry(entry.kind, entry.parts, AT, one.next_seq, entry.meta)
    one.add(entry, one.render(entry))


def compaction(*spans: Span, **meta: Any) -> Entry:
    return Entry(Kind.COMPACTION, (), AT, meta={"spans": [s.to_json() for s in spans], **meta})


def said(one: Trajectory) -> list[str]:
    return [entry.text for entry in one.view]


def test_whole_turns_become_a_summary() -> None:
    one = talked()
    add(one, compaction(Span(0, 3, (SUMMARY,))))
    assert said(one) == [SUMMARY.text, "q1", "a1", "q2"]
    assert one.covers() == [(0, 3), (4, 4), (5, 5), (6, 6)]
    # Mistral wants turns to alternate: what follows the summary got its filler.
    assert b"no reply was recorded" in one.fragments[1]
    add(one, compaction(Span(0, 5, (SUMMARY,))))
    assert said(one) == [SUMMARY.text, "q2"] and one.covers() == [(0, 5), (6, 6)]


def test_several_spans_in_any_order_and_spans_that_only_drop() -> None:
    one = talked()
    add(one, compaction(Span(4, 5, ()), Span(0, 3, (SUMMARY,))))
    assert said(one) == [SUMMARY.text, "q2"]
    assert one.request(Settings()).entries == one.view


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ([Span(1, 1, ())], "no call to answer"),
        ([Span(2, 2, ())], "have no result yet"),
        ([Span(6, 6, ())], "would be lost"),
        ([Span(0, 9, (SUMMARY,))], "no span before it"),
        ([Span(-1, 2, ())], "no span before it"),
        ([Span(3, 2, ())], "no span before it"),
        ([Span(0, 3, (SUMMARY,)), Span(3, 5, (SUMMARY,))], "overlap"),
        ([Span(0, 3, (assistant(TextPart("x")),))], "cannot begin with an answer"),
        ([Span(0, 3, (Entry(Kind.REBASE, (), AT),))], "is no message"),
        ([Span(0, 3, (user("x"), assistant(called("new")), results(result("new"))))], "never made"),
    ],
)
def test_what_would_be_no_valid_request_is_refused_and_changes_nothing(
    spans: list[Span], why: str
) -> None:
    one = talked()
    before = said(one), list(one.fragments), one.next_seq
    with pytest.raises(InvalidRequest, match=why):
        add(one, compaction(*spans))
    assert (said(one), list(one.fragments), one.next_seq) == before
    one.request(Settings())


@pytest.mark.parametrize("meta", [{}, {"spans": 3}, {"spans": [{"first": 0}]}, {"spans": [None]}])
def test_spans_that_cannot_be_read(meta: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        add(talked(), Entry(Kind.COMPACTION, (), AT, meta=meta))


def test_a_compaction_may_not_cut_into_an_older_one() -> None:
    one = talked()
    add(one, compaction(Span(0, 3, (SUMMARY,))))
    for span in (Span(2, 5, (SUMMARY,)), Span(0, 2, (SUMMARY,)), Span(1, 2, ())):
        with pytest.raises(InvalidRequest):
            add(one, compaction(span))
    assert said(one) == [SUMMARY.text, "q1", "a1", "q2"]


def test_calls_of_before_may_be_brought_back() -> None:
    one = talked()
    whole = (HISTORY[0], HISTORY[1], HISTORY[2])
    add(one, compaction(Span(0, 3, whole)))
    assert [e.kind for e in one.view][:3] == [e.kind for e in whole]


def test_nothing_but_results_is_taken_while_calls_are_open_and_nothing_is_rendered() -> None:
    one = talked(assistant(called("call_3")))
    for kind in (Kind.NOTE, Kind.EVENT, Kind.STATUS, Kind.SKILLS, Kind.USER, Kind.REBASE):
        entry = Entry(kind, (TextPart("x"),), AT, one.next_seq, {"system": "s", "tools": []})
        with pytest.raises(InvalidRequest, match="no result yet"):
            one.render(entry)  # what cannot stand here never gets as far as the store
    with pytest.raises(InvalidRequest):
        one.render(compaction(Span(0, 3, (SUMMARY,))))
    add(one, results(result("call_3")))


def test_frozen_renderings_must_be_those_of_this_compaction() -> None:
    one = talked()
    entry = compaction(Span(0, 3, (SUMMARY,)))
    entry = Entry(entry.kind, entry.parts, AT, one.next_seq, entry.meta)
    good = one.render(entry)
    fragments = unpack(good)
    assert pack(fragments) == good
    for bad in (pack(fragments[:-1]), pack([*fragments, b"x"]), good[:-1], b"\x00" * 3):
        before = said(one)
        with pytest.raises(InvalidRequest):
            one.add(entry, bad)
        assert said(one) == before and one.next_seq == entry.seq
    one.add(entry, good)
    assert said(one)[0] == SUMMARY.text


def test_a_span_reads_back_what_it_was() -> None:
    inside = (user("x"), Entry(Kind.NOTE, (TextPart("y", Trust.EXTERNAL, "web"),), AT))
    span = Span(2, 4, inside)
    again = Span.from_json(span.to_json())
    assert [(e.kind, e.parts) for e in again.entries] == [(e.kind, e.parts) for e in inside]
    assert all(e.seq == 2 for e in again.entries)
