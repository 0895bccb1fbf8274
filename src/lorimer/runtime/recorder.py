"""What a session records: every change goes through here, and is on disk on return."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lorimer.context.trajectory import Trajectory
from lorimer.core.calls import JournalState, Outcome, ToolCall
from lorimer.core.errors import StoreError
from lorimer.core.messages import Entry, Kind, ResultPart, TextPart
from lorimer.core.quoting import wrap_external
from lorimer.core.trust import Trust
from lorimer.core.watch import Warned
from lorimer.models.protocol import Model
from lorimer.runtime.cache_watch import ANNOUNCING, CacheWatch
from lorimer.runtime.conversation import SessionConversation
from lorimer.runtime.reply import Reply, make_call_id, with_ids
from lorimer.store.protocol import (
    AppendEntry,
    CallRecord,
    Change,
    CorrectCall,
    PlanCall,
    Remark,
    SessionRecord,
)
from lorimer.tools.dispatch.dispatcher import Dispatcher
from lorimer.tools.dispatch.state import CallState

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.tokens import SessionTokens

_GAVE = " It gave: "  # how records before the label was kept hold what a call gave
_CANCEL_NOTE = "The user stopped the run here ({reason}). Do not go on with it unless asked."


class Recorder:
    """The half of a session that writes; `Session` is the other half."""

    trajectory: Trajectory
    conversation: SessionConversation
    dispatcher: Dispatcher
    cache: CacheWatch
    tokens: SessionTokens

    def __init__(self, agent: Agent, session_id: str) -> None:
        self.agent = agent
        self.model: Model = agent.model
        self.store = agent.store
        self._id = session_id
        self._record: SessionRecord | None = None
        self._used_ids: set[str] = set()
        self._left: set[str] = set()  # calls whose functions still ran when their results were told
        self._corrections: list[CorrectCall] = []
        self._remarks: list[Remark] = []  # alerts; written with the next entry

    def tell(self, event: Any) -> None:
        """Tell those who watch."""
        raise NotImplementedError

    async def record_reply(self, reply: Reply) -> tuple[ToolCall, ...]:
        """The answer and its calls as planned, in one commit; the calls with their ids."""
        parts = with_ids(
            reply.parts,
            self._used_ids,
            self.model.profile.id_pattern,
            lambda: make_call_id(self.model.profile.id_pattern, self.agent.clock),
        )
        meta = self.request_facts(reply)
        entry = Entry(Kind.ASSISTANT, parts, self._now(), self.trajectory.next_seq, meta)
        calls = entry.calls
        await self._append(
            entry,
            "model",
            *(
                PlanCall(self._id, c.id, entry.seq, place, c.name, c.raw, entry.at)
                for place, c in enumerate(calls)
            ),
            before=self._taken_remarks(),
        )
        return calls

    def request_facts(self, reply: Reply) -> dict[str, Any]:
        """What is kept of the request that `reply` answers. Once for each request."""
        meta: dict[str, Any] = {
            "model": self.model.name,
            "stop": str(reply.stop),
            "raw_stop": reply.raw_stop,
            "usage": reply.usage.to_json(),
            **self.tokens.answered(reply.usage),
        }
        cache = self.cache.answered(reply.usage, self._now())
        if cache is not None:
            meta["cache"] = cache
        return meta

    async def record_results(self, states: Sequence[CallState]) -> None:
        """One entry with the result of every call, in call order."""
        results: list[ResultPart] = []
        pending: list[Change] = [*self._taken_remarks()]
        for state in states:
            assert state.result is not None
            results.append(state.result)
            pending += state.pending
            state.pending.clear()
            if state.left:
                self._left.add(state.call.id)
        entry = Entry(Kind.TOOL_RESULT, tuple(results), self._now(), self.trajectory.next_seq)
        await self._append(entry, "lorimer", before=pending)
        await self._record_corrections()

    async def record_note(self, text: str, **meta: Any) -> None:
        """A word of the harness to the model."""
        await self._append(Entry(Kind.NOTE, (TextPart(text),), self._now(), meta=meta), "lorimer")

    async def record_retries(self, failed: Sequence[str]) -> None:
        """Model requests that failed and were sent again."""
        changes = [Remark(self._id, "lorimer", "request.repeated", text) for text in failed]
        await self.store.commit(*changes)

    async def record_remarks(self) -> None:
        """Alerts that no results came after."""
        changes = self._taken_remarks()
        if changes:
            await self.store.commit(*changes)

    def _taken_remarks(self) -> list[Remark]:
        changes, self._remarks = self._remarks, []
        return changes

    async def record_late_results(self) -> None:
        """Tell what became known of calls that had ended for the model (G1)."""
        for call_id in sorted(self._left):
            last = self.trajectory.last
            if last is not None and last.kind is Kind.ASSISTANT and last.calls:
                return
            record = self.store.call(self._id, call_id)
            if record is not None and record.late is not None:
                self._left.discard(call_id)
                await self.record(self._late_note(record.tool, call_id, record.late))

    def _late_note(self, name: str, call_id: str, late: Mapping[str, Any]) -> Entry:
        """What a call gave late counts as outside content: its own labels ended with the call."""
        words, old, quoted = str(late.get("text", "")).partition(_GAVE)
        gave = str(late.get("gave", "")) or (quoted if old else "")
        parts = [TextPart(words)]
        meta: dict[str, Any] = {"corrects": call_id}
        if gave:
            text = wrap_external(gave, name, call_id)
            parts.append(TextPart(f"\nIt gave:\n{text}", Trust.EXTERNAL, name))
            tool = self.agent.registry.get(name)
            if tool is not None and tool.private:
                meta["private_from"] = [name]
        return Entry(Kind.NOTE, tuple(parts), self._now(), meta=meta)

    async def _on_late(self, state: CallState, outcome: Outcome, text: str) -> None:
        words = (
            f"Later word on the call {state.call.id} of {state.name}: it has ended by now; "
            f"outcome {outcome}."
        )
        late = {"text": words} | ({"gave": text[:2000]} if text else {})
        self._corrections.append(CorrectCall(self._id, state.call.id, outcome, late, self._now()))
        self.tell(Warned(words))
        try:
            await self._record_corrections()
        except StoreError as fault:
            self.tell(Warned(f"That could not be recorded: {fault}"))

    async def _record_corrections(self) -> None:
        """Write what became known late, of the calls whose own end is on disk already; this session
        need not be open any more, or may have been opened again elsewhere."""
        for change in tuple(self._corrections):
            record = self.store.call(self._id, change.id)
            if record is not None and record.state is JournalState.FINISHED:
                self._corrections.remove(change)
                await self.store.commit(change)

    async def _record_cancel(self, reason: str) -> None:
        if self._record is None or self.trajectory.last is None:
            return
        await self._settle()
        await self.store.commit(Remark(self._id, self.agent.principal.id, "run.cancelled", reason))
        await self.record_note(_CANCEL_NOTE.format(reason=reason))

    async def settle(self) -> None:
        """End the calls of an interrupted run without running anything."""
        await self._settle()

    async def _settle(self) -> None:
        last = self.trajectory.last
        if last is not None and last.kind is Kind.ASSISTANT and last.calls:
            states = await self.dispatcher.settle(last.calls, self._journal())
            await self.record_results(states)

    def _journal(self) -> dict[str, CallRecord]:
        return {call.id: call for call in self.store.calls(self._id)}

    async def _append(
        self, entry: Entry, actor: str, *changes: Change, before: Sequence[Change] = ()
    ) -> None:
        seq = self.trajectory.next_seq
        if entry.seq != seq:
            entry = Entry(entry.kind, entry.parts, entry.at, seq, entry.meta)
        rendering = self.trajectory.render(entry)
        wire = self.model.profile.rendering
        try:
            await self.store.commit(
                *before, AppendEntry(self._id, seq, entry, wire, rendering, actor), *changes
            )
        except asyncio.CancelledError:
            self._add(entry, rendering)  # it is on disk all the same
            raise
        self._add(entry, rendering)

    def _add(self, entry: Entry, rendering: bytes) -> None:
        self.trajectory.add(entry, rendering)
        self.conversation.feed(entry)
        if entry.kind in ANNOUNCING:
            self.cache.expect_break(str(entry.kind))

    async def record(self, entry: Entry, actor: str = "lorimer") -> Entry:
        """Append `entry` (its number is given here); on disk on return."""
        await self._append(entry, actor, before=self._taken_remarks())
        return self.trajectory.entries[-1]

    def remark(self, action: str, why: str) -> None:
        """A line of the audit, written with the next entry."""
        self._remarks.append(Remark(self._id, "lorimer", action, why))

    def _now(self) -> datetime:
        return self.agent.clock.now()


def was_left(call: CallRecord) -> bool:
    """Whether its function still ran when its result was told."""
    if call.code not in ("timeout", "cancelled") or call.result is None:
        return False
    error = json.loads(call.result["content"][0]["text"])
    return error.get("still_running") is True
