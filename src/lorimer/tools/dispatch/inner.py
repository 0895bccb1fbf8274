"""Calls that a tool makes: through the same stations, in the same journal, under the outer call.

The n-th call of the call `c` has the id `c.n` and its own line in the journal and the audit; it has
no entry in the trajectory. What is true of the outer call is what is true of these.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import anyio

from lorimer.core.calls import Effects, Outcome, Refusal, ToolCall
from lorimer.core.messages import ResultPart
from lorimer.store.protocol import CallRecord, PlanCall
from lorimer.tools.dispatch.state import CallState, Surroundings, see_through
from lorimer.tools.tool import InnerEnd, Tool

_ID = re.compile(r"(.+)\.([1-9][0-9]*)")
_AFTER_ALL_SIBLINGS = 100_000
_LISTED = 40

One = Callable[[CallState], Awaitable[None]]
End = Callable[[CallState, Refusal], Awaitable[None]]
Settle = Callable[
    [Sequence[ToolCall], Mapping[str, CallRecord]], Awaitable[list[CallState]]
]  # fmt: skip


def outer_of(call_id: str, known: Collection[str]) -> str | None:
    """The id of the call that made this one; `None` for a call of the model."""
    found = _ID.fullmatch(call_id)
    return found[1] if found is not None and found[1] in known else None


class InnerCalls:
    """`CallTool` for one outer call.

    Args:
        one: takes a call through all stations; `end`: ends one that was not run; `settle`: ends
            calls that a crash interrupted.
    """

    def __init__(
        self, outer: CallState, around: Surroundings, one: One, end: End, settle: Settle
    ) -> None:
        self._outer, self._around = outer, around
        self._one, self._end, self._settle = one, end, settle
        self._place: tuple[int, int] | None = None
        self._number = 0
        self._ends: list[InnerEnd] = []

    @property
    def tools(self) -> Sequence[Tool]:
        """Every tool of the session but those that call tools themselves."""
        return [tool for tool in self._around.registry if not tool.calls_tools]

    @property
    def ends(self) -> Sequence[InnerEnd]:
        """How the calls so far have ended, in order."""
        return self._ends

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> InnerEnd:
        """Call `name`; every fault of the call is in what it returns.

        Cancellation stops the call and records its end before it goes on.

        Raises:
            TypeError, ValueError: when JSON cannot hold the arguments; nothing was called.
        """
        raw = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        self._number += 1
        outer = self._outer.call.id
        state = CallState(ToolCall(f"{outer}.{self._number}", name, raw), inner_of=outer)
        tool = self._around.registry.get(name)
        plan = self._plan(state)
        if tool is None or tool.effects is Effects.READ or tool.calls_tools:
            state.pending.append(plan)  # nothing to lose: written with the end of the call
        else:
            await self._around.store.commit(plan)
        if tool is not None and tool.calls_tools:
            await self._end(state, _no_nesting(name))
        else:
            await self._run(state)
        return await self._ended(state)

    async def _run(self, state: CallState) -> None:
        work = asyncio.ensure_future(self._one(state))
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            if state.stop is not None:
                state.stop.set(self._around.cancel_reason or "cancelled")
            else:
                work.cancel()
            with anyio.CancelScope(shield=True):
                await see_through(work)
                if state.result is None:
                    await self._end(state, _not_reached(state.name))
                await self._ended(state)
            raise
        work.result()

    async def _ended(self, state: CallState) -> InnerEnd:
        if state.pending:
            await self._around.store.commit(*state.pending)
            state.pending.clear()
        assert state.result is not None
        if self._around.on_inner is not None:
            self._around.on_inner(state.result)
        refusal = state.refusal
        end = InnerEnd(
            id=state.call.id,
            tool=state.name,
            outcome=state.outcome,
            value=state.result_value if refusal is None else None,
            parts=state.content if refusal is None else state.result.content,
            error=None if refusal is None else _error_of(state.result, refusal),
            changes=state.tool is not None and state.tool.effects is not Effects.READ,
            started=state.started,
        )
        self._ends.append(end)
        return end

    def _plan(self, state: CallState) -> PlanCall:
        if self._place is None:
            record = self._around.store.call(self._around.session, self._outer.call.id)
            self._place = (0, 0) if record is None else (record.entry_seq, record.position)
        entry, position = self._place
        return PlanCall(
            self._around.session, state.call.id, entry,
            (position + 1) * _AFTER_ALL_SIBLINGS + self._number,
            state.name, state.call.raw, self._around.clock.now(),
        )  # fmt: skip

    async def settle(self) -> Refusal:
        """After a crash in the middle: end the inner calls without running anything; the end of the
        outer call, with what became of each."""
        outer = self._outer.call.id
        found = {
            record.id: record
            for record in self._around.store.calls(self._around.session)
            if outer_of(record.id, (outer,)) is not None
        }
        calls = [ToolCall(r.id, r.tool, r.raw) for r in found.values()]
        states = await self._settle(calls, found)
        pending = [change for state in states for change in state.pending]
        if pending:
            await self._around.store.commit(*pending)
        ends = [
            InnerEnd(
                s.call.id, s.name, s.outcome,
                changes=s.tool is None or s.tool.effects is not Effects.READ,
                started=s.started or found[s.call.id].started_at is not None,
            )
            for s in states
        ]  # fmt: skip
        outcome = outcome_of(ends)
        return Refusal(
            "interrupted" if outcome is not Outcome.UNKNOWN else "outcome_unknown",
            f"The run was interrupted while {self._outer.name} was running; its rest was not run. "
            + _IN_WORDS[outcome],
            next="Look at what its calls have done before you go on; do not repeat those that are "
            "done.",
            outcome=outcome,
            details={"calls": listed(ends)},
        )


_IN_WORDS = {
    Outcome.UNKNOWN: "Of at least one of its calls it is not known whether its effect happened.",
    Outcome.FAILED_AFTER_EFFECT: "What became of each of its calls is known.",
    Outcome.FAILED_BEFORE_EFFECT: "None of its calls had changed anything.",
}


def outcome_of(ends: Sequence[InnerEnd]) -> Outcome:
    """What is true of an outer call that did not come to its end."""
    outcomes = {end.outcome for end in ends if end.changes}
    if Outcome.UNKNOWN in outcomes:
        return Outcome.UNKNOWN
    if outcomes & {Outcome.DONE, Outcome.FAILED_AFTER_EFFECT}:
        return Outcome.FAILED_AFTER_EFFECT
    return Outcome.FAILED_BEFORE_EFFECT


def listed(ends: Sequence[InnerEnd]) -> list[str]:
    """`c.1 write_file: done`, those that change something first; long lists are cut, and say so."""
    lines = [
        f"{end.id} {end.tool}: {end.outcome}"
        for end in sorted(ends, key=lambda end: not end.changes)
    ]
    if len(lines) > _LISTED:
        lines[_LISTED:] = [f"and {len(lines) - _LISTED} more, which are in the record"]
    return lines


def _error_of(result: ResultPart, refusal: Refusal) -> dict[str, Any]:
    text = getattr(result.content[0], "text", "") if result.content else ""
    try:
        found = json.loads(text)
    except ValueError:
        return refusal.to_json()
    return found if isinstance(found, dict) else refusal.to_json()


def _no_nesting(name: str) -> Refusal:
    return Refusal(
        "not_inside",
        f"{name} cannot be called from inside a script.",
        next="Write what it should do into this script.",
    )


def _not_reached(name: str) -> Refusal:
    return Refusal(
        "cancelled",
        f"The call of {name} was given up before it had started; nothing was run.",
        next="Wait for what the user wants now.",
    )
