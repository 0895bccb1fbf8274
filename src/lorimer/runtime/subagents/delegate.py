"""The agent behind a sub-agent: the one that started it, with less.

Fewer tools, a narrower budget, another system prompt. Policy, mode, guards, sidecar, reviewer,
principal, secrets and workspace are those of the parent, so nothing can be laxer than there; who is
asked is the same person, who is told which sub-agent it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lorimer.context.agents import INHERIT, Definition
from lorimer.context.prefix import PromptPart, Stability
from lorimer.core.calls import Effects, Outcome
from lorimer.core.decisions import Approval, ApprovalRequest, Approver
from lorimer.core.errors import LorimerError
from lorimer.runtime.loop import Limits
from lorimer.runtime.subagents.settings import Budget, SubagentSettings
from lorimer.runtime.subagents.tags import RULES
from lorimer.tools.registry import Registry
from lorimer.tools.subagents import NAMES, SPAWN
from lorimer.tools.tool_context import ToolError

if TYPE_CHECKING:
    from lorimer.models.protocol import Model
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.subagents.host import SubagentHost


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that a sub-agent gets, and what its definition names besides."""

    registry: Registry
    missing: tuple[str, ...] = ()


def tools_for(definition: Definition, parent: Registry, *, may_delegate: bool) -> Tools:
    """The tools of `parent` that `definition` allows, never more."""
    wanted = definition.tools
    missing = () if wanted is None else tuple(n for n in wanted if n not in parent)
    if wanted is not None and SPAWN in wanted:
        wanted = (*wanted, *NAMES)
    given = [
        tool
        for tool in parent
        if (wanted is None or tool.name in wanted)
        and tool.name not in definition.without
        and (may_delegate or tool.name not in NAMES)
        and not (definition.only_reads and tool.effects is not Effects.READ)
    ]
    return Tools(Registry(given), tuple(n for n in missing if n not in NAMES))


def model_for(definition: Definition, parent: Agent, settings: SubagentSettings) -> Model:
    """The model that the definition names.

    Raises:
        ToolError: when it cannot be had.
    """
    found = _model(definition, parent, settings)
    check = getattr(parent.reviewer, "check_against", None)
    if check is not None and found is not parent.model:
        try:
            check(found)
        except LorimerError as fault:
            raise _no_model(definition, found.name, fault) from fault
    return found


def _model(definition: Definition, parent: Agent, settings: SubagentSettings) -> Model:
    name = definition.model
    given = settings.models.get(name, name)
    if given in (INHERIT, "", parent.model.name):
        return parent.model
    if not isinstance(given, str):
        return given
    known = parent.borrowed_models.get(given)
    if known is None:
        from lorimer.models.registry import resolve

        try:
            known = resolve(given)
        except LorimerError as fault:
            raise _no_model(definition, given, fault) from fault
        parent.borrowed_models[given] = known
    return known


def _no_model(definition: Definition, name: str, fault: LorimerError) -> ToolError:
    return ToolError(
        f"The agent {definition.name!r} wants the model {name!r}, which cannot be had: "
        f"{fault.message} Nothing was started.",
        next="Use another agent (list_agents), or tell the user: "
        f"{definition.source or 'its definition'} may say `model: inherit`.",
        code="no_model",
        outcome=Outcome.FAILED_BEFORE_EFFECT,
        retryable=False,
    )


class NamedApprover:
    """Asks the parent's approver, and says which sub-agent wants to know. One question at a time
    for all sub-agents of a parent."""

    def __init__(self, approver: Approver, name: str, turn: asyncio.Lock) -> None:
        self._approver, self._name, self._turn = approver, name, turn

    async def ask(self, request: ApprovalRequest) -> Approval:
        named = replace(request, reason=f"asked by the {self._name}: {request.reason}")
        async with self._turn:
            return await self._approver.ask(named)


def limits_for(budget: Budget, settings: SubagentSettings, parent: Limits) -> Limits:
    """The limits of its run; what it has used of them before is taken off by whoever runs it."""
    return replace(
        parent,
        max_steps=budget.max_steps,
        max_tokens=budget.max_tokens,
        max_cost=budget.max_cost,
        max_time_s=budget.max_time_s,
        max_failures=min(settings.max_failures, parent.max_failures),
    )


def parts_for(definition: Definition) -> list[PromptPart]:
    """The prompt of its sessions: the same for every task, so that it is read from the cache."""
    owner = f"agent {definition.name}"
    return [
        PromptPart("sub-agent", "lorimer", Stability.GLOBAL, RULES),
        PromptPart("agent", owner, Stability.DEPLOYMENT, definition.system),
    ]


def delegate(
    host: SubagentHost,
    *,
    registry: Registry,
    model: Model,
    parts: Sequence[PromptPart] | None,
    budget: Budget,
    approver: Approver | None,
    meta: Mapping[str, Any],
) -> Agent:
    """The agent for one sub-agent of the session of `host`. `parts` of `None`: the parent's own."""
    parent = host.session.agent
    made = parent.lend()
    made.registry = registry
    made.model = model
    if parts is not None:
        made.parts, made.default_parts = list(parts), True
    made.parent = host.session.id
    made.approver = approver
    made.limits = limits_for(budget, host.settings, parent.limits)
    made.delegated_by = host
    made.watch = None
    made.meta = {**parent.meta, **meta}
    made.subagents = host.settings if SPAWN in registry else None
    made.answers = None  # its answer is JSON for an agent
    if "skill" not in registry:
        made.skills = None
    return made
