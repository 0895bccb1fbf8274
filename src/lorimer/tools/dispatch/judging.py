"""What the models beside the agent say of a call: the sidecar and the reviewer.

Each opinion is kept with its reason. No verdict (time-out, outage, nonsense) is never a yes: a
person is asked, and the breaker counts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState
from lorimer.core.calls import Effects, Refusal
from lorimer.core.decisions import Opinion, Verdict
from lorimer.core.effects import Concern
from lorimer.core.ids import new_id
from lorimer.core.intents import intent_of
from lorimer.store.protocol import OpenApproval
from lorimer.tools.dispatch.evidence import preview_of
from lorimer.tools.dispatch.permit import voices
from lorimer.tools.dispatch.state import CallCancelled, CallState, Surroundings

_FOR_PEOPLE = (Concern.PRIVILEGE, Concern.PERSISTENCE, Concern.SECRETS, Concern.UNKNOWN)
"""What only a person may say yes to, whatever a model thinks of it."""

_STATES = {
    Verdict.ALLOW: ApprovalState.APPROVED,
    Verdict.ASK: ApprovalState.REFERRED,
    Verdict.DENY: ApprovalState.REJECTED,
    None: ApprovalState.NO_VERDICT,
}


async def judge(state: CallState, around: Surroundings) -> Refusal | bool:
    """Whether a person must be asked, after the sidecar and the reviewer have spoken; or their
    refusal."""
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None
    asks, person = decision.verdict is Verdict.ASK, False
    if around.sidecar is not None and (asks or facts.level is not Effects.READ):
        opinion = await _sidecar(state, around)
        await _keep(state, around, ApprovalKind.SIDECAR, opinion)
        if opinion.verdict is Verdict.DENY:
            return _rejected(state, opinion)
        if opinion.verdict is Verdict.ALLOW:
            if asks and facts.level is not Effects.IRREVERSIBLE and may_lift(state, around):
                state.approved_by, asks = opinion.by, False
        else:
            _explain(state, opinion)
            person = True
    if is_reviewed(state, around):
        assert around.reviewer is not None
        preview = around.clean(await preview_of(state, around))
        opinion = await _unless_cancelled(around, around.reviewer.review(facts, decision, preview))
        await _keep(state, around, ApprovalKind.REVIEWER, opinion)
        match opinion.verdict:
            case Verdict.DENY:
                return _rejected(state, opinion)
            case Verdict.ALLOW if may_lift(state, around, reviewed=True):
                state.approved_by, asks = opinion.by, False
            case Verdict.ALLOW:
                pass
            case _:
                _explain(state, opinion)
                person = True
    return asks or person


def is_reviewed(state: CallState, around: Surroundings) -> bool:
    """Whether the reviewer looks at this call: it cannot be undone, or a rule says so."""
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None
    return around.reviewer is not None and (facts.level is Effects.IRREVERSIBLE or decision.review)


def may_lift(state: CallState, around: Surroundings, *, reviewed: bool = False) -> bool:
    """Whether every question about the call comes from the mode `auto` alone, or, when it was
    `reviewed`, from a rule that is content with that: all others only a person answers."""
    facts = state.facts
    assert facts is not None
    for_people = facts.touches is not None and facts.touches.has(*_FOR_PEOPLE)
    of_mode = around.policy.mode == "auto" and not for_people
    return all(
        (of_mode and voice.rule == "mode auto") or (reviewed and voice.review)
        for voice in voices(facts, around)
        if voice.verdict is Verdict.ASK
    )


async def _sidecar(state: CallState, around: Surroundings) -> Opinion:
    """The opinion that was asked for while the model still wrote, or a new one."""
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None and around.sidecar is not None
    begun = None if around.foreseen is None else around.foreseen.take(state.call, facts, decision)
    if begun is None:
        return await _unless_cancelled(around, around.sidecar.judge(facts, decision))

    async def wait(task: asyncio.Task[Opinion]) -> Opinion:
        return await task

    return await _unless_cancelled(around, wait(begun))


async def _unless_cancelled(around: Surroundings, work: Coroutine[Any, Any, Opinion]) -> Opinion:
    """A sidecar or reviewer of somebody else's that raises has come to no verdict."""
    try:
        found: object = await around.unless_cancelled(work)
    except CallCancelled:
        raise
    except Exception as fault:  # noqa: BLE001 - whatever it is: no verdict
        return Opinion(None, "the check", f"it failed: {type(fault).__name__}: {fault}")
    if not isinstance(found, Opinion):
        return Opinion(None, "the check", f"it answered {found!r}, which is no opinion")
    return found


async def _keep(
    state: CallState, around: Surroundings, kind: ApprovalKind, opinion: Opinion
) -> None:
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None
    now = around.clock.now()
    reason = around.clean(opinion.reason)
    answer = {"by": opinion.by, "reason": reason, "verdict": str(opinion.verdict or "none")}
    approved = {Verdict.ALLOW: True, Verdict.DENY: False}.get(opinion.verdict)  # type: ignore[arg-type]
    record = ApprovalRecord(
        id=new_id("a", around.clock), session=around.session, root=around.lineage, kind=kind,
        call=state.call.id, tool=state.name, principal=around.principal.id, binding="", digest="",
        state=_STATES[opinion.verdict], asked_at=now, answered_at=now,
        request={
            "tool": state.name, "reason": decision.reason, "rule": decision.rule,
            "effects": str(facts.level), "arguments": dict(facts.arguments),
            "intent": intent_of(facts),
        },
        answer=answer if approved is None else {**answer, "approved": approved},
    )  # fmt: skip
    await around.store.commit(OpenApproval(record))


def _explain(state: CallState, opinion: Opinion) -> None:
    """Put what was said into the question for the person."""
    decision = state.decision
    assert decision is not None
    said = "came to no verdict" if opinion.verdict is None else "wants a person to look"
    reason = f"{decision.reason}; {opinion.by} {said}: {opinion.reason}"
    state.decision = replace(decision, verdict=Verdict.ASK, reason=reason)


def _rejected(state: CallState, opinion: Opinion) -> Refusal:
    return Refusal(
        "rejected",
        f"{opinion.by} rejected this call of {state.name}: {opinion.reason}",
        next="Do what it says is missing, or ask the user; do not try the same in another way.",
    )
