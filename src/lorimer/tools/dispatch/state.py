"""What the stations share: the state of one call, and the surroundings of a session's calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio

from lorimer.core.approvals import Bound
from lorimer.core.breaker import BreakerRule
from lorimer.core.calls import Diff, Outcome, Refusal, ToolCall
from lorimer.core.clock import Clock, SystemClock
from lorimer.core.decisions import (
    Approver,
    Assessor,
    CallFacts,
    Conversation,
    Decision,
    Guard,
    NoConversation,
    Opinion,
    Policy,
    Reviewer,
    Sidecar,
)
from lorimer.core.messages import ImagePart, ResultPart, TextPart
from lorimer.core.secrets import SecretPort
from lorimer.core.watch import Watcher, redacted_event
from lorimer.store.protocol import CallRecord, Change, SpendApproval, Store
from lorimer.tools.belongings import Belongings
from lorimer.tools.registry import Registry
from lorimer.tools.tool import FileViews, ForgetfulViews, Principal, Tool, ToolContext

if TYPE_CHECKING:
    from lorimer.tools.dispatch.inner import InnerCalls
    from lorimer.tools.subagents import SubagentPort
    from lorimer.tools.units.units import Stop, Units

T = TypeVar("T")
Content = tuple[TextPart | ImagePart, ...]


@dataclass(slots=True)
class CallState:
    """One call on its way through the stations.

    Attributes:
        journal: its line in the journal as it stood when the call came in.
        value: the arguments in use, as JSON; `diffs` lists every change from what was written.
        said: goes with an error, under labels of its own.
        notes: told to the model below the content.
        result_value: what the function returned, as JSON or text.
        alone: it is the only call of its turn.
        stop: stops its function, once that runs.
        inner_of: the call that made this one; a script may fail and repeat as it likes, so nothing
            is counted of these.
        pending: changes that are committed together with the end of the call.
        left: whether its function would not stop and still runs.
        held: an earlier call of the turn that waits for an approval: this one may ask, not run.
        token: the confirmation token that came with the arguments.
        bound: what its approval or token is bound to; looked at again right before the start.
        spends: changes that use them up, in the commit that starts the call.
    """

    call: ToolCall
    journal: CallRecord | None = None
    tool: Tool | None = None
    value: Any = None
    diffs: list[Diff] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: CallFacts | None = None
    decision: Decision | None = None
    approved_by: str = ""
    operation_key: str = ""
    occurrence: int = 0
    arguments_digest: str = ""
    context: ToolContext | None = None
    started: bool = False
    started_at: datetime | None = None
    duration_s: float | None = None
    content: Content = ()
    said: Content = ()
    result_value: Any = None
    refusal: Refusal | None = None
    outcome: Outcome = Outcome.NOT_STARTED
    result: ResultPart | None = None
    replayed: bool = False
    left: bool = False
    alone: bool = False
    held: str = ""
    token: str = ""
    bound: Bound | None = None
    spends: list[SpendApproval] = field(default_factory=list)
    stop: Stop | None = None
    inner_of: str = ""
    pending: list[Change] = field(default_factory=list)
    locks: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def code(self) -> str:
        return self.refusal.code if self.refusal is not None else ""


class Foreseen(Protocol):
    """Opinions of the sidecar on calls that the model has written, asked for while it goes on."""

    def take(
        self, call: ToolCall, facts: CallFacts, decision: Decision
    ) -> asyncio.Task[Opinion] | None:
        """The opinion on this call, when it was asked for on exactly these facts."""
        ...


class CallCancelled(Exception):
    """The run was cancelled before the call had started."""


@dataclass(slots=True)
class Surroundings:
    """What the calls of one session have around them. The model can write none of it.

    Attributes:
        counts: started calls by `limit_key`, for tools with limits.
        occurrences: started calls by (tool, digest of the arguments).
        failures: failures in a row by tool, in this run.
        same: by (tool, arguments): digest of the last result, and how often in a row it came.
        roots: folders besides the workspace that the session may work in.
        assessor: works out what a call would touch; `guards`: voices beside the policy.
        conversation: what the session has seen, as far as decisions need it.
        grace_s: how long a stopped function may take to end before it is left behind.
        approval_timeout_s: how long a question stays open; `None`: 10 minutes when somebody is
            asked in this process, a day when the request waits in the store.
        approval_wait_s: how long to wait for an answer from elsewhere when nobody is asked here.
        sidecar, reviewer: models that judge calls; `foreseen`: opinions asked for while the model
            still wrote.
        root: the session at the top of the lineage; this one when it is empty.
        sandbox: gives the level that commands run in here; may start a program to find out.
        ask_ahead: keeps the requests of the calls that come later in the turn; once.
        one_at_a_time: held while requests are looked up and kept, and while somebody is asked
            whether to go on at all.
        claims: requests that calls of this turn have taken, by id; `awaited`: those that a call
            waits for right now.
        stop_run: stops the whole run, with a reason; set by the session.
        halted: why the run must stop after this turn.
        on_late: told when a function that was left behind ends after all.
        belongings: what tools keep alive between calls; closed with the session.
        inner: calls that this call makes itself; the dispatcher puts it here.
        on_inner: told the result of each inner call: the model may never read it, but decisions
            about what comes after rest on it.
        redact: takes secrets out of everything that is told or written down.
        secrets: puts their values in place of handles, just before a function runs.
    """

    session: str
    principal: Principal
    store: Store
    registry: Registry
    policy: Policy
    units: Units
    workspace: Path
    scratch: Path | None = None
    readable: Callable[[], tuple[Path, ...]] = tuple
    roots: tuple[Path, ...] = ()
    assessor: Assessor | None = None
    guards: tuple[Guard, ...] = ()
    conversation: Conversation = field(default_factory=NoConversation)
    approver: Approver | None = None
    approval_timeout_s: float | None = None
    approval_wait_s: float = 0.0
    sidecar: Sidecar | None = None
    reviewer: Reviewer | None = None
    foreseen: Foreseen | None = None
    root: str = ""
    sandbox: Callable[[], str] | None = None
    clock: Clock = field(default_factory=SystemClock)
    views: FileViews = field(default_factory=ForgetfulViews)
    watch: Watcher | None = None
    allow_repair: bool = False
    concurrency: int = 8
    stop_on_failed_write: bool = True
    grace_s: float = 2.0
    repeat_limit: int = 3
    rejection_limit: int = 3
    claims: dict[str, str] = field(default_factory=dict)
    ask_ahead: Callable[[], Awaitable[None]] | None = None
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    halted: str = ""
    counts: Counter[Any] = field(default_factory=Counter)
    occurrences: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    same: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    unloaded: Mapping[str, str] = field(default_factory=dict)
    on_late: Callable[[CallState, Outcome, str], Awaitable[None]] | None = None
    belongings: Belongings = field(default_factory=Belongings)
    inner: Callable[[CallState], InnerCalls] | None = None
    on_inner: Callable[[ResultPart], None] | None = None

    reveal: Callable[[str], tuple[str, list[str]]] | None = None
    """Makes what is hidden in outside text visible; what was found, in words."""

    stops: set[Stop] = field(default_factory=set)
    cancel_reason: str = ""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    redact: Callable[[str], str] | None = None
    secrets: SecretPort | None = None

    subagents: SubagentPort | None = None
    """The agents that this session may start; `None`: none."""

    awaited: set[str] = field(default_factory=set)
    stop_run: Callable[[str], Any] | None = None

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop running functions, start no more, until `begin_run`."""
        self.cancel_reason = self.cancel_reason or reason
        self.cancelled.set()
        for stop in tuple(self.stops):
            stop.set(reason)

    def begin_run(self) -> None:
        """A new run: what was counted per run starts again."""
        self.cancel_reason = ""
        self.cancelled.clear()
        self.failures.clear()
        self.halted = ""

    async def unless_cancelled(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is stopped when the run is cancelled.

        Raises:
            CallCancelled: when it was.
        """
        task = asyncio.get_running_loop().create_task(work)
        waiter = asyncio.get_running_loop().create_task(self.cancelled.wait())
        try:
            await asyncio.wait((task, waiter), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise CallCancelled
        finally:
            waiter.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    @property
    def lineage(self) -> str:
        """The session that rejections and the breaker are kept for."""
        return self.root or self.session

    @property
    def breaker(self) -> BreakerRule:
        return BreakerRule(in_a_row=self.rejection_limit)

    def tell(self, event: Any) -> None:
        if self.watch is not None:
            self.watch(event if self.redact is None else redacted_event(event, self.redact))

    def clean(self, text: str) -> str:
        """`text` without secrets: for everything that is told or written down."""
        return text if self.redact is None else self.redact(text)


async def see_through(task: asyncio.Task[Any]) -> None:
    """Wait until `task` has ended, whatever it ends with and however often we are cancelled."""
    with anyio.CancelScope(shield=True):
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def own_copy(value: Any) -> Any:
    """`value`, arguments as JSON, for code that may change what it gets: the record keeps what the
    model wrote (G4)."""
    if type(value) is dict:
        return {k: own_copy(v) if type(v) in (dict, list) else v for k, v in value.items()}
    if type(value) is list:
        return [own_copy(v) if type(v) in (dict, list) else v for v in value]
    return value


def limit_key(
    tool: str, counter: str | None, value: str | None
) -> tuple[str, str | None, str | None]:
    """The key of `Surroundings.counts`: a tool, or a tool with one value of a counter argument."""
    return (tool, counter, value)


Station = Callable[[CallState, Surroundings], Awaitable[Refusal | None]]
"""A station looks at one call and lets it pass (`None`) or refuses it."""
