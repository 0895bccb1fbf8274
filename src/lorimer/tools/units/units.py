"""Units: run one function once, in the loop, in a thread or in a worker process.

Every way gives the same answer, an `End`: how it ended, what is known of its effect, and how long
it took until it was really over. Stopping waits for the end of the function, or says that it goes
on.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lorimer.core.calls import Effects, Outcome
from lorimer.tools.tool import EffectMark, Isolation, Tool, ToolContext, ToolError
from lorimer.tools.units.content import NotJson, label, parts_of


class Ending(StrEnum):
    RETURNED = "returned"
    RAISED = "raised"
    STOPPED = "stopped"
    LEFT = "left"  # asked to stop, still running
    DIED = "died"  # its process ended under it
    NOT_BEGUN = "not_begun"  # the function was never entered


@dataclass(slots=True)
class End:
    """How a function ended.

    Attributes:
        parts: content, when it returned.
        error: type, message and trace, when it raised; `tool_error` when it did so on purpose.
        mark: how far its effect had come, as far as it had said.
        quiet_after_s: seconds from the wish to stop until nothing of it ran any more.
    """

    ending: Ending
    parts: tuple[Any, ...] = ()
    value: Any = None
    error: str = ""
    trace: str = ""
    tool_error: ToolError | None = None
    mark: EffectMark = EffectMark.NOT_MARKED
    quiet_after_s: float | None = None
    views: dict[str, str] = field(default_factory=dict)


Late = Callable[[End], Awaitable[None]]


class Stop:
    """The wish to stop a running function; set by time-out or cancellation. `wished` is done
    then."""

    def __init__(self) -> None:
        self.wished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reason = ""

    def set(self, reason: str) -> None:
        if not self.wished.done():
            self.reason = reason
            self.wished.set_result(None)


def describe(fault: BaseException, mark: EffectMark, tool: Tool | None = None) -> End:
    """The end of a function that raised."""
    if isinstance(fault, ToolError):
        return End(Ending.RAISED, error=str(fault), tool_error=fault, mark=mark)
    trace = "".join(traceback.format_exception(fault)[-6:])
    return End(Ending.RAISED, error=error_words(fault), trace=trace, mark=mark)


def error_words(fault: BaseException) -> str:
    """Type and message; an exception may also fail to give its message."""
    try:
        words = str(fault)
    except Exception as second:  # noqa: BLE001 - whatever it is, the first fault is the one to tell
        words = f"(its message cannot be made: {type(second).__name__})"
    name = type(fault).__name__
    return f"{name}: {words}" if words else name


def returned(value: Any, tool: Tool, mark: EffectMark) -> End:
    """The end of a function that returned `value`."""
    try:
        parts, plain = label(parts_of(value), tool.trust, tool.name)
    except NotJson as fault:
        complete = mark if mark is not EffectMark.NOT_MARKED else EffectMark.COMPLETE
        return describe(bad_result(fault, tool.name), complete)
    return End(Ending.RETURNED, parts=parts, value=plain, mark=mark)


def bad_result(fault: NotJson, name: str) -> ToolError:
    """What the model is told of a result that nothing can hold."""
    return ToolError(
        f"{name} ran to its end, but {fault}.",
        next="The tool is at fault, not the call: go on without its result and say so.",
        retryable=False,
        code="bad_result",
    )


class Units:
    """The units of one agent. `close()` ends every worker process."""

    def __init__(self) -> None:
        self._threads = _Threads()
        self._processes: Any = None
        self._left: set[asyncio.Task[Any]] = set()
        self._held: tuple[int, ...] = ()

    def hold(self, descriptors: tuple[int, ...]) -> None:
        """Descriptors of locks that the keepers of worker processes keep until nothing below them
        runs: so nobody takes up the session while an orphan may still act."""
        self._held = descriptors

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        context: ToolContext,
        stop: Stop,
        *,
        grace_s: float,
        late: Late | None,
        held: Sequence[int] = (),
    ) -> End:
        """Run `tool.function` until it ends or `stop` is set and it has been stopped.

        `held` are descriptors of locks on what the call touches; with a worker process they stay
        locked until nothing of it runs, should we die meanwhile. The caller may not be cancelled
        here: it sets `stop` instead.
        """
        match tool.where:
            case Isolation.PROCESS:
                if self._processes is None:
                    from lorimer.tools.units.process import Processes

                    self._processes = Processes(self._held)
                end: End = await self._processes.run(tool, arguments, context, stop, held)
                return end
            case Isolation.THREAD:
                return await self._in_thread(tool, arguments, context, stop, grace_s, late)
            case _:
                return await self._in_loop(tool, arguments, context, stop, grace_s, late)

    async def _in_loop(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, stop: Stop,
        grace_s: float, late: Late | None,
    ) -> End:  # fmt: skip
        entered = False

        async def body() -> End:
            nonlocal entered
            entered = True
            try:
                value = await call_async(tool, arguments, context)
            except (Exception, SystemExit) as fault:  # noqa: BLE001 - the result of the call
                return describe(fault, context.mark)
            return returned(value, tool, context.mark)

        task: asyncio.Task[End] = asyncio.get_running_loop().create_task(body())
        await asyncio.wait((task, stop.wished), return_when=asyncio.FIRST_COMPLETED)
        quiet = None
        if not task.done():
            begun = context.clock.monotonic()
            task.cancel()
            await asyncio.wait((task,), timeout=grace_s)
            quiet = context.clock.monotonic() - begun
            if not task.done():
                self._leave(task, context, late)
                return End(Ending.LEFT, mark=context.mark, quiet_after_s=quiet)
        end = _task_end(task, context)
        if end.ending is Ending.STOPPED and not entered:
            end.ending = Ending.NOT_BEGUN
        end.quiet_after_s = quiet
        return end

    def _leave(self, task: asyncio.Task[End], context: ToolContext, late: Late | None) -> None:
        async def watch() -> None:
            while not task.done():  # the loop cannot end before the task does: see it through
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((task,))
            if late is not None:
                await late(_task_end(task, context))

        self._keep(watch())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        watcher = asyncio.get_running_loop().create_task(work)
        self._left.add(watcher)
        watcher.add_done_callback(self._left.discard)

    async def _in_thread(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, stop: Stop,
        grace_s: float, late: Late | None,
    ) -> End:  # fmt: skip
        future = self._threads.submit(tool, arguments, context)
        await asyncio.wait((future, stop.wished), return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        quiet = None
        if tool.effects is not Effects.READ:  # it cannot be stopped, but may just be ending
            begun = context.clock.monotonic()
            await asyncio.wait((future,), timeout=grace_s)
            quiet = context.clock.monotonic() - begun
            if future.done():
                end = future.result()
                end.quiet_after_s = quiet
                return end
        if late is not None:

            async def watch() -> None:
                await asyncio.wait((future,))
                await late(future.result())

            self._keep(watch())
        return End(Ending.LEFT, mark=context.mark, quiet_after_s=quiet)

    @property
    def left(self) -> int:
        """How many functions were asked to stop and still run."""
        return len(self._left)

    async def close(self) -> None:
        """End the worker processes and wait until nothing of them runs.

        Threads, and async functions that ignored their cancellation, cannot be ended; what they
        come to is still told to `late`."""
        self._threads.close()
        if self._processes is not None:
            await self._processes.close()
            self._processes = None


async def call_async(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """Call an async function, or run an async generator to its last item."""
    made = tool.function(**_keywords(tool, arguments, context))
    if inspect.isasyncgen(made):
        last: Any = None
        first = True
        async for item in made:
            if not first and context.on_output is not None:
                context.on_output(last if isinstance(last, str) else str(last))
            last, first = item, False
        return last
    if inspect.isawaitable(made):
        return await made
    return made


def call_sync(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> End:
    """Call a sync function where we are; never raises."""
    try:
        value = tool.function(**_keywords(tool, arguments, context))
    except BaseException as fault:  # noqa: BLE001 - also SystemExit becomes the result of the call
        return describe(fault, context.mark)
    return returned(value, tool, context.mark)


def _keywords(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    if tool.convert is not None:
        arguments = converted(tool.convert, tool.name, arguments)
    if tool.context_parameter is not None:
        return {**arguments, tool.context_parameter: context}
    return arguments


def converted(
    convert: Callable[[Any], dict[str, Any]], name: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """The arguments as the function wants them.

    Raises:
        ToolError: when the function's own types refuse them; the function was not entered.
    """
    try:
        return convert(arguments)
    except Exception as fault:
        raise ToolError(
            f"The arguments of {name} were refused by its own types: {fault}",
            next="Correct what the message names and call again.",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            code="value",
        ) from fault


def _task_end(task: asyncio.Task[End], context: ToolContext) -> End:
    if task.cancelled():
        return End(Ending.STOPPED, mark=context.mark)
    fault = task.exception()
    return task.result() if fault is None else describe(fault, context.mark)


class _Threads:
    """Daemon threads that are used again; a function that never ends costs its thread only."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[Any]] = []
        self._closed = False

    def submit(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext
    ) -> asyncio.Future[End]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[End] = loop.create_future()
        if self._idle:
            inbox = self._idle.pop()
        else:
            inbox = queue.SimpleQueue()
            threading.Thread(
                target=self._serve, args=(inbox,), name="lorimer-tool", daemon=True
            ).start()
        inbox.put((contextvars.copy_context(), tool, arguments, context, loop, future))
        return future

    def _serve(self, inbox: queue.SimpleQueue[Any]) -> None:
        while (job := inbox.get()) is not None:
            scope, tool, arguments, context, loop, future = job
            end = scope.run(call_sync, tool, arguments, context)
            if self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            with suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, future, end)
            del job, scope, tool, arguments, context, loop, future, end

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)


def _deliver(future: asyncio.Future[End], end: End) -> None:
    if not future.done():
        future.set_result(end)
