"""`@tool`: schema from the signature, description from the docstring, and values as they are."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from lorimer.core.errors import ToolDefinitionError
from lorimer.runtime.agent import Agent
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, call
from lorimer.tools.function import tool
from lorimer.tools.tool import Effects, Isolation, Tool, ToolContext

pytestmark = pytest.mark.anyio


def test_signature_and_docstring_make_schema_and_description() -> None:
    @tool(effects="read")
    def find(
        query: Annotated[str, Field(description='e.g. "late"')],
        limit: int = 10,
        sort: Literal["date", "price"] = "date",
        *,
        deep: bool | None = None,
    ) -> str:
        """Find orders.

        Looks in all years.

        Use when: the user asks for an order
            or for several.
        Do not use when: the id is known.
        Cost: one request.

        Args:
            query: not used, the annotation comes first
            limit: how many, e.g. 10

        Returns:
            One line for each order.
        """
        return ""

    schema = find.input_schema
    assert find.name == "find" and find.effects is Effects.READ and find.where is Isolation.THREAD
    assert list(schema["properties"]) == ["query", "limit", "sort", "deep"]
    assert schema["required"] == ["query"] and schema["additionalProperties"] is False
    assert schema["properties"]["query"]["description"] == 'e.g. "late"'
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "default": 10,
        "description": "how many, e.g. 10",
    }
    assert schema["properties"]["sort"]["enum"] == ["date", "price"]
    assert "title" not in str(schema)
    d = find.description
    assert d.what == "Find orders.\n\nLooks in all years."
    assert d.use_when == "the user asks for an order or for several."
    assert (d.not_when, d.cost, d.returns) == (
        "the id is known.",
        "one request.",
        "One line for each order.",
    )


def test_a_property_named_title_keeps_its_name() -> None:
    @tool
    def name_it(title: str, inner: Titled) -> None:
        """Name it."""

    assert set(name_it.input_schema["properties"]) == {"title", "inner"}
    assert "title" in name_it.input_schema["$defs"]["Titled"]["properties"]


class Titled(BaseModel):
    title: str


@dataclass
class Point:
    x: int
    y: int = 0


async def ask(made: Tool, **arguments: Any) -> Any:
    store = open_store(":memory:")
    agent = Agent(
        ScriptedModel([call(made.name, **arguments), "done"]), [made], store=store, mode="trusted"
    )
    result = await agent.run("go")
    store.close()
    return result.calls[0]


async def test_models_and_dataclasses_reach_the_function_as_such() -> None:
    got: list[Any] = []

    @tool(effects="read")
    async def place(
        point: Point, when: date, tags: list[Titled], other: Point | None = None
    ) -> str:
        """Place."""
        got.append((point, when, tags, other))
        return "ok"

    done = await ask(place, point={"x": 1.0}, when="2026-11-30", tags=[{"title": "a"}])
    assert done.code == "", done.result
    assert got == [(Point(1, 0), date(2026, 11, 30), [Titled(title="a")], None)]
    assert type(got[0][0].x) is int


@pytest.mark.parametrize("isolation", ["loop", "thread", "process"])
@pytest.mark.parametrize("effects", ["read", "write"])
async def test_a_value_that_the_types_refuse_is_a_fault_of_the_call(
    isolation: str, effects: str
) -> None:
    async def remember_async(when: date) -> str:
        """Remember."""
        return "ok"

    def remember(when: date) -> str:
        """Remember."""
        return "ok"

    function = remember_async if isolation == "loop" else remember
    made = tool(effects=effects, isolation=isolation, name="remember")(function)
    done = await ask(made, when="2026-02-30")
    assert done.code == "value" and done.outcome == "not_started", done.result
    assert "/when" in done.result and "2026-02-30" in done.result


async def test_defaults_are_the_functions_own() -> None:
    got: list[Any] = []

    @tool(effects="read")
    async def take(
        a: int = Field(default=5, description="a"),
        b: Annotated[int, Field(ge=0)] = 6,
        c: list[int] = Field(default_factory=list),  # noqa: B008
        d: Any = ...,
    ) -> str:
        """Take."""
        got.append((a, b, c))
        return "ok"

    assert (await ask(take, d=1)).code == ""
    assert got == [(5, 6, [])]


async def test_a_parameter_with_an_alias_gets_its_value() -> None:
    got: list[Any] = []

    @tool(effects="read")
    async def take(the_class: Annotated[str, Field(alias="class")]) -> str:
        """Take."""
        got.append(the_class)
        return "ok"

    assert list(take.input_schema["properties"]) == ["class"]
    assert (await ask(take, **{"class": "x"})).code == ""
    assert got == ["x"]


@pytest.mark.parametrize(
    "name", ["json", "copy", "schema", "dict", "validate", "construct", "model_name"]
)
async def test_parameter_names_that_pydantic_has_too(name: str) -> None:
    scope: dict[str, Any] = {"got": []}
    exec(
        f"async def take({name}: int) -> str:\n    'Take.'\n    got.append({name})\n    return 'ok'",
        scope,
    )
    assert (await ask(tool(effects="read")(scope["take"]), **{name: 3})).code == ""
    assert scope["got"] == [3]


async def test_context_is_filled_and_not_in_the_schema() -> None:
    got: list[Any] = []

    @tool(effects="read")
    async def where(context: ToolContext, n: int) -> str:
        """Where."""
        got.append((context.session, n))
        return "ok"

    assert list(where.input_schema["properties"]) == ["n"]
    assert (await ask(where, n=2)).code == ""
    assert got[0][1] == 2


def test_partials_and_callable_objects_are_tools_too() -> None:
    def power(base: int, exponent: int) -> int:
        """Raise to a power."""
        return base**exponent

    class Caller:
        """Call."""

        async def __call__(self, n: int) -> int:
            """Call it."""
            return n

    square = tool(name="square", description="Square.", effects="read")(
        functools.partial(power, exponent=2)
    )
    assert "base" in square.input_schema["properties"] and square(base=3) == 9
    made = tool(name="caller", effects="read")(Caller())
    assert list(made.input_schema["properties"]) == ["n"] and made.where is Isolation.LOOP


REFUSED: dict[str, Any] = {
    "positional only": lambda: eval("lambda a, /: 1"),
    "args": lambda: (lambda *a: 1),
    "keywords": lambda: (lambda **k: 1),
    "not a function": lambda: 5,
    "an unknown name in an annotation": lambda: _unknown,
    "underscore parameter": lambda: (lambda _a: 1),
}  # fmt: skip


def _unknown(a: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Unknown."""


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_tool_is_refused_with_the_reason(make: Any) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(name="t", description="d")(make())
    assert caught.value.message


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "a\n", "é", "x" * 65, "a.b"])
def test_a_name_that_no_provider_takes_is_refused(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="not usable"):
        Tool.from_schema(name, "d", {}, print)


@pytest.mark.parametrize(
    "options",
    [{"effects": "destroy"}, {"category": "x"}, {"trust": "x"}, {"isolation": "x"}, {"idempotency": "x"}, {"colour": 1},
     {"idempotency": "queryable"}, {"timeout_s": 0}, {"timeout_s": -1}, {"examples": [{"b": 1}]}],
    ids=str,
)  # fmt: skip
def test_a_wrong_option_is_refused(options: Any) -> None:
    with pytest.raises(ToolDefinitionError) as caught:

        @tool(**options)
        def take(a: int = 1) -> None:
            """Take."""

    assert caught.value.next
