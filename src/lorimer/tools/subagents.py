"""Sub-agents as tools see them: the port that a session gives its tools, and the records of it.

A sub-agent is a session of its own with a task of its own; what it does is in its own trajectory.
Whoever started it gets one JSON value back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from lorimer.core.calls import Outcome
from lorimer.core.usage import Usage

if TYPE_CHECKING:
    from lorimer.tools.tool_context import ToolContext

SPAWN, SEND = "spawn_subagent", "send_message_to_subagent"
CANCEL, STATUS, LIST = "cancel_subagent", "get_subagent_status", "list_agents"
NAMES = (SPAWN, SEND, CANCEL, STATUS, LIST)
"""The names of the tools; sessions find their sub-agents again by the calls of the first."""


class Handover(StrEnum):
    """What a sub-agent is told of what came before.

    `MINIMAL`: the task, its inputs by name, the form of the answer. `DISTILLED`: also what one more
    model request over the caller's own conversation holds to be needed. `INHERIT`: the whole
    conversation of the caller, byte for byte, so that it is read from the same prompt cache.
    """

    MINIMAL = "minimal"
    DISTILLED = "distilled"
    INHERIT = "inherit"


class SubagentStatus(StrEnum):
    """Where a sub-agent stands. `INTERRUPTED`: its process ended under it; it can go on."""

    RUNNING = "running"
    DONE = "done"
    WRONG_OUTPUT = "wrong_output"
    LOOP = "loop"
    OVER_BUDGET = "over_budget"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


DEFAULT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "evidence": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "evidence"],
    "additionalProperties": False,
}
"""The form of an answer when the call gives none; `evidence`: where it was found."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task for one sub-agent.

    Attributes:
        agent: name of a definition (`list_agents`).
        inputs: paths, or ids of earlier calls whose results are handed on.
        output_schema: JSON Schema of the answer.
        max_steps: fewer model requests than the settings allow; `None`: as many.
    """

    task: str
    agent: str = "general"
    inputs: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_SCHEMA)
    handover: Handover = Handover.MINIMAL
    max_steps: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.task, "agent": self.agent, "inputs": list(self.inputs),
            "output_schema": dict(self.output_schema), "handover": str(self.handover),
            "max_steps": self.max_steps,
        }  # fmt: skip

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Assignment:
        return Assignment(
            record["task"], record["agent"], tuple(record["inputs"]), record["output_schema"],
            Handover(record["handover"]), record["max_steps"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """How a sub-agent stands, or how it ended.

    Attributes:
        id: of its session: `lorimer sessions show ID` shows its trajectory.
        value: its answer, which fits the schema of its task; of `DONE` only.
        message, next: of every other end: what happened, and what to do; lorimer's own words.
        said: of such an end, what may hold words of the sub-agent: what the fault said.
        outcome: what is true of the effects of all its calls.
        tainted_by: sources of outside content that it has read; `private_from`: tools whose private
            results it has read. Who reads its answer has read them, too.
        steps: its model requests so far; `doing`: its last call, in words.
        notes: what was dropped or left out on the way to it.
    """

    id: str
    agent: str
    status: SubagentStatus
    value: Any = None
    message: str = ""
    next: str = ""
    outcome: Outcome = Outcome.DONE
    tainted_by: Sequence[str] = ()
    private_from: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    doing: str = ""
    notes: Sequence[str] = ()
    said: str = ""

    @property
    def ended(self) -> bool:
        return self.status not in (SubagentStatus.RUNNING, SubagentStatus.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """A definition, for those who choose one. `tools` are those it would get here."""

    name: str
    description: str
    source: str
    tools: Sequence[str]
    model: str


class SubagentPort(Protocol):
    """The sub-agents of one session. Whatever cannot be done is a `ToolError` with its own code."""

    async def run(self, assignment: Assignment, context: ToolContext) -> SubagentReport:
        """Start one and wait for its end. The same operation key goes on with the same sub-agent.

        Cancellation: it is stopped and that is recorded, before the cancellation goes on.
        """
        ...

    async def start(self, assignment: Assignment, context: ToolContext) -> SubagentReport:
        """Start one; it is on disk on return. Its end arrives as an event."""
        ...

    async def send(
        self, subagent: str, message: str, context: ToolContext, *, wait: bool
    ) -> SubagentReport:
        """Say something to one. One that works reads it before its next step; one that has ended
        goes on with it, and with `wait` its end is waited for."""
        ...

    async def cancel(self, subagent: str, reason: str) -> SubagentReport:
        """Stop one, and wait until it has stopped and that is recorded."""
        ...

    def status(self, subagent: str) -> SubagentReport: ...

    def children(self) -> Sequence[SubagentReport]:
        """Those that this session has started, oldest first."""
        ...

    def unfinished(self) -> Sequence[SubagentReport]:
        """Those of them that have not ended, as far as is known without looking again: it costs the
        same however long they have worked."""
        ...

    def agents(self) -> tuple[Sequence[KnownAgent], Sequence[str]]:
        """The definitions there are, and what was noticed while they were read."""
        ...

    def found(self, operation_key: str) -> SubagentReport | None:
        """What became of the one that a call with this key started; `None`: there is none."""
        ...
