"""What the bar knows: plain records, gathered by code. Texts in them may come from anywhere; they
are made safe where they are written (`escape`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lorimer.context.status.todo import TodoItem


@dataclass(frozen=True, slots=True)
class ClockFact:
    """`now` and `began` (of the session) in UTC; `idle_s`: seconds of silence before the last
    message came, `None` before the second one."""

    now: datetime
    began: datetime
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class CounterFact:
    """A limit of a tool and what is used of it. With `argument` the limit is one for each value of
    that argument; `value` is one of them, `None` stands for every value not seen yet."""

    tool: str
    used: int
    limit: int
    argument: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class RepeatFact:
    """A call that gave the same result `times` times in a row; after `limit` it is refused."""

    tool: str
    arguments: str
    times: int
    limit: int


@dataclass(frozen=True, slots=True)
class ErrorFact:
    """The last failure of a tool: type, message, arguments as written, what to do next, outcome,
    and where it failed (the last lines of its stack, if the tool told them)."""

    tool: str
    type: str
    message: str
    arguments: str
    next: str = ""
    outcome: str = ""
    stack: str = ""


@dataclass(frozen=True, slots=True)
class TaskFact:
    """Something that runs, or has ended and nobody has looked.

    Attributes:
        kind: `shell` or `subagent`.
        words: what it does (a command, a task).
        state: `running`, or how it ended, in words of the harness.
        running_s: seconds since its start.
        progress: how far it is, in words of the harness; may change at every look.
        printed_bytes: what it has printed so far; `None` where nothing is printed.
    """

    id: str
    kind: str
    words: str
    state: str
    running_s: float | None = None
    progress: str = ""
    printed_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SystemFact:
    """`cwd` is the folder where the next command starts (it follows `cd`)."""

    cwd: str
    os: str
    shell: str
    python: str


@dataclass(frozen=True, slots=True)
class ToolsFact:
    """Names of tools that can be called now, and of those that can be loaded."""

    loaded: Sequence[str]
    available: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FillFact:
    """Tokens of the context so far, and how many the model can read."""

    tokens: int
    window: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the bar may show; what is `None` or empty is not shown. `more_counters`: how many
    there are besides `counters`."""

    clock: ClockFact | None = None
    counters: Sequence[CounterFact] = ()
    more_counters: int = 0
    repeats: Sequence[RepeatFact] = ()
    errors: Sequence[ErrorFact] = ()
    todo: Sequence[TodoItem] = ()
    tasks: Sequence[TaskFact] = ()
    system: SystemFact | None = None
    tools: ToolsFact | None = None
    skills: Sequence[str] = ()
    fill: FillFact | None = None
