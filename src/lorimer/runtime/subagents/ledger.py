"""How a sub-agent stands, read from its own record alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import SessionNotFound, ToolDefinitionError
from lorimer.core.messages import BESIDE, Entry, Kind
from lorimer.core.usage import Usage
from lorimer.runtime.subagents.answer import OutputForm
from lorimer.runtime.subagents.labels import children_of, conversation_of, outcome_of
from lorimer.runtime.subagents.tags import Speaker
from lorimer.store.protocol import SessionRecord, Store
from lorimer.toolkits.collaboration.report import source_of
from lorimer.tools.subagents import Assignment, SubagentReport, SubagentStatus

if TYPE_CHECKING:
    from lorimer.tools.registry import Registry

META = "subagent"
"""In the meta of a sub-agent's session: its `assignment`, `agent`, `depth`, `wait`, the `call` that
started it, and `begins`, the number of its first own entry."""
END = "subagent_end"
"""In the meta of the note that ends a sub-agent otherwise than by an answer."""


def facts_of(record: SessionRecord) -> Mapping[str, Any] | None:
    """What is kept of a sub-agent with its session; `None` when it is none."""
    found = record.meta.get(META)
    return found if isinstance(found, Mapping) else None


def depth_of(record: SessionRecord) -> int:
    """How many sessions stand above this one."""
    facts = facts_of(record)
    return 0 if facts is None else int(facts["depth"])


def own_entries(entries: Sequence[Entry], facts: Mapping[str, Any]) -> Sequence[Entry]:
    """Without those that it was given with the conversation of its parent."""
    return entries[int(facts["begins"]) :]


class Tally:
    """What its requests have used, and how many there were, since it last was given a task. Follows
    its own entries, each read once."""

    def __init__(self) -> None:
        self.usage, self.steps = Usage(), 0
        self._seen = 0
        self._ended = False

    def read(self, own: Sequence[Entry]) -> None:
        """Take those of its entries that are new."""
        for at in range(self._seen, len(own)):
            entry = own[at]
            if self._ended and _is_task(entry):
                self.usage, self.steps, self._ended = Usage(), 0, False
            self._ended = self._ended or _is_end(entry)
            told = entry.meta.get("usage")
            if isinstance(told, Mapping):
                self.usage += Usage.from_json(told)
                self.steps += 1
        self._seen = len(own)


def used(entries: Sequence[Entry], facts: Mapping[str, Any]) -> tuple[Usage, int]:
    """The same of a stored one."""
    tally = Tally()
    tally.read(own_entries(entries, facts))
    return tally.usage, tally.steps


def _is_task(entry: Entry) -> bool:
    """Whether somebody but the harness speaks to it."""
    return entry.kind is Kind.USER and entry.meta.get("speaker") != Speaker.HARNESS


def _is_end(entry: Entry) -> bool:
    return END in entry.meta or (entry.kind is Kind.ASSISTANT and not entry.calls)


def task_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries since somebody but the harness last spoke after an end."""
    start = 0
    ended = False
    for at, entry in enumerate(entries):
        if ended and _is_task(entry):
            start, ended = at, False
        ended = ended or _is_end(entry)
    return entries[start:]


def ends(entries: Sequence[Entry]) -> int:
    """How many tasks of it have come to an end: given by somebody, and not gone on with since."""
    given = [
        at for at, entry in enumerate(entries)
        if entry.kind is Kind.USER and entry.meta.get("speaker") == Speaker.MAIN_AGENT
    ]  # fmt: skip
    count = 0
    for at, start in enumerate(given):
        stop = given[at + 1] if at + 1 < len(given) else len(entries)
        last = _last(entries[start:stop])
        count += last is not None and _is_end(last)
    return count


def corrections(entries: Sequence[Entry]) -> int:
    """How often the harness has sent its answer back, in this task."""
    return sum(
        1
        for entry in task_of(entries)
        if entry.kind is Kind.USER and entry.meta.get("speaker") == Speaker.HARNESS
    )


def report(store: Store, session: str, registry: Registry) -> SubagentReport | None:
    """How the sub-agent `session` stands as far as its record says; `None`: there is none.

    One that has no end is `INTERRUPTED` here: whether it runs is known where it runs.
    """
    try:
        record = store.session(session)
    except SessionNotFound:
        return None
    facts = facts_of(record)
    if facts is None:
        return None
    entries = [entry for entry, _ in store.entries(session, record.wire)]
    seen = conversation_of(entries, registry)
    tainted, private = dict.fromkeys(seen.tainted_by), dict.fromkeys(seen.private_from)
    for child, _ in children_of(store, session):  # what those below it have read, it may have read
        below = report(store, child, registry)
        if below is not None:
            tainted |= dict.fromkeys([source_of(below)] if below.tainted_by else [])
            private |= dict.fromkeys(below.private_from)
    total, steps = used(entries, facts)
    end = _end(own_entries(entries, facts), facts)
    return SubagentReport(
        session, str(facts["agent"]), end.status, end.value, end.message, end.next,
        outcome_of(store, session), tuple(tainted), tuple(private), total, steps,
        last_call(entries), (*facts.get("notes", ()), *end.notes), end.said,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _End:
    status: SubagentStatus = SubagentStatus.INTERRUPTED
    value: Any = None
    message: str = ""
    next: str = ""
    said: str = ""
    notes: Sequence[str] = ()


def _end(entries: Sequence[Entry], facts: Mapping[str, Any]) -> _End:
    last = _last(entries)
    if last is not None and END in last.meta:
        end = last.meta[END]
        return _End(
            SubagentStatus(end["status"]), None, end["message"], end["next"], end.get("said", "")
        )
    if last is not None and last.kind is Kind.ASSISTANT and not last.calls:
        try:
            form = OutputForm(Assignment.from_json(facts["assignment"]).output_schema)
        except ToolDefinitionError:
            return _End()
        answer = form.read(last.text)
        if answer.fits:
            return _End(SubagentStatus.DONE, answer.value, notes=answer.notes)
    return _End()


def _last(entries: Sequence[Entry]) -> Entry | None:
    """The last entry that says something to somebody."""
    return next((entry for entry in reversed(entries) if entry.kind not in BESIDE), None)


def last_call(entries: Sequence[Entry]) -> str:
    """Its last call, in its own words."""
    for entry in reversed(entries):
        if entry.calls:
            call = entry.calls[-1]
            raw = call.raw if len(call.raw) <= 120 else f"{call.raw[:120]}…"
            return f"{call.name} {raw}"
    return ""
