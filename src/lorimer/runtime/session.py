"""A session: one continuing conversation with one principal, durable.

`send` asks, `resume` goes on where a crash or an error stopped, `cancel` stops. Everything is on
disk before the next thing happens; a session can be opened again by its id, in another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from lorimer.context.trajectory import Trajectory
from lorimer.core.errors import LorimerError, SessionBusy, StoreError, UsageFault
from lorimer.core.ids import new_id
from lorimer.core.messages import Entry, Kind
from lorimer.core.watch import Alert, RunBegan, RunEnded, Warned
from lorimer.models.protocol import Prefix
from lorimer.runtime.alerts import Alerts
from lorimer.runtime.cache_watch import CacheWatch
from lorimer.runtime.conversation import SessionConversation
from lorimer.runtime.foresight import Foresight
from lorimer.runtime.loop import Run, finish, run_loop
from lorimer.runtime.message import Message, message_parts
from lorimer.runtime.recorder import was_left
from lorimer.runtime.requests import Requests
from lorimer.runtime.results import CallReport, RunResult
from lorimer.runtime.surroundings import surroundings_of
from lorimer.store.protocol import (
    AddRendering,
    CallRecord,
    CreateSession,
    Remark,
    SessionLock,
    SessionRecord,
)
from lorimer.tools.dispatch.dispatcher import Dispatcher
from lorimer.tools.dispatch.review import load_rules
from lorimer.tools.dispatch.state import see_through
from lorimer.tools.units.units import Units

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent

T = TypeVar("T")


class Session(Requests):
    """Made by `Agent.session()`. Use as `async with`, or call `close()` at the end."""

    def __init__(self, agent: Agent, session_id: str | None, *, wait_s: float | None) -> None:
        super().__init__(agent, session_id or new_id("s", agent.clock))
        self.watch: Callable[[Any], None] | None = agent.watch
        self.cancel_requested = ""
        self.foresight: Foresight | None = None
        self._wanted_id = session_id
        self._wait_s = wait_s
        self._lock: SessionLock | None = None
        self._units = Units()
        self._running = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._alerts = Alerts(self._alert, agent.thresholds, agent.clock)
        self._observers: list[Callable[[Any], None]] = [self._alerts]
        if agent.telemetry is not None:
            self._observers.append(agent.telemetry.of_session(self._id))
        self._cancelled: asyncio.Future[None]

    @property
    def id(self) -> str:
        return self._id

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._running

    @property
    def entries(self) -> Sequence[Entry]:
        """Everything that happened, in order.

        Raises:
            UsageFault: when the session was never opened.
        """
        if not hasattr(self, "trajectory"):
            raise UsageFault("The session was not opened.", next="await session.open() first.")
        return tuple(self.trajectory.entries)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- opening and closing ---

    async def open(self) -> Self:
        """Take the session for this process and load it. Idempotent.

        Raises:
            SessionBusy: when another process has it. SessionNotFound: when there is none.
        """
        if self._record is not None:
            return self
        stored = self.store.session(self._id) if self._wanted_id is not None else None
        self._lock = await self.store.lock_session(self._id, wait_s=self._wait_s)
        try:
            if stored is None:
                await self._create()
            else:
                await self._load(stored)
        except BaseException:
            self._lock.release()
            self._lock = None
            self._record = None
            raise
        descriptor = getattr(self._lock, "descriptor", None)
        self._units.hold(() if descriptor is None else (descriptor,))
        self.agent.open_sessions.add(self)
        return self

    async def _create(self) -> None:
        agent = self.agent
        specs = agent.registry.specs()
        system = agent.system
        prefix = Prefix(system, tuple(specs), self.model.render_prefix(system, specs))
        record = SessionRecord(
            id=self._id,
            created_at=agent.clock.now(),
            principal=agent.principal.id,
            model=self.model.name,
            wire=self.model.profile.wire,
            system=system,
            tools=[
                spec.to_json() for spec in specs
            ],
            prefix=prefix.rendered,
            meta={
                **agent.meta, "workspace": str(agent.workspace), "mode": agent.policy.mode,
                **self._descent(),
            },
        )  # fmt: skip
        try:
            await self.store.commit(CreateSession(record))
        except asyncio.CancelledError:
            self._wanted_id = self._id  # it is on disk all the same: open it the next time
            raise
        self._wanted_id = self._id
        self._ready(record, prefix, [])

    def _descent(self) -> dict[str, str]:
        """Of a sub-agent's session: whose it is, and the session at the top. What was rejected in
        one session of a lineage is rejected in all of it."""
        parent = self.agent.parent
        if parent is None:
            return {}
        return {"parent": parent, "root": str(self.store.session(parent).meta.get("root", parent))}

    async def _load(self, record: SessionRecord) -> None:
        agent = self.agent
        if record.principal != agent.principal.id:
            raise UsageFault(
                f"Session {self._id} belongs to {record.principal!r}, not to "
                f"{agent.principal.id!r}."
            )
        wire = self.model.profile.wire
        specs = tuple(agent.specs_from(record.tools))
        if record.wire == wire and record.model == self.model.name:
            rendered = record.prefix
        else:
            rendered = self.model.render_prefix(record.system, specs)
        calls = self.store.calls(self._id)
        self._ready(record, Prefix(record.system, specs, rendered), calls)
        form = self.model.profile.rendering
        made = self.trajectory.load(self.store.entries(self._id, form))
        self.cache.load(self.trajectory.entries)
        for entry in self.trajectory.entries:
            self.conversation.feed(entry)
        if made:
            await self.store.commit(
                *(AddRendering(self._id, seq, form, data) for seq, data in made)
            )
        told = {e.meta["corrects"] for e in self.trajectory.entries if "corrects" in e.meta}
        self._left = {
            c.id for c in calls if c.id not in told and (c.late is not None or was_left(c))
        }

    def _ready(self, record: SessionRecord, prefix: Prefix, calls: Sequence[CallRecord]) -> None:
        agent = self.agent
        self._record = record
        self.trajectory = Trajectory(self.model, prefix)
        self.conversation = SessionConversation(agent.registry)
        self.cache = CacheWatch(
            self.model,
            strict=agent.strict_cache,
            redact=agent.secrets.redact,
            tell=self.tell,
            remark=self.remark,
        )
        self._used_ids.update(call.id for call in calls)
        around = surroundings_of(
            agent, record, calls, units=self._units, conversation=self.conversation,
            watch=self.tell, on_late=self._on_late,
        )  # fmt: skip
        if agent.sidecar is not None:
            around.foreseen = self.foresight = Foresight(agent.sidecar, around)
        for fault in load_rules(around):
            self.tell(Warned(fault))
        self.dispatcher = Dispatcher(around)
        self.preparations = []

    async def close(self) -> None:
        """Stop what runs, end the worker processes, free the session. Idempotent.

        Cancellation: it is closed all the same, then `CancelledError` goes on."""
        closing = asyncio.get_running_loop().create_task(self._close())
        try:
            await asyncio.wait((closing,))
        except asyncio.CancelledError:
            await see_through(closing)
            raise
        closing.result()

    async def _close(self) -> None:
        try:
            if self._running:
                await self.cancel("the session was closed")
            if self._record is not None:
                try:
                    await self.dispatcher.around.belongings.close()
                finally:
                    await self.record_late_results()
                    await self.record_remarks()
        finally:
            await self._units.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None
            self._record = None
            self.agent.open_sessions.discard(self)

    # --- running ---

    async def send(
        self, message: Message, *, watch: Callable[[Any], None] | None = None
    ) -> RunResult:
        """Ask, and run until the model answers or the run ends otherwise.

        A run that a crash interrupted is settled first: what it had done is recorded as it is, and
        nothing of it is run again. `watch` sees what happens as it happens.

        Cancellation: running tools are stopped and recorded, then `CancelledError` goes on; the
        session can be used again. (`cancel()` instead ends the run with `stop="cancelled"`.)

        Raises:
            ModelError, StoreError: see `run_loop`. SessionBusy: while another run is going on.
        """
        parts = message_parts(message)

        async def work(run: Run) -> str:
            await self._settle()
            await self._append(Entry(Kind.USER, parts, self._now()), self.agent.principal.id)
            return await run_loop(self, run, self.agent.limits)

        return await self._run(work, watch)

    async def resume(self, *, watch: Callable[[Any], None] | None = None) -> RunResult:
        """Go on with a run that was interrupted: end its calls (each effect once), then continue.

        When there is nothing to go on with, the last answer is returned.
        """

        async def work(run: Run) -> str:
            last = self.trajectory.last
            if last is None or (last.kind is Kind.ASSISTANT and not last.calls):
                run.last_text = "" if last is None else last.text
                return "answered"
            if last.kind is Kind.ASSISTANT:
                states = await self.dispatcher.run(last.calls, self._journal())
                await self.record_results(states)
                run.calls += map(CallReport.of, states)
                if self.dispatcher.cancelled:
                    raise asyncio.CancelledError
                if self.dispatcher.around.halted:
                    return self.dispatcher.around.halted
            return await run_loop(self, run, self.agent.limits)

        return await self._run(work, watch)

    async def rebase(self, reason: str = "rebase") -> None:
        """Take up the agent's present system prompt and tools as the prefix from here on. The
        prompt cache begins anew.

        Raises:
            SessionBusy: while a run is going on. InvalidRequest: when calls are open.
        """
        if self._running:
            raise SessionBusy(f"Session {self._id} is answering.", next="Rebase between runs.")
        await self.open()
        meta = {
            "reason": reason,
            "system": self.agent.system,
            "tools": [spec.to_json() for spec in self.agent.registry.specs()],
        }
        await self.record(Entry(Kind.REBASE, (), self._now(), meta=meta), self.agent.principal.id)

    def expect_break(self, reason: str) -> None:
        """Announce that the next request may break the prompt cache, e.g. for a rebase. Without it
        such a request is warned of, and refused with `strict_cache`.

        Raises:
            UsageFault: when the session was never opened.
        """
        if not hasattr(self, "cache"):
            raise UsageFault("The session was not opened.", next="await session.open() first.")
        self.cache.expect_break(reason)

    def cancel(self, reason: str = "cancelled") -> Awaitable[None]:
        """Stop the run: at once, from any task of the loop. Awaiting what it returns waits until
        everything has stopped and is recorded."""
        if self._running and not self.cancel_requested:
            self.cancel_requested = reason or "cancelled"
            self._cancelled.set_result(None)
            if self._record is not None:
                self.dispatcher.around.cancel(self.cancel_requested)
        return _Wait(self._idle)

    async def _run(
        self, work: Callable[[Run], Coroutine[Any, Any, str]], watch: Callable[[Any], None] | None
    ) -> RunResult:
        if self._running:
            raise SessionBusy(
                f"Session {self._id} is already answering.",
                next="Wait for that answer, or cancel() it.",
            )
        self._running = True
        self._idle.clear()
        self._cancelled = asyncio.get_running_loop().create_future()
        self.cancel_requested = ""
        timer = None
        run = Run()
        before = self.watch
        began, stop, error = False, "", ""
        try:
            await self.open()
            await self.agent.secrets.ready()
            if watch is not None:
                self.watch = watch
            self.tell(RunBegan(self._id, self.model.name, self.model.profile.wire))
            began = True
            self.dispatcher.cancelled = False
            self.dispatcher.around.begin_run()
            self.dispatcher.around.stop_run = self.cancel
            if self.cancel_requested:  # while it was being opened
                self.dispatcher.around.cancel(self.cancel_requested)
            limit = self.agent.limits.max_time_s
            if limit is not None:
                timer = asyncio.get_running_loop().call_later(limit, self.cancel, "max_time")
            try:
                stop = await work(run)
            except asyncio.CancelledError:
                stop = "cancelled"
                with anyio.CancelScope(shield=True):
                    await self._record_cancel(self.cancel_requested or "cancelled")
                raise
            except LorimerError as fault:
                stop, error = "error", type(fault).__name__
                fault.run = finish(self._id, run, "error")
                if not isinstance(fault, StoreError):
                    await self.record_remarks()
                raise
            if self.cancel_requested and stop == self.cancel_requested:
                await self._record_cancel(stop)
                stop = stop if stop == "max_time" else "cancelled"
            return finish(self._id, run, stop)
        finally:
            if timer is not None:
                timer.cancel()
            if began:
                self.tell(RunEnded(self._id, stop or "error", error))
            self.watch = before
            self._running = False
            self._idle.set()

    async def until_cancelled(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`; `None` when the run was cancelled first, and then it was
        stopped."""
        task = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait((task, self._cancelled), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await see_through(task)
            raise
        if task.done():
            return task.result()
        task.cancel()
        await see_through(task)
        return None

    def tell(self, event: Any) -> None:
        if self.watch is not None:
            try:
                self.watch(event)
            except Exception:  # one who watches may not change what happens
                logging.getLogger("lorimer").exception("A watcher raised; it is not told more.")
                self.watch = None
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:
                logging.getLogger("lorimer").exception("An observer raised; it is not told more.")
                self._observers.remove(observer)

    def _alert(self, alert: Alert) -> None:
        self._remarks.append(Remark(self._id, "lorimer", f"alert.{alert.kind}", alert.message))
        self.tell(alert)


class _Wait:
    """Awaitable that may also be left alone."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._event.wait().__await__()
