"""G4. A tool gets what the model wrote, or nothing: raw bytes, value and each change are recorded."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import Field

from lorimer.core.calls import Diff, Effects, Outcome
from lorimer.core.canonical import canonical_json
from lorimer.models.pairs import PairJoiner
from lorimer.runtime.agent import Agent
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, reply
from lorimer.tools.dispatch.parse import Fault, read
from lorimer.tools.dispatch.repair import readings
from lorimer.tools.function import tool
from lorimer.tools.tool import Normaliser, Tool, ToolContext
from wire.answers import Say, SayCall
from wire.kit import WIRES, adapter
from wire.server import WireServer

OPEN = {"type": "object", "additionalProperties": True}


def recorder(
    got: list[Any],
    schema: Mapping[str, Any] = OPEN,
    effects: Effects = Effects.WRITE,
    **options: Any,
) -> Tool:
    async def take(**arguments: Any) -> str:
        got.append(arguments)
        return "taken"

    return Tool.from_schema("take", "Take.", schema, take, effects=effects, **options)


class Taken:
    """What became of one call: what the tool got, what the model was told, what is in the journal."""

    def __init__(self, got: list[Any], report: Any, line: Any, entry_raw: str) -> None:
        self.got = got
        self.report = report
        self.line = line
        self.entry_raw = entry_raw

    @property
    def diffs(self) -> list[tuple[str, Any, Any]]:
        return [(d["path"], d["written"], d["used"]) for d in self.line.diffs]

    @property
    def rules(self) -> list[str]:
        return [d["rule"] for d in self.line.diffs]


def take(
    raw: str, schema: Mapping[str, Any] = OPEN, *, made: Tool | None = None, got: list[Any] | None = None,
    allow_repair: bool = False, chunk: int | None = None, **options: Any,
) -> Taken:  # fmt: skip
    """Run one call whose arguments are the text `raw`, through a whole agent."""
    got = [] if got is None else got
    used = made or recorder(got, schema, **options)
    item = reply("", {"name": used.name, "arguments": raw})

    async def run() -> Taken:
        store = open_store(":memory:")
        a = Agent(ScriptedModel([item, "ok"], chunk=chunk), [used], store=store, mode="trusted",
                  allow_repair=allow_repair)  # fmt: skip
        try:
            async with a.session() as session:
                result = await session.send("go")
                (line,) = store.calls(session.id)
                entry = next(e for e, _ in store.entries(session.id, "scripted") if e.calls)
            return Taken(got, result.calls[0], line, entry.calls[0].raw)
        finally:
            store.close()

    return asyncio.run(run())


# --- what JSON can say ----------------------------------------------------------------------------

characters = st.characters(exclude_categories=["Cs"])
spiky = st.sampled_from(
    ["\x00", "“curly” ‘quotes’", "é", "e\u0301", "\r\n", "\r", "\ufeff", "\u2028", "\\", '"', "/",
     "\x7f", "😀", "\U0010ffff", "\ufffe", "'", "`", "\\u0041", "\\n", "{}", "</tool_call>", "ﬁ", "Ⅷ", "٣"]
)  # fmt: skip
texts = st.one_of(spiky, st.text(characters, max_size=12), st.lists(spiky, max_size=4).map("".join))
numbers = st.one_of(
    st.integers(),
    st.sampled_from([2**53 + 1, 2**63, -(2**64), 10**40, 10**308 + 1]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(
    st.one_of(texts, st.just("a")).filter(lambda k: k != "self"), values, min_size=1, max_size=4
)


def same(one: Any, other: Any) -> bool:
    """Equal, with types and the sign of zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


written = st.builds(
    lambda value, escaped, indent, spaced: (
        value,
        json.dumps(value, ensure_ascii=escaped, indent=indent, separators=spaced),
    ),
    objects,
    st.booleans(),
    st.sampled_from([None, 1, "\t"]),
    st.sampled_from([None, (",", ":"), (" , ", "\r\n:  ")]),
)


@given(written, st.sampled_from([None, 1, 2, 3]))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@example(({"a": "\x00"}, '{"a": "\\u0000"}'), 1)
@example(({"a": "\x7f\x00"}, '{"a": "\x7f\\u0000"}'), None)
@example(({"a": -0.0}, '{"a": -0.0}'), None)
def test_the_tool_gets_what_the_text_says(case: tuple[Any, str], chunk: int | None) -> None:
    value, raw = case
    taken = take(raw, chunk=chunk)
    assert taken.report.outcome is Outcome.DONE, taken.report.result
    assert same(taken.got, [value])
    assert canonical_json(taken.line.value) == canonical_json(value)
    assert taken.line.raw == raw and taken.entry_raw == raw and taken.report.raw == raw
    assert taken.line.diffs == []
    assert taken.report.result == "taken", "nothing was changed, so there is nothing to say"


NUMBERS = {
    "-0": (0, [("/n", "-0", 0)]),
    "-0.0": (-0.0, []),
    "-0e5": (-0.0, []),
    "1.0": (1.0, []),
    "1E2": (100.0, []),
    "123456789012345678901234567890": (123456789012345678901234567890, []),
    "0.1": (0.1, []),
    "0.10": (0.1, []),
    "1.000000000000000000001": (1.0, [("/n", "1.000000000000000000001", 1.0)]),
    "12345678901234567890.0": (1.2345678901234567e19, [("/n", "12345678901234567890.0", 1.2345678901234567e19)]),
    "1e-400": (0.0, [("/n", "1e-400", 0.0)]),
    "-1e-99999999999999999999": (-0.0, [("/n", "-1e-99999999999999999999", -0.0)]),
    "0e999999999999999999999": (0.0, []),
}  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_kept_or_its_change_is_recorded(text: str) -> None:
    value, diffs = NUMBERS[text]
    taken = take('{"n": ' + text + "}")
    assert same(taken.got, [{"n": value}])
    assert taken.diffs == diffs
    if diffs:
        assert "notes:" in taken.report.result and text in taken.report.result


def test_each_changed_number_is_named_by_its_place() -> None:
    taken = take('{"a": [1, {"b/c": -0}], "d": 0.1000000000000000000001, "e": "-0"}')
    assert taken.diffs == [("/a/1/b~1c", "-0", 0), ("/d", "0.1000000000000000000001", 0.1)]


# --- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "1e400": ('{"n": 1e400}', "not_json", "1e400"),
    "NaN": ('{"n": NaN}', "not_json", "NaN"),
    "Infinity": ('{"n": -Infinity}', "not_json", "-Infinity"),
    "a key twice": ('{"n": 1, "n": 2}', "not_json", "'n'"),
    "a key twice, escaped": ('{"n": 1, "\\u006e": 2}', "not_json", "'n'"),
    "a key twice, inside": ('{"a": [{"b": {"k": 1, "k": 1}}]}', "not_json", "'k'"),
    "half a pair, escaped": ('{"a": "\\ud800"}', "not_json", "surrogate"),
    "half a pair in a key": ('{"\\udfff": 1}', "not_json", "surrogate"),
    "pairs the wrong way round": ('{"a": "\\udc00\\ud800"}', "not_json", "surrogate"),
    "trailing text": ('{"a": 1} and more', "not_json", "and more"),
    "two objects": ('{"a": 1}{"a": 2}', "not_json", "{"),
    "text before": ('Sure: {"a": 1}', "not_json", "Sure"),
    "a code fence": ('```json\n{"a": 1}\n```', "not_json", "```"),
    "single quotes": ("{'a': 1}", "not_json", "'a'"),
    "a trailing comma": ('{"a": 1,}', "not_json", ""),
    "a comment": ('{"a": 1 /* one */}', "not_json", "one"),
    "Python words": ('{"a": True}', "not_json", "True"),
    "a line break in a string": ('{"a": "x\ny"}', "not_json", ""),
    "a bare NUL": ('{"a": "\x00"}', "not_json", ""),
    "a byte order mark": ('\ufeff{"a": 1}', "not_json", ""),
    "curly quotes as quotes": ("{“a”: 1}", "not_json", "“a”"),
    "leading zero": ('{"a": 01}', "not_json", ""),
    "plus sign": ('{"a": +1}', "not_json", ""),
    "hexadecimal": ('{"a": 0x1}', "not_json", ""),
    "digits of another script": ('{"a": ٣}', "not_json", ""),
    "no-break space": ('{"a":\u00a01}', "not_json", ""),
    "cut in a string": ('{"a": "x', "truncated", ""),
    "cut after a colon": ('{"a": ', "truncated", ""),
    "cut before the end": ('{"a": 1', "truncated", ""),
    "too deep": ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "not_json", "deep"),
    "deeper than the limit": ('{"a": ' + "[" * 200 + "]" * 200 + "}", "not_json", "128"),
    "too many digits": ('{"a": ' + "1" * 5000 + "}", "not_json", "number"),
    "a list": ("[1]", "not_object", "array"),
    "a text": ('"{}"', "not_object", "string"),
    "an object in a text": ('"{\\"a\\": 1}"', "not_object", "string"),
    "null": ("null", "not_object", "null"),
    "a no-break space for nothing": ("\u00a0", "not_json", ""),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_no_json_object_is_refused_and_kept_as_it_was_written(
    case: tuple[str, str, str],
) -> None:
    raw, code, words = case
    taken = take(raw)
    assert taken.got == []
    assert taken.report.code == code, taken.report.result
    assert taken.report.outcome is Outcome.NOT_STARTED
    assert words in json.loads(taken.report.result)["message"]
    assert taken.line.raw == raw and taken.entry_raw == raw


def test_the_deepest_arguments_that_pass_reach_the_tool() -> None:
    raw = '{"a": ' + "[" * 127 + "]" * 127 + "}"
    assert take(raw).got == [json.loads(raw)]


@pytest.mark.parametrize("raw", ["", " ", "\n\t "])
def test_no_arguments_at_all_are_none_and_recorded(raw: str) -> None:
    taken = take(raw)
    assert taken.got == [{}]
    assert taken.line.raw == raw
    assert taken.rules == ["no arguments were written"]


@given(st.text(st.characters(), max_size=40))
@settings(max_examples=400, deadline=None)
@example('{"a": "\ud800"}')
def test_reading_any_text_gives_what_the_standard_reader_gives_or_a_fault(raw: str) -> None:
    try:
        value, _ = read(raw)
    except Fault:
        return
    if raw.strip(" \t\n\r"):
        assert same(value, json.loads(raw))


# --- nothing is coerced ---------------------------------------------------------------------------


def one(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"n": {"type": kind, **more}}, "required": ["n"]}


COERCIONS = {
    "a text for an integer": ("integer", '"2"', "without quotes"),
    "a text for a number": ("number", '"2.5"', "without quotes"),
    "a text for a boolean": ("boolean", '"true"', "without quotes"),
    "true for an integer": ("integer", "true", "not boolean"),
    "false for a number": ("number", "false", "not boolean"),
    "one for a boolean": ("boolean", "1", "not integer"),
    "a fraction for an integer": ("integer", "1.5", "not number"),
    "a number for a text": ("string", "2", "not integer"),
    "null for a text": ("string", "null", "not null"),
    "an empty text for null": ("null", '""', "not string"),
    "a list in a text": ("array", '"[1]"', "not string"),
    "an object in a text": ("object", '"{}"', "not string"),
    "one value for a list": ("array", '"x"', "not string"),
    "null for an integer": ("integer", "null", "not null"),
}


@pytest.mark.parametrize("case", COERCIONS.values(), ids=COERCIONS)
@pytest.mark.parametrize("effects", Effects)
def test_nothing_is_coerced(case: tuple[str, str, str], effects: Effects) -> None:
    kind, text, words = case
    taken = take('{"n": ' + text + "}", one(kind), effects=effects)
    assert taken.got == []
    assert taken.report.code == "type"
    (problem,) = json.loads(taken.report.result)["problems"]
    assert problem["path"] == "/n" and problem["given"] == json.loads(text)
    assert words in problem["expected"]


def typed(annotation: Any) -> tuple[Tool, list[Any]]:
    got: list[Any] = []

    async def take(n: Any) -> str:
        """Take n."""
        got.append(n)
        return "taken"

    take.__annotations__["n"] = annotation
    return tool(effects="write")(take), got


@pytest.mark.parametrize(
    "annotation",
    [int, int | None, list[int], dict[str, int], Annotated[int, Field(ge=0)], float, bool, list[int | None]],
    ids=str,
)  # fmt: skip
def test_a_typed_function_coerces_nothing_either(annotation: Any) -> None:
    made, got = typed(annotation)
    for text in ('"2"', '["2"]', '{"k": "2"}', '"true"'):
        taken = take('{"n": ' + text + "}", made=made, got=got)
        assert got == [] and taken.report.outcome is Outcome.NOT_STARTED


INTEGERS = {
    "plain": ({"type": "integer"}, "N", ""),
    "or null": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "N", ""),
    "type list": ({"type": ["integer", "null"]}, "N", ""),
    "reference": ({"$ref": "#/$defs/n"}, "N", ""),
    "all of": ({"allOf": [{"type": "integer"}, {"minimum": 0}]}, "N", ""),
    "items": ({"type": "array", "items": {"type": "integer"}}, "[7, N]", "/1"),
    "first items": ({"type": "array", "prefixItems": [{}, {"type": "integer"}]}, "[7, N]", "/1"),
    "inner property": ({"type": "object", "properties": {"k": {"type": "integer"}}}, '{"k": N}', "/k"),
    "any property": ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"k": N}', "/k"),
    "pattern": ({"type": "object", "patternProperties": {"^k": {"type": "integer"}}}, '{"k": N}', "/k"),
}  # fmt: skip


def integer_schema(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"n": schema}, "$defs": {"n": {"type": "integer"}}}


@pytest.mark.parametrize("case", INTEGERS.values(), ids=INTEGERS)
@pytest.mark.parametrize("text", ["1.0", "-3.0", "1e2", "1e30", "-0.0"])
def test_a_whole_number_with_a_fraction_of_zero_is_an_integer_and_recorded(
    case: tuple[Any, str, str], text: str
) -> None:
    schema, form, at = case
    if text.startswith("-3") and "allOf" in schema:
        return
    raw = '{"n": ' + form.replace("N", text) + "}"
    taken = take(raw, integer_schema(schema))
    whole = int(Decimal(text))
    assert taken.diffs == [(f"/n{at}", float(text), whole)], taken.report.result
    (value,) = taken.got
    for step in filter(None, f"/n{at}".split("/")):
        value = value[int(step)] if isinstance(value, list) else value[step]
    assert type(value) is int and value == whole
    assert "notes:" in taken.report.result


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "number"}, {"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"type": ["integer", "number"]}],
    ids=str,
)  # fmt: skip
def test_a_number_stays_as_it_was_written_where_a_number_is_asked_for(schema: Any) -> None:
    taken = take('{"n": 1.0}', integer_schema(schema))
    assert same(taken.got, [{"n": 1.0}]) and taken.line.diffs == []


def test_a_typed_optional_integer_gets_an_integer() -> None:
    made, got = typed(int | None)
    taken = take('{"n": 1.0}', made=made, got=got)
    assert same(got, [1]) and taken.diffs == [("/n", 1.0, 1)]


# --- declared normalisers -------------------------------------------------------------------------


def _upper(value: Any) -> Any:
    return value.upper()


def _sort_in_place(value: Any) -> Any:
    value.sort()
    return value


NORMALISED: dict[str, tuple[Any, Any, str, Any, Any]] = {
    "a text": ({"type": "string"}, _upper, '"ab"', "ab", "AB"),
    "in place": ({"type": "array"}, _sort_in_place, "[2,1]", [2, 1], [1, 2]),
    "only the type": ({"type": "array"}, lambda v: [float(x) for x in v], "[1]", [1], [1.0]),
    "true to one": ({"type": "integer"}, lambda v: 1 if v is True else v, "true", True, 1),
    "text to integer": ({"type": "integer"}, lambda v: int(v), '"٣"', "٣", 3),
}


@pytest.mark.parametrize("case", NORMALISED.values(), ids=NORMALISED)
def test_a_declared_normaliser_is_recorded_and_told(case: Any) -> None:
    schema, apply, text, before, after = case
    normaliser = Normaliser("n", "tidy", apply, "n is tidied")
    taken = take('{"n": ' + text + "}", integer_schema(schema), normalisers=(normaliser,))
    assert same(taken.got, [{"n": after}])
    assert taken.diffs == [("/n", before, after)]
    assert taken.rules == ["declared: tidy"]
    assert "declared: tidy" in taken.report.result
    assert taken.line.raw == '{"n": ' + text + "}"


def test_a_normaliser_that_changes_nothing_is_not_mentioned() -> None:
    normaliser = Normaliser("n", "tidy", _upper, "n in capitals")
    taken = take('{"n": "AB"}', normalisers=(normaliser,))
    assert taken.line.diffs == [] and taken.report.result == "taken"


@pytest.mark.parametrize("schema", [{"type": "string"}, {}], ids=str)
def test_a_normaliser_that_cannot_take_the_value_is_the_fault_of_the_call(schema: Any) -> None:
    normaliser = Normaliser("n", "tidy", _upper, "n in capitals")
    taken = take('{"n": 5}', integer_schema(schema), normalisers=(normaliser,))
    assert taken.got == [] and taken.report.code in ("type", "value")
    assert json.loads(taken.report.result)["problems"][0]["given"] == 5


# --- repair ---------------------------------------------------------------------------------------

REPAIRED = {
    "a fence": ('```json\n{"a": 1}\n```', {"a": 1}, "code fence"),
    "a trailing comma": ('{"a": [1, 2,], }', {"a": [1, 2]}, "trailing comma"),
    "a comma in a text stays": ('{"a": "x,]", "b": ",}",}', {"a": "x,]", "b": ",}"}, "trailing comma"),
    "a missing bracket": ('{"a": [1, {"b": "}"}', {"a": [1, {"b": "}"}]}, "closing brackets"),
    "single quotes": ("{'a': 'it', 'b': True, 'c': None}", {"a": "it", "b": True, "c": None}, "Python literal"),
}  # fmt: skip


@pytest.mark.parametrize("case", REPAIRED.values(), ids=REPAIRED)
def test_a_repair_needs_leave_and_is_recorded_and_told(case: tuple[str, Any, str]) -> None:
    raw, value, words = case
    assert take(raw).got == []
    taken = take(raw, allow_repair=True)
    assert same(taken.got, [value])
    assert taken.diffs == [("", raw, value)]
    assert words in taken.rules[0] and words in taken.report.result
    assert taken.line.raw == raw


NOT_REPAIRED = [
    '{"a": "x', '{"a": ', '{"a": 1', '{"a": 1e400,}', '{"a": NaN,}', '{"a": 1, "a": 2,}', "{'a': 1, 'a': 2}",
    '{"a": "\\ud800",}', "{'a': '\\ud800'}", "{1: 2}", "{'a': (1, 2)}", "{'a': {1, 2}}", "{'a': b'x'}", "{'a': 1j}",
    "{'a': __import__('os')}", "{'a': 1e400}", '{"a": "C:\\dir"}', "{'a': '\\d'}", "{'a': ...}", "I call it.",
    "{'a': " + "[" * 3000 + "]" * 3000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("raw", NOT_REPAIRED, ids=lambda raw: raw[:30])
def test_what_cannot_be_known_is_never_repaired(raw: str) -> None:
    taken = take(raw, allow_repair=True)
    if raw == '{"a": 1':  # one missing bracket behind a whole value: nothing else can be meant
        assert taken.got == [{"a": 1}]
    else:
        assert taken.got == [], taken.line.diffs
        assert taken.report.code in ("not_json", "truncated", "ambiguous", "not_object")


def test_two_readings_are_ambiguous() -> None:
    raw = "{'a': 'x,]',}"
    assert len(readings(raw, lambda text: read(text)[0])) == 1
    fenced = '```\n{"a": 1,}\n```'
    assert len(readings(fenced, lambda text: read(text)[0])) == 1


@given(st.text("{}[]\",: '\\ntruefals12", max_size=24))
@settings(max_examples=400, deadline=None)
def test_a_repair_is_json_by_the_same_rules(raw: str) -> None:
    for value, how in readings(raw, lambda text: read(text)[0]):
        assert how
        assert same(read(json.dumps(value, ensure_ascii=False))[0], value)


# --- the tool cannot change the record ------------------------------------------------------------


@pytest.mark.parametrize("effects", Effects)
def test_a_tool_that_changes_its_arguments_does_not_change_the_record(effects: Effects) -> None:
    async def spoil(items: list[int], inner: dict[str, Any]) -> str:
        items.append(99)
        inner.clear()
        return "spoilt"

    schema = {
        "type": "object",
        "properties": {"items": {"type": "array"}, "inner": {"type": "object"}},
    }
    made = Tool.from_schema("spoil", "Spoil.", schema, spoil, effects=effects)
    taken = take('{"items": [1], "inner": {"k": [2]}}', made=made)
    assert taken.line.value == {"items": [1], "inner": {"k": [2]}} == taken.report.arguments


def test_a_check_that_changes_the_arguments_does_not_change_the_call() -> None:
    def spoil(arguments: Mapping[str, Any], context: ToolContext) -> None:
        arguments["items"].append(99)

    taken = take('{"items": [1]}', checks=(spoil,))
    assert taken.got == [{"items": [1]}]


# --- every way of running gets the same -----------------------------------------------------------


def repeat_back(**arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=True)


async def repeat_back_async(**arguments: Any) -> str:
    return repeat_back(**arguments)


@given(st.lists(written, min_size=12, max_size=12))
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
def test_worker_process_thread_and_loop_get_identical_values(
    cases: list[tuple[Any, str]],
) -> None:
    ways = {
        "in_process": Tool.from_schema("in_process", "d", OPEN, repeat_back, isolation="process"),
        "in_thread": Tool.from_schema("in_thread", "d", OPEN, repeat_back, isolation="thread"),
        "in_loop": Tool.from_schema("in_loop", "d", OPEN, repeat_back_async),
    }

    async def run() -> None:
        items: list[Any] = [[{"name": name, "arguments": raw} for name in ways] for _, raw in cases]
        store = open_store(":memory:")
        a = Agent(ScriptedModel([*items, "ok"]), ways.values(), store=store, mode="trusted")
        result = await a.run("go")
        store.close()
        results = [call.result for call in result.calls]
        for at, (value, _) in enumerate(cases):
            got = results[3 * at : 3 * at + 3]
            assert got == [json.dumps(value)] * 3

    asyncio.run(run())


# --- over the wires -------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("piece", [1, 2, 3, 7])
async def test_over_every_wire_the_raw_text_arrives_byte_for_byte(
    wire: str, piece: int, tmp_path: Path
) -> None:
    raws = [
        '{"a": "\\ud83d\\ude00 \\u0000 \\"“é” e\u0301\\r\\n"}',
        '{ "n" : [1.0, -0.0, 1E+2, 123456789012345678901234567890, 0.10] }',
        '{"b":{"c":null,"d":[true,false,{}]},"z":"😀"}',
    ]
    got: list[Any] = []
    calls = tuple(SayCall(f"toolu_{n}", "take", raw) for n, raw in enumerate(raws))
    with WireServer(wire, [Say("", calls, piece=piece), Say("done")]) as server:
        store = open_store(tmp_path / "store.db")
        a = Agent(adapter(wire, server.base_url), [recorder(got)], store=store, mode="trusted")
        async with a.session() as session:
            result = await session.send("go")
            lines = store.calls(session.id)
        await a.model.aclose()
        store.close()
        assert server.faults == []
    assert [c.raw for c in result.calls] == raws == [line.raw for line in lines]
    assert same(got, [json.loads(raw) for raw in raws])


@given(st.text(max_size=20), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_characters_split_over_two_escapes_are_joined(text: str, piece: int) -> None:
    halves = json.loads(json.dumps(text))
    units = halves.encode("utf-16-le", "surrogatepass")
    split = [units[at : at + 2 * piece].decode("utf-16-le", "surrogatepass")
             for at in range(0, len(units), 2 * piece)]  # fmt: skip
    joiner = PairJoiner()
    assert "".join(map(joiner.feed, split)) == text
    joiner.end()


def test_a_long_change_is_told_in_few_words() -> None:
    assert len(str(Diff("", "x" * 100_000, {"a": "y" * 100_000}, "repaired"))) < 600
