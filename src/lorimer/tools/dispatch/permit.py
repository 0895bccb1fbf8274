"""Station 5, permit: what this very call would touch, and what the policy and the guards say of it.

The strictest voice counts. Everything here is worked out from the checked arguments and from what
the session knows of itself; nothing that a model can set switches any of it off.
"""

from __future__ import annotations

from dataclasses import replace

from lorimer.core.calls import Effects, Refusal
from lorimer.core.decisions import CallFacts, Decision, Verdict, strictest
from lorimer.core.effects import CallEffects
from lorimer.tools.dispatch.context import make_context
from lorimer.tools.dispatch.state import CallState, Surroundings, own_copy


def facts_of(state: CallState, around: Surroundings) -> CallFacts:
    """What decisions about this call rest on, as the world is now."""
    tool = state.tool
    assert tool is not None
    paths = []
    for name in tool.path_arguments:
        given = state.value.get(name)
        if isinstance(given, str):
            paths.append(given)
        elif isinstance(given, list):
            paths += [one for one in given if isinstance(one, str)]
    workspace = str(around.workspace)
    cwd = None if tool.cwd_of is None else tool.cwd_of(make_context(state, around))
    facts = CallFacts(
        tool.name, tool.effects, str(tool.category), own_copy(state.value), paths,
        around.principal.id, around.session, cwd or workspace,
        roots=(workspace, *map(str, around.roots)), roles=around.principal.roles,
        traits=tool.traits, conversation=around.conversation, group=tool.group,
    )  # fmt: skip
    if tool.calls_tools or tool.delegates:  # no effects but those of calls decided one by one
        return replace(facts, touches=CallEffects(Effects.READ))
    if around.assessor is not None:
        facts = replace(facts, touches=around.assessor.assess(facts))
    return facts


def voices(facts: CallFacts, around: Surroundings) -> tuple[Decision, ...]:
    """What the policy and every guard say."""
    found = [around.policy.decide(facts)]
    found += [d for guard in around.guards if (d := guard.decide(facts)) is not None]
    return tuple(found)


async def permit(state: CallState, around: Surroundings) -> Refusal | None:
    state.facts = facts_of(state, around)
    decision = strictest(voices(state.facts, around))
    state.decision = decision
    if decision.verdict is Verdict.DENY:
        return Refusal(
            "denied",
            f"The policy refuses this call of {state.name}: {decision.reason}",
            next=decision.next or "Do it another way, or tell the user what permission is needed.",
        )
    return None
