"""A sandboxed program that outlasts the call that started it: start, look at, wait for, end.

It is the same sandbox as of `choose.run`, of any level, held by a task of the running event loop.
Whoever starts one must `end` it; when this process dies, the kernel ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel

from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec


class LiveSandbox:
    """One program in a sandbox of its own. Made by `start`.

    Attributes:
        result: how it ended; `None` while it runs and after a fault.
        fault: why it could not be started or watched over, if so.
    """

    def __init__(self) -> None:
        self.result: SandboxResult | None = None
        self.fault: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    async def start(
        argv: Sequence[str],
        *,
        spec: SandboxSpec,
        level: choose.Level = "os",
        on_output: OnOutput | None = None,
    ) -> LiveSandbox:
        """Begin to run `argv`; returns before it has begun. Its standard input is empty.

        Call it in the loop that will be there for as long as the program.
        """
        made = LiveSandbox()

        async def run() -> None:
            try:
                made.result = await choose.run(argv, spec=spec, level=level, on_output=on_output)
            except Exception as fault:  # noqa: BLE001 - told to whoever looks at it
                made.fault = fault

        made._task = asyncio.get_running_loop().create_task(run())
        return made

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call `then` once, when the whole tree has ended."""
        if self._task is None or self._task.done():
            then()
        else:
            self._task.add_done_callback(lambda _: then())

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the whole tree, `timeout_s` at most; whether it has ended.

        Cancellation leaves it running.
        """
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=timeout_s)
        return not self.running

    async def end(self) -> None:
        """Kill the tree, if it runs, and wait until nothing of it is left. May be called again.

        Cancellation goes on only after that.
        """
        task = self._task
        if task is None:
            return
        task.cancel()
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    await asyncio.wait((task,))
                except asyncio.CancelledError as wish:
                    cancelled = wish
        with suppress(asyncio.CancelledError):
            task.result()
        if cancelled is not None:
            raise cancelled
        await anyio.lowlevel.checkpoint_if_cancelled()

    async def close(self) -> None:
        """`end`, under the name that sessions close their belongings by."""
        await self.end()
