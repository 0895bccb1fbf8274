"""Where a compaction takes its knowledge from: the record of the session and its notes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lorimer.context.compaction.digest import Digest, digest_of
from lorimer.context.compaction.history import History
from lorimer.context.compaction.notes import NOTE, turn_note
from lorimer.context.compaction.plan import CALLS
from lorimer.core.calls import ToolCall
from lorimer.core.messages import Entry, Kind, ResultPart
from lorimer.tools.dispatch.recorded import recorded_call

if TYPE_CHECKING:
    from lorimer.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Sources:
    """The record of one session, as a compaction needs it."""

    session: Session

    def digests(self, answer: Entry, results: Entry) -> list[Digest]:
        """The digests of one answer with calls and of its results, from the whole results."""
        calls = {call.id: call for call in answer.calls}
        return [self._digest(calls[r.call_id], r) for r in results.results]

    def _digest(self, call: ToolCall, result: ResultPart) -> Digest:
        session = self.session
        tool = session.agent.registry.get(result.name)
        whole = recorded_call(session.store, session.id, call.id)
        if whole is not None and not result.is_error:
            result = replace(result, content=whole.content)
        return digest_of(call, result, low_value=tool is not None and tool.low_value)

    def again(self, view: Sequence[Entry]) -> dict[str, Digest]:
        """The calls that summaries in `view` stand for, by id."""
        wanted = {one for e in view for one in e.meta.get(CALLS, ())}
        calls = {c.id: c for e in self.session.trajectory.entries for c in e.calls}
        return {
            r.call_id: self._digest(calls[r.call_id], r)
            for e in self.session.trajectory.entries
            for r in e.results
            if r.call_id in wanted
        }

    def is_noise(self, results: Entry) -> bool:
        """Whether all of `results` are of low value, as their tools say."""
        registry = self.session.agent.registry
        tools = [registry.get(r.name) for r in results.results]
        return all(t is not None and t.low_value for t in tools)

    def noted(self) -> dict[str, list[str]]:
        """By call id, the lines of its result that a note holds."""
        out: dict[str, list[str]] = {}
        for entry in self.session.trajectory.entries:
            for fact in entry.meta.get(NOTE, {}).get("facts", ()):
                out.setdefault(fact["call"], []).append(fact["line"])
        return out

    async def new_notes(self, history: History, *, ended: bool) -> list[dict[str, Any]]:
        """The notes, as JSON, of turns that have ended and have none.

        Args:
            ended: whether the newest turn has ended, too.
        """
        entries = self.session.trajectory.entries
        first = history.noted + 1
        starts = [at for at in range(first, len(entries)) if entries[at].kind is Kind.USER]
        made = []
        for place, start in enumerate(starts):
            last = place + 1 == len(starts)
            if last and not ended:
                break
            end = len(entries) if last else starts[place + 1]
            note = await asyncio.to_thread(turn_note, entries[start:end])
            if note is None or note.empty:
                history.noted = end - 1
            else:
                made.append(note.to_json())
        return made
