"""lorimer with everything on: the journal, the policy and the audit chain, in an SQLite file."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from task import ANSWER, QUESTION, SYSTEM, Task, current

from lorimer import Agent, Limits, Outcome, tool
from lorimer.testing import ScriptedModel, call

DISTRIBUTION = "lorimer"
NOTE = "async tool with effects; journal, policy and audit on, SQLite file, synchronous=FULL"


@tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return current.task.add(a, b)


@asynccontextmanager
async def open_subject(
    add_tool: Any = add,
) -> AsyncIterator[Callable[[Task], Awaitable[dict[str, Any]]]]:
    with tempfile.TemporaryDirectory(prefix="lorimer-bench-") as folder:
        store = Path(folder) / "store.db"
        model = ScriptedModel([])
        limits = Limits(max_steps=None)
        agent = Agent(
            model, [add_tool], system=SYSTEM, store=store, workspace=folder, limits=limits
        )

        async def run(task: Task) -> dict[str, Any]:
            current.task = task
            model.requests.clear()

            def propose(_: Any) -> Any:
                arguments = task.propose()
                return ANSWER if arguments is None else call("add", **arguments)

            model.add(*[propose] * (task.steps + 1))
            result = await agent.run(QUESTION)
            if result.stop != "answered":
                raise RuntimeError(f"the run ended with {result.stop!r}")
            task.calls_done = sum(c.outcome is Outcome.DONE for c in result.calls)
            return {"session": result.session}

        async with agent:
            run.proof = lambda found: _proof(agent, found["session"])  # type: ignore[attr-defined]
            yield run


def _proof(agent: Agent, session: str) -> dict[str, Any]:
    """That journal, policy and audit were really on: what lies on disk after the session."""
    calls = agent.store.calls(session)
    actions = [line.action for line in agent.store.audit(session)]
    synchronous = next(iter(agent.store.raw("PRAGMA synchronous")))[0]
    journal_mode = next(iter(agent.store.raw("PRAGMA journal_mode")))[0]
    return {
        "calls_journalled": sum(c.outcome is Outcome.DONE for c in calls),
        "calls_with_policy_decision": sum(bool(c.decision.get("verdict")) for c in calls),
        "audit_lines": len(actions),
        "audit_lines_of_calls": sum(a.startswith("call.") for a in actions),
        "sqlite": f"journal_mode={journal_mode}, synchronous={synchronous}",
    }
