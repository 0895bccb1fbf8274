"""A process that runs one session whose calls need approvals, to be killed and gone on with.

`python -m harness.g5_agent STORE FOLDER start|resume|send DIE` with `DIE` one of `no`, `waiting`
(hangs until killed once the question is kept), `before` and `after` (dies by itself right before or
right after the commit that starts the call). The world it acts on is FOLDER/world.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from harness import world as w
from lorimer import Agent, ToolContext, tool
from lorimer.core.approvals import ApprovalState
from lorimer.store.protocol import StartCall
from lorimer.store.transaction import Transaction
from lorimer.testing import ScriptedModel, call


def deploying(world: Path) -> Any:
    @tool(effects="irreversible", path_arguments=["script"])
    async def deploy(script: str, context: ToolContext) -> str:
        """Run a script on the far side."""
        w.act(str(world), f"{script}:{context.call_id}")
        return f"ran {script}"

    return deploy


def die_at(place: str) -> None:
    """Kill this process inside the transaction that starts a call, or right after it."""
    if place == "before":
        apply = Transaction.apply

        def and_die(self: Transaction, change: Any) -> None:
            apply(self, change)
            if isinstance(change, StartCall):
                os.kill(os.getpid(), signal.SIGKILL)

        Transaction.apply = and_die  # type: ignore[method-assign]
    if place == "after":
        from lorimer.store import writer

        tell = writer._tell
        started: list[bool] = []
        apply = Transaction.apply

        def and_note(self: Transaction, change: Any) -> None:
            apply(self, change)
            if isinstance(change, StartCall):
                started.append(True)

        def and_die_now(settle: Any, fault: BaseException | None) -> None:
            if started:
                os.kill(os.getpid(), signal.SIGKILL)
            tell(settle, fault)

        Transaction.apply = and_note  # type: ignore[method-assign]
        writer._tell = and_die_now


async def run(store: str, folder: Path, what: str, die: str) -> None:
    script = [call("deploy", script="build.sh"), "shipped"]
    if what == "resume":
        script = ["shipped"]
    die_at(die)
    agent = Agent(
        ScriptedModel(script), [deploying(folder / "world")], store=store, workspace=folder,
        approval_wait_s=300.0, principal="ada",
    )  # fmt: skip
    known = agent.store.sessions(limit=1)
    async with agent, agent.session(known[0].id if known else None, wait_s=30) as session:
        work = session.resume() if what == "resume" else session.send("deploy it")
        result = await work
        ends = [f"{c.code or c.outcome}" for c in result.calls]
        (folder / "ended").write_text(f"{result.stop} {' '.join(ends)}")


def open_requests(store: Any) -> list[Any]:
    return list(store.approvals(state=ApprovalState.OPEN))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
