"""How a sub-agent begins: what its call asks for is checked, its session is made, and what it is
told is on disk before anything of it runs. Done again after a crash it comes to the same
session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lorimer.context.agents import INHERIT, Definition
from lorimer.core.calls import Outcome
from lorimer.core.errors import ModelError, SessionNotFound, ToolDefinitionError
from lorimer.core.messages import Entry, Kind, ResultPart, TextPart, part_from_json
from lorimer.runtime.subagents import distil, ledger
from lorimer.runtime.subagents.answer import OutputForm
from lorimer.runtime.subagents.delegate import (
    NamedApprover,
    Tools,
    delegate,
    model_for,
    parts_for,
    tools_for,
)
from lorimer.runtime.subagents.fork import Fork
from lorimer.runtime.subagents.handover import parts_of
from lorimer.runtime.subagents.limits import budget_left
from lorimer.runtime.subagents.settings import Budget
from lorimer.runtime.subagents.tags import RULES, Speaker
from lorimer.store.protocol import SessionRecord
from lorimer.tools.dispatch.recorded import journaled_call
from lorimer.tools.registry import Registry, near
from lorimer.tools.subagents import Assignment, Handover
from lorimer.tools.tool_context import ToolError

if TYPE_CHECKING:
    from lorimer.models.protocol import Model
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.session import Session
    from lorimer.runtime.subagents.host import SubagentHost


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that can be carried out. `results` are those of earlier calls that its inputs name."""

    definition: Definition
    assignment: Assignment
    tools: Tools
    model: Model
    budget: Budget
    results: Sequence[ResultPart]


def planned(host: SubagentHost, assignment: Assignment) -> Plan:
    """Check what is asked for.

    Raises:
        ToolError: `unknown_agent`, `no_tools`, `no_model`, `bad_schema`, `no_such_input` or
            `cannot_inherit`; nothing was started.
    """
    agent = host.session.agent
    definitions = host.catalogue.definitions
    definition = definitions.get(assignment.agent)
    if definition is None:
        raise _refused(
            "unknown_agent",
            f"There is no agent {assignment.agent!r}.",
            f"Use one of: {', '.join(near(assignment.agent, definitions) or definitions)}.",
        )
    inherits = assignment.handover is Handover.INHERIT
    deeper = host.depth + 1 < host.settings.max_depth
    tools = tools_for(definition, agent.registry, may_delegate=inherits or deeper)
    if definition.tools and not len(tools.registry):
        raise _refused(
            "no_tools",
            f"The agent {definition.name!r} needs {', '.join(definition.tools)}, of which this "
            "session has none.",
            "Use another agent (list_agents), or do the task yourself.",
        )
    model = model_for(definition, agent, host.settings)
    if inherits:
        _may_inherit(definition, tools, model, agent)
    try:
        OutputForm(assignment.output_schema)
    except ToolDefinitionError as fault:
        raise _refused(
            "bad_schema", f"output_schema cannot be used: {fault.message}", fault.next
        ) from fault
    budget = budget_left(host)
    steps = [n for n in (budget.max_steps, definition.max_steps, assignment.max_steps) if n]
    results, paths = _inputs(host, assignment.inputs)
    return Plan(
        definition, replace(assignment, inputs=tuple(paths)), tools, model,
        replace(budget, max_steps=min(steps) if steps else None), results,
    )  # fmt: skip


def _may_inherit(definition: Definition, tools: Tools, model: Model, agent: Agent) -> None:
    why = ""
    if model is not agent.model:
        why = f"it has another model ({model.name})"
    elif list(tools.registry.specs()) != list(agent.registry.specs()):
        why = "it has other tools"
    if why:
        raise _refused(
            "cannot_inherit",
            f"The agent {definition.name!r} cannot take over this conversation: {why}, and only "
            "the same bytes are read from the same cache.",
            "Use the agent 'general', or the hand-over 'distilled'.",
        )


def _inputs(host: SubagentHost, inputs: Sequence[str]) -> tuple[list[ResultPart], list[str]]:
    """Results of earlier calls, and paths or addresses; each input is one of these."""
    session = host.session
    results: list[ResultPart] = []
    paths: list[str] = []
    for given in inputs:
        call = journaled_call(session.store, session.id, given)
        if call is not None and call.result is not None:
            part = part_from_json(call.result)
            assert isinstance(part, ResultPart)
            results.append(part)
        elif "://" in given or os.path.lexists(session.agent.workspace / given):
            paths.append(given)
        else:
            raise _refused(
                "no_such_input",
                f"{given!r} is neither a path from {session.agent.workspace} nor the id of an "
                "earlier call.",
                "Correct it, or leave it out and say in the task what to look for.",
            )
    return results, paths


def _refused(code: str, message: str, next: str) -> ToolError:
    return ToolError(
        f"{message} Nothing was started.", next=next, code=code,
        outcome=Outcome.FAILED_BEFORE_EFFECT,
    )  # fmt: skip


# --- making it -----------------------------------------------------------------------------------


async def born(host: SubagentHost, plan: Plan, child: str, call_id: str, *, wait: bool) -> Session:
    """The session of a new sub-agent, open, with its task on disk."""
    parent, assignment = host.session, plan.assignment
    inherits = assignment.handover is Handover.INHERIT
    notes = [f"it does not have {name}, which {plan.definition.name} names: nobody has it here"
             for name in plan.tools.missing]  # fmt: skip
    handed: distil.Distilled | None = None
    if assignment.handover is Handover.DISTILLED:
        handed = await _distilled(parent, assignment)
        notes += handed.notes
    tainted = parent.conversation.tainted_by
    parts, changed = parts_of(assignment, plan.results, handed, tainted)
    notes += changed
    facts: dict[str, Any] = {
        "agent": plan.definition.name, "assignment": assignment.to_json(), "call": call_id,
        "wait": wait, "depth": host.depth + 1, "begins": 0, "notes": notes,
        "only_reads": plan.definition.only_reads, "budget": _budget_json(plan.budget),
    }  # fmt: skip
    if inherits:
        copied = Fork(parent, call_id)
        facts["begins"] = copied.begins
        await parent.store.commit(*copied.changes(child, {ledger.META: facts}))
        words = f"{RULES}\n\n{plan.definition.system}\n\n"
        parts = (TextPart(words), *parts)
    agent = _agent(host, plan.definition, facts, plan.tools.registry, plan.model, child)
    session = agent.session(child, new=not inherits)
    await session.open()
    meta: dict[str, Any] = {"speaker": str(Speaker.MAIN_AGENT)}
    if parent.conversation.private_from:
        meta["private_from"] = list(parent.conversation.private_from)
    try:
        now = agent.clock.now()
        await session.record(Entry(Kind.USER, parts, now, meta=meta), "agent")
    except BaseException:
        await session.close()
        raise
    return session


async def _distilled(parent: Session, assignment: Assignment) -> distil.Distilled:
    instruction = distil.INSTRUCTION.format(task=assignment.task)
    try:
        reply = await parent.side_request(
            instruction, purpose="hand-over to a sub-agent", max_output_tokens=distil.MOST_TOKENS
        )
    except ModelError as fault:
        return distil.Distilled(notes=(f"the distilled hand-over was not made: {fault.message}",))
    return distil.distilled(reply, parent.trajectory.entries)


# --- finding it again ----------------------------------------------------------------------------


async def reopened(host: SubagentHost, child: str) -> Session:
    """The session of a sub-agent that was begun before, open.

    Raises:
        ToolError: when another process works on it, or its model cannot be had.
        SessionNotFound: when there is none.
    """
    record = host.session.store.session(child)
    facts = ledger.facts_of(record)
    if facts is None:
        raise SessionNotFound(f"{child} is no sub-agent.")
    told = [str(one["name"]) for one in record.tools]
    known = host.catalogue.definitions.get(str(facts["agent"]))
    parent = host.session.agent
    definition = Definition(
        str(facts["agent"]), "", record.system, tuple(told),
        model=known.model if known is not None and record.model != parent.model.name else INHERIT,
    )  # fmt: skip
    registry = Registry(tool for tool in parent.registry if tool.name in told)
    model = model_for(definition, parent, host.settings)
    agent = _agent(host, definition, facts, registry, model, child)
    session = agent.session(child)
    await session.open()
    return session


def has_task(session: Session, record: SessionRecord) -> bool:
    """Whether what it is to do is on disk."""
    facts = ledger.facts_of(record)
    return facts is not None and bool(ledger.own_entries(session.trajectory.entries, facts))


def _agent(
    host: SubagentHost,
    definition: Definition,
    facts: Mapping[str, Any],
    registry: Registry,
    model: Model,
    child: str,
) -> Agent:
    parent = host.session.agent
    inherits = facts["assignment"]["handover"] == Handover.INHERIT
    approver = parent.approver
    if approver is not None:
        top = host.lineage()[-1]
        approver = NamedApprover(approver, f"sub-agent {definition.name} ({child})", top.turn)
    return delegate(
        host, registry=registry, model=model,
        parts=None if inherits else parts_for(definition),
        budget=_budget(facts["budget"]), approver=approver, meta={ledger.META: dict(facts)},
    )  # fmt: skip


def _budget_json(budget: Budget) -> dict[str, Any]:
    return {
        "max_steps": budget.max_steps, "max_tokens": budget.max_tokens,
        "max_cost": None if budget.max_cost is None else str(budget.max_cost),
        "max_time_s": budget.max_time_s,
    }  # fmt: skip


def _budget(record: Mapping[str, Any]) -> Budget:
    from decimal import Decimal

    cost = record["max_cost"]
    return Budget(
        record["max_steps"], record["max_tokens"], None if cost is None else Decimal(cost),
        record["max_time_s"],
    )  # fmt: skip
