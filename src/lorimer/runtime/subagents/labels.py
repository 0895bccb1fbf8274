"""What sticks to the work of a sub-agent: which outside content and private data it has read, and
what its calls have changed. Worked out from the record, so it outlasts every restart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lorimer.core.calls import Effects, JournalState, Outcome
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.runtime.conversation import SessionConversation
from lorimer.store.protocol import CallRecord, Store
from lorimer.tools.subagents import SEND, SPAWN

if TYPE_CHECKING:
    from lorimer.tools.registry import Registry

STEERING = frozenset({SPAWN, SEND})
"""Tools whose effects are those of the sub-agents they steer."""


def child_id(parent: str, operation_key: str) -> str:
    """The id of the session that the call with this key starts: the same call after a crash finds
    the same one. It sorts behind its parent."""
    return f"{parent}.{operation_key[:12]}"


def children_of(store: Store, session: str) -> list[tuple[str, CallRecord]]:
    """The sub-agents that were started in `session`, each with the call that did, oldest first."""
    calls = [c for c in store.calls(session) if c.tool == SPAWN and c.operation_key]
    calls.sort(key=lambda call: (call.entry_seq, call.position))
    return [(child_id(session, call.operation_key), call) for call in calls]


def conversation_of(entries: Iterable[Entry], registry: Registry) -> SessionConversation:
    """What a stored session has seen."""
    seen = SessionConversation(registry)
    for entry in entries:
        seen.feed(entry)
    return seen


def words_of_user(store: Store, session: str) -> Sequence[str]:
    """The user's own words in the session at the top of the lineage of `session`."""
    record = store.session(session)
    root = str(record.meta.get("root") or session)
    top = record if root == session else store.session(root)
    return [
        part.text
        for entry, _ in store.entries(root, top.wire)
        if entry.kind is Kind.USER and "speaker" not in entry.meta
        for part in entry.parts
        if isinstance(part, TextPart)
    ]


def outcome_of(store: Store, session: str) -> Outcome:
    """What is true of the effects of all calls of a sub-agent, and of those below it: `DONE` when
    one has happened, `UNKNOWN` when of one it is not known, else `FAILED_BEFORE_EFFECT`."""
    found = {_effect(call) for call in store.calls(session) if call.tool not in STEERING}
    found |= {outcome_of(store, child) for child, _ in children_of(store, session)}
    for outcome in (Outcome.UNKNOWN, Outcome.DONE):
        if outcome in found:
            return outcome
    return Outcome.FAILED_BEFORE_EFFECT


def _effect(call: CallRecord) -> Outcome:
    if call.effects in (None, Effects.READ):
        return Outcome.FAILED_BEFORE_EFFECT
    if call.state is not JournalState.FINISHED:
        started = call.state is JournalState.STARTED
        return Outcome.UNKNOWN if started else Outcome.FAILED_BEFORE_EFFECT
    match call.outcome:
        case Outcome.UNKNOWN:
            return Outcome.UNKNOWN
        case Outcome.DONE | Outcome.FAILED_AFTER_EFFECT:
            return Outcome.DONE
        case _:
            return Outcome.FAILED_BEFORE_EFFECT
