"""The sub-agents of one session: who may be started, who works, and how each is found again."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome
from lorimer.core.errors import SessionBusy, StoreError
from lorimer.core.messages import Entry, Kind
from lorimer.core.usage import Usage
from lorimer.core.watch import CallOutput, SubagentBegan, SubagentEnded, Warned
from lorimer.runtime.loop import Run, limit_reached
from lorimer.runtime.subagents import ledger, limits
from lorimer.runtime.subagents.birth import born, has_task, planned, reopened
from lorimer.runtime.subagents.catalogue import Catalogue, read_catalogue
from lorimer.runtime.subagents.child import Child
from lorimer.runtime.subagents.delegate import tools_for
from lorimer.runtime.subagents.handover import CHANNEL, ended_event, said
from lorimer.runtime.subagents.labels import child_id, children_of
from lorimer.runtime.subagents.settings import SubagentSettings
from lorimer.runtime.subagents.tags import Speaker
from lorimer.toolkits.collaboration.report import source_for
from lorimer.tools.dispatch.state import see_through
from lorimer.tools.subagents import (
    SPAWN,
    Assignment,
    KnownAgent,
    SubagentReport,
    SubagentStatus,
)
from lorimer.tools.tool_context import EffectMark, ToolContext, ToolError

if TYPE_CHECKING:
    from lorimer.runtime.session import Session

KEPT_AS = "sub-agents"
"""Their name among the belongings of the session, which ends them."""

_MARKS = {Outcome.UNKNOWN: EffectMark.BEGUN, Outcome.DONE: EffectMark.COMPLETE}


class SubagentHost:
    """A `SubagentPort` for `session`. Kept among its belongings: what runs ends with it (G7)."""

    def __init__(self, session: Session, settings: SubagentSettings) -> None:
        self.session = session
        self.settings = settings
        self.turn = asyncio.Lock()  # one question to a person at a time
        self._catalogue: Catalogue | None = None
        self._working: dict[str, tuple[Child, asyncio.Task[SubagentReport]]] = {}
        self._starting: set[str] = set()
        self._unbilled = Usage()
        self._unheard = True
        self._own: list[str] | None = None
        self._ends: dict[str, SubagentReport] = {}  # until they are put to work again
        self._resting: dict[str, SubagentReport] = {}  # interrupted ones, when last looked at
        self._closing = False

    # --- what there is ---

    @property
    def catalogue(self) -> Catalogue:
        """The definitions, as they were when they were first asked for."""
        if self._catalogue is None:
            self._catalogue = read_catalogue(self.session.agent.workspace, self.settings)
        return self._catalogue

    @property
    def depth(self) -> int:
        return ledger.depth_of(self.session.stored)

    @property
    def at_once(self) -> int:
        """How many work right now, or are about to."""
        return len(self._starting | self._working.keys())

    @property
    def working(self) -> Sequence[str]:
        return tuple(self._working)

    def lineage(self) -> list[SubagentHost]:
        """This one and those above it, the top last."""
        above = self.session.agent.delegated_by
        return [self] if above is None else [self, *above.lineage()]

    def started(self) -> int:
        """How many were started since the session was last asked for something, with all below."""
        since = limits.last_request(self)
        store = self.session.store
        unborn = [child for child in self._starting if not limits.exists(store, child)]
        return limits.started_since(store, self.session.id, since) + len(unborn)

    def agents(self) -> tuple[Sequence[KnownAgent], Sequence[str]]:
        registry = self.session.agent.registry
        deeper = self.depth + 1 < self.settings.max_depth
        found = [
            KnownAgent(
                one.name, one.description, one.source,
                [t.name for t in tools_for(one, registry, may_delegate=deeper).registry], one.model,
            )
            for one in self.catalogue.definitions.values()
        ]  # fmt: skip
        return found, self.catalogue.notices

    @property
    def own(self) -> list[str]:
        """The ids of those that this session has started, oldest first."""
        if self._own is None:
            store, session = self.session.store, self.session.id
            self._own = [c for c, _ in children_of(store, session) if limits.exists(store, c)]
        return self._own

    def children(self) -> Sequence[SubagentReport]:
        return [one for child in self.own if (one := self._report(child)) is not None]

    def unfinished(self) -> Sequence[SubagentReport]:
        found = []
        for child in self.own:
            if child in self._ends:
                continue
            known = None if child in self._working else self._resting.get(child)
            report = known or self._report(child)
            if report is not None and not report.ended:
                found.append(report)
        return found

    def status(self, subagent: str) -> SubagentReport:
        own = self.own
        wanted = subagent.strip()
        found = self._report(wanted) if wanted in own else None
        if found is not None:
            return found
        near = difflib.get_close_matches(wanted, own, n=2) or own[-4:]
        raise ToolError(
            f"This session has started no sub-agent {subagent!r}.",
            next=f"Use one of: {', '.join(near)}." if near else "Start one with spawn_subagent.",
            code="unknown_subagent",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
        )

    def found(self, operation_key: str) -> SubagentReport | None:
        return self._report(child_id(self.session.id, operation_key))

    def _report(self, child: str) -> SubagentReport | None:
        working = self._working.get(child)
        if working is not None:
            return working[0].report()
        known = self._ends.get(child)
        if known is None:
            known = ledger.report(self.session.store, child, self.session.agent.registry)
            if known is not None:
                (self._ends if known.ended else self._resting)[child] = known
        return known

    # --- starting ---

    async def run(self, assignment: Assignment, context: ToolContext) -> SubagentReport:
        context.will_mark()
        child = await self._begin(assignment, context, wait=True)
        return await self._wait_for(child.id, context)

    async def start(self, assignment: Assignment, context: ToolContext) -> SubagentReport:
        child = await self._begin(assignment, context, wait=False)
        return self._report(child.id) or child

    async def _begin(
        self, assignment: Assignment, context: ToolContext, *, wait: bool
    ) -> SubagentReport:
        """The sub-agent of this call: at work, or as it has ended already."""
        child = child_id(self.session.id, context.operation_key)
        known = self._report(child)
        if known is not None and (known.ended or child in self._working):
            return known
        if known is None:
            plan = planned(self, assignment)
            limits.check(self)
            self._starting.add(child)
            try:
                session = await born(self, plan, child, context.call_id, wait=wait)
            finally:
                self._starting.discard(child)
        else:
            session = await self._reopened(child)
            if not has_task(session, session.stored):
                await session.close()
                raise _unborn(child)
        return self._put_to_work(session, context.call_id, announce=not wait)

    async def _reopened(self, child: str) -> Session:
        self._starting.add(child)
        try:
            return await reopened(self, child)
        except SessionBusy as fault:
            raise ToolError(
                f"Another process works on the sub-agent {child}: {fault.message}",
                next="Ask for its status later.",
                code="busy",
                outcome=Outcome.FAILED_BEFORE_EFFECT,
            ) from fault
        finally:
            self._starting.discard(child)

    def _put_to_work(self, session: Session, call_id: str, *, announce: bool) -> SubagentReport:
        facts = ledger.facts_of(session.stored)
        assert facts is not None
        around = self.session.dispatcher.around
        name = str(facts["agent"])

        def doing(words: str) -> None:
            around.tell(CallOutput(call_id, SPAWN, f"{name}: {words}\n"))

        child = Child(
            session, facts, retries=self.settings.retries, on_usage=self.spent, on_doing=doing,
            on_warning=lambda words: around.tell(Warned(f"{name} ({session.id}): {words}")),
        )  # fmt: skip
        task = asyncio.get_running_loop().create_task(self._see_through(child, announce))
        if announce:  # nobody else looks at what it raised
            task.add_done_callback(self._look_at)
        self._working[child.id] = (child, task)
        self._ends.pop(child.id, None)
        self._resting.pop(child.id, None)
        if child.id not in self.own:
            self.own.append(child.id)
        around.tell(SubagentBegan(child.id, name, call_id, facts["assignment"]["task"]))
        return child.report()

    def _look_at(self, task: asyncio.Task[SubagentReport]) -> None:
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self.session.tell(Warned(f"A sub-agent's record could not be written: {fault}"))

    async def _see_through(self, child: Child, announce: bool) -> SubagentReport:
        """Everything of one sub-agent, from here to its end and the end of its session."""
        around = self.session.dispatcher.around
        try:
            report = await child.work()
        finally:
            seen = child.session.conversation  # whatever its end is
            self._carry(child.name, seen.tainted_by, seen.private_from)
            try:
                await child.session.close()
            finally:
                del self._working[child.id]
        around.tell(SubagentEnded(report.id, report.agent, str(report.status), report.usage))
        if announce and not self._closing:
            self._tell(report)
        return report

    def _carry(self, agent: str, tainted_by: Sequence[str], private_from: Sequence[str]) -> None:
        """What a sub-agent has read sticks to the session that started it."""
        tainted = [source_for(agent, tainted_by)] if tainted_by else []
        self.session.conversation.carry(private_from, tainted)

    async def _wait_for(self, child: str, context: ToolContext) -> SubagentReport:
        working = self._working.get(child)
        if working is None:
            found = self._report(child)
            assert found is not None
            return found
        task = working[1]
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            working[0].stop(self.session.cancel_requested or "its call was cancelled")
            await see_through(task)
            end = self._report(child)
            if end is not None:
                context.set_mark(_MARKS.get(end.outcome, EffectMark.NOT_BEGUN))
            raise
        return task.result()

    # --- while they work ---

    async def send(
        self, subagent: str, message: str, context: ToolContext, *, wait: bool
    ) -> SubagentReport:
        context.will_mark()
        known = self.status(subagent)
        entry = self._message(message, context.operation_key)
        working = self._working.get(known.id)
        if working is not None:
            working[0].tell(entry)
            return working[0].report()
        if self.at_once >= self.settings.max_at_once:
            limits.check(self)
        session = await self._reopened(known.id)
        try:
            told = any(
                e.meta.get("operation_key") == context.operation_key
                for e in session.trajectory.entries
            )
            if not told:
                if session.trajectory.open_calls:
                    await session.settle()
                await session.record(entry, "agent")
        except BaseException:
            await session.close()
            raise
        report = self._put_to_work(session, context.call_id, announce=not wait)
        return await self._wait_for(known.id, context) if wait else report

    def _message(self, text: str, operation_key: str) -> Entry:
        seen = self.session.conversation
        meta: dict[str, Any] = {
            "speaker": str(Speaker.MAIN_AGENT), "operation_key": operation_key,
        }  # fmt: skip
        if seen.private_from:
            meta["private_from"] = list(seen.private_from)
        now = self.session.agent.clock.now()
        return Entry(Kind.USER, (said(text, seen.tainted_by),), now, meta=meta)

    async def cancel(self, subagent: str, reason: str) -> SubagentReport:
        known = self.status(subagent)
        working = self._working.get(known.id)
        if working is None:
            return known
        working[0].stop(reason)
        await asyncio.wait((working[1],))
        return working[1].result()

    def spent(self, usage: Usage) -> None:
        """Count what a request of a sub-agent has used against the run that started it, and against
        all above."""
        run = self.session.current
        if run is None:
            self._unbilled += usage
        else:
            run.usage += usage
            run.delegated += usage
            if limit_reached(run, self.session.agent.limits):
                for child, _ in tuple(self._working.values()):
                    child.over_parent_budget()
        above = self.session.agent.delegated_by
        if above is not None:
            above.spent(usage)

    # --- the end, and after it ---

    def loaded(self) -> None:
        """The session was opened again: what its sub-agents have read sticks to it."""
        for report in self.children():
            self._carry(report.agent, report.tainted_by, report.private_from)

    def begin_run(self, run: Run) -> None:
        """A run begins: it pays for what was used since the last one, and hears of those that ended
        while the session was closed."""
        run.usage += self._unbilled
        run.delegated += self._unbilled
        self._unbilled = Usage()
        if self._unheard:
            self._unheard = False
            for one in self._apart():
                if one.ended and not self._is_told(one):
                    self._tell(one)

    async def go_on(self) -> None:
        """Put those to work again that a crash interrupted and nobody waits for."""
        for report in self._apart():
            if report.status is not SubagentStatus.INTERRUPTED:
                continue
            try:
                session = await self._reopened(report.id)
            except (ToolError, StoreError) as fault:
                self.session.tell(Warned(f"{report.id} could not go on: {fault}"))
                continue
            facts = ledger.facts_of(session.stored)
            assert facts is not None
            if has_task(session, session.stored):
                self._put_to_work(session, str(facts["call"]), announce=True)
            else:
                await session.close()

    def _apart(self) -> list[SubagentReport]:
        """Those for whose end nobody waits."""
        return [one for one in self.children() if self._is_apart(one.id)]

    async def settled(self) -> None:
        """Wait until none works any more. Cancellation stops the waiting only."""
        while self._working:
            await asyncio.wait([task for _, task in self._working.values()])

    async def stop(self, reason: str) -> None:
        """Stop those that work, and wait until they have stopped and that is recorded."""
        working = tuple(self._working.values())
        for child, _ in working:
            child.stop(reason)
        if working:
            await asyncio.wait([task for _, task in working])

    async def close(self) -> None:
        """The same, because the session is closed: it is told of it when it is opened again."""
        self._closing = True
        await self.stop("the session that started it was closed")
        self._closing = False

    def _is_apart(self, child: str) -> bool:
        """Whether nobody waits for its end."""
        facts = ledger.facts_of(self.session.store.session(child))
        return facts is not None and facts["wait"] is False

    def _is_told(self, report: SubagentReport) -> bool:
        """Whether its present end was told to the session."""
        told = sum(
            event["channel"] == CHANNEL and event["reply_to"] == report.id
            for entry in self.session.trajectory.entries
            for event in entry.meta.get("events", ())
        )
        record = self.session.store.session(report.id)
        entries = [entry for entry, _ in self.session.store.entries(report.id, record.wire)]
        return bool(told >= ledger.ends(entries))

    def _tell(self, report: SubagentReport) -> None:
        """Let the session know of an end that nobody waited for."""
        around = self.session.dispatcher.around
        self.session.post(ended_event(report, around.clean, around.reveal))


def _unborn(child: str) -> ToolError:
    return ToolError(
        f"The sub-agent {child} was being started when the run was interrupted, and has no task.",
        next="Start another one with the same task.",
        code="interrupted",
        outcome=Outcome.FAILED_BEFORE_EFFECT,
    )
