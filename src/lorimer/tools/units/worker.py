"""The two processes of a worker: keeper and worker (see `process.py`). Runs as its own program."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
MOST_HELD = 64


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def main(control_fd: int, data_fd: int, held: str = "") -> None:
    """The keeper: fork the worker, wait for its end or for the agent's, leave nothing running.

    `held` lists descriptors that only the keeper keeps open until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        os.setsid()  # a tool that signals its own process group does not reach the keeper
        os.close(control_fd)
        for descriptor in filter(None, held.split(",")):
            os.close(int(descriptor))
        try:
            serve(socket.socket(fileno=data_fd))
        finally:
            os._exit(0)
    os.close(data_fd)
    control = socket.socket(fileno=control_fd)
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if _LINUX else os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        _keep(worker, control, wake_read)
    finally:  # whatever happens to us
        _kill_all()
        os._exit(0)


def _keep(worker: int, control: socket.socket, wake_read: int) -> None:
    """Until the agent lets go, or is gone: report the worker's end, hold the locks of its call."""
    said = False
    locks: list[int] = []
    while True:
        if not said:
            ended = _reap(worker)
            if ended is not None:
                said = True
                _kill_all()
                with contextlib.suppress(OSError):
                    control.send(ended.encode())
        sources: list[Any] = [control, wake_read]
        ready = select.select(sources, [], [])[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
        if control in ready:
            try:
                said_to_us, received, _, _ = socket.recv_fds(control, 1, MOST_HELD)
            except OSError:  # it was closed before our word on the worker's end was read
                return
            if not said_to_us:
                return
            if said_to_us == b"=":
                for old in locks:
                    os.close(old)
                locks = []
            locks += received


def _reap(worker: int) -> str | None:
    """Collect ended children; a text when the worker is one of them."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended or "its process ended"
        if pid == 0:
            return ended
        if pid == worker:
            if os.WIFSIGNALED(status):
                ended = (
                    f"its process was killed by signal {os.WTERMSIG(status)} "
                    f"({_signal_name(os.WTERMSIG(status))})"
                )
            else:
                ended = f"its process ended with exit code {os.WEXITSTATUS(status)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def kill_below(root: int) -> int:
    """Kill every descendant of `root` that runs; how many there were."""
    found = _descendants(root)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def _kill_all() -> None:
    """Kill every descendant and wait for each; orphans come back to us, the subreaper."""
    if not _LINUX:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for child in _children_elsewhere():
                os.kill(child, signal.SIGKILL)
    while True:
        kill_below(os.getpid())
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        select.select([], [], [], 0.001)


def _children_elsewhere() -> list[int]:
    import subprocess

    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False
    )
    parents = {}
    for line in listed.stdout.splitlines():
        pid, parent = map(int, line.split())
        parents[pid] = parent
    return _below(os.getpid(), parents)


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if _LINUX else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
    return _below(root, parents)


def _below(root: int, parents: dict[int, int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


# --- the worker ----------------------------------------------------------------------------------


class _Line:
    """The connection to the agent: pickled orders in, JSON answers out."""

    def __init__(self, data: socket.socket) -> None:
        self._in = data.makefile("rb")
        self._socket = data
        self._sending = threading.Lock()
        self._worker = os.getpid()
        os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        self._sending = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Not in a child that a tool forked and let return."""
        return os.getpid() == self._worker

    def receive(self) -> tuple[str, Any] | None:
        head = self._in.read(8)
        if len(head) < 8:
            return None
        return pickle.loads(self._in.read(struct.unpack("<Q", head)[0]))  # type: ignore[no-any-return]

    def send(self, **answer: Any) -> None:
        payload = json.dumps(answer).encode("ascii")
        with self._sending:  # a tool may report from several threads
            self._socket.sendall(struct.pack("<Q", len(payload)) + payload)


def serve(data: socket.socket) -> None:
    """Take orders until the agent closes the line."""
    data.set_inheritable(False)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    line = _Line(data)
    while (order := line.receive()) is not None:
        kind, body = order
        if kind == "init":
            sys.path[:] = body["path"]
            with contextlib.suppress(OSError):
                os.chdir(body["cwd"])
        else:
            _call(line, body)
            if not line.is_ours:
                os._exit(0)


def _call(line: _Line, order: dict[str, Any]) -> None:
    from lorimer.core.messages import part_to_json
    from lorimer.tools.tool import EffectMark, ForgetfulViews, ToolContext
    from lorimer.tools.units.content import NotJson, parts_of
    from lorimer.tools.units.units import bad_result, converted, describe

    number = order["number"]

    def send(**answer: Any) -> None:
        line.send(number=number, **answer)

    def end(**answer: Any) -> None:
        if line.is_ours:
            send(kind="end", **answer)

    def raised(fault: BaseException, mark: EffectMark) -> None:
        how = describe(fault, mark)
        error = how.tool_error
        end(
            ending="raised", mark=str(mark), error=how.error, trace=how.trace,
            views=_new(views, order),
            tool_error=None if error is None else {
                "message": error.message, "next": error.next, "retryable": error.retryable,
                "code": error.code, "details": _plain(error.details),
                "outcome": None if error.outcome is None else str(error.outcome),
            },
        )  # fmt: skip

    try:
        function, convert = _load(order)
    except Exception as fault:  # noqa: BLE001 - told to the agent
        if order["how"][0] == "name":
            send(kind="by_value")
        else:
            end(
                ending="not_begun",
                mark="not_begun",
                error="it could not be loaded in the worker process: "
                f"{type(fault).__name__}: {fault}",
            )
        return
    views = ForgetfulViews(order["views"])
    context = ToolContext(**order["context"], views=views)
    if order["left_s"] is not None:
        context.deadline = context.clock.monotonic() + order["left_s"]
    context.on_mark = lambda mark: send(kind="mark", mark=str(mark))
    context.on_output = lambda text: send(kind="output", text=text)
    arguments = order["arguments"]
    try:
        if convert is not None:
            arguments = converted(convert, order["tool"], arguments)
        if order["context_parameter"] is not None:
            arguments = {**arguments, order["context_parameter"]: context}
    except Exception as fault:  # noqa: BLE001 - told to the agent
        raised(fault, context.mark)
        return
    send(kind="entered")
    try:
        value = function(**arguments)
    except BaseException as fault:  # noqa: BLE001 - also SystemExit becomes the result
        raised(fault, context.mark)
        return
    try:
        parts, plain = parts_of(value)
        end(ending="returned", mark=str(context.mark), value=plain,
            parts=[part_to_json(p) for p in parts], views=_new(views, order))  # fmt: skip
    except NotJson as fault:
        mark = context.mark if context.mark is not EffectMark.NOT_MARKED else EffectMark.COMPLETE
        raised(bad_result(fault, order["tool"]), mark)


def _plain(details: Any) -> Any:
    return json.loads(json.dumps(details, default=repr))


def _new(views: Any, order: dict[str, Any]) -> dict[str, str]:
    return {p: h for p, h in views.views.items() if order["views"].get(p) != h}


_loaded: dict[Any, Any] = {}


def _load(order: dict[str, Any]) -> tuple[Any, Any]:
    way, what = order["how"]
    if what in _loaded:
        return _loaded[what]  # type: ignore[no-any-return]
    if way == "value":
        function = pickle.loads(what)
    else:
        module, name = what
        function = importlib.import_module(module)
        for step in name.split("."):
            function = getattr(function, step)
        function = getattr(function, "function", function)  # `@tool` puts a Tool in its place
    convert = None
    if order["converts"]:
        from lorimer.tools.function import read_signature

        convert = read_signature(function)[1]
    _loaded[what] = (function, convert)
    return function, convert
