"""Station 4, rules: limits, repetition, and the tool's own business checks."""

from __future__ import annotations

import inspect

from lorimer.core.calls import JournalState, Refusal
from lorimer.core.canonical import canonical_json, digest
from lorimer.tools.dispatch.context import make_context
from lorimer.tools.dispatch.limits import over_limit
from lorimer.tools.dispatch.secret_arguments import check_secrets
from lorimer.tools.dispatch.state import CallState, Surroundings, own_copy

_HONEST = "Do not call it again now. Say what was tried, what failed, and what is needed to go on."


async def rules(state: CallState, around: Surroundings) -> Refusal | None:
    tool = state.tool
    assert tool is not None
    failed = around.failures[tool.name]
    if failed >= tool.max_attempts:
        return Refusal(
            "limit",
            f"{tool.name} has failed {failed} times in a row in this run; that is the limit.",
            next=_HONEST,
        )
    started_before = state.journal is not None and state.journal.state is JournalState.STARTED
    if not started_before:  # then it is counted already
        refusal = over_limit(tool, state.value, around)
        if refusal is not None:
            return refusal
    state.arguments_digest = digest(canonical_json(state.value))
    same = around.same.get((tool.name, state.arguments_digest))
    if same is not None and same[1] >= around.repeat_limit:
        return Refusal(
            "repeated",
            f"{tool.name} was called with these arguments {same[1]} times in a row and gave "
            "the same "
            "result each time.",
            next="Use the result you have, or call with other arguments.",
        )
    refusal = check_secrets(state, around)
    if refusal is not None:
        return refusal
    state.context = make_context(state, around)
    for check in tool.checks:
        answer = check(own_copy(state.value), state.context)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is not None:
            return answer
    return None
