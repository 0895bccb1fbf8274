"""How a sub-agent stands, read from its own record alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import SessionNotFound, ToolDefinitionError
from lorimer.core.messages import BESIDE, Entry, Kind
from lorimer.core.usage import Usage
from lorimer.runtime.subagents.answer import OutputForm
from lorimer.runtime.subagents.labels import conversation_of, outcome_of
from lorimer.runtime.subagents.tags import Speaker
from lorimer.store.protocol import SessionRecord, Store
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


def used(entries: Sequence[Entry], facts: Mapping[str, Any]) -> tuple[Usage, int]:
    """What its requests have used, and how many there were, since it last was given a task."""
    total, steps = Usage(), 0
    for entry in task_of(own_entries(entries, facts)):
        told = entry.meta.get("usage")
        if isinstance(told, Mapping):
            total += Usage.from_json(told)
            steps += 1
    return total, steps


def task_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries since somebody but the harness last spoke after an end."""
    start = 0
    ended = False
    for at, entry in enumerate(entries):
        spoken = entry.kind is Kind.USER and entry.meta.get("speaker") != Speaker.HARNESS
        if spoken and ended:
            start, ended = at, False
        ended = ended or END in entry.meta or (entry.kind is Kind.ASSISTANT and not entry.calls)
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
        count += last is not None and (
            END in last.meta or (last.kind is Kind.ASSISTANT and not last.calls)
        )
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
    total, steps = used(entries, facts)
    status, value, message, next_, notes = _end(own_entries(entries, facts), facts)
    return SubagentReport(
        session, str(facts["agent"]), status, value, message, next_,
        outcome_of(store, session), seen.tainted_by, seen.private_from, total, steps,
        _last_call(entries), (*facts.get("notes", ()), *notes),
    )  # fmt: skip


def _end(
    entries: Sequence[Entry], facts: Mapping[str, Any]
) -> tuple[SubagentStatus, Any, str, str, Sequence[str]]:
    last = _last(entries)
    if last is not None and END in last.meta:
        end = last.meta[END]
        return SubagentStatus(end["status"]), None, end["message"], end["next"], ()
    if last is not None and last.kind is Kind.ASSISTANT and not last.calls:
        try:
            form = OutputForm(Assignment.from_json(facts["assignment"]).output_schema)
        except ToolDefinitionError:
            return _interrupted()
        answer = form.read(last.text)
        if answer.fits:
            return SubagentStatus.DONE, answer.value, "", "", answer.notes
    return _interrupted()


def _last(entries: Sequence[Entry]) -> Entry | None:
    """The last entry that says something to somebody."""
    return next((entry for entry in reversed(entries) if entry.kind not in BESIDE), None)


def _interrupted() -> tuple[SubagentStatus, Any, str, str, Sequence[str]]:
    return SubagentStatus.INTERRUPTED, None, "", "", ()


def _last_call(entries: Sequence[Entry]) -> str:
    for entry in reversed(entries):
        if entry.calls:
            call = entry.calls[-1]
            raw = call.raw if len(call.raw) <= 120 else f"{call.raw[:120]}…"
            return f"{call.name} {raw}"
    return ""
