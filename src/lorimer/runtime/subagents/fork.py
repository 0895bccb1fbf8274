"""Inherited context: a session that begins as a copy of its parent's, byte for byte.

The copy has the parent's prefix, its entries and their frozen renderings, so its first request
begins with the very bytes of the parent's last one and is read from the same prompt cache. The
calls that the parent's last answer made are answered anew in it: that is where it gets its task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import Entry, Kind, ResultPart, TextPart
from lorimer.runtime.prompt import entry_form, stored_entries, stored_prefix
from lorimer.store.protocol import AppendEntry, Change, CreateSession
from lorimer.tools.dispatch.recorded import COPIED

if TYPE_CHECKING:
    from lorimer.runtime.session import Session

_IN_COPY = (
    "You are the sub-agent that this call has started; the conversation so far is a "
    "copy for you to "
    "know. Your task follows."
)
_BESIDE = "This call belongs to the agent that you are a copy of; its result is not for you."


class Fork:
    """A copy of `parent`, for the sub-agent that its call `call_id` starts.

    Attributes:
        begins: the number of the first entry that is not copied.
        answered: calls of entries before this number have the same results here as there.
    """

    def __init__(self, parent: Session, call_id: str) -> None:
        self._parent = parent
        agent, record = parent.agent, parent.stored
        self._form = agent.model.profile.rendering
        self._stored = stored_entries(agent, record)
        last = parent.trajectory.last
        self._results: Entry | None = None
        if last is not None and last.kind is Kind.ASSISTANT and last.calls:
            self._results = _results(last.calls, call_id, agent.clock.now(), len(self._stored))
        self.begins = len(self._stored) + (self._results is not None)
        self.answered = len(self._stored) if self._results is None or last is None else last.seq

    def changes(self, child: str, meta: Mapping[str, Any]) -> list[Change]:
        """What makes the session `child`, in one commit."""
        parent = self._parent
        agent, record = parent.agent, parent.stored
        prefix = stored_prefix(agent, record, agent.specs_from(record.tools))
        lineage = {
            "parent": parent.id, "root": record.meta.get("root", parent.id),
            COPIED: {"session": parent.id, "before": self.answered},
        }  # fmt: skip
        made: list[Change] = [
            CreateSession(
                replace(
                    record, id=child, created_at=agent.clock.now(), model=agent.model.name,
                    wire=agent.model.profile.wire, prefix=prefix.rendered,
                    meta={**record.meta, **lineage, **meta},
                )
            )
        ]  # fmt: skip
        for entry, rendering in self._stored:
            assert rendering is not None  # the session is open: everything in it is rendered
            own = entry_form(agent, entry)
            made.append(AppendEntry(child, entry.seq, entry, own, rendering, "agent"))
        if self._results is not None:
            rendering = parent.trajectory.render(self._results)
            made.append(
                AppendEntry(
                    child, self._results.seq, self._results, self._form, rendering, "lorimer"
                )
            )
        return made


def _results(calls: Sequence[ToolCall], own: str, now: datetime, seq: int) -> Entry:
    parts = tuple(
        ResultPart(
            call.id,
            call.name,
            (TextPart(_IN_COPY if call.id == own else _BESIDE),),
            call.id != own,
            Outcome.DONE if call.id == own else Outcome.NOT_STARTED,
        )
        for call in calls
    )
    return Entry(Kind.TOOL_RESULT, parts, now, seq)
