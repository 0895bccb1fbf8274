"""What a tool is: its declaration, and the context its function may see."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lorimer.core.calls import Effects, Idempotency, Refusal
from lorimer.core.canonical import digest
from lorimer.core.decisions import Traits
from lorimer.core.errors import ToolDefinitionError
from lorimer.core.specs import ToolSpec
from lorimer.core.trust import Trust
from lorimer.tools.tool_context import (
    CallTool,
    EffectMark,
    FileViews,
    ForgetfulViews,
    InnerEnd,
    Principal,
    ToolContext,
    ToolError,
)

__all__ = [
    "NOT_FOUND", "Budget", "CallTool", "Category", "Check", "Description", "EffectMark",
    "FileViews", "FindOutcome", "Finding", "ForgetfulViews", "InnerEnd", "Isolation", "Limit",
    "Normaliser", "Preview", "Principal", "Tool", "ToolContext", "ToolError", "Verify",
]  # fmt: skip

NAME_PATTERN = re.compile(r"^[a-zA-Z][a-zA-Z0-9_]{0,63}$")
BY_NAME: Any = None
"""Of an option: not declared. `sinks` and `path_arguments` are then guessed by the names of the
arguments; `trust` is the usual one."""


class Category(StrEnum):
    """What a tool is for: who starts it, and what it acts on."""

    PERCEPTION = "perception"
    EXECUTION = "execution"
    COLLABORATION = "collaboration"
    COMMUNICATION = "communication"
    TRIGGER = "trigger"


class Isolation(StrEnum):
    """Where the function runs. `AUTO`: async functions in the loop, sync reads in a thread, sync
    functions with effects in a worker process that can be killed (G7)."""

    AUTO = "auto"
    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a result enters the context; what is over it goes to a blob, with a preview."""

    lines: int = 200
    characters: int = 10_000
    head_lines: int = 50
    tail_lines: int = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a post-check noticed: part of the result, never an exception."""

    message: str
    severity: str = "warning"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` calls per session; with `counter`, per value of that argument."""

    count: int
    counter: str | None = None


Check = Callable[[Mapping[str, Any], ToolContext], "Refusal | Awaitable[Refusal | None] | None"]
Verify = Callable[
    [Mapping[str, Any], Any, ToolContext], "Sequence[Finding] | Awaitable[Sequence[Finding]]"
]
FindOutcome = Callable[[str, ToolContext], Any]
"""`find_outcome(operation_key, context)`: the result of a call that may have run, `NOT_FOUND` when
it surely did not, or raises when the far side cannot say."""


Preview = Callable[[Mapping[str, Any], ToolContext], "str | Awaitable[str | None] | None"]


class _NotFound:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NOT_FOUND"

    def __reduce__(self) -> str:
        return "NOT_FOUND"


NOT_FOUND = _NotFound()


@dataclass(frozen=True, slots=True)
class Normaliser:
    """A declared repair of an argument. `apply(value)` gives the value to use; each change is
    recorded and told to the model. `doc` is put into the description."""

    argument: str
    name: str
    apply: Callable[[Any], Any]
    doc: str


@dataclass(frozen=True, slots=True)
class Description:
    """The five labelled parts of a description, each short. Only `what` is required here; `tools
    lint` asks for the rest."""

    what: str
    use_when: str = ""
    not_when: str = ""
    cost: str = ""
    returns: str = ""

    def text(self) -> str:
        lines = [self.what.strip()]
        for label, value in (
            ("Use when", self.use_when),
            ("Do not use when", self.not_when),
            ("Cost", self.cost),
            ("Returns", self.returns),
        ):
            if value:
                lines.append(f"{label}: {value.strip()}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A tool: what the model sees, what may be done with it, and the function behind it.

    `function` takes the arguments as keywords (and a `ToolContext`, when `context_parameter` names
    the parameter for it). It is sync, async, or an async generator whose last item is the result
    and whose earlier items are progress. It returns text, parts (`TextPart`, `ImagePart`, lists of
    them) or anything that JSON can hold.

    Attributes:
        idempotency: what recovery may do; `None` means `natural` for reads, `none` otherwise;
            `recovery` is what that comes to.
        timeout_s: seconds a call may run, from start to result.
        resources: from the arguments, keys of what the call touches; calls that share a key run one
            after another, also across sessions and processes.
        group: toolkit or server the tool belongs to.
        where: where the function runs, `AUTO` worked out.
        path_arguments, host_arguments, command_argument, sinks, outbound, private, memory,
            confirm, runs_code, confined, secrets: what decisions about a call rest on; see
            `lorimer.core.decisions.Traits`. Where a tool with effects says nothing of `sinks` or
            `path_arguments` (`None`), they are guessed by name (`lorimer.tools.guess`); `()` means
            that there are none.
        guessed: what was not declared and taken to be, by option: `{"sinks": ("to",)}`.
        server: the MCP server it comes from.
        cwd_of: from the session, the folder that relative paths in its arguments start from, where
            that is not the workspace; a folder inside the session's roots.
        preview: from arguments and context, a picture of what a call would change (a diff), for
            whoever is asked; it changes nothing itself, and gives `None` when it has none.
        calls_tools: it calls other tools by `ToolContext.call_tool`, and has no effects but theirs.
        delegates: it starts or steers another agent, and has no effects but those of that agent's
            calls, which are decided one by one. Several of a turn run together.
        low_value: its results are worth little once they were used (a listing, a search page): they
            are the first to leave the context.
    """

    name: str
    description: Description
    input_schema: Mapping[str, Any]
    function: Callable[..., Any]
    examples: tuple[Mapping[str, Any], ...] = ()
    output_schema: Mapping[str, Any] | None = None
    category: Category = Category.EXECUTION
    effects: Effects = Effects.WRITE
    idempotency: Idempotency | None = None
    timeout_s: float | None = 120.0
    budget: Budget = field(default_factory=Budget)
    limits: tuple[Limit, ...] = ()
    resources: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    checks: tuple[Check, ...] = ()
    normalisers: tuple[Normaliser, ...] = ()
    verify: Verify | None = None
    find_outcome: FindOutcome | None = None
    trust: Trust = BY_NAME
    isolation: Isolation = Isolation.AUTO
    context_parameter: str | None = None
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    path_arguments: tuple[str, ...] = BY_NAME
    host_arguments: tuple[str, ...] = ()
    command_argument: str = ""
    sinks: tuple[str, ...] = BY_NAME
    outbound: bool = False
    private: bool = False
    memory: bool = False
    confirm: bool = False
    runs_code: bool = False
    confined: bool = False
    secrets: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    max_attempts: int = 3
    group: str = ""
    server: str = ""
    cwd_of: Callable[[ToolContext], str | None] | None = None
    calls_tools: bool = False
    delegates: bool = False
    preview: Preview | None = None
    low_value: bool = False
    spec: ToolSpec = field(init=False)
    where: Isolation = field(init=False)
    recovery: Idempotency = field(init=False)
    guessed: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)
    traits: Traits = field(init=False, repr=False)
    validator: Any = field(init=False, repr=False)
    output_validator: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from lorimer.tools.schema import closed_schema, compile_schema, problems

        if not isinstance(self.name, str) or not NAME_PATTERN.fullmatch(self.name):
            raise ToolDefinitionError(
                f"Tool name {self.name!r} is not usable.",
                next="Use a letter, then up to 63 letters, digits or underscores.",
            )
        if not callable(self.function):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: function {self.function!r} cannot be called.",
                next="Pass a function.",
            )
        if self.idempotency is Idempotency.QUERYABLE and self.find_outcome is None:
            raise ToolDefinitionError(
                f"Tool {self.name!r} says it is queryable but has no find_outcome.",
                next="Pass find_outcome=function(operation_key, context).",
            )
        if isinstance(self.description, str):
            object.__setattr__(self, "description", Description(self.description))
        limit: Any = self.timeout_s
        is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if limit is not None and not (is_number and limit > 0):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: timeout_s is {self.timeout_s!r}.",
                next="Use seconds above 0, or None for no limit.",
            )
        schema = closed_schema(self.name, self.input_schema)
        if self.confirm:
            schema = _with_token(self.name, schema)
        put = object.__setattr__
        put(self, "input_schema", schema)
        put(self, "validator", compile_schema(self.name, schema))
        put(self, "output_validator", None if self.output_schema is None
            else compile_schema(self.name, self.output_schema, what="output schema"))  # fmt: skip
        for number, example in enumerate(self.examples, 1):
            for _, problem in problems(schema, self.validator, dict(example)):
                raise ToolDefinitionError(
                    f"Tool {self.name!r}: example {number} does not fit its own schema at "
                    f"{problem.path or 'its top'}: expected {problem.expected}.",
                    next="Correct the example, or the schema.",
                )
        text = self.description.text()
        if self.confirm:
            text += f"\nNote: {_TWO_CALLS}"
        for normaliser in self.normalisers:
            text += f"\nNote: {normaliser.doc}"
        put(self, "where", _where(self))
        put(self, "recovery", self.idempotency or (
            Idempotency.NATURAL if self.effects is Effects.READ else Idempotency.NONE))  # fmt: skip
        put(self, "spec", ToolSpec(self.name, text, schema, self.examples))
        put(self, "guessed", _guess(self))
        put(self, "traits", _traits(self))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function itself, without any station; for code that is not a model."""
        return self.function(*args, **keywords)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str | Description,
        input_schema: Mapping[str, Any],
        function: Callable[..., Any],
        **options: Any,
    ) -> Tool:
        """A tool from a JSON Schema (2020-12); `function` takes the properties as keywords.

        Raises:
            ToolDefinitionError: when the schema is not valid or not that of an object.
        """
        if isinstance(description, str):
            description = Description(description)
        return cls(name, description, input_schema, function, **options)

    @classmethod
    def from_function(cls, function: Callable[..., Any], **options: Any) -> Tool:
        """A tool from a typed function; see `lorimer.tool`."""
        from lorimer.tools.function import tool

        return tool(**options)(function)


TOKEN = "confirmation_token"
"""The argument that tools with `confirm` have besides their own."""
_TWO_CALLS = (
    "it takes two calls. The first, without confirmation_token, only shows what would happen and "
    "gives a token; the second, with the same arguments and the token, does it."
)


def _with_token(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    if TOKEN in properties:
        raise ToolDefinitionError(
            f"Tool {name!r} has an argument {TOKEN!r}; with confirm=True lorimer adds it.",
            next="Leave it out, or give it another name.",
        )
    added = {"type": "string", "description": "The token that the first call gave."}
    return {**schema, "properties": {**properties, TOKEN: added}}


def _guess(tool: Tool) -> dict[str, tuple[str, ...]]:
    """Fill in what the author did not declare; what was guessed, by option."""
    from lorimer.tools.guess import guess_paths, guess_sinks

    guessed: dict[str, tuple[str, ...]] = {}
    if tool.trust is None:
        object.__setattr__(tool, "trust", Trust.USER_DATA)
        guessed["trust"] = (str(Trust.USER_DATA),)
    acts = tool.effects is not Effects.READ and not tool.calls_tools
    for option, guess in (("path_arguments", guess_paths), ("sinks", guess_sinks)):
        if getattr(tool, option) is None:
            looks = acts or (option == "path_arguments" and not tool.calls_tools)
            found = guess(tool.input_schema) if looks else ()
            object.__setattr__(tool, option, found)
            if found:
                guessed[option] = found
    return guessed


def _traits(tool: Tool) -> Traits:
    known = tool.input_schema.get("properties", {})
    named = (*tool.path_arguments, *tool.host_arguments, *tool.sinks, *tool.targets)
    for name in (*named, *filter(None, (tool.command_argument,))):
        if name not in known:
            raise ToolDefinitionError(
                f"Tool {tool.name!r} declares {name!r}, which is none of its arguments.",
                next=f"Its arguments are: {', '.join(known) or 'none'}.",
            )
    told = json.dumps(
        [tool.name, tool.spec.description, tool.input_schema, str(tool.effects)],
        sort_keys=True, default=repr,
    )  # fmt: skip
    return Traits(
        path_arguments=tuple(tool.path_arguments),
        host_arguments=tuple(tool.host_arguments),
        command_argument=tool.command_argument,
        sinks=tuple(tool.sinks),
        outbound=tool.outbound,
        private=tool.private,
        external=tool.trust is Trust.EXTERNAL,
        memory=tool.memory,
        confirm=tool.confirm,
        server=tool.server,
        definition=digest(told.encode()),
        runs_code=tool.runs_code,
        confined=tool.confined,
        secrets=tool.secrets,
        targets=tuple(tool.targets),
    )


def _where(tool: Tool) -> Isolation:
    if tool.isolation is not Isolation.AUTO:
        return tool.isolation
    if is_async(tool.function):
        return Isolation.LOOP
    return Isolation.THREAD if tool.effects is Effects.READ else Isolation.PROCESS


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives something to await or to iterate asynchronously."""
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
