"""Schemas of tools: strict, compiled once, all faults at once and in words."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import json
from typing import Any

import pytest

from lorimer.core.errors import ToolDefinitionError
from lorimer.tools.schema import closed_schema, compile_schema, integral, pointer, problems


def faults(schema: dict[str, Any], value: Any) -> list[tuple[str, str, Any, str]]:
    found = problems(schema, compile_schema("t", schema), value)
    return [(code, p.path, p.given, p.expected) for code, p in found]


def prop(schema: Any) -> dict[str, Any]:
    return closed_schema("t", {"type": "object", "properties": {"a": schema}, "$defs": {
        "point": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}}})  # fmt: skip


WORDS: dict[str, tuple[Any, Any, str, str, str]] = {
    "type": ({"type": "integer"}, "x", "type", "/a", "integer, not string"),
    "quoted number": ({"type": "integer"}, "2", "type", "/a", "integer, written without quotes, not string"),
    "quoted truth": ({"type": "boolean"}, "True", "type", "/a", "boolean, written without quotes, not string"),
    "no hint for words": ({"type": "number"}, "many", "type", "/a", "number, not string"),
    "types": ({"type": ["integer", "null"]}, [], "type", "/a", "not array"),
    "optional": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "2", "type", "/a", "integer or null, written without quotes, not string"),
    "enum": ({"enum": ["x", 1, None]}, "z", "value", "/a", "one of: 'x', 1, None"),
    "const": ({"const": "x"}, "z", "value", "/a", "exactly 'x'"),
    "minimum": ({"minimum": 3}, 1, "value", "/a", "at least 3"),
    "maximum": ({"maximum": 3}, 4, "value", "/a", "at most 3"),
    "more than": ({"exclusiveMinimum": 3}, 3, "value", "/a", "more than 3"),
    "less than": ({"exclusiveMaximum": 3}, 3, "value", "/a", "less than 3"),
    "multiple": ({"multipleOf": 5}, 3, "value", "/a", "a multiple of 5"),
    "short": ({"minLength": 2}, "", "value", "/a", "at least 2 characters"),
    "long": ({"maxLength": 2}, "xyz", "value", "/a", "at most 2 characters"),
    "few": ({"minItems": 2}, [1], "value", "/a", "at least 2 items"),
    "many": ({"maxItems": 2}, [1, 2, 3], "value", "/a", "at most 2 items"),
    "twice": ({"uniqueItems": True}, [1, 1], "value", "/a", "no item twice"),
    "pattern": ({"pattern": "^x"}, "y", "value", "/a", "text that matches ^x"),
    "item": ({"type": "array", "items": {"type": "string"}}, ["x", 2], "type", "/a/1", "string, not integer"),
    "forms": ({"oneOf": [{"enum": ["x"]}, {"type": "object", "required": ["q"]}]}, {}, "value", "/a", "an object with q"),
    "too many forms": ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "value", "/a", "exactly one"),
    "inner missing": ({"$ref": "#/$defs/point"}, {}, "missing", "/a/x", "required, integer"),
    "inner extra": ({"$ref": "#/$defs/point"}, {"x": 1, "y": 2}, "extra", "/a/y", "known: x"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS.values(), ids=WORDS)
def test_a_fault_is_told_with_place_value_and_what_is_allowed(case: Any) -> None:
    schema, value, code, path, words = case
    (found,) = faults(prop(schema), {"a": value})
    assert found[:2] == (code, path)
    assert words in found[3]


def test_all_faults_come_at_once() -> None:
    schema = closed_schema("t", {
        "properties": {"n": {"type": "integer", "description": "how many, e.g. 3"}, "s": {"enum": ["a"]}, "k": {"type": "string"}},
        "required": ["n", "k"],
    })  # fmt: skip
    found = faults(schema, {"s": "b", "n": "1", "zz": 1})
    assert sorted(f[0] for f in found) == ["extra", "missing", "type", "value"]
    missing = next(f for f in found if f[0] == "missing")
    assert missing[1] == "/k" and missing[3].startswith("required, string")


def test_of_many_options_twenty_are_shown() -> None:
    (found,) = faults(prop({"enum": list(range(100))}), {"a": -1})
    assert found[3].endswith("18, 19 (and 80 more)")


@pytest.mark.parametrize(
    "value", ["x" * 5000, ["x"] * 5000, {"k": "x" * 5000}], ids=["text", "list", "object"]
)
def test_a_long_value_is_quoted_in_short(value: Any) -> None:
    (found,) = faults(prop({"type": "null"}), {"a": value})
    assert len(str(found[2])) < 300


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_booleans_are_not_numbers(value: bool, kind: str) -> None:
    assert faults(prop({"type": kind}), {"a": value})


def test_whole_floats_are_integers_whatever_their_size() -> None:
    schema = prop({"type": "integer"})
    for value in (1.0, -0.0, 1e30, 10**400):
        assert faults(schema, {"a": value}) == []
    assert integral(schema, {"a": 1e30})[0] == {"a": 10**30}
    assert integral(schema, {"a": 2**60})[1] == []


def test_integral_does_not_change_what_it_was_given() -> None:
    value = {"a": [1.0, {"b": 1.0}]}
    schema = prop({"type": "array", "items": {"type": "integer"}})
    integral(schema, value)
    assert json.dumps(value) == '{"a": [1.0, {"b": 1.0}]}'


BAD: dict[str, Any] = {
    "unknown type": {"properties": {"a": {"type": "text"}}},
    "required is no list": {"required": "a"},
    "enum is no list": {"properties": {"a": {"enum": "x"}}},
    "negative length": {"properties": {"a": {"minLength": -1}}},
    "broken pattern": {"properties": {"a": {"pattern": "("}}},
    "reference elsewhere": {"properties": {"a": {"$ref": "https://example.org/x.json"}}},
    "reference to a file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "reference to nothing": {"properties": {"a": {"$ref": "#/$defs/none"}}},
    "value that JSON has not": {"properties": {"a": {"default": object()}}},
    "NaN": {"properties": {"a": {"minimum": float("nan")}}},
}  # fmt: skip


@pytest.mark.parametrize("schema", BAD.values(), ids=BAD)
def test_a_bad_schema_is_refused_with_the_reason(schema: Any) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        compile_schema("t", closed_schema("t", schema))
    assert "'t'" in caught.value.message and caught.value.next
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"type": ["object"]}, "object", None, [{}]], ids=str
)
def test_arguments_are_always_an_object(schema: Any) -> None:
    with pytest.raises(ToolDefinitionError):
        closed_schema("t", schema)


@pytest.mark.parametrize(
    ("schema", "closed"),
    [({}, True), ({"additionalProperties": True}, False), ({"allOf": []}, False), ({"$ref": "#/$defs/x"}, False)],
    ids=str,
)  # fmt: skip
def test_an_object_is_closed_unless_it_says_otherwise(schema: Any, closed: bool) -> None:
    assert (closed_schema("t", schema).get("additionalProperties") is False) is closed


def test_a_pointer_escapes_its_steps() -> None:
    assert pointer(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"
