"""A session: one continuing conversation with one principal, durable.

`send` asks, `resume` goes on where a crash or an error stopped, `cancel` stops. Everything is on
disk before the next thing happens; a session can be opened again by its id, in another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from lorimer.context.events import Event
from lorimer.core.errors import LorimerError, SessionBusy, StoreError, UsageFault
from lorimer.core.ids import new_id
from lorimer.core.messages import Entry, Kind
from lorimer.core.watch import Alert, RunBegan, RunEnded
from lorimer.models.protocol import Prefix
from lorimer.runtime.alerts import Alerts
from lorimer.runtime.compaction_report import Report
from lorimer.runtime.events import Mailbox
from lorimer.runtime.foresight import Foresight
from lorimer.runtime.loop import Run, finish, run_loop
from lorimer.runtime.message import Message, message_parts
from lorimer.runtime.opening import attach, left_of, load_entries, new_record
from lorimer.runtime.prompt import kept, prompt_of, stored_prefix
from lorimer.runtime.requests import Requests
from lorimer.runtime.results import CallReport, RunResult
from lorimer.store.protocol import (
    CallRecord,
    CreateSession,
    Remark,
    SessionLock,
    SessionRecord,
)
from lorimer.tools.dispatch.state import see_through
from lorimer.tools.units.units import Units

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.answers import SessionAnswers
    from lorimer.runtime.compaction import SessionCompaction
    from lorimer.runtime.subagents.host import SubagentHost
    from lorimer.runtime.tokens import SessionTokens

T = TypeVar("T")


class Session(Requests):
    """Made by `Agent.session()`. Use as `async with`, or call `close()` at the end."""

    compaction: SessionCompaction
    tokens: SessionTokens

    def __init__(
        self, agent: Agent, session_id: str | None, *, wait_s: float | None, new: bool = False
    ) -> None:
        super().__init__(agent, session_id or new_id("s", agent.clock))
        self.watch: Callable[[Any], None] | None = agent.watch
        self.cancel_requested = ""
        self.foresight: Foresight | None = None
        self.answers: SessionAnswers | None = None
        self.mailbox = Mailbox(self)
        self.subagents: SubagentHost | None = None
        self.current: Run | None = None
        self._wanted_id = None if new else session_id
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
    def stored(self) -> SessionRecord:
        """The fixed facts of the session.

        Raises:
            UsageFault: when it is not open.
        """
        if self._record is None:
            raise UsageFault("The session is not open.", next="await session.open() first.")
        return self._record

    @property
    def began(self) -> datetime:
        """When it was made.

        Raises:
            UsageFault: when it is not open.
        """
        if self._record is None:
            raise UsageFault("The session is not open.", next="await session.open() first.")
        return self._record.created_at

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
        record, prefix = new_record(self)
        try:
            await self.store.commit(CreateSession(record))
        except asyncio.CancelledError:
            self._wanted_id = self._id  # it is on disk all the same: open it the next time
            raise
        self._wanted_id = self._id
        self._ready(record, prefix, [])

    async def _load(self, record: SessionRecord) -> None:
        agent = self.agent
        if record.principal != agent.principal.id:
            raise UsageFault(
                f"Session {self._id} belongs to {record.principal!r}, not to "
                f"{agent.principal.id!r}."
            )
        prefix = stored_prefix(agent, record, agent.specs_from(record.tools))
        calls = self.store.calls(self._id)
        self._ready(record, prefix, calls)
        await load_entries(self, record, prefix)
        self._used_ids.update(  # of a copy: no calls of its own
            call.id for entry in self.trajectory.entries for call in entry.calls
        )
        self._left = left_of(self.trajectory.entries, calls)

    def _ready(self, record: SessionRecord, prefix: Prefix, calls: Sequence[CallRecord]) -> None:
        self._record = record
        self._used_ids.update(call.id for call in calls)
        attach(self, record, prefix, calls, units=self._units, on_late=self._on_late)

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
                    self.tokens.close()
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

    async def send_batch(
        self, messages: Sequence[str], *, watch: Callable[[Any], None] | None = None
    ) -> RunResult:
        """Say several things at once: the model reads them as one batch of marked events, with
        whatever else has arrived. Otherwise like `send`; one message alone is sent by it.

        Raises:
            UsageFault: when there are none, or one is empty or no text.
        """
        for message in messages:
            if not isinstance(message, str):
                raise UsageFault(
                    f"A batch is made of texts, not {type(message).__name__}.",
                    next="Use send() for a message with pictures or files.",
                )
            message_parts(message)
        if not messages or isinstance(messages, str):
            raise UsageFault("There are no messages.", next="Give a list of texts.")
        if len(messages) == 1:
            return await self.send(messages[0], watch=watch)

        async def work(run: Run) -> str:
            await self._settle()
            for message in messages:
                self.post(Event.of_user(message))
            while self.mailbox.waiting:
                await self.mailbox.before_request()
            return await run_loop(self, run, self.agent.limits)

        return await self._run(work, watch)

    def post(self, event: Event) -> None:
        """Let the model know of `event` before its next request: the next one of the run that is
        going on, or that of the next `send` or `resume`. May be called from any thread."""
        self.mailbox.post(event)

    async def resume(self, *, watch: Callable[[Any], None] | None = None) -> RunResult:
        """Go on with a run that was interrupted: end its calls (each effect once), then continue.

        When there is nothing to go on with, the last answer is returned.
        """

        async def work(run: Run) -> str:
            if self.subagents is not None:
                await self.subagents.go_on()
            last = self.trajectory.last
            done = last is None or (last.kind is Kind.ASSISTANT and not last.calls)
            if done and not self.mailbox.waiting:
                run.last_text = "" if last is None else last.text
                return "answered"
            if last is not None and last.kind is Kind.ASSISTANT and last.calls:
                states = await self.dispatcher.run(last.calls, self._journal())
                await self.compaction.entering(states)
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
        prompt = prompt_of(self.agent)
        meta = {
            "reason": reason,
            "model": self.model.name,
            "system": prompt.text,
            "tools": [spec.to_json() for spec in self.agent.registry.specs()],
            **kept(self.agent, prompt),
        }
        await self.record(Entry(Kind.REBASE, (), self._now(), meta=meta), self.agent.principal.id)

    async def compact(self, strategy: str = "", *, dry_run: bool = False) -> Report:
        """Compact everything old now; see `SessionCompaction.compact`. An open breaker is closed by
        it.

        Raises:
            SessionBusy: while a run is going on. UsageFault: when calls have no result yet.
        """
        if self._running:
            raise SessionBusy(f"Session {self._id} is answering.", next="Compact between runs.")
        await self.open()
        if self.trajectory.open_calls:
            raise UsageFault(
                f"Session {self._id} was left in the middle of its calls.",
                next=f"End them first: lorimer resume {self._id}",
            )
        if not dry_run:
            await self.compaction.close_breaker()
        return await self.compaction.compact(strategy=strategy, dry_run=dry_run)

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
        run = self.current = Run()
        before = self.watch
        began, stop, error = False, "", ""
        try:
            await self.open()
            await self.agent.secrets.ready()
            if watch is not None:
                self.watch = watch
            self.tell(RunBegan(self._id, self.model.name, self.model.profile.wire))
            began = True
            if self.subagents is not None:
                self.subagents.begin_run(run)
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
            result = finish(self._id, run, stop)
            return result if self.answers is None else await self.answers.finished(result)
        finally:
            if timer is not None:
                timer.cancel()
            if began:
                self.tell(RunEnded(self._id, stop or "error", error))
            self.watch = before
            self.current = None
            self._running = False
            self._idle.set()

    async def _record_cancel(self, reason: str) -> None:
        if self.subagents is not None:
            await self.subagents.stop(reason)
        await super()._record_cancel(reason)

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
