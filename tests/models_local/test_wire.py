"""Reading what a model writes, in pieces of any size."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lorimer.core.calls import ToolCall
from lorimer.models.local.model import finish, is_looping
from lorimer.models.local.wire import JsonText, WireReader, call_text, say_text
from lorimer.models.protocol import CallComplete, CallDelta, CallStarted, TextDelta

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


def read(written: list[str]) -> tuple[str, list[ToolCall], WireReader]:
    reader = WireReader()
    text, calls, deltas = "", [], {}
    for piece in written:
        for event in reader.feed(piece):
            match event:
                case TextDelta(said):
                    text += said
                case CallDelta(index, said):
                    deltas[index] = deltas.get(index, "") + said
                case CallComplete(index, call):
                    assert deltas[index] == call.raw
                    calls.append(call)
                case CallStarted(index, _):
                    assert index == len(calls)
    return text, calls, reader


@given(texts, st.booleans(), st.lists(st.integers(0, 400), max_size=12))
@example('😀 é \\u0041 " \n', True, list(range(60)))
def test_text_comes_out_as_it_was_meant(text: str, ascii_only: bool, cuts: list[int]) -> None:
    written = '{"say": ' + json.dumps(text, ensure_ascii=ascii_only) + "}"
    said, calls, reader = read(pieces(written, cuts))
    assert said == text and not calls and not reader.open and not reader.stray


def test_half_a_surrogate_pair_is_shown_as_the_replacement_character() -> None:
    text = JsonText()
    assert text.feed("a\\ud83d")[0] == "a"
    assert text.feed("b")[0] == "\ufffdb"


@given(
    st.lists(st.dictionaries(texts, texts | st.integers() | st.lists(texts, max_size=2),
                             max_size=3), min_size=1, max_size=3),
    st.integers(0, 3),
    st.lists(st.integers(0, 900), max_size=12),
)  # fmt: skip
def test_arguments_are_handed_on_byte_for_byte(
    values: list[dict[str, object]], indent: int, cuts: list[int]
) -> None:
    raws = [json.dumps(value, ensure_ascii=False, indent=indent or None) for value in values]
    calls = [ToolCall("", f"tool_{n}", raw) for n, raw in enumerate(raws)]
    written = ", ".join(call_text(call) for call in calls)
    _, found, reader = read(pieces(f"[{written}]" if len(calls) > 1 else written, cuts))
    assert [(c.name, c.raw) for c in found] == [(c.name, c.raw) for c in calls]
    assert not reader.open


@pytest.mark.parametrize(
    "written",
    ['{"name": "f", "arguments": {"a": "}"', '{"name": "f", "arguments": {"a": [1', '{"say": "x'],
)
def test_what_was_cut_is_open_and_completes_no_call(written: str) -> None:
    _, calls, reader = read([written])
    assert reader.open and not calls
    assert finish(reader) == []


def test_text_outside_the_form_is_read_leniently_at_the_end() -> None:
    _, calls, reader = read(['Sure!\n```json\n{"name": "f", "argu', 'ments": {"a":  1}}\n```'])
    assert reader.stray and not calls
    events = finish(reader)
    assert events[0] == TextDelta("Sure!")
    assert events[-1] == CallComplete(0, ToolCall("", "f", '{"a":  1}'))


@given(texts)
def test_said_text_is_written_as_json(text: str) -> None:
    assert json.loads(say_text(text)) == {"say": text}


def test_loops_are_seen_and_tables_are_not() -> None:
    assert is_looping(("x = 1; print(x)\\n" * 20)[:240])
    table = "".join(f"row {n}, value {n * n}\n" for n in range(30))
    assert not any(is_looping(table[:size]) for size in range(0, len(table), 8))
