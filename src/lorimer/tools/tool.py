"""What a tool is: its declaration, and the context its function may see."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lorimer.core.calls import Effects, Idempotency, Outcome, Refusal
from lorimer.core.canonical import digest
from lorimer.core.clock import Clock, SystemClock
from lorimer.core.decisions import Traits
from lorimer.core.errors import LorimerError, ToolDefinitionError
from lorimer.core.specs import ToolSpec
from lorimer.core.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME_PATTERN = re.compile(r"^[a-zA-Z][a-zA-Z0-9_]{0,63}$")


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


class EffectMark(StrEnum):
    """How far a running call has come with its effect, as far as the tool has said."""

    NOT_MARKED = "not_marked"
    NOT_BEGUN = "not_begun"
    BEGUN = "begun"
    COMPLETE = "complete"


class ToolError(LorimerError):
    """A tool raises this to fail with a message the model can act on.

    Args:
        message: what was wrong, with the value.
        next: one concrete step for the model.
        outcome: what is true of the effect. `None` lets lorimer work it out: before any effect for
            reads; for tools with effects from the marks of `ToolContext.effect`, else `unknown`.
        retryable: whether a corrected call makes sense.
        code: the error code the model sees.
    """

    def __init__(
        self,
        message: str,
        *,
        next: str = "",
        outcome: Outcome | None = None,
        retryable: bool = True,
        code: str = "tool_error",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, next=next)
        self.outcome = outcome
        self.retryable = retryable
        self.code = code
        self.details = {str(key): _json_or_repr(value) for key, value in (details or {}).items()}


def _json_or_repr(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a session acts. Set by whoever opens the session, never by the model."""

    id: str
    roles: frozenset[str] = frozenset()


class FileViews(Protocol):
    """What this session has seen of files: to refuse an edit of a file that changed since."""

    def seen(self, path: str) -> str | None:
        """The content hash of `path` when this session last read or wrote it."""
        ...

    def remember(self, path: str, content_hash: str) -> None: ...


class ForgetfulViews:
    """`FileViews` in memory; a session gives tools one that it keeps."""

    def __init__(self, views: Mapping[str, str] | None = None) -> None:
        self.views = dict(views or {})

    def seen(self, path: str) -> str | None:
        return self.views.get(path)

    def remember(self, path: str, content_hash: str) -> None:
        self.views[path] = content_hash


@dataclass(slots=True)
class ToolContext:
    """What a tool's function may know of where it runs; the model can write none of it.

    A function gets it by a parameter annotated `ToolContext`; that parameter is not in the schema.

    Attributes:
        operation_key: stable key of this one effect: (session, tool, arguments, occurrence). Hand
            it to the far side as its idempotency key (G2).
        workspace: the folder the session works in; relative paths start here.
        scratch: a folder outside the workspace for large outputs.
        deadline: on `clock.monotonic()`, when the call will be stopped; `None` without a limit.
        views: what the session has seen of files.
        on_output: called with each piece of output as it comes, for people who watch.
    """

    session: str
    call_id: str
    principal: Principal
    operation_key: str
    workspace: Path
    scratch: Path | None = None
    clock: Clock = field(default_factory=SystemClock)
    deadline: float | None = None
    views: FileViews = field(default_factory=ForgetfulViews)
    on_output: Callable[[str], None] | None = None
    mark: EffectMark = EffectMark.NOT_MARKED
    on_mark: Callable[[EffectMark], None] | None = None

    @contextmanager
    def effect(self) -> Iterator[None]:
        """Wrap exactly the lines that change the world.

        A call that ends before them ends `failed_before_effect`, one that fails after them
        `failed_after_effect`, and one that is stopped inside them `unknown`.
        """
        self.set_mark(EffectMark.BEGUN)
        yield
        self.set_mark(EffectMark.COMPLETE)

    def will_mark(self) -> None:
        """Say that this function uses `effect()`: until then nothing has happened."""
        if self.mark is EffectMark.NOT_MARKED:
            self.set_mark(EffectMark.NOT_BEGUN)

    def set_mark(self, mark: EffectMark) -> None:
        self.mark = mark
        if self.on_mark is not None:
            self.on_mark(mark)


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
        path_arguments, host_arguments, command_argument, sinks, outbound, private, memory, confirm:
            what decisions about a call rest on; see `lorimer.core.decisions.Traits`.
        server: the MCP server it comes from.
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
    trust: Trust = Trust.USER_DATA
    isolation: Isolation = Isolation.AUTO
    context_parameter: str | None = None
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    path_arguments: tuple[str, ...] = ()
    host_arguments: tuple[str, ...] = ()
    command_argument: str = ""
    sinks: tuple[str, ...] = ()
    outbound: bool = False
    private: bool = False
    memory: bool = False
    confirm: bool = False
    max_attempts: int = 3
    group: str = ""
    server: str = ""
    spec: ToolSpec = field(init=False)
    where: Isolation = field(init=False)
    recovery: Idempotency = field(init=False)
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
        for normaliser in self.normalisers:
            text += f"\nNote: {normaliser.doc}"
        put(self, "where", _where(self))
        put(self, "recovery", self.idempotency or (
            Idempotency.NATURAL if self.effects is Effects.READ else Idempotency.NONE))  # fmt: skip
        put(self, "spec", ToolSpec(self.name, text, schema, self.examples))
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


def _traits(tool: Tool) -> Traits:
    known = tool.input_schema.get("properties", {})
    named = (*tool.path_arguments, *tool.host_arguments, *tool.sinks)
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
