"""What a session is opened with: its record, its entries, and everything it has around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lorimer.context.trajectory import Trajectory
from lorimer.core.messages import Entry
from lorimer.core.watch import Warned
from lorimer.models.protocol import Prefix
from lorimer.runtime.cache_watch import CacheWatch
from lorimer.runtime.compaction import SessionCompaction
from lorimer.runtime.compaction_setup import use_provider_editing
from lorimer.runtime.conversation import SessionConversation
from lorimer.runtime.foresight import Foresight
from lorimer.runtime.prompt import (
    foreign_notice,
    fresh_prefix,
    kept,
    made_renderings,
    stored_entries,
)
from lorimer.runtime.recorder import was_left
from lorimer.runtime.subagents.attach import above_of, host_of
from lorimer.runtime.surroundings import surroundings_of
from lorimer.runtime.tokens import SessionTokens
from lorimer.store.protocol import CallRecord, SessionRecord
from lorimer.tools.dispatch.dispatcher import Dispatcher
from lorimer.tools.dispatch.review import load_rules

if TYPE_CHECKING:
    from lorimer.runtime.session import Session
    from lorimer.runtime.surroundings import OnLate
    from lorimer.tools.units.units import Units


def new_record(session: Session) -> tuple[SessionRecord, Prefix]:
    """The record of a session that begins now, and its prefix."""
    agent, model = session.agent, session.model
    specs = agent.registry.specs()
    prefix, prompt = fresh_prefix(agent, specs)
    record = SessionRecord(
        id=session.id,
        created_at=agent.clock.now(),
        principal=agent.principal.id,
        model=model.name,
        wire=model.profile.wire,
        system=prompt.text,
        tools=[spec.to_json() for spec in specs],
        prefix=prefix.rendered,
        meta={
            **agent.meta, "workspace": str(agent.workspace), "mode": agent.policy.mode,
            **_descent(session), **kept(agent, prompt),
        },
    )  # fmt: skip
    return record, prefix


def _descent(session: Session) -> dict[str, str]:
    """Of a sub-agent's session: whose it is, and the session at the top. What was rejected in
    one session of a lineage is rejected in all of it."""
    parent = session.agent.parent
    if parent is None:
        return {}
    root = session.store.session(parent).meta.get("root", parent)
    return {"parent": parent, "root": str(root)}


def attach(
    session: Session,
    record: SessionRecord,
    prefix: Prefix,
    calls: Sequence[CallRecord],
    *,
    units: Units,
    on_late: OnLate,
) -> None:
    """Give `session` its trajectory and what it has around it: dispatcher, auditor, and what is
    done before each request, in its order."""
    agent = session.agent
    session.trajectory = Trajectory(session.model, prefix)
    session.conversation = SessionConversation(agent.registry, above_of(agent, record))
    session.cache = CacheWatch(
        session.model,
        strict=agent.strict_cache,
        redact=agent.secrets.redact,
        tell=session.tell,
        remark=session.remark,
    )
    session.tokens = SessionTokens(session)
    around = surroundings_of(
        agent, record, calls, units=units, conversation=session.conversation,
        watch=session.tell, on_late=on_late,
    )  # fmt: skip
    if agent.sidecar is not None:
        around.foreseen = session.foresight = Foresight(agent.sidecar, around)
    for fault in load_rules(around):
        session.tell(Warned(fault))
    session.dispatcher = Dispatcher(around)
    session.subagents = around.subagents = host_of(session)
    session.answers = None
    if agent.answers is not None or "{{" in prefix.system:
        from lorimer.runtime.answers import answers_of

        session.answers = answers_of(session, agent.answers)
    session.preparations = [session.mailbox]
    if agent.skills is not None:
        from lorimer.runtime.skills import SkillCatalogue

        session.preparations.append(SkillCatalogue(session, agent.skills))
    session.compaction = SessionCompaction(session, agent.compaction)
    if agent.compaction is not None:
        session.preparations.append(session.compaction)
        use_provider_editing(session)
    if agent.status is not None:
        from lorimer.runtime.status import StatusUpkeep

        session.status = StatusUpkeep(session, agent.status)
        session.preparations.append(session.status)


async def load_entries(session: Session, record: SessionRecord, prefix: Prefix) -> None:
    """Take up the stored entries; renderings that were missing for this model are stored."""
    agent = session.agent
    made = session.trajectory.load(stored_entries(agent, record))
    entries = session.trajectory.entries
    session.cache.load(entries)
    for entry in entries:
        session.conversation.feed(entry)
    if session.subagents is not None:
        session.subagents.loaded()
    notice = foreign_notice(agent, entries, made)
    if notice:
        session.tell(Warned(notice))
    changes = made_renderings(agent, record, prefix, entries, made)
    if changes:
        await session.store.commit(*changes)


def left_of(entries: Sequence[Entry], calls: Sequence[CallRecord]) -> set[str]:
    """The calls whose functions may have ended later than their results say, and of which the
    model was not told yet."""
    told = {e.meta["corrects"] for e in entries if "corrects" in e.meta}
    return {c.id for c in calls if c.id not in told and (c.late is not None or was_left(c))}
