"""What is told of a sub-agent: its one JSON value, or why there is none, with the labels of what it
has read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lorimer.core.calls import Outcome
from lorimer.core.messages import TextPart
from lorimer.core.trust import Trust
from lorimer.tools.subagents import SPAWN, SubagentReport, SubagentStatus
from lorimer.tools.tool_context import ToolError

_ENDS = {
    SubagentStatus.WRONG_OUTPUT: "subagent_output",
    SubagentStatus.LOOP: "subagent_loop",
    SubagentStatus.OVER_BUDGET: "subagent_budget",
    SubagentStatus.FAILED: "subagent_failed",
    SubagentStatus.CANCELLED: "subagent_cancelled",
    SubagentStatus.INTERRUPTED: "subagent_interrupted",
}
"""The error code of each end without an answer."""


def source_of(report: SubagentReport) -> str:
    """The source of its words."""
    return source_for(report.agent, report.tainted_by)


def source_for(agent: str, tainted_by: Sequence[str]) -> str:
    """The source of the words of a sub-agent that has read this outside content."""
    if tainted_by:
        return f"sub-agent {agent}, which had read {', '.join(tainted_by)}"[:400]
    return f"sub-agent {agent}"


def trust_of(report: SubagentReport) -> Trust:
    """The label of its words: outside content when it has read any."""
    return Trust.EXTERNAL if report.tainted_by else Trust.USER_DATA


def answer_parts(report: SubagentReport) -> list[TextPart]:
    """The answer of one that is done, and where its trajectory is."""
    value = json.dumps(report.value, ensure_ascii=False)
    words = f"\n[{report.id}; {report.steps} steps{_noted(report)}]"
    return [
        TextPart(value, trust_of(report), source_of(report)),
        TextPart(words, Trust.USER_DATA, SPAWN),
    ]


def _noted(report: SubagentReport) -> str:
    return "".join(f"; {note}" for note in report.notes)


def status_line(report: SubagentReport) -> dict[str, Any]:
    """How it stands, without a word that it wrote."""
    out: dict[str, Any] = {
        "subagent": report.id, "agent": report.agent, "status": str(report.status),
        "steps": report.steps,
    }  # fmt: skip
    if report.usage.requests:
        out["tokens"] = report.usage.input_tokens + report.usage.output_tokens
    if report.message:
        out["why"] = report.message
    return out


def said_parts(report: SubagentReport) -> list[TextPart]:
    """What goes with an end without an answer under the label of the sub-agent: what its fault
    said, and that it had read outside content."""
    words = f"The fault said: {report.said}" if report.said else ""
    if report.tainted_by and not words:
        words = "(Nothing that it wrote is handed on.)"
    return [TextPart(words, trust_of(report), source_of(report))] if words else []


def result_of(report: SubagentReport) -> list[TextPart]:
    """The result of a call that waited for it.

    Raises:
        ToolError: when it ended without an answer; with the code of that end, and what is true of
            the effects of its calls.
    """
    if report.status is SubagentStatus.DONE:
        return answer_parts(report)
    if not report.ended:
        return [TextPart(json.dumps(status_line(report), ensure_ascii=False))]
    outcome = {
        Outcome.UNKNOWN: Outcome.UNKNOWN,
        Outcome.DONE: Outcome.FAILED_AFTER_EFFECT,
    }.get(report.outcome, Outcome.FAILED_BEFORE_EFFECT)
    done = {
        Outcome.UNKNOWN: " Of at least one of its calls it is not known whether its effect happened"
        ": look before anything is repeated.",
        Outcome.FAILED_AFTER_EFFECT: " What its calls had changed stays changed: look before "
        "anything is repeated.",
    }.get(outcome, "")
    raise ToolError(
        f"The sub-agent {report.id} ({report.agent}) gave no answer: {report.message}{done}",
        next=report.next or "Go on without it and say so.",
        code=_ENDS[report.status],
        outcome=outcome,
        retryable=outcome is Outcome.FAILED_BEFORE_EFFECT,
        details={"subagent": report.id, "steps": report.steps},
        said=said_parts(report),
    )
