"""Station 9, verify: the result against its schema and the tool's post-checks. Findings are part of
the result; they never turn a call that was done into one that was not."""

from __future__ import annotations

import inspect

from lorimer.core.calls import Refusal
from lorimer.tools.dispatch.state import CallState, Surroundings, own_copy
from lorimer.tools.schema import problems

_SHOWN_PROBLEMS = 5


async def verify(state: CallState, around: Surroundings) -> Refusal | None:
    tool, context = state.tool, state.context
    assert tool is not None
    if tool.output_validator is not None:
        found = problems(tool.output_schema or {}, tool.output_validator, state.result_value)
        for _, problem in found[:_SHOWN_PROBLEMS]:
            state.notes.append(
                f"The result does not fit the tool's own schema at {problem.path or 'its top'}: "
                f"{problem.expected}"
            )
    if tool.verify is not None and context is not None:
        try:
            findings = tool.verify(own_copy(state.value), state.result_value, context)
            if inspect.isawaitable(findings):
                findings = await findings
        except Exception as fault:  # noqa: BLE001 - a broken check is a finding, too
            state.notes.append(
                f"The check after the call failed itself: {type(fault).__name__}: {fault}"
            )
        else:
            state.notes += [f"{finding.severity}: {finding.message}" for finding in findings]
    return None
