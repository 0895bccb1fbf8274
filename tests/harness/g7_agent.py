"""A program that runs every undying tool in a session of its own and ends them all in one way:
`python -m harness.g7_agent STORE WORLDS WAY`. It prints what each call came to and how many
processes were left at that moment. With the way `wait` it only waits, to be killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from harness import undying
from harness import world as w
from lorimer import Agent, Limits, tool
from lorimer.runtime.session import Session
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, call

WAYS = ("cancel", "native", "timeout", "deadline", "session close", "agent close")


async def main(store: str, worlds: str, way: str) -> None:
    timeout_s = 4.0 if way == "timeout" else 600.0
    tools = [tool(timeout_s=timeout_s)(function) for function in undying.UNDYING]
    limits = Limits(max_time_s=4.0 if way == "deadline" else None)
    agent = Agent(ScriptedModel([]), tools, store=store, limits=limits)
    sessions: dict[str, Session] = {}

    def reached(name: str) -> bool:
        return w.reached(Path(worlds) / name, "before")

    runs: dict[str, asyncio.Task[Any]] = {}
    for name in undying.NAMES:
        world = Path(worlds) / name
        world.mkdir()
        session = Session(agent, None, wait_s=0.0)
        session.model = ScriptedModel([call(name, world=str(world)), "ended"])
        await session.open()
        sessions[name] = session
        runs[name] = asyncio.create_task(session.send("go"))
    for name in undying.NAMES:
        await w.until(lambda name=name: reached(name) or runs[name].done(), name)  # type: ignore[misc]
    there = [name for name in undying.NAMES if reached(name)]
    if way == "wait":
        print("waiting", flush=True)
        await asyncio.gather(*runs.values())
    match way:
        case "cancel":
            await asyncio.gather(*(_cancel(session) for session in sessions.values()))
        case "native":
            for run in runs.values():
                run.cancel()
        case "session close":
            await asyncio.gather(*(session.close() for session in sessions.values()))
        case "agent close":
            await agent.close()
    ends = await asyncio.gather(*runs.values(), return_exceptions=True)
    survivors = w.processes_with(os.environ[w.MARK])
    await agent.close()
    report: dict[str, Any] = {"survivors": [_what(pid) for pid in survivors], "calls": {}}
    reader = open_store(store)
    for name, end in zip(undying.NAMES, ends, strict=True):
        (record,) = reader.calls(sessions[name].id)
        assert record.result is not None
        error = json.loads(record.result["content"][0]["text"])
        stop = "native" if isinstance(end, asyncio.CancelledError) else end.stop
        report["calls"][name] = {
            **error, "stop": stop, "outcome": str(record.outcome), "reached": name in there,
        }  # fmt: skip
    reader.close()
    print(json.dumps(report), flush=True)


async def _cancel(session: Session) -> None:
    await session.cancel("the test says so")


def _what(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return str(pid)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
