"""May one more sub-agent be started? Each bound has a refusal of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Outcome
from lorimer.core.errors import SessionNotFound
from lorimer.core.messages import Kind
from lorimer.runtime.loop import Limits, Run
from lorimer.runtime.subagents.labels import children_of
from lorimer.runtime.subagents.settings import Budget
from lorimer.store.protocol import Store
from lorimer.tools.tool_context import ToolError

if TYPE_CHECKING:
    from lorimer.runtime.subagents.host import SubagentHost

_KEPT_FOR_THE_ANSWER = 1
"""Model requests that a run keeps for its own answer."""


def check(host: SubagentHost) -> None:
    """Raises the `ToolError` of the bound that is reached: `too_deep`, `too_many_at_once`,
    `too_many` or `no_budget`."""
    settings = host.settings
    if host.depth >= settings.max_depth:
        raise _refused(
            "too_deep",
            f"Sub-agents may stand {settings.max_depth} deep, and that is reached here."
            if settings.max_depth
            else "No sub-agents may be started here.",
            "Do the task yourself.",
        )
    if host.at_once >= settings.max_at_once:
        raise _refused(
            "too_many_at_once",
            f"{host.at_once} sub-agents work already; at most {settings.max_at_once} may at a time"
            f" ({', '.join(host.working)}).",
            "Wait for one to end, or cancel one that is not needed.",
        )
    for one in host.lineage():
        total = one.started()
        if total >= one.settings.max_total:
            raise _refused(
                "too_many",
                f"{total} sub-agents were started for this request of the user; that is the limit.",
                "Work with what they found, or do the rest yourself.",
            )
    left = budget_left(host)
    for name, value in (
        ("model requests", left.max_steps), ("tokens", left.max_tokens),
        ("US dollars", left.max_cost),
    ):  # fmt: skip
        if value is not None and value <= 0:
            raise _refused(
                "no_budget",
                f"This run has no {name} left that a sub-agent could use.",
                "Answer with what you have, and say what is missing.",
            )


def _refused(code: str, message: str, next: str) -> ToolError:
    return ToolError(
        f"{message} Nothing was started.", next=next, code=code, retryable=False,
        outcome=Outcome.FAILED_BEFORE_EFFECT,
    )  # fmt: skip


def started_since(store: Store, session: str, since: int) -> int:
    """How many sub-agents were started in `session` after entry `since`, with all below them."""
    count = 0
    for child, call in children_of(store, session):
        if call.entry_seq > since and exists(store, child):
            count += 1 + started_since(store, child, -1)
    return count


def exists(store: Store, session: str) -> bool:
    """Whether there is such a session."""
    try:
        store.session(session)
    except SessionNotFound:
        return False
    return True


def last_request(host: SubagentHost) -> int:
    """The number of the entry in which somebody last asked this session for something."""
    for entry in reversed(host.session.trajectory.entries):
        if entry.kind is Kind.USER:
            return entry.seq
    return -1


def budget_left(host: SubagentHost) -> Budget:
    """What a sub-agent may use: its own budget, and no more than is left of the limits of the run
    that starts it."""
    own, run = host.settings.budget, host.session.current
    if run is None:
        return own
    limits = host.session.agent.limits
    return replace(
        own,
        max_steps=_least(own.max_steps, _steps_left(limits, run)),
        max_tokens=_least(own.max_tokens, _tokens_left(limits, run)),
        max_cost=_least(
            own.max_cost,
            None if limits.max_cost is None or run.usage.cost is None
            else limits.max_cost - run.usage.cost,
        ),
    )  # fmt: skip


def _steps_left(limits: Limits, run: Run) -> int | None:
    if limits.max_steps is None:
        return None
    return limits.max_steps - run.steps - run.delegated.requests - _KEPT_FOR_THE_ANSWER


def _tokens_left(limits: Limits, run: Run) -> int | None:
    if limits.max_tokens is None:
        return None
    return limits.max_tokens - run.usage.input_tokens - run.usage.output_tokens


def _least(one: Any, other: Any) -> Any:
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None
