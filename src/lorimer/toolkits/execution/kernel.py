"""A Jupyter kernel in a sandbox of its own, and what it says. (`jupyter_client`, `ipykernel`, extra
`interpreter`.)

It speaks over unix sockets in a private folder that only it and we see; it has no network. The
sandbox, with everything the kernel started, ends with the session.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lorimer.core.errors import MissingExtra, SandboxUnavailable
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.session import LiveSandbox
from lorimer.safety.sandbox.spec import Limits, SandboxSpec

_INSIDE = "/kernel"
_LAUNCHER = Path(__file__).with_name("kernel_start.py")
_START_S = 60.0
_INTERRUPT_S = 5.0
_LAST_WORDS_S = 2.0
_MOST_TEXT = 64 << 20
_KEPT_TEXT = 9_000
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


class KernelDied(Exception):
    """The kernel ended, or never came up; what it was is lost."""


@dataclass(slots=True)
class Text:
    """What one stream printed in one go: first and last part, and how many characters in all."""

    stream: str
    head: str = ""
    tail: str = ""
    total: int = 0

    def add(self, piece: str) -> None:
        self.total += len(piece)
        half = _KEPT_TEXT // 2
        room = half - len(self.head)
        self.head += piece[:room] if room > 0 else ""
        rest = piece[room:] if room > 0 else piece
        self.tail = (self.tail + rest)[-half:]

    def __str__(self) -> str:
        missing = self.total - len(self.head) - len(self.tail)
        gap = f"\n[{missing:,} characters left out here]\n" if missing else ""
        return self.head + gap + self.tail


@dataclass(slots=True)
class Shown:
    """A value that was displayed, in its forms by media type; `result` for the last expression."""

    forms: dict[str, Any]
    result: bool = False


@dataclass(slots=True)
class Cell:
    """What became of one cell, in the order in which it came.

    Attributes:
        error: traceback, without colours.
        stopped: `timeout` or `output` when it was interrupted for that.
        alive: whether the kernel has its state still.
    """

    items: list[Text | Shown] = field(default_factory=list)
    error: str = ""
    stopped: str = ""
    alive: bool = True
    _clear_next: bool = False

    def take(self, kind: str, content: dict[str, Any], on_output: Callable[[str], None]) -> None:
        """One message of the output channel."""
        if kind == "clear_output":
            self._clear_next = bool(content.get("wait"))
            if not self._clear_next:
                self.items.clear()
            return
        if kind not in ("stream", "execute_result", "display_data", "update_display_data", "error"):
            return
        if self._clear_next:
            self.items.clear()
            self._clear_next = False
        if kind == "stream":
            name, text = str(content["name"]), str(content["text"])
            last = self.items[-1] if self.items else None
            if not isinstance(last, Text) or last.stream != name:
                last = Text(name)
                self.items.append(last)
            last.add(text)
            on_output(text)
        elif kind == "error":
            lines = content.get("traceback") or [f"{content['ename']}: {content['evalue']}"]
            self.error = _ANSI.sub("", "\n".join(lines))
        else:
            self.items.append(Shown(dict(content["data"]), result=kind == "execute_result"))

    @property
    def printed(self) -> int:
        return sum(item.total for item in self.items if isinstance(item, Text))


class Kernel:
    """One kernel; `start` it, `execute` cells one after another, `close` it."""

    def __init__(self) -> None:
        self.live: LiveSandbox | None = None
        self._client: Any = None
        self._folder: Path | None = None
        self._handle = -1
        self._pinned: list[int] = []

    @property
    def alive(self) -> bool:
        return self.live is not None and self.live.running

    async def start(self, spec: SandboxSpec, level: choose.Level) -> None:
        """Start it with what `spec` shows; returns when it answers.

        Raises:
            MissingExtra: Jupyter is not installed. KernelDied: it did not come up.
            SandboxUnavailable: nothing was run.
        """
        try:
            import ipykernel  # noqa: F401
            from jupyter_client.asynchronous.client import AsyncKernelClient
        except ImportError:
            raise MissingExtra("a Python that remembers", "interpreter") from None
        self._folder = Path(tempfile.mkdtemp(prefix="lorimer-kernel-"))
        self._handle = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        shared = self._folder / "shared"
        shared.mkdir(mode=0o700)
        inside = _INSIDE if level == "os" else str(shared)
        connection = {
            "transport": "ipc",
            "signature_scheme": "hmac-sha256",
            "key": os.urandom(16).hex(),
            "kernel_name": "",
            **{f"{name}_port": number for number, name in enumerate(_CHANNELS, 1)},
        }
        text = json.dumps(connection | {"ip": f"{inside}/s"})
        (shared / "connection.json").write_text(text, encoding="utf-8")
        argv = [
            sys.executable, "-X", "utf8", str(_LAUNCHER), inside,
            "-f", f"{inside}/connection.json",
            "--HistoryManager.enabled=False", "--InteractiveShell.colors=NoColor",
            "--InteractiveShell.xmode=Plain",
        ]  # fmt: skip
        shown = replace(
            spec,
            read_only=(*spec.read_only, _LAUNCHER),
            folders={**spec.folders, inside: shared},
            unix_sockets=True,
        )
        self.live = await LiveSandbox.start(argv, spec=shown, level=level)
        self._client = AsyncKernelClient()
        # through the descriptor: a socket's path has room for some hundred bytes only
        near = f"/proc/self/fd/{self._handle}/s"
        self._client.load_connection_info(connection | {"ip": near})
        try:
            await self._until_up()
        except BaseException:
            await self.close()
            raise

    async def _until_up(self) -> None:
        assert self.live is not None and self._folder is not None
        end = asyncio.get_running_loop().time() + _START_S
        names = [f"s-{number}" for number in range(1, len(_CHANNELS) + 1)]
        while not self._has(names):
            if not self.live.running or asyncio.get_running_loop().time() > end:
                raise self._not_up()
            await self.live.wait(0.02)
        for name in names:
            self._pin(name)
        self._client.start_channels(hb=False)
        asked = self._client.kernel_info()
        reply = asyncio.ensure_future(self._reply(asked))
        ended = asyncio.ensure_future(self.live.wait())
        try:
            await asyncio.wait(
                (reply, ended), timeout=_START_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not reply.done():
                raise self._not_up()
        finally:
            await _ended(reply, ended)

    def _has(self, names: Sequence[str]) -> bool:
        assert self._folder is not None
        return set(names) <= set(os.listdir(self._folder / "shared"))

    def _pin(self, name: str) -> None:
        """From now on our name for a socket of the kernel leads to this very socket, and to nothing
        that the code in the kernel may put in its place, e.g. a link to a socket of this machine.
        """
        assert self._folder is not None
        place = self._folder / "shared" / name
        fd = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._pinned.append(fd)
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            raise KernelDied(f"{name} is no socket")
        os.symlink(f"/proc/self/fd/{fd}", self._folder / name)

    def _not_up(self) -> Exception:
        assert self.live is not None
        if isinstance(self.live.fault, SandboxUnavailable):
            return self.live.fault
        result = self.live.result
        said = "" if result is None else (result.stderr.text() + result.stdout.text()).strip()
        return KernelDied(f"the interpreter did not come up: {said[-2000:] or 'it said nothing'}")

    async def _reply(self, asked: str) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = await self._client.get_shell_msg(timeout=None)
            if message["parent_header"].get("msg_id") == asked:
                return message

    async def execute(self, code: str, timeout_s: float, on_output: Callable[[str], None]) -> Cell:
        """Run one cell to its end, or interrupt it.

        A cell that does not react to the interrupt ends the kernel (`alive` is false then).
        Cancellation leaves it running: `close` it.

        Raises:
            KernelDied: it ended in the middle, by itself or for a limit.
        """
        assert self.live is not None
        cell = Cell()
        too_much = asyncio.Event()
        asked = self._client.execute(code, allow_stdin=False, stop_on_error=True)
        work = asyncio.ensure_future(self._collect(asked, cell, too_much, on_output))
        ended = asyncio.ensure_future(self.live.wait())
        flooded = asyncio.ensure_future(too_much.wait())
        try:
            await asyncio.wait(
                (work, ended, flooded), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not work.done() and not ended.done():
                cell.stopped = "output" if flooded.done() else "timeout"
                self._client.control_channel.send(self._client.session.msg("interrupt_request", {}))
                await asyncio.wait(
                    (work, ended), timeout=_INTERRUPT_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not work.done():
                    cell.alive = False
                    await self.close()
                    return cell
            if not work.done():
                raise KernelDied(self._why_ended())
            work.result()
        finally:
            await _ended(work, ended, flooded)
        return cell

    async def _collect(
        self, asked: str, cell: Cell, too_much: asyncio.Event, on_output: Callable[[str], None]
    ) -> None:
        """Both the answer and the end of the output: what is not read now would come to the next
        cell."""
        reply = asyncio.ensure_future(self._reply(asked))
        try:
            while True:
                wait_s = _LAST_WORDS_S if reply.done() else None
                next_one = asyncio.ensure_future(self._client.get_iopub_msg(timeout=None))
                try:
                    waiting = {next_one} if reply.done() else {next_one, reply}
                    await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                    if not next_one.done():
                        if wait_s is not None:
                            return
                        continue
                    message = next_one.result()
                finally:
                    await _ended(next_one)
                if message["parent_header"].get("msg_id") != asked:
                    continue
                kind, content = message["header"]["msg_type"], message["content"]
                if kind == "status" and content.get("execution_state") == "idle":
                    await reply
                    return
                cell.take(kind, content, on_output)
                if cell.printed > _MOST_TEXT:
                    too_much.set()
        finally:
            await _ended(reply)

    def _why_ended(self) -> str:
        assert self.live is not None
        result = self.live.result
        if result is None:
            return f"it ended: {self.live.fault}"
        if result.quarantined:
            return f"it made a file that no tool may make ({', '.join(result.quarantined)})"
        if result.killed:
            return f"it came to its limit of {result.killed}"
        by = f" ({result.signal.name})" if result.signal else ""
        return f"its process ended with exit code {result.exit_code}{by}"

    async def close(self) -> None:
        """End it, with everything it started. May be called again."""
        if self._client is not None:
            with suppress(Exception):
                self._client.stop_channels()
            self._client.context.destroy(linger=0)
            self._client = None
        if self.live is not None:
            await self.live.end()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        while self._pinned:
            os.close(self._pinned.pop())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and let what was cancelled end."""
    for task in tasks:
        if not task.done():
            task.cancel()
    for task in tasks:
        if not task.done():
            await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()


def limits() -> Limits:
    """Of a kernel: no end but that of the session."""
    return Limits(wall_s=7 * 24 * 3600.0, cpu_s=7 * 24 * 3600, memory_bytes=16 << 30)
