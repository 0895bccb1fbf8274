"""Templates in answers: filled from recorded results, literally, or left alone and flagged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.answers import Filler, Recorded, Source, fill, source_of
from lorimer.context.answers.results import read_json
from lorimer.context.answers.templates import visible
from lorimer.core.calls import Outcome
from lorimer.core.messages import ResultPart, TextPart
from lorimer.core.trust import Trust

RAW = (
    '{"total": 1234.50, "count": 3, "rate": 0.125, "currency": "EUR", "due": "2026-11-30",'
    ' "at": "2026-11-30T14:30:00Z", "items": [{"name": "a/b", "price": 10.10},'
    ' {"name": "{{x.y}}"}],'
    ' "tags": ["red", "blue"], "none": null, "ok": true, "a.b": 7, "big": 12345678901234567890.120}'
)


def source(call_id: str, tool: str, text: str, *, done: bool = True, whole: bool = True) -> Source:
    return Source(call_id, tool, text, read_json(text), whole=whole, done=done)


RECORDED = Recorded(
    [
        source("call_1", "get_order", '{"total": 1, "old": 5}'),
        source("call_2", "get_order", RAW),
        source("call.3|x", "say", "plain words"),
        source("call_4", "broken", '{"error": "timeout"}', done=False),
        source("call_5", "long", "head\n[… 900 of 1000 lines left out here …]", whole=False),
    ]
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{get_order.total}}", "1234.50"),
        ("{{ call_1.total }}", "1"),
        ("{{call_1/old}}", "5"),
        ("{{get_order.total|money}}", "1,234.50 EUR"),
        ("{{get_order.count|money}}", "3.00 EUR"),
        ("{{get_order.items[0].price}}", "10.10"),
        ("{{get_order/items/0/name}}", "a/b"),
        ("{{get_order.items.1.name}}", "{{x.y}}"),
        ('{{get_order["a.b"]}}', "7"),
        ("{{get_order/a.b}}", "7"),
        ("{{get_order.due|date}}", "30 November 2026"),
        ("{{get_order.at|datetime}}", "30 November 2026, 14:30 UTC"),
        ("{{get_order.rate|percent}}", "12.5 %"),
        ("{{get_order.tags|list}}", "red, blue"),
        ("{{get_order.items|count}}", "2"),
        ("{{get_order.big|number}}", "12,345,678,901,234,567,890.120"),
        ("{{get_order.ok}}", "true"),
        ("{{call.3|x}}", "plain words"),
        ("{{say}}", "plain words"),
    ],
)
def test_templates_are_filled_with_the_recorded_value(template: str, value: str) -> None:
    text, filled, flags = fill(f"It is {template}.", RECORDED)
    assert text == f"It is {value}."
    assert flags == [] and [one.span for one in filled] == [(6, 6 + len(value))]


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{get_ordr.total}}", "did it mean 'get_order'?"),
        ("{{get_order.totl}}", "did it mean 'total'?"),
        ("{{get_order.items}}", "a list of 2"),
        ("{{get_order}}", "name a field"),
        ("{{get_order.none}}", "no value there"),
        ("{{get_order.items[2].name}}", "beyond the list"),
        ("{{get_order.items.name}}", "give a number"),
        ("{{get_order.total.x}}", "nothing below"),
        ("{{get_order.total|euro}}", "no format 'euro'"),
        ("{{get_order.total|}}", "format is missing"),
        ("{{get_order.at|date}}", "would drop"),
        ("{{get_order.currency|money}}", "no plain number"),
        ("{{get_order.due|datetim}}", "no format"),
        ("{{broken.error}}", "was not done"),
        ("{{call_4.error}}", "was not done"),
        ("{{long}}", "only a part"),
        ("{{say.field}}", "has no fields"),
        ("{{}}", "no result of a call or tool"),
    ],
)
def test_what_cannot_be_filled_stays_visible_and_is_flagged(template: str, why: str) -> None:
    text, filled, flags = fill(f"Hm {template}!", RECORDED)
    assert text == f"Hm {template}!" and not filled
    (flag,) = flags
    assert (flag.kind, flag.text, flag.span) == ("template", template, (3, 3 + len(template)))
    assert why in flag.why


def test_a_failed_call_does_not_hide_the_last_result_of_its_tool() -> None:
    recorded = Recorded([source("a", "t", '{"n": 1}'), source("b", "t", "no", done=False)])
    assert fill("{{t.n}}", recorded)[0] == "1"


@pytest.mark.parametrize(
    "text",
    [
        "```jinja\n{{get_order.total}}\n```",
        "~~~\n{{get_order.total}}\n```\n{{say}}\n~~~",
        "a { b } {{ open",
        "{{get_order.\ntotal}}",
        "{{" + "x" * 300 + "}}",
        "{{a}b}}",
    ],
)
def test_code_and_what_is_no_template_is_left_alone(text: str) -> None:
    assert fill(text, RECORDED) == (text, [], [])


def test_a_template_behind_a_fence_is_filled() -> None:
    assert fill("```\n{{say}}\n```\n{{say}}", RECORDED)[0] == "```\n{{say}}\n```\nplain words"


def test_values_are_never_read_for_templates_again() -> None:
    recorded = Recorded([source("c", "t", '{"a": "{{t.b}}", "b": "secret", "open": "{{t."}')])
    assert fill("{{t.a}} {{t.open}}b}}", recorded)[0] == "{{t.b}} {{t.b}}"


PIECES = st.sampled_from(
    ["{", "}", "{{", "}}", "{{say}}", "{{get_order.total}}", "```", "\n", " ", "a", "{{no.such}}",
     "`", "x.y|", "ü"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.data())
def test_streaming_gives_the_same_as_the_whole(pieces: list[str], data: Any) -> None:
    text = "".join(pieces)
    whole, filled, flags = fill(text, RECORDED)
    filler = Filler(RECORDED)
    out, at = "", 0
    while at < len(text):
        step = data.draw(st.integers(1, 7))
        out += filler.feed(text[at : at + step])
        at += step
        shown = out
        assert whole.startswith(shown)
    assert out + filler.end() == whole
    assert (filler.filled, filler.flags) == (filled, flags)
    for one in filled:
        assert whole[slice(*one.span)] == one.value
    for flag in flags:
        assert whole[slice(*flag.span)] == flag.text


def test_an_open_template_is_held_back_and_everything_else_is_not() -> None:
    filler = Filler(RECORDED)
    assert [filler.feed(c) for c in ("It is {", "{say", "}", "} ok")] == [
        "It is ", "", "", "plain words ok",
    ]  # fmt: skip


def test_results_are_read_without_the_tags_and_notes_of_the_harness() -> None:
    part = ResultPart(
        "c1", "fetch",
        (
            TextPart('<external_content source="web" id="c1">\n{"n": 1.10}\n</external_content>',
                     Trust.EXTERNAL, "web"),
            TextPart("\n\nnotes:\n- /x: 1 was read as 2 (rule)"),
        ),
        False, Outcome.DONE,
    )  # fmt: skip
    made = source_of(part)
    assert made.value == {"n": "1.10"} and made.text == '{"n": 1.10}' and made.done


def test_a_key_that_stands_twice_is_no_value() -> None:
    recorded = Recorded([source("c", "t", '{"a": 1, "a": 2}')])
    _, _, (flag,) = fill("{{t.a}}", recorded)
    assert "text and has no fields" in flag.why


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)


@given(st.recursive(scalars, nested, max_leaves=10))
def test_any_result_and_any_pointer_fill_exactly_or_are_flagged(value: Any) -> None:
    recorded = Recorded([source("c", "t", json.dumps({"v": value}))])
    text, filled, flags = fill("{{t.v}}", recorded)
    if isinstance(value, str):
        shown, unseen = visible(value)
        assert text == shown and bool(flags) == bool(unseen) == (shown != value)
        assert len(filled) == 1
        return
    elif isinstance(value, bool):
        assert text == str(value).lower()
    elif isinstance(value, int):
        assert text == str(value)
    else:
        assert text == "{{t.v}}" and len(flags) == 1
    assert len(filled) + len(flags) == 1


@pytest.mark.parametrize(
    ("value", "shown", "named"),
    [
        ("\x1b[31mred", "<U+001B>[31mred", "U+001B"),
        ("a\u202eb", "a<U+202E>b", "U+202E"),
        ("a\u200b\u200db", "a<U+200B><U+200D>b", "U+200B, U+200D"),
        ("a\rb", "a<U+000D>b", "U+000D"),
    ],
)
def test_unseen_characters_of_a_result_are_written_out_and_flagged(
    value: str, shown: str, named: str
) -> None:
    recorded = Recorded([source("c", "say", json.dumps({"x": value}))])
    text, filled, (flag,) = fill("It: {{say.x}}.", recorded)
    assert text == f"It: {shown}." and named in flag.why and flag.kind == "template"
    assert text[slice(*flag.span)] == shown == flag.text == filled[0].value


@pytest.mark.parametrize("value", ["a\r\nb\tc", "👩\u200d💻", "Größe"])
def test_characters_that_belong_to_a_text_stay(value: str) -> None:
    recorded = Recorded([source("c", "say", json.dumps({"x": value}))])
    assert fill("{{say.x}}", recorded)[::2] == (value, [])
