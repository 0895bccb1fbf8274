"""A run of 20 effects as a program of its own, to be killed and gone on with.

`serve` reads lines `START store world` or `RESUME store world session` and forks a process for
each; it answers with the process id, and with `ended` when that process is gone. The forked process
leaves a file `session-ID` in the world, and `answer` when the run has ended.

The model is a function of the trajectory: it asks for every effect that has not been settled yet,
in turns of one to three calls, so it goes on rightly in any process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

from lorimer import Agent, Tool, ToolContext, tool
from lorimer.core.calls import Outcome
from lorimer.models.protocol import Request
from lorimer.testing import ScriptedModel, call
from lorimer.tools.tool import NOT_FOUND

EFFECTS = 20
TURNS = (1, 2, 3, 1, 2)
KINDS = (
    "async_none", "worker_none", "async_keyed", "worker_keyed", "async_queryable",
    "worker_queryable", "worker_natural",
)  # fmt: skip
_WORK_S = 0.002  # what an effect takes before and after it happens, so that kills hit it


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


def far_side(world: str) -> sqlite3.Connection:
    """A service that keeps one record for each key."""
    connection = sqlite3.connect(Path(world) / "far.db", timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, number INTEGER, times INTEGER)"
    )
    return connection


def send(world: str, key: str, number: int) -> None:
    """Keep `key`; a second time changes nothing."""
    with closing(far_side(world)) as far:
        far.execute("INSERT INTO done VALUES (?, ?, 1) ON CONFLICT (key) DO NOTHING", (key, number))


def write(world: str, key: str, number: int) -> None:
    """Keep `key`; a second time is a second effect."""
    with closing(far_side(world)) as far:
        far.execute(
            "INSERT INTO done VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET times = times + 1",
            (key, number),
        )


def counts(world: str | Path) -> dict[int, list[int]]:
    """For each number, how often each of its operation keys took effect."""
    with closing(far_side(str(world))) as far:
        found: dict[int, list[int]] = {}
        for number, times in far.execute("SELECT number, times FROM done"):
            found.setdefault(number, []).append(times)
        return found


def find_outcome(key: str, context: ToolContext) -> Any:
    world = str(context.workspace)
    with closing(far_side(world)) as far:
        row = far.execute("SELECT number FROM done WHERE key = ?", (key,)).fetchone()
    return NOT_FOUND if row is None else f"did {row[0]}"


async def async_none(number: int, context: ToolContext) -> str:
    """Do it; never twice."""
    await asyncio.sleep(_WORK_S)
    write(str(context.workspace), context.operation_key, number)
    await asyncio.sleep(_WORK_S)
    return f"did {number}"


async def async_keyed(number: int, context: ToolContext) -> str:
    """Do it; the far side drops a second one."""
    await asyncio.sleep(_WORK_S)
    send(str(context.workspace), context.operation_key, number)
    await asyncio.sleep(_WORK_S)
    return f"did {number}"


def worker_none(number: int, context: ToolContext) -> str:
    """Do it; never twice."""
    time.sleep(_WORK_S)
    write(str(context.workspace), context.operation_key, number)
    time.sleep(_WORK_S)
    return f"did {number}"


def worker_keyed(number: int, context: ToolContext) -> str:
    """Do it; the far side drops a second one."""
    time.sleep(_WORK_S)
    send(str(context.workspace), context.operation_key, number)
    time.sleep(_WORK_S)
    return f"did {number}"


async def async_queryable(number: int, context: ToolContext) -> str:
    """Do it; the far side can be asked."""
    return await async_none(number, context)


def worker_queryable(number: int, context: ToolContext) -> str:
    """Do it; the far side can be asked."""
    return worker_none(number, context)


def worker_natural(number: int, context: ToolContext) -> str:
    """Do it; twice is the same as once."""
    return worker_keyed(number, context)


def tools() -> list[Tool]:
    made = []
    for name in KINDS:
        idempotency = name.partition("_")[2]
        options: dict[str, Any] = {"idempotency": idempotency}
        if idempotency == "queryable":
            options["find_outcome"] = find_outcome
        made.append(tool(**options)(globals()[name]))
    return made


def next_reply(request: Request) -> Any:
    """Ask for what is not settled; a call that never ran (`skipped`) is asked for again."""
    settled, turns = set(), 0
    numbers: dict[str, int] = {}
    for entry in request.entries:
        turns += bool(entry.calls)
        numbers |= {c.id: json.loads(c.raw)["number"] for c in entry.calls}
        for result in entry.results:
            if result.outcome is not Outcome.NOT_STARTED:
                settled.add(numbers[result.call_id])
    left = [n for n in range(EFFECTS) if n not in settled]
    if not left:
        return "All settled."
    return [call(kind_of(n), number=n) for n in left[: TURNS[turns % len(TURNS)]]]


async def main(store: str, world: str, session_id: str | None) -> None:
    model = ScriptedModel([next_reply] * 200)
    async with (
        Agent(model, tools(), store=store, workspace=world) as agent,
        agent.session(session_id, wait_s=60.0) as session,
    ):
        (Path(world) / f"session-{session.id}").touch()
        begun = bool(session.entries)
        result = await (session.resume() if begun else session.send("Do all of it."))
        (Path(world) / "answer").write_text(json.dumps({"stop": result.stop}))


def serve() -> None:
    """Fork a process for each order, so that none pays for the imports."""
    import lorimer.store.sqlite
    import lorimer.tools.units.process  # noqa: F401

    for line in sys.stdin:
        order, store, world, *session = line.split()
        assert order in ("START", "RESUME")
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                asyncio.run(main(store, world, session[0] if session else None))
            except BaseException as fault:  # noqa: BLE001 - shown by the test
                (Path(world) / "fault").write_text("".join(traceback.format_exception(fault)))
            finally:
                os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
