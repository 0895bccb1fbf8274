"""What the calls of a session have around them, put together from its agent and its record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lorimer.core.messages import ResultPart, part_from_json
from lorimer.runtime.views import SessionViews
from lorimer.safety.injection.visible import reveal
from lorimer.store.protocol import CallRecord, SessionRecord
from lorimer.tools.dispatch.inner import outer_of
from lorimer.tools.dispatch.limits import count
from lorimer.tools.dispatch.state import Surroundings

if TYPE_CHECKING:
    from lorimer.core.calls import Outcome
    from lorimer.core.watch import Watcher
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.conversation import SessionConversation
    from lorimer.tools.dispatch.state import CallState
    from lorimer.tools.units.units import Units

    OnLate = Callable[[CallState, Outcome, str], Awaitable[None]]


def surroundings_of(
    agent: Agent,
    record: SessionRecord,
    calls: Sequence[CallRecord],
    *,
    units: Units,
    conversation: SessionConversation,
    watch: Watcher,
    on_late: OnLate,
) -> Surroundings:
    """The surroundings of an opened session; what was counted and read is taken from `calls`."""
    around = Surroundings(
        session=record.id,
        principal=agent.principal,
        store=agent.store,
        registry=agent.registry,
        policy=agent.policy,
        units=units,
        workspace=agent.workspace,
        scratch=agent.store.results_folder(record.id),
        readable=lambda: (*agent.readable(), *(f for f in handed_on(agent, record) if f.is_dir())),
        roots=agent.roots,
        assessor=agent.assessor,
        guards=agent.guards,
        conversation=conversation,
        reveal=reveal,
        approver=agent.approver,
        approval_timeout_s=agent.approval_timeout_s,
        approval_wait_s=agent.approval_wait_s,
        sidecar=agent.sidecar,
        reviewer=agent.reviewer,
        root=str(record.meta.get("root", "")),
        sandbox=_sandbox_level,
        clock=agent.clock,
        views=SessionViews(calls),
        watch=watch,
        allow_repair=agent.allow_repair,
        on_late=on_late,
        on_inner=conversation.inner,
        redact=agent.secrets.redact,
        secrets=agent.secrets,
    )
    ids = {call.id for call in calls}
    for call in calls:
        if call.result is not None and outer_of(call.id, ids) is not None:
            made = part_from_json(call.result)
            if isinstance(made, ResultPart):
                conversation.inner(made)
        if call.operation_key:
            key = (call.tool, call.arguments_digest)
            around.occurrences[key] = max(around.occurrences[key], call.occurrence + 1)
            tool = agent.registry.get(call.tool)
            if tool is not None:
                count(around, tool, call.value if isinstance(call.value, dict) else {})
    return around


def handed_on(agent: Agent, record: SessionRecord) -> tuple[Path, ...]:
    """What the sessions above a sub-agent have kept: their results may be handed to it by path."""
    above = (record.meta.get("parent"), (record.meta.get("copied") or {}).get("session"))
    folders = (agent.store.results_folder(str(name)) for name in above if name)
    return tuple(folder for folder in folders if folder is not None)


def _sandbox_level() -> str:
    """The level that commands can have on this machine."""
    from lorimer.safety.sandbox.choose import available

    return next(found.level for found in available() if found.usable)
