"""Monty, the interpreter for scripts that call tools: a subset of Python without any access.

It runs in a process of its own that can do nothing but compute; whatever a script wants from
outside, it asks us for. (`pydantic-monty`, extra `scripts`.)
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from lorimer.core.errors import MissingExtra

_NAME = "<python-input-0>"
_SHOWN_AS = "script"


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Bounds of one script. Time is that of the interpreter itself; waiting for calls is not in it.

    Attributes:
        turn_s: seconds between two calls.
        total_s: seconds in all.
        calls: calls of tools.
        printed: characters that are kept of what it prints.
    """

    turn_s: float = 10.0
    total_s: float = 60.0
    memory_bytes: int = 256 << 20
    depth: int = 200
    calls: int = 500
    printed: int = 20_000


@dataclass(slots=True)
class Printed:
    """What a script printed: the first characters, and how many there were."""

    limit: int
    on_output: Callable[[str], None] | None = None
    text: str = ""
    total: int = 0

    def take(self, _: str, piece: str) -> None:
        self.total += len(piece)
        if len(self.text) < self.limit:
            self.text += piece[: self.limit - len(self.text)]
        if self.on_output is not None:
            self.on_output(piece)

    def __str__(self) -> str:
        left_out = self.total - len(self.text)
        more = f"\n[{left_out:,} more characters were printed and not kept]" if left_out else ""
        return self.text.rstrip("\n") + more


class Raised(Exception):
    """What a host function wants the script to see: an exception of this built-in type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class ScriptFault(Exception):
    """The script did not come to its end. `where` is its own traceback, or what else was wrong."""

    def __init__(self, kind: str, where: str) -> None:
        super().__init__(where)
        self.kind, self.where = kind, where


Host = Callable[[str, tuple[Any, ...], Mapping[str, Any]], Awaitable[Any]]
"""Answers the call of a name that the script does not define."""


_Ready = dict[int, Any]
"""Answers to calls that the script will await, by number of the call."""


async def run(
    script: str, host: Host, names: Collection[str], limits: ScriptLimits, printed: Printed
) -> Any:
    """The value of the script's last expression.

    Args:
        names: those that a script may also use as values, e.g. in `map(read_file, paths)`.

    Cancellation ends the interpreter at once; a host call under way is cancelled first.

    Raises:
        MissingExtra: Monty is not installed.
        ScriptFault: the script is wrong, raised something, or came to a limit.
    """
    try:
        import pydantic_monty as monty
    except ImportError:
        raise MissingExtra("scripts that call tools", "scripts") from None
    bounds: Any = {
        "max_turn_duration_secs": limits.turn_s,
        "max_feed_duration_secs": limits.total_s,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.depth,
        "max_suspensions": 4 * limits.calls + 1000,
        "max_total_sleep_secs": 60.0,
    }
    try:
        async with _pool(monty) as pool, pool.checkout(limits=bounds) as session:
            step: Any = await session.feed_start(script, print_callback=printed.take)
            ready: _Ready = {}
            while not isinstance(step, monty.MontyComplete):
                step = await _answer(monty, step, host, names, ready)
            return step.output
    except monty.MontyCrashedError as fault:
        raise ScriptFault("crashed", f"The interpreter ended: {fault}") from fault
    except (monty.MontyRuntimeError, monty.MontySyntaxError) as fault:
        kind = type(fault.exception()).__name__
        raise ScriptFault(kind, fault.display().replace(_NAME, _SHOWN_AS)) from fault
    except monty.MontyError as fault:
        raise ScriptFault(type(fault).__name__, str(fault)) from fault


async def _answer(monty: Any, step: Any, host: Host, names: Collection[str], ready: _Ready) -> Any:
    """The next step after what the script asked for."""
    if isinstance(step, monty.AsyncFunctionSnapshot):
        if step.is_os_function:
            return await step.resume_not_handled()
        answer = await _settled(host, step)
        if step.allow_eager_await:  # `await read_file(…)`: the answer comes when it is awaited
            ready[step.call_id] = answer
            return await step.resume({"future": ...})
        return await step.resume(answer)
    if isinstance(step, monty.AsyncFutureSnapshot):
        return await step.resume({n: ready.pop(n) for n in step.pending_call_ids})
    if step.object_id is None and step.variable_name in names:
        return await step.resume(value=_stand_in(step.variable_name))
    return await step.resume_auto()


def _stand_in(name: str) -> Callable[..., None]:
    """A function of this name; it is never called here."""

    def stands_in() -> None:
        raise AssertionError(name)

    stands_in.__name__ = stands_in.__qualname__ = name
    return stands_in


async def _settled(host: Host, step: Any) -> Any:
    if step.object_id is not None:
        return {"exc_type": "TypeError", "message": "no objects come from outside a script"}
    try:
        value = await host(str(step.function_name), step.args, step.kwargs)
    except Raised as fault:
        return {"exc_type": fault.kind, "message": fault.message}
    return {"return_value": value}


@asynccontextmanager
async def _pool(monty: Any) -> AsyncIterator[Any]:
    """One worker process."""
    wrapper = _dies_with_us()
    path = None if wrapper < 0 else f"/proc/{os.getpid()}/fd/{wrapper}"
    try:
        async with monty.AsyncMonty(max_processes=1, binary_path=path) as pool:
            yield pool
    finally:
        if wrapper >= 0:
            os.close(wrapper)


def _dies_with_us() -> int:
    """A descriptor of a program that starts the worker so that it is killed when we die, however
    that comes about; -1 where this system has no means for it. (A worker that computes would
    otherwise go on until its own time limit.)"""
    from pydantic_monty._binary import find_monty_binary

    setpriv = shutil.which("setpriv")
    if setpriv is None or not hasattr(os, "memfd_create"):
        return -1
    command = shlex.join([setpriv, "--pdeathsig", "KILL", find_monty_binary()])
    written = os.memfd_create("lorimer-monty", os.MFD_CLOEXEC)
    try:
        os.write(written, f'#!/bin/sh\nexec {command} "$@"\n'.encode())
        os.fchmod(written, 0o500)
        # a file that somebody may write cannot be executed
        return os.open(f"/proc/self/fd/{written}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(written)
