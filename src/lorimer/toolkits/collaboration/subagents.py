"""The tools by which an agent hands work to sub-agents. Each reaches them through the port of its
session (`ToolContext.subagents`)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from lorimer.core.calls import Effects, Idempotency, Outcome
from lorimer.core.messages import TextPart
from lorimer.core.trust import Trust
from lorimer.toolkits.collaboration.report import (
    answer_parts,
    result_of,
    said_parts,
    source_of,
    status_line,
    trust_of,
)
from lorimer.tools.function import tool
from lorimer.tools.subagents import (
    DEFAULT_SCHEMA,
    Assignment,
    Handover,
    SubagentPort,
    SubagentReport,
    SubagentStatus,
)
from lorimer.tools.tool import (
    NOT_FOUND,
    Budget,
    Category,
    Description,
    Tool,
    ToolContext,
    ToolError,
)

_GROUP = "agents"
_LONGEST_S = 24 * 3600.0  # its own budget ends it long before
_BUDGET = Budget(lines=200, characters=12_000)


def port_of(context: ToolContext) -> SubagentPort:
    """The sub-agents of the session.

    Raises:
        ToolError: when it may have none.
    """
    if context.subagents is None:
        raise ToolError(
            "There are no sub-agents in this session.",
            next="Do the task yourself.",
            code="no_subagents",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            retryable=False,
        )
    return context.subagents


async def _found(operation_key: str, context: ToolContext) -> Any:
    """What became of a call whose end was lost: how its sub-agent stands by its own record."""
    report = port_of(context).found(operation_key)
    if report is None:
        return NOT_FOUND
    if report.status is SubagentStatus.DONE:
        return answer_parts(report)
    raise ToolError(
        f"the sub-agent {report.id} is {report.status}; get_subagent_status tells how it stands, "
        "send_message_to_subagent goes on with it"
    )


@tool(
    description=Description(
        "Give a task to a sub-agent that works in a context of its own; only its final JSON comes "
        "back.",
        use_when="the way to the result is long and only the result matters: broad searches, many "
        "files, parallel parts.",
        not_when="one or two calls do it.",
        cost="its own model requests; this context grows by the task and the result only.",
        returns="the JSON value, and the sub-agent's id; with wait=false the id at once and the "
        "result as an event.",
    ),
    examples=({"task": "Which files under src/ open a socket?", "agent": "explore"},),
    category=Category.COLLABORATION,
    effects=Effects.WRITE,
    idempotency=Idempotency.KEYED,
    find_outcome=_found,
    delegates=True,
    timeout_s=_LONGEST_S,
    budget=_BUDGET,
    sinks=(),
    path_arguments=(),
    trust=Trust.USER_DATA,
    group=_GROUP,
)
async def spawn_subagent(
    task: Annotated[
        str,
        Field(
            min_length=1,
            description="All it must know, e.g. 'Which files under src/ open a socket?'",
        ),
    ],
    agent: Annotated[
        str, Field(description="Kind, see list_agents, e.g. 'explore' (only reads)")
    ] = "general",
    inputs: Annotated[
        list[str] | None,
        Field(max_length=50, description="Paths or earlier call ids, e.g. ['data/a.csv']"),
    ] = None,
    output_schema: Annotated[
        dict[str, Any] | None,
        Field(
            description="JSON Schema of the answer, e.g. {'type': 'array'}; else {answer, evidence}"
        ),
    ] = None,
    handover: Annotated[
        Literal["minimal", "distilled", "inherit"],
        Field(
            description="e.g. minimal: the task only; distilled: also what matters of this "
            "conversation; inherit: all of it"
        ),
    ] = "minimal",
    wait: Annotated[bool, Field(description="false: work beside it, e.g. false")] = True,
    max_steps: Annotated[
        int | None, Field(ge=1, le=200, description="Fewer model requests, e.g. 8")
    ] = None,
    *,
    context: ToolContext,
) -> list[TextPart]:
    """Cancellation stops the sub-agent and records that before it goes on."""
    port = port_of(context)
    assignment = Assignment(
        task, agent, tuple(inputs or ()), output_schema or DEFAULT_SCHEMA, Handover(handover),
        max_steps,
    )  # fmt: skip
    if wait:
        return result_of(await port.run(assignment, context))
    return _standing(await port.start(assignment, context))


@tool(
    description=Description(
        "Say something to a sub-agent: more facts, a correction, a further task.",
        use_when="it works on the wrong thing, or one that has ended should go on.",
        not_when="the task is a new one (spawn_subagent).",
        cost="one that works reads it before its next step; one that has ended works on.",
        returns="its new JSON value, or its status while it works.",
    ),
    examples=({"subagent": "s_01….9f2c", "message": "Also look in docs/."},),
    category=Category.COLLABORATION,
    effects=Effects.WRITE,
    idempotency=Idempotency.KEYED,
    delegates=True,
    timeout_s=_LONGEST_S,
    budget=_BUDGET,
    sinks=(),
    path_arguments=(),
    trust=Trust.USER_DATA,
    group=_GROUP,
)
async def send_message_to_subagent(
    subagent: Annotated[str, Field(min_length=1, description="Its id, e.g. 's_01k8….9f2c'")],
    message: Annotated[
        str, Field(min_length=1, description="What to say, e.g. 'Also look in docs/'")
    ],
    wait: Annotated[bool, Field(description="false, e.g. for a word only: do not wait")] = True,
    *,
    context: ToolContext,
) -> list[TextPart]:
    report = await port_of(context).send(subagent, message, context, wait=wait)
    return result_of(report) if wait else _standing(report)


@tool(
    description=Description(
        "Stop a sub-agent that works; what it had done stays done.",
        use_when="its result is not needed any more.",
        not_when="it should do something else (send_message_to_subagent).",
        cost="waits until it has stopped.",
        returns="how it stands.",
    ),
    examples=({"subagent": "s_01….9f2c"},),
    category=Category.COLLABORATION,
    effects=Effects.WRITE,
    idempotency=Idempotency.NATURAL,
    delegates=True,
    sinks=(),
    path_arguments=(),
    trust=Trust.USER_DATA,
    group=_GROUP,
)
async def cancel_subagent(
    subagent: Annotated[str, Field(min_length=1, description="Its id, e.g. 's_01k8….9f2c'")],
    *,
    context: ToolContext,
) -> list[TextPart]:
    return _standing(await port_of(context).cancel(subagent, "the main agent cancelled it"))


@tool(
    description=Description(
        "How a sub-agent stands, and its answer when it is done.",
        use_when="one was started with wait=false and its event has not come.",
        not_when="its event has come: that is the answer.",
        cost="nothing.",
        returns="status, steps, its last call; when it is done its JSON value.",
    ),
    examples=({"subagent": "s_01….9f2c"},),
    category=Category.COLLABORATION,
    effects=Effects.READ,
    budget=_BUDGET,
    path_arguments=(),
    trust=Trust.USER_DATA,
    group=_GROUP,
)
async def get_subagent_status(
    subagent: Annotated[str, Field(min_length=1, description="Its id, e.g. 's_01k8….9f2c'")],
    *,
    context: ToolContext,
) -> list[TextPart]:
    return _standing(port_of(context).status(subagent), doing=True)


@tool(
    description=Description(
        "The kinds of sub-agents there are, and those this session has started.",
        use_when="you choose one, or have lost an id.",
        not_when="you know both.",
        cost="one line each.",
        returns="names with their tools; ids with their status.",
    ),
    examples=({},),
    category=Category.COLLABORATION,
    effects=Effects.READ,
    trust=Trust.USER_DATA,
    group=_GROUP,
)
async def list_agents(*, context: ToolContext) -> str:
    port = port_of(context)
    known, notices = port.agents()
    lines = ["agents:"]
    for one in known:
        tools = ", ".join(one.tools) or "no tools"
        model = "" if one.model == "inherit" else f"; model {one.model}"
        lines.append(f"- {one.name}: {_short(one.description)} [{tools}{model}]")
    lines += [f"  note: {_short(notice)}" for notice in notices[:5]]
    children = port.children()
    if children:
        lines.append("started in this session:")
        lines += [
            f"- {one.id} ({one.agent}): {one.status}, {one.steps} steps" for one in children[-40:]
        ]
    return "\n".join(lines)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 240 else f"{flat[:240]}…"


def _standing(report: SubagentReport, *, doing: bool = False) -> list[TextPart]:
    """How it stands; with what it wrote under its own label."""
    parts = [TextPart(json.dumps(status_line(report), ensure_ascii=False))]
    if report.status is SubagentStatus.DONE:
        parts += [TextPart("\n"), *answer_parts(report)[:1]]
    elif doing and not report.ended and report.doing:
        words = f"\nlast call: {report.doing}"
        parts.append(TextPart(words, trust_of(report), source_of(report)))
    elif report.ended:
        parts += said_parts(report)
    return parts


def agent_tools() -> list[Tool]:
    """All of them, in the order in which a model should see them."""
    return [
        spawn_subagent, send_message_to_subagent, cancel_subagent, get_subagent_status, list_agents
    ]  # fmt: skip
