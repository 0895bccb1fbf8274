"""Worker processes, seen from the agent: start, call, kill the whole tree.

A worker is two processes. The *keeper* imports nothing heavy, becomes the subreaper of everything
below it and waits. The *worker*, its child, runs the functions. When the agent asks, or dies, the
keeper kills every descendant, also those that ignored signals, forked or became daemons, and
reports only when nothing is left. (Linux; elsewhere the process group is killed.)
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import pickle
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lorimer.core.calls import Outcome
from lorimer.core.messages import part_from_json
from lorimer.tools.tool import EffectMark, Tool, ToolContext, ToolError
from lorimer.tools.units.content import label
from lorimer.tools.units.units import End, Ending, Stop
from lorimer.tools.units.worker import MOST_HELD, kill_below

_KILL_WAIT_S = 10.0
_KILL_ROUNDS = 100
_LINE_ENDED = (asyncio.IncompleteReadError, ConnectionError, ValueError)


class Worker:
    """One keeper with its worker; runs one call at a time."""

    def __init__(self, held: tuple[int, ...] = ()) -> None:
        self._held = held
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._control: socket.socket | None = None
        self._number = 0
        self.usable = False

    async def start(self) -> None:
        control, control_far = socket.socketpair()
        data, data_far = socket.socketpair()
        control.setblocking(False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _MAIN, str(control_far.fileno()), str(data_far.fileno()),
                ",".join(map(str, self._held)),
                pass_fds=(control_far.fileno(), data_far.fileno(), *self._held),
                stdin=subprocess.DEVNULL, stdout=2, start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )  # fmt: skip
        except BaseException:
            control.close()
            data.close()
            raise
        finally:
            control_far.close()
            data_far.close()
        self._control = control
        self._reader, self._writer = await asyncio.open_unix_connection(sock=data, limit=2**30)
        self._send("init", {"path": sys.path, "cwd": os.getcwd()})
        self.usable = True

    def _send(self, kind: str, body: Any) -> None:
        assert self._writer is not None
        payload = pickle.dumps((kind, body), protocol=pickle.HIGHEST_PROTOCOL)
        self._writer.write(struct.pack("<Q", len(payload)) + payload)

    async def _receive(self) -> dict[str, Any]:
        assert self._reader is not None
        size = struct.unpack("<Q", await self._reader.readexactly(8))[0]
        return json.loads(await self._reader.readexactly(size))  # type: ignore[no-any-return]

    def hold(self, descriptors: Sequence[int]) -> None:
        """Let the keeper hold these locks, too, until the next call or its end."""
        for at in range(0, len(descriptors), MOST_HELD):
            assert self._control is not None
            some = list(descriptors[at : at + MOST_HELD])
            with suppress(ConnectionError):  # it has died: the call finds that out
                socket.send_fds(self._control, [b"+" if at else b"="], some)

    async def run(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, stop: Stop
    ) -> End:
        """One call, to its end. A stopped or dead worker is not `usable` afterwards."""
        self._number += 1
        try:
            how = _reference(tool)
            self._send("call", {"number": self._number, **_order(tool, how, arguments, context)})
        except Exception as fault:  # noqa: BLE001 - anything that cannot be pickled
            return _cannot_send(tool, fault)
        entered = False
        message: asyncio.Task[dict[str, Any]] | None = None
        while True:
            message = asyncio.get_running_loop().create_task(self._receive())
            await asyncio.wait((message, stop.wished), return_when=asyncio.FIRST_COMPLETED)
            if not message.done():
                return await self._stopped(tool, context, entered, message)
            try:
                answer = message.result()
            except (*_LINE_ENDED, OSError):
                return await self._died(context, entered)
            if answer["number"] != self._number:
                continue  # from a thread that an earlier call left behind
            match answer["kind"]:
                case "entered":
                    entered = True
                case "mark":
                    context.mark = EffectMark(answer["mark"])
                case "output":
                    if context.on_output is not None:
                        context.on_output(answer["text"])
                case "by_value":
                    try:
                        by_value = _order(tool, ("value", _dump(tool)), arguments, context)
                        self._send("call", {"number": self._number, **by_value})
                    except Exception as fault:  # noqa: BLE001 - anything that cannot be pickled
                        return _cannot_send(tool, fault)
                case "end":
                    return _end(answer, tool, context)

    async def _stopped(
        self, tool: Tool, context: ToolContext, entered: bool, message: asyncio.Task[dict[str, Any]]
    ) -> End:
        """Kill, then read what it had still said: how far it had come, or that it had ended."""
        begun = context.clock.monotonic()
        quiet = await self.kill()
        quiet_after_s = context.clock.monotonic() - begun
        end = None
        with suppress(*_LINE_ENDED, TimeoutError):
            while end is None:
                answer = await asyncio.wait_for(message, _KILL_WAIT_S)
                message = asyncio.get_running_loop().create_task(self._receive())
                if answer["number"] != self._number:
                    continue
                entered = entered or answer["kind"] == "entered"
                if answer["kind"] == "mark":
                    context.mark = EffectMark(answer["mark"])
                elif answer["kind"] == "end":
                    end = _end(answer, tool, context)
        message.cancel()
        message.add_done_callback(lambda m: m.cancelled() or m.exception())
        self._hang_up()
        if end is None:
            how = Ending.STOPPED if quiet else Ending.LEFT
            end = End(how if entered else Ending.NOT_BEGUN, mark=context.mark)
        end.quiet_after_s = quiet_after_s
        return end

    async def _died(self, context: ToolContext, entered: bool) -> End:
        status = await self._control_answer()
        await self.kill()
        self._hang_up()
        what = status or "its process ended"
        return End(Ending.DIED if entered else Ending.NOT_BEGUN, error=what, mark=context.mark)

    async def _control_answer(self) -> str:
        assert self._control is not None
        try:
            data = await asyncio.wait_for(
                asyncio.get_running_loop().sock_recv(self._control, 200), timeout=_KILL_WAIT_S
            )
        except (TimeoutError, OSError):
            return ""
        return data.decode("ascii", "replace")

    async def kill(self) -> bool:
        """Kill the tree and wait until nothing of it runs; whether that was so in the end."""
        self.usable = False
        if self._control is not None:
            self._control.close()
            self._control = None
        process = self._process
        if process is None:
            return True
        try:
            await asyncio.wait_for(process.wait(), timeout=_KILL_WAIT_S)
        except TimeoutError:  # the keeper itself was stopped: do its work
            quiet = False
            for _ in range(_KILL_ROUNDS):
                quiet = not kill_below(process.pid)
                if quiet:
                    break
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()
            return quiet
        return True

    async def end(self) -> None:
        """`kill`, and nothing is read any more."""
        await self.kill()
        self._hang_up()

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()


class Processes:
    """Workers of one agent: idle ones are used again, dead ones replaced."""

    def __init__(self, held: tuple[int, ...] = ()) -> None:
        self._held = held
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        context: ToolContext,
        stop: Stop,
        held: Sequence[int] = (),
    ) -> End:
        while True:
            used = bool(self._idle)
            worker = self._idle.pop() if used else Worker(self._held)
            self._busy.add(worker)
            try:
                if not worker.usable:
                    try:
                        await worker.start()
                    except OSError as fault:
                        why = f"no worker process can be started: {fault}"
                        return End(Ending.NOT_BEGUN, error=why)
                worker.hold(held)
                end = await worker.run(tool, arguments, context, stop)
            finally:
                self._busy.discard(worker)
                if worker.usable:
                    self._idle.append(worker)
            if used and not worker.usable and end.ending is Ending.NOT_BEGUN and not stop.reason:
                continue  # it had died while nobody used it
            return end

    async def close(self) -> None:
        for worker in [*self._idle, *self._busy]:
            await worker.end()
        self._idle.clear()


_MAIN = (
    "import sys; from lorimer.tools.units.worker import main; main(int(sys.argv[1]), "
    "int(sys.argv[2]), sys.argv[3])"
)


def _reference(tool: Tool) -> tuple[str, Any]:
    """By name where the worker can import it, else by value."""
    function = tool.function
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module)
    if module and module != "__main__" and "<" not in name and found is not None:
        for step in name.split("."):
            found = getattr(found, step, None)
        if found is function or getattr(found, "function", None) is function:
            return "name", (module, name)
    return "value", _dump(tool)


def _dump(tool: Tool) -> bytes:
    import cloudpickle

    function = tool.function
    while isinstance(function, functools.partial):
        function = function.func
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    by_value = module is not None and module.__name__ not in ("__main__", "builtins")
    if by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(tool.function)  # type: ignore[no-any-return]
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _order(
    tool: Tool, how: tuple[str, Any], arguments: dict[str, Any], context: ToolContext
) -> dict[str, Any]:
    left = None if context.deadline is None else context.deadline - context.clock.monotonic()
    return {
        "tool": tool.name,
        "how": how,
        "converts": tool.convert is not None,
        "arguments": arguments,
        "context_parameter": tool.context_parameter,
        "context": {
            "session": context.session,
            "call_id": context.call_id,
            "principal": context.principal,
            "operation_key": context.operation_key,
            "workspace": context.workspace,
            "scratch": context.scratch,
            "readable": context.readable,
        },
        "left_s": left,
        "views": dict(getattr(context.views, "views", {})),
    }


def _cannot_send(tool: Tool, fault: BaseException) -> End:
    return End(
        Ending.NOT_BEGUN,
        error=(
            f"{tool.name} cannot be sent to a worker process: {type(fault).__name__}: {fault}. "
            'Make it async, or declare isolation="thread" (then it cannot be killed).'
        ),
    )


def _end(answer: dict[str, Any], tool: Tool, context: ToolContext) -> End:
    mark = EffectMark(answer["mark"])
    context.mark = mark
    for path, content_hash in answer.get("views", {}).items():
        context.views.remember(path, content_hash)
    if answer["ending"] == "returned":
        parts = tuple(part_from_json(p) for p in answer["parts"])
        labelled, value = label((parts, answer["value"]), tool.trust, tool.name)  # type: ignore[arg-type]
        return End(Ending.RETURNED, parts=labelled, value=value, mark=mark)
    if answer["ending"] == "not_begun":
        return End(Ending.NOT_BEGUN, error=answer["error"], mark=mark)
    error = answer.get("tool_error")
    made = None
    if error is not None:
        outcome = error["outcome"]
        made = ToolError(
            error["message"], next=error["next"], retryable=error["retryable"], code=error["code"],
            details=error["details"], outcome=None if outcome is None else Outcome(outcome),
        )  # fmt: skip
    return End(
        Ending.RAISED, error=answer["error"], trace=answer["trace"], tool_error=made, mark=mark
    )
