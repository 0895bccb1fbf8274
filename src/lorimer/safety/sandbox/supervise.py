"""Watching over a process tree until all of it has ended, whatever happens to the caller."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from lorimer.safety.sandbox.spec import Limits
from lorimer.safety.sandbox.streams import Capture, feed, pump

_WATCH_EVERY_S = 0.02
_DRAIN_S = 2.0


class Tree(Protocol):
    """A process and everything it started."""

    def kill(self) -> None:
        """Kill all of it, without waiting; may be called again."""
        ...

    async def gone(self) -> None:
        """Returns when nothing of it is left."""
        ...


@dataclass(slots=True)
class Pipes:
    """Our ends, non-blocking. `stdin` is closed by `supervise`, the others by the caller."""

    stdout: int
    stderr: int
    stdin: int | None = None


@dataclass(slots=True)
class Ending:
    """Why and when a tree ended; times on `time.monotonic()`."""

    killed: str = ""
    killed_at: float = 0.0
    gone_at: float = 0.0

    @property
    def quiescent_s(self) -> float:
        return self.gone_at - self.killed_at if self.killed else 0.0


async def supervise(
    tree: Tree,
    pipes: Pipes,
    captures: tuple[Capture, Capture],
    limits: Limits,
    *,
    stdin: bytes | None,
    watch: Callable[[], str],
) -> Ending:
    """Read both streams and wait for the end of the tree, or bring it about.

    Args:
        watch: asked every 20 ms; a non-empty answer kills the tree for that reason.

    Cancellation kills the tree and waits until it is gone before this raises.
    """
    ending = Ending()

    def stop(reason: str) -> None:
        if not ending.killed:
            ending.killed, ending.killed_at = reason, time.monotonic()
            tree.kill()

    async def keep_watch() -> None:
        while not ending.killed:
            reason = watch()
            if reason:
                stop(reason)
                return
            await anyio.sleep(_WATCH_EVERY_S)

    try:
        async with anyio.create_task_group() as minders, anyio.create_task_group() as readers:
            minders.start_soon(keep_watch)
            readers.start_soon(pump, pipes.stdout, captures[0], stop)
            readers.start_soon(pump, pipes.stderr, captures[1], stop)
            if pipes.stdin is not None:
                fd, pipes.stdin = pipes.stdin, None
                minders.start_soon(feed, fd, stdin or b"")
            with anyio.move_on_after(limits.wall_s) as clock:
                await tree.gone()
            if clock.cancelled_caught:
                stop("timeout")
                await tree.gone()
            ending.gone_at = time.monotonic()
            minders.cancel_scope.cancel()
            readers.cancel_scope.shield = True
            readers.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
    except BaseException:
        tree.kill()
        with anyio.CancelScope(shield=True):
            await tree.gone()
        raise
    finally:
        if pipes.stdin is not None:
            os.close(pipes.stdin)
            pipes.stdin = None
    return ending


async def exited(pidfd: int) -> None:
    """Returns when the process of `pidfd` has exited."""
    await anyio.wait_readable(pidfd)


def close_all(*fds: int | None) -> None:
    """Close descriptors; those already closed are no fault."""
    for fd in fds:
        if fd is not None and fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)
