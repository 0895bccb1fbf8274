"""Station 6, review: where the policy says `ask`, a person decides on this exact call."""

from __future__ import annotations

import anyio

from lorimer.core.calls import Refusal
from lorimer.core.decisions import ApprovalRequest, Verdict
from lorimer.tools.dispatch.permit import facts_of
from lorimer.tools.dispatch.state import CallState, Surroundings


async def review(state: CallState, around: Surroundings) -> Refusal | None:
    decision = state.decision
    assert decision is not None
    if decision.verdict is not Verdict.ASK:
        return None
    if around.rejections >= around.rejection_limit:
        return Refusal(
            "breaker_open",
            f"{around.rejections} calls in a row were rejected; no more are put to the person "
            "in this run.",
            next="Stop, and say what you wanted to do and why.",
        )
    if around.approver is None:
        return Refusal(
            "needs_approval",
            f"This call of {state.name} needs a person's approval ({decision.reason}), and nobody "
            "can be asked here.",
            next="Tell the user what you would do; they can run it with approval or in mode auto.",
        )
    request = ApprovalRequest(state.call.id, facts_of(state, around), decision.reason)
    try:
        with anyio.fail_after(around.approval_timeout_s):
            answer = await around.unless_cancelled(around.approver.ask(request))
    except TimeoutError:
        return Refusal(
            "approval_timeout",
            f"Nobody answered the approval request within {around.approval_timeout_s:g} s, so the "
            "call was not run.",
            next="Go on without it, or tell the user that it waits for them.",
        )
    if not answer.approved:
        around.rejections += 1
        reason = f": {answer.reason}" if answer.reason else "."
        return Refusal(
            "rejected",
            f"{answer.by} rejected this call of {state.name}{reason}",
            next="Do not try the same thing in another way. Ask what is wanted instead.",
        )
    around.rejections = 0
    state.approved_by = answer.by
    return None
