"""One sub-agent at work: asks, corrects, and stops, until there is an answer or a reason for
none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from lorimer.core.calls import Outcome
from lorimer.core.errors import LorimerError, StoreError
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.usage import Usage
from lorimer.core.watch import CallBegan, RequestEnded, Warned
from lorimer.runtime.subagents import ledger
from lorimer.runtime.subagents.answer import OutputForm
from lorimer.runtime.subagents.loops import loop_in
from lorimer.runtime.subagents.tags import Speaker
from lorimer.tools.subagents import Assignment, SubagentReport, SubagentStatus

if TYPE_CHECKING:
    from lorimer.runtime.loop import Limits
    from lorimer.runtime.results import RunResult
    from lorimer.runtime.session import Session

_LIMITS = {
    "max_steps": "model requests", "max_tokens": "tokens", "max_cost": "US dollars",
    "max_time": "seconds",
}  # fmt: skip
_MOST_SAID = 2000
"""Characters that are kept of what a fault said."""
_LAST_STEP = (
    "This is your last step. Give your answer now, in the form the task asks for, from what you "
    "know; say in it what is missing."
)


@dataclass(frozen=True, slots=True)
class Ending:
    """An end without an answer. `message` and `next` are lorimer's own words; whatever may hold
    words of the sub-agent, or of what it has read, is in `said`."""

    status: SubagentStatus
    message: str
    next: str
    said: str = ""


class Child:
    """A sub-agent whose session is open.

    Args:
        facts: what is kept of it with its session (`ledger.META`).
        retries: how often its answer may be sent back.
        on_usage: told what each request has used.
        on_doing: told what it does, in a line; on_warning: what a person should know.
    """

    def __init__(
        self,
        session: Session,
        facts: Mapping[str, Any],
        *,
        retries: int,
        on_usage: Callable[[Usage], None],
        on_doing: Callable[[str], None],
        on_warning: Callable[[str], None],
    ) -> None:
        self.session = session
        self.name = str(facts["agent"])
        self.doing = ""
        self._facts = facts
        self._form = OutputForm(Assignment.from_json(facts["assignment"]).output_schema)
        self._retries = retries
        self._limits = session.agent.limits
        self._inbox: list[Entry] = []
        self._reason = ""
        self._loop = ""
        self._warned = False
        self._recorded = False
        self._tally = ledger.Tally()
        self._on_usage, self._on_doing, self._on_warning = on_usage, on_doing, on_warning
        self._began = session.agent.clock.monotonic()
        session.preparations.insert(0, self)

    @property
    def id(self) -> str:
        return self.session.id

    def watch(self, event: Any) -> None:
        """Sees everything that happens in its session."""
        match event:
            case RequestEnded(usage=Usage() as usage):
                self._on_usage(usage)
            case CallBegan(tool=tool, arguments=arguments):
                shown = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
                self.doing = f"{tool}({shown if len(shown) <= 120 else shown[:120] + '…'})"
                self._on_doing(self.doing)
            case Warned(message):
                self._on_warning(message)

    def tell(self, entry: Entry) -> None:
        """Hand it a message, to be read before its next step."""
        self._inbox.append(entry)

    def stop(self, reason: str) -> None:
        """Stop its run; `work` then ends and records it."""
        self._reason = self._reason or reason
        self.session.cancel(reason)

    def over_parent_budget(self) -> None:
        """Stop it because the run that started it has used up its own limits."""
        self.stop("parent_budget")

    async def before_request(self) -> None:
        """Before each of its requests: what it is told, its last step, and whether it loops."""
        while self._inbox:
            await self.session.record(self._inbox.pop(0), "agent")
        self._loop = loop_in(self.session.trajectory.entries, self.session.agent.registry)
        if self._loop:
            self.stop("loop")
            return
        if self._left().max_steps == 1 and self._limits.max_steps != 1 and not self._warned:
            self._warned = True
            await self.session.record_note(_LAST_STEP)

    async def work(self) -> SubagentReport:
        """Go on until there is an answer that fits, or an end without one; it is on disk on return.

        Cancellation: its run is stopped and recorded, its end too, and then it goes on.

        Raises:
            StoreError: when its record cannot be written.
        """
        try:
            ending = await self._to_its_end()
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._record(_cancelled(self._reason or "the call was cancelled"))
            raise
        except StoreError:
            raise
        except LorimerError as fault:
            ending = _failed(f"it ended with {_kind(fault)}.", "", f"{fault.message} {fault.next}")
        except Exception as fault:  # noqa: BLE001 - whatever it died of is the end of this one only
            ending = _failed(f"it died of {_kind(fault)}.", "", str(fault))
        if ending is not None:
            await self._record(ending)
        self._recorded = True
        return self.report()

    def report(self) -> SubagentReport:
        """How it stands: at work, by what is known here, else by its record. At work it costs the
        same however long it has worked."""
        agent = self.session.agent
        if self._recorded:
            found = ledger.report(agent.store, self.id, agent.registry)
            assert found is not None
            return found
        seen, entries = self.session.conversation, self.session.trajectory.entries
        self._tally.read(ledger.own_entries(entries, self._facts))
        return SubagentReport(
            self.id, self.name, SubagentStatus.RUNNING, outcome=Outcome.UNKNOWN,
            tainted_by=seen.tainted_by, private_from=seen.private_from, usage=self._tally.usage,
            steps=self._tally.steps, doing=self.doing or ledger.last_call(entries),
            notes=tuple(self._facts.get("notes", ())),
        )  # fmt: skip

    async def _to_its_end(self) -> Ending | None:
        session = self.session
        while True:
            if self._reason:
                return self._stopped(self._reason)
            left = self._left()
            spent = _spent(left, self._limits)
            if spent is not None:
                return spent
            session.agent.limits = left
            result = await session.resume(watch=self.watch)
            if result.stop != "answered":
                return self._without_answer(result)
            if self._inbox:  # it was told something while it answered
                while self._inbox:
                    await session.record(self._inbox.pop(0), "agent")
                continue
            answer = self._form.read(result.answer)
            if answer.fits:
                return None
            sent_back = ledger.corrections(self._own())
            if sent_back >= self._retries:
                return Ending(
                    SubagentStatus.WRONG_OUTPUT,
                    f"it answered {sent_back + 1} times, and never in the form that was asked for: "
                    f"the last time {answer.where}.",
                    "Ask it for less at a time, or give a simpler output_schema.",
                )
            await self._send_back(answer.fault)

    async def _send_back(self, fault: str) -> None:
        words = (
            f"Your answer cannot be used. {fault} Answer again: one JSON value that fits the "
            "schema "
            "of the task, and nothing else."
        )
        now = self.session.agent.clock.now()
        meta = {"speaker": str(Speaker.HARNESS)}
        await self.session.record(Entry(Kind.USER, (TextPart(words),), now, meta=meta))

    def _without_answer(self, result: RunResult) -> Ending:
        if self._reason:  # what stops it says it better than how its run ended
            return self._stopped(self._reason)
        match result.stop:
            case "cancelled":
                return self._stopped(self.session.cancel_requested)
            case stop if stop in _LIMITS:
                return _over(stop, self._limits)
            case "failures":
                return _failed(
                    f"{self._limits.max_failures} calls in a row failed, the last with: "
                    f"{_code(result.calls[-1].code) if result.calls else 'unknown'}.",
                    "Look at its trajectory; give it another task or other tools.",
                )
            case "breaker":
                return _failed(
                    "too much of what it wanted to do was rejected.",
                    "Ask the user what may be done.",
                )
            case other:
                return _failed(f"its model gave no usable answer ({_code(other)}).", "")

    def _stopped(self, reason: str) -> Ending:
        match reason:
            case "loop":
                return Ending(
                    SubagentStatus.LOOP,
                    f"it went round in circles and was stopped: {self._loop}.",
                    "Give it another task: say what to look for and when to stop.",
                )
            case "parent_budget":
                return Ending(
                    SubagentStatus.OVER_BUDGET,
                    "it was stopped because the limits of this run are used up.",
                    "Say what is known; the user may raise the limits.",
                )
            case "max_time":
                return _cancelled("the time limit of the run that started it was reached")
            case _:
                return _cancelled(reason)

    async def _record(self, ending: Ending) -> None:
        session = self.session
        if session.trajectory.open_calls:
            await session.settle()
        end = {"status": str(ending.status), "message": ending.message, "next": ending.next}
        if ending.said:
            end["said"] = ending.said[:_MOST_SAID]
        words = f"This task was ended here: {ending.message}"
        await session.record_note(words, **{ledger.END: end})

    def _own(self) -> Sequence[Entry]:
        return ledger.own_entries(self.session.trajectory.entries, self._facts)

    def _left(self) -> Limits:
        """What is left of its budget for this task."""
        self._tally.read(self._own())
        usage, steps = self._tally.usage, self._tally.steps
        limits = self._limits
        tokens = usage.input_tokens + usage.output_tokens
        cost = usage.cost
        passed = self.session.agent.clock.monotonic() - self._began
        return replace(
            limits,
            max_steps=None if limits.max_steps is None else limits.max_steps - steps,
            max_tokens=None if limits.max_tokens is None else limits.max_tokens - tokens,
            max_cost=limits.max_cost
            if limits.max_cost is None or cost is None
            else limits.max_cost - cost,
            max_time_s=None if limits.max_time_s is None else limits.max_time_s - passed,
        )


def _spent(left: Limits, limits: Limits) -> Ending | None:
    """The end of one that has nothing left of its budget."""
    for name, value in (
        ("max_steps", left.max_steps), ("max_tokens", left.max_tokens),
        ("max_cost", left.max_cost), ("max_time", left.max_time_s),
    ):  # fmt: skip
        if value is not None and value <= 0:
            return _over(name, limits)
    return None


def _over(stop: str, limits: Limits) -> Ending:
    bound = limits.max_time_s if stop == "max_time" else getattr(limits, stop)
    shown = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
    return Ending(
        SubagentStatus.OVER_BUDGET,
        f"it used up its budget of {shown} {_LIMITS[stop]} without an answer.",
        "Give it a smaller task, or do the rest yourself.",
    )


def _failed(message: str, next: str, said: str = "") -> Ending:
    next = next or "Try once more, or go on without it and say so."
    return Ending(SubagentStatus.FAILED, message, next, said.strip())


def _kind(fault: Exception) -> str:
    """The kind of a fault, by its class: its message may quote anything."""
    return type(fault).__name__


def _code(code: str) -> str:
    return code if re.fullmatch(r"[a-z][a-z_]{0,40}", code) else "unknown"


def _cancelled(reason: str) -> Ending:
    return Ending(
        SubagentStatus.CANCELLED,
        f"it was stopped ({reason}).",
        "Go on with it by send_message_to_subagent, if that is still wanted.",
    )
