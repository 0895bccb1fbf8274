"""Right before a call starts: is what was approved still what would run? (G5)"""

from __future__ import annotations

from lorimer.core.approvals import ApprovalState, what_changed
from lorimer.core.calls import Refusal
from lorimer.core.decisions import Verdict, strictest
from lorimer.core.errors import ApprovalError
from lorimer.store.protocol import Change, CloseApproval
from lorimer.tools.dispatch.evidence import bound_of
from lorimer.tools.dispatch.permit import facts_of, voices
from lorimer.tools.dispatch.state import CallState, Surroundings


async def still_approved(state: CallState, around: Surroundings) -> Refusal | None:
    """Work out facts and binding again; when something is different the approval is void."""
    before = state.bound
    if before is None:
        return None
    facts = facts_of(state, around)
    decision = strictest(voices(facts, around))
    after = await bound_of(facts, around)
    changes = what_changed(before.to_json(), after.to_json())
    if decision.verdict is Verdict.DENY:
        changes.append(f"the policy refuses it now ({decision.reason})")
    if not changes:
        return None
    why = f"{'; '.join(changes)} between the question and the answer"
    closing: list[Change] = [CloseApproval(s.id, ApprovalState.VOID, why) for s in state.spends]
    await around.store.commit(*closing)
    state.spends.clear()
    by = f"{state.approved_by} approved" if state.approved_by else "was approved"
    return Refusal(
        "approval_void",
        f"What {by} is not what would run now: {why}. Nothing was run.",
        next="Look at what changed. If the call is still right, call it again: it is asked anew.",
        retryable=True,
    )


def not_usable(state: CallState, fault: ApprovalError) -> Refusal:
    """The approval was there when it was looked at, and is not there to be used."""
    return Refusal(
        "approval_spent",
        f"{fault.message} An approval is good for one call; nothing was run.",
        next="Call it again if it is still wanted: it is asked anew.",
        retryable=True,
    )
