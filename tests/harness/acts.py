"""Tools that make one effect, and can come to grief before, inside and after it.

Each takes the world, the point (`before`, `inside`, `after`, `nowhere`), what happens there
(`hang`, `raise`, `exit`, `segv`, `kill`, `leave`), and whether the tool marks its effect.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from harness import world as w
from lorimer import Tool, ToolContext, tool
from lorimer.tools.tool import NOT_FOUND

POINTS = ("before", "inside", "after")
KINDS = ("process", "thread", "async", "generator", "process_child", "async_child")
_CHILD = """
import sys, time
from harness import world as w
world, key, at, once = sys.argv[1:]
if at == "before": w.reach(world, at); w.hang(world)
w.act(world, key, once=once == "True")
if at != "nowhere": w.reach(world, at); w.hang(world)
"""


def _marked(context: ToolContext, marked: bool) -> AbstractContextManager[None]:
    return context.effect() if marked else nullcontext()


def _grief(world: str, point: str, at: str, what: str) -> bool:
    """Come to grief, if this is the point for it; whether to hang here."""
    if point != at:
        return False
    w.reach(world, point)
    match what:
        case "raise":
            raise RuntimeError(f"grief {point}")
        case "leave":
            sys.exit(3)
        case "exit":
            os._exit(3)
        case "segv":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    return True


def sync_act(world: str, at: str, what: str, marked: bool, once: bool, context: ToolContext) -> str:
    """Act on the world."""
    if marked:
        context.will_mark()
    if _grief(world, "before", at, what):
        w.hang(world)
    with _marked(context, marked):
        w.act(world, context.operation_key, once=once)
        if _grief(world, "inside", at, what):
            w.hang(world)
    if _grief(world, "after", at, what):
        w.hang(world)
    return "acted"


async def _hang(world: str) -> None:
    await w.until(lambda: w.released(world), "the release")


async def async_act(
    world: str, at: str, what: str, marked: bool, once: bool, context: ToolContext
) -> str:
    """Act on the world."""
    if marked:
        context.will_mark()
    if _grief(world, "before", at, what):
        await _hang(world)
    with _marked(context, marked):
        w.act(world, context.operation_key, once=once)
        if _grief(world, "inside", at, what):
            await _hang(world)
    if _grief(world, "after", at, what):
        await _hang(world)
    return "acted"


async def generator_act(
    world: str, at: str, what: str, marked: bool, once: bool, context: ToolContext
) -> AsyncIterator[str]:
    """Act on the world, and say how it goes."""
    if marked:
        context.will_mark()
    yield "beginning"
    if _grief(world, "before", at, what):
        await _hang(world)
    with _marked(context, marked):
        w.act(world, context.operation_key, once=once)
        yield "in the middle"
        if _grief(world, "inside", at, what):
            await _hang(world)
    if _grief(world, "after", at, what):
        await _hang(world)
    yield "acted"


def _child(world: str, at: str, what: str, once: bool, context: ToolContext) -> list[str]:
    point = at if what == "hang" else "nowhere"
    return [sys.executable, "-c", _CHILD, world, context.operation_key, point, str(once)]


def child_act(
    world: str, at: str, what: str, marked: bool, once: bool, context: ToolContext
) -> str:
    """Act on the world by a program."""
    if marked:
        context.will_mark()
    if what != "hang":
        _grief(world, "before", at, what)
    with _marked(context, marked):
        subprocess.run(
            _child(world, at, what, once, context),
            check=True,
            env=w.environment(os.environ.get(w.MARK, "")),
        )
        if what != "hang":
            _grief(world, "inside", at, what)
    if what != "hang":
        _grief(world, "after", at, what)
    return "acted"


async def async_child_act(
    world: str, at: str, what: str, marked: bool, once: bool, context: ToolContext
) -> str:
    """Act on the world by a program, from the loop; the program ends with the call."""
    if marked:
        context.will_mark()
    if what != "hang":
        _grief(world, "before", at, what)
    with _marked(context, marked):
        child = await asyncio.create_subprocess_exec(
            *_child(world, at, what, once, context), env=w.environment(os.environ.get(w.MARK, ""))
        )
        try:
            assert await child.wait() == 0
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if what != "hang":
            _grief(world, "inside", at, what)
    if what != "hang":
        _grief(world, "after", at, what)
    return "acted"


async def stubborn_act(world: str, at: str, what: str, context: ToolContext) -> str:
    """Act on the world, whoever would stop it; `what` is how it ends in the end."""
    w.reach(world, "before")
    while not w.released(world):
        try:
            await asyncio.sleep(0.002)
        except asyncio.CancelledError:
            continue
    if what == "raise":
        raise RuntimeError("grief")
    w.act(world, context.operation_key)
    return "acted in the end"


def look(world: str, at: str, what: str) -> str:
    """Look at the world; changes nothing."""
    if _grief(world, "before", at, what):
        w.hang(world)
    return f"{len(w.effects(world))} effects"


async def async_look(world: str, at: str, what: str) -> str:
    """Look at the world; changes nothing."""
    if _grief(world, "before", at, what):
        await _hang(world)
    return f"{len(w.effects(world))} effects"


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "process": (sync_act, "auto"),
    "thread": (sync_act, "thread"),
    "async": (async_act, "auto"),
    "generator": (generator_act, "auto"),
    "process_child": (child_act, "auto"),
    "async_child": (async_child_act, "auto"),
}


def acting(kind: str, idempotency: str, folder: str, **options: Any) -> Tool:
    """The tool `act` of one kind. `folder` holds the worlds, for `find_outcome`."""
    function, isolation = FUNCTIONS[kind]

    def find_outcome(key: str, context: ToolContext) -> Any:
        found = any(key in w.effects(one) for one in Path(folder).iterdir() if one.is_dir())
        return "acted, says the far side" if found else NOT_FOUND

    if idempotency == "queryable":
        options["find_outcome"] = find_outcome
    made: Tool = tool(
        name="act", idempotency=idempotency, isolation=isolation, **options
    )(function)  # fmt: skip
    return made
