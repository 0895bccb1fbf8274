"""What may be written: the offer's rules, and schemas reduced to what the engine compiles."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import CallPart, Entry, Kind, ResultPart, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.models.local.constrain import (
    answer_schema,
    arguments_schema,
    constraint_field,
    reduce_schema,
)
from lorimer.models.local.rules import Offer, failed, files_named, offer

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def tool(name: str, **properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1],
              "additionalProperties": False}  # fmt: skip
    return ToolSpec(name, f"{name}.", schema)


TOOLS = (
    tool("list_directory", path={"type": "string"}),
    tool("read_file", path={"type": "string"}, offset={"type": "integer"},
         limit={"type": "integer"}),
    tool("run_python", code={"type": "string"}),
)  # fmt: skip
TINY, MIDDLE, LARGE = 500_000_000, 1_500_000_000, 8_000_000_000


def conversation(question: str, *calls: tuple[str, str, bool]) -> list[Entry]:
    """The question, then (tool, result, is_error) for each call so far."""
    out = [Entry(Kind.USER, (TextPart(question),), NOW)]
    for number, (name, text, is_error) in enumerate(calls):
        call = ToolCall(f"c{number}", name, json.dumps({"n": number}))
        out.append(Entry(Kind.ASSISTANT, (CallPart(call),), NOW))
        result = ResultPart(call.id, name, (TextPart(text),), is_error, Outcome.DONE)
        out.append(Entry(Kind.TOOL_RESULT, (result,), NOW))
    return out


def names(given: Offer) -> list[str]:
    return [spec.name for spec in given.tools]


def test_question_that_names_a_table_is_looked_at_then_computed_then_answered() -> None:
    question = "How many rows has orders.csv?"
    first = offer(conversation(question), TOOLS, TINY)
    assert names(first) == ["read_file"] and not first.say
    limits = first.narrow["read_file"]["properties"]
    assert limits == {"path": {"enum": ["orders.csv"]}, "limit": {"const": 3}}
    looked = ("read_file", "a,b\n1,2", False)
    second = offer(conversation(question, looked), TOOLS, TINY)
    assert names(second) == ["run_python"] and not second.say
    third = offer(conversation(question, looked, ("run_python", "200", False)), TOOLS, TINY)
    assert third.say and not third.tools


def test_text_file_is_answered_after_it_was_read() -> None:
    given = offer(conversation("What says notes.txt?", ("read_file", "hi", False)), TOOLS, TINY)
    assert given.say and not given.tools
    larger = offer(conversation("What says notes.txt?", ("read_file", "hi", False)), TOOLS, MIDDLE)
    assert larger.say and names(larger) == names(Offer(TOOLS))


@pytest.mark.parametrize("result", [("run_python", "boom", True), ("run_python", " \n", False)])
def test_failed_call_is_followed_by_a_call_at_most_three_times(
    result: tuple[str, str, bool],
) -> None:
    looked = ("read_file", "a,b", False)
    for failures in (1, 2):
        given = offer(conversation("Sum of a.csv?", looked, *[result] * failures), TOOLS, TINY)
        assert not given.say and len(given.tools) == 3
    given = offer(conversation("Sum of a.csv?", looked, *[result] * 3), TOOLS, TINY)
    assert given.say


def test_question_without_a_file_is_free() -> None:
    given = offer(conversation("What is the capital of France?"), TOOLS, TINY)
    assert given.say and len(given.tools) == 3


def test_request_to_write_a_file_is_not_sent_to_read_it() -> None:
    given = offer(conversation("Write hello into out.txt"), TOOLS, TINY)
    assert len(given.tools) == 3 and not given.say


def test_same_call_twice_ends_in_an_answer() -> None:
    entries = conversation("What is here?")
    call = ToolCall("c", "list_directory", "{}")
    result = ResultPart("c", "list_directory", (TextPart("a"),), False, Outcome.DONE)
    entries += [Entry(Kind.ASSISTANT, (CallPart(call),), NOW),
                Entry(Kind.TOOL_RESULT, (result,), NOW)] * 2  # fmt: skip
    given = offer(entries, TOOLS, MIDDLE)
    assert given.say and not given.tools


def test_large_models_choose_freely() -> None:
    given = offer(conversation("Sum of a.csv?"), TOOLS, LARGE)
    assert given.say and len(given.tools) == 3


def test_lists_only_for_larger_models_and_several_things() -> None:
    question = "What time is it and how is the weather in Vancouver?"
    assert offer(conversation(question), TOOLS, MIDDLE).several
    assert not offer(conversation(question), TOOLS, TINY).several
    assert not offer(conversation(question), TOOLS, MIDDLE, parallel_calls=False).several
    assert not offer(conversation("What time is it?"), TOOLS, MIDDLE).several


@pytest.mark.parametrize(
    ("choice", "tools", "say"),
    [("none", 0, True), ("required", 3, False), ("run_python", 1, False), ("auto", 3, True)],
)
def test_tool_choice_is_obeyed(choice: str, tools: int, say: bool) -> None:
    given = offer(conversation("hello"), TOOLS, MIDDLE, tool_choice=choice)
    assert (len(given.tools), given.say) == (tools, say)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Sum orders.csv.", ("orders.csv",)),
        ("compare data/a.csv with ./b.TSV?", ("data/a.csv", "./b.TSV")),
        ("See https://example.com/x.html please", ()),
        ("It costs 3.50, e.g. at example.com", ()),
        ("call foo.bar() and mail me@host.org", ()),
        ("a.csv a.csv", ("a.csv",)),
        ("What is in 'käse prices 2026.csv'?", ("käse prices 2026.csv",)),
        ("see `data set.parquet` and x.csv", ("data set.parquet", "x.csv")),
        (
            'sum "my files/b c.csv", then „Aufträge März.csv“',
            ("my files/b c.csv", "Aufträge März.csv"),
        ),
        ("It's in Tom's list.csv, isn't it?", ("list.csv",)),
    ],
)
def test_file_names_in_questions(question: str, found: tuple[str, ...]) -> None:
    assert files_named(question) == found


@pytest.mark.parametrize(
    ("name", "text", "bad"),
    [
        ("run_python", "18", False),
        ("run_python", "Traceback …\nKeyError: 'city'\n[exit code 1]", True),
        ("run_python", "[exit code 0; nothing was printed: use print()]", True),
        ("read_file", "a line that says\n[exit code 1]", False),
        ("read_file", "", True),
    ],
)
def test_a_program_that_failed_or_printed_nothing_has_not_answered(
    name: str, text: str, bad: bool
) -> None:
    assert failed(ResultPart("c", name, (TextPart(text),), False, Outcome.DONE)) is bad


HARD = [
    {"type": "string", "pattern": "(?=a)b"},
    {"not": {"type": "string"}},
    {"if": {"type": "string"}, "then": {"minLength": 3}},
    {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
    {"type": "object", "properties": {"a": True, "b": False}, "required": ["a", "b"]},
    {"type": ["string", "null"], "minLength": 2, "maxLength": 1},
    {"type": "strng"},
    {"type": "integer", "minimum": 5, "maximum": 3},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "next": {"$ref": "#/$defs/node"}}}}},
    {"$ref": "https://example.com/other"},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]},
    {"oneOf": [{"type": "integer"}, {"type": "string", "format": "date-time"}]},
    {"anyOf": [True, {"type": "string"}]},
    {"type": "array", "contains": {"type": "string"}, "minItems": 2, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
    {"type": "object", "dependentRequired": {"a": ["b"]}, "propertyNames": {"maxLength": 3}},
    {"enum": ["a", 1, None, {"x": [1]}]},
    {"const": {"a": 1}},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "number", "multipleOf": 0.01},
    {"type": "string", "minLength": 1, "maxLength": 10**9},
    {},
]  # fmt: skip
KNOWN = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum",
         "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
         "minItems", "maxItems", "minLength", "maxLength"}  # fmt: skip


def keywords(schema: Any) -> set[str]:
    found: set[str] = set(schema)
    for value in schema.get("properties", {}).values():
        found |= keywords(value)
    for value in schema.get("anyOf", ()):
        found |= keywords(value)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found |= keywords(schema[key])
    return found


@pytest.mark.parametrize("schema", HARD, ids=lambda s: json.dumps(s)[:40])
def test_hard_schemas_are_reduced_to_known_keywords(schema: dict[str, Any]) -> None:
    assert keywords(reduce_schema(schema)) <= KNOWN
    assert keywords(arguments_schema(schema)) <= KNOWN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner,
                                                                 max_size=3),
    max_leaves=8,
)  # fmt: skip
schemas = st.recursive(
    st.sampled_from([
        {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}, {},
        {"type": "number", "minimum": 0}, {"enum": ["a", "b"]}, {"const": 1},
        {"type": ["string", "null"]}, {"type": "string", "pattern": "^[a-z]+$"},
    ]),
    lambda inner: st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
    | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
        lambda p: {"type": "object", "properties": p, "required": sorted(p)[:1],
                   "additionalProperties": False}
    ),
    max_leaves=6,
)  # fmt: skip


@given(schemas, json_values)
def test_reduced_schema_allows_everything_the_schema_allows(schema: Any, value: Any) -> None:
    if jsonschema_rs.is_valid(schema, value):
        assert jsonschema_rs.is_valid(reduce_schema(schema), value)


@given(json_values)
def test_anything_at_all_is_reduced_without_a_fault(schema: Any) -> None:
    assert keywords(reduce_schema(schema)) <= KNOWN


@given(st.lists(schemas, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_engine_takes_the_schema_of_every_offer(
    inputs: list[Any], say: bool, several: bool
) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    tools = tuple(
        ToolSpec(f"t{n}", "", {"type": "object", "properties": {"x": schema}})
        for n, schema in enumerate(inputs)
    )
    schema = answer_schema(Offer(tools, say=say, several=several))
    jsonschema_rs.validator_for(schema)
    assert xllamacpp.json_schema_to_grammar(json.dumps(schema))
    field = constraint_field(Offer(tools, say=say), llguidance=True)
    assert field["grammar"].startswith("%llguidance")
    assert set(constraint_field(Offer(tools), llguidance=False)) == {"json_schema"}
