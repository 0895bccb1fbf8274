"""Station 5, permit: what the policy says of this principal, this tool and these arguments."""

from __future__ import annotations

from lorimer.core.calls import Refusal
from lorimer.core.decisions import CallFacts, Verdict
from lorimer.tools.dispatch.state import CallState, Surroundings, own_copy


def facts_of(state: CallState, around: Surroundings) -> CallFacts:
    tool = state.tool
    assert tool is not None
    paths = []
    for name in tool.path_arguments:
        given = state.value.get(name)
        if isinstance(given, str):
            paths.append(given)
        elif isinstance(given, list):
            paths += [one for one in given if isinstance(one, str)]
    return CallFacts(
        tool.name, tool.effects, str(tool.category), own_copy(state.value), paths,
        around.principal.id, around.session, str(around.workspace),
    )  # fmt: skip


async def permit(state: CallState, around: Surroundings) -> Refusal | None:
    decision = around.policy.decide(facts_of(state, around))
    state.decision = decision
    if decision.verdict is Verdict.DENY:
        return Refusal(
            "denied",
            f"The policy refuses this call of {state.name}: {decision.reason}",
            next=decision.next or "Do it another way, or tell the user what permission is needed.",
        )
    return None
