"""The dispatcher: every call of a turn through the stations, in the right order (T-5).

Reads run together, up to a limit. A write waits for all earlier calls and later calls wait for it;
a write that failed makes the later writes of the turn `skipped`. Each call has exactly one result,
whatever happens, and no exception of a tool comes out of here.
"""

from __future__ import annotations

import asyncio
import functools
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lorimer.core.calls import Effects, JournalState, Outcome, Refusal, ToolCall
from lorimer.core.errors import StoreError
from lorimer.core.watch import Warned
from lorimer.store.protocol import CallRecord, Remark
from lorimer.tools.dispatch.ahead import ask_ahead
from lorimer.tools.dispatch.find import find
from lorimer.tools.dispatch.inner import InnerCalls
from lorimer.tools.dispatch.once import ask_outcome, once, unknown
from lorimer.tools.dispatch.parse import parse
from lorimer.tools.dispatch.permit import permit
from lorimer.tools.dispatch.present import effectful_failure, present
from lorimer.tools.dispatch.record import record
from lorimer.tools.dispatch.review import review, skipped
from lorimer.tools.dispatch.rules import rules
from lorimer.tools.dispatch.run import run
from lorimer.tools.dispatch.shape import shape
from lorimer.tools.dispatch.state import (
    CallCancelled,
    CallState,
    Station,
    Surroundings,
    see_through,
)
from lorimer.tools.dispatch.verify import verify

STATIONS: tuple[Station, ...] = (parse, find, shape, rules, permit, review, once, run, verify)
"""The way to a result; a refusal ends it. A deployment may put in stations of its own."""

ENDING: tuple[Station, ...] = (present, record)
"""What every call goes through, refused or not."""


class Dispatcher:
    """Runs the calls of one session."""

    def __init__(self, around: Surroundings, *, stations: Sequence[Station] = STATIONS) -> None:
        self.around = around
        self.stations = tuple(stations)
        self.cancelled = False
        around.inner = lambda outer: InnerCalls(outer, around, self._one, self._end, self.settle)

    async def run(
        self, calls: Sequence[ToolCall], journal: Mapping[str, CallRecord] | None = None
    ) -> list[CallState]:
        """Run `calls`; a state with its result for each, in call order.

        `journal` holds the lines of calls that a crash interrupted. Cancellation: running functions
        are stopped, what happened is recorded, calls not yet started end `not_started`; then the
        states are returned all the same and `cancelled` is set: the caller records them and goes on
        being cancelled.

        Raises:
            StoreError: when the record cannot be written; calls that had not started did not run.
        """
        work = asyncio.get_running_loop().create_task(self._run(calls, journal or {}))
        while not work.done():
            try:
                await asyncio.wait((work,))
            except asyncio.CancelledError:
                self.cancelled = True
                self.around.cancel()
                await see_through(work)
        return work.result()

    async def refuse_all(
        self,
        calls: Sequence[ToolCall],
        refusal: Refusal,
    ) -> list[CallState]:
        """Give every call the same refusal, recorded like any other end; nothing is run."""
        states = [CallState(call) for call in calls]
        for state in states:
            await self._end(state, refusal)
        return states

    async def settle(
        self, calls: Sequence[ToolCall], journal: Mapping[str, CallRecord]
    ) -> list[CallState]:
        """End the calls of an interrupted run without running anything: what had ended keeps its
        result, what had started is asked for or `unknown`, the rest is `not_started`."""
        states = [CallState(call, journal.get(call.id)) for call in calls]
        for state in states:
            await self._end(state, await self._settled(state))
        return states

    async def _settled(self, state: CallState) -> Refusal | None:
        record = state.journal
        if record is not None and record.state is JournalState.FINISHED:
            state.replayed = True
            return None
        if record is None or record.state is JournalState.PLANNED:
            return _interrupted()
        state.tool = self.around.registry.get(state.name)
        state.value = record.value
        state.started = True
        state.operation_key = record.operation_key
        if state.tool is not None and state.tool.find_outcome is not None:
            refusal = await ask_outcome(state, self.around, state.tool)
            if refusal is not None or state.replayed:
                return refusal
            return replace(_interrupted(), outcome=Outcome.FAILED_BEFORE_EFFECT)
        if state.tool is not None and state.tool.calls_tools and self.around.inner is not None:
            return await self.around.inner(state).settle()
        return unknown(state, "The run was interrupted after this call had started")

    async def _run(
        self, calls: Sequence[ToolCall], journal: Mapping[str, CallRecord]
    ) -> list[CallState]:
        states = [CallState(call, journal.get(call.id)) for call in calls]
        self.around.claims.clear()
        self.around.ask_ahead = functools.partial(ask_ahead, states, self.around)
        for state in states:
            state.alone = len(states) == 1
        failed_write, waits = "", False
        place = 0
        while place < len(states):
            first = states[place]
            if self._is_read(first):
                group = [first]
                while place + len(group) < len(states) and self._is_read(
                    states[place + len(group)]
                ):
                    group.append(states[place + len(group)])
                place += len(group)
                await self._together(group)
                continue
            place += 1
            if failed_write and not self.around.cancel_reason and not _ended(first):
                if not waits:
                    await self._end(first, skipped(failed_write))
                    continue
                first.held = failed_write
            await self._one(first)
            if self.around.stop_on_failed_write and effectful_failure(first) and not failed_write:
                failed_write, waits = first.name, first.code == "needs_approval"
        return states

    def _is_read(self, state: CallState) -> bool:
        tool = self.around.registry.get(state.name)
        return tool is None or tool.effects is Effects.READ or tool.delegates

    async def _together(self, group: list[CallState]) -> None:
        if len(group) == 1:
            await self._one(group[0])
            return
        room = asyncio.Semaphore(self.around.concurrency)

        async def one(state: CallState) -> None:
            async with room:
                await self._one(state)

        faults: list[BaseException] = [
            found
            for found in await asyncio.gather(*(one(s) for s in group), return_exceptions=True)
            if found is not None
        ]
        if faults:
            raise faults[0]

    async def _one(self, state: CallState) -> None:
        try:
            await self._end(state, await self._through(state))
        finally:
            if not state.left:  # a function that still runs keeps what it has taken
                for lock in reversed(state.locks):
                    lock.release()

    async def _through(self, state: CallState) -> Refusal | None:
        around = self.around
        if _ended(state):
            state.tool = around.registry.get(state.name)
            state.replayed = True
            return None
        if state.journal is not None and state.journal.state is JournalState.STARTED:
            tool = around.registry.get(state.name)
            if tool is not None and tool.calls_tools and around.inner is not None:
                state.tool, state.value, state.started = tool, state.journal.value, True
                return await around.inner(state).settle()  # never run again, whoever allows it
        try:
            if around.cancel_reason:
                raise CallCancelled
            for station in self.stations:
                refusal = await station(state, around)
                if refusal is not None:
                    return self._truthful(state, refusal)
                if state.replayed:
                    return None
        except CallCancelled:
            return self._truthful(state, _cancelled(around.cancel_reason))
        except StoreError:
            raise
        except Exception as fault:  # noqa: BLE001 - a fault of a station or a check, not of the model
            return await self._broken(state, fault)
        return None

    @staticmethod
    def _truthful(state: CallState, refusal: Refusal) -> Refusal:
        """A call that had started before a crash and is refused now is not `not_started`."""
        had_started = state.journal is not None and state.journal.state is JournalState.STARTED
        if had_started and refusal.outcome is Outcome.NOT_STARTED:
            return replace(
                refusal,
                message=f"{refusal.message} The call had started before the run was interrupted; "
                "whether its effect happened is not known.",
                outcome=Outcome.UNKNOWN,
            )
        return refusal

    async def _broken(self, state: CallState, fault: Exception) -> Refusal:
        trace = "".join(traceback.format_exception(fault)[-4:])
        self.around.tell(
            Warned(
                f"The call {state.call.id} of {state.name} met a fault of the harness or of a "
                f"check:\n{trace}"
            )
        )
        await self.around.store.commit(
            Remark(
                self.around.session,
                "lorimer",
                "station.fault",
                self.around.clean(f"{type(fault).__name__}: {fault}"),
            )
        )
        outcome = state.outcome
        if state.started and outcome is Outcome.NOT_STARTED:
            reads = state.tool is not None and state.tool.effects is Effects.READ
            outcome = Outcome.FAILED_BEFORE_EFFECT if reads else Outcome.UNKNOWN
        return self._truthful(
            state,
            Refusal(
                "internal",
                f"The call of {state.name} could not be handled: {type(fault).__name__}: {fault}.",
                next="This is not the call's fault: go on without it and say so.",
                outcome=outcome,
            ),
        )

    async def _end(self, state: CallState, refusal: Refusal | None) -> None:
        state.refusal = refusal
        if state.tool is None:
            state.tool = self.around.registry.get(state.name)
        for station in ENDING:
            await station(state, self.around)


def _ended(state: CallState) -> bool:
    return state.journal is not None and state.journal.state is JournalState.FINISHED


def _interrupted() -> Refusal:
    return Refusal(
        "interrupted",
        "The run was interrupted before this call had started; nothing was run.",
        next="Call it again if it is still wanted.",
        retryable=True,
    )


def _cancelled(reason: str) -> Refusal:
    return Refusal(
        "cancelled",
        f"The run was stopped ({reason or 'cancelled'}) before this call had started; "
        "nothing was run.",
        next="Wait for what the user wants now.",
    )
