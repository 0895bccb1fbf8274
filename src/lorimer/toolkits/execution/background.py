"""Background tasks of a session's shell, and what they have printed that nobody has read yet."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from lorimer.safety.sandbox.session import LiveSandbox
from lorimer.safety.sandbox.spec import SandboxResult

_SHOWN_BYTES = 9_000
_LOOK_EVERY_S = 0.05
_WORDS = 60


class OutputFile:
    """Everything a task prints, in a file; read piece by piece."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        self.size = 0
        self.read_to = 0
        self.fault: OSError | None = None

    def take(self, _: str, piece: bytes) -> None:
        """The next piece of either stream, in the order in which they come."""
        view = memoryview(piece)
        try:
            while view and self._fd >= 0:
                view = view[os.write(self._fd, view) :]
        except OSError as fault:  # a full disk: what is there is still told
            self.fault = fault
        self.size += len(piece) - len(view)

    def has(self, text: bytes) -> bool:
        """Whether `text` is in what was not read yet (its last MiB)."""
        start = max(self.read_to, self.size - (1 << 20))
        return text in os.pread(self._fd, self.size - start, start)

    def unread(self) -> str:
        """What came since the last time; its first and last part where it is long."""
        start, end = self.read_to, self.size
        self.read_to = end
        if end - start <= _SHOWN_BYTES:
            return os.pread(self._fd, end - start, start).decode("utf-8", "backslashreplace")
        half = _SHOWN_BYTES // 2
        head, tail = os.pread(self._fd, half, start), os.pread(self._fd, half, end - half)
        return (
            head.decode("utf-8", "backslashreplace")
            + f"\n[{end - start - 2 * half:,} bytes left out here, whole output in {self.path}]\n"
            + tail.decode("utf-8", "backslashreplace")
        )

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(slots=True)
class Task:
    """One command that runs on while the session goes on."""

    id: str
    command: str
    live: LiveSandbox
    output: OutputFile
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stopped: bool = False
    told: bool = False

    @property
    def running(self) -> bool:
        if self.live.running:
            return True
        if self.ended is None:
            self.ended = time.monotonic()
        return False

    @property
    def words(self) -> str:
        """The command on one short line."""
        line = " ".join(self.command.split())
        return line if len(line) <= _WORDS else f"{line[:_WORDS]}…"

    async def wait(self, wait_s: float, until: str) -> None:
        """Until it has ended, `until` is in what was not read yet, or the time is over."""
        wanted = until.encode()
        with anyio.move_on_after(wait_s):
            while self.running and not (wanted and self.output.has(wanted)):
                await self.live.wait(_LOOK_EVERY_S if wanted else None)

    async def stop(self) -> None:
        """Kill it, with everything it started."""
        self.stopped = self.stopped or self.running
        await self.live.end()

    def status(self) -> str:
        """`t1 runs since 3.2 s`, or how it ended."""
        if self.running:
            return f"{self.id} has been running for {time.monotonic() - self.began:.1f} s"
        assert self.ended is not None
        result = self.live.result
        if result is not None and (result.killed or not self.stopped):
            how = _how(result)
        elif self.stopped:
            how = "was stopped"
        else:
            how = f"could not be run: {self.live.fault}"
        return f"{self.id} {how} after {self.ended - self.began:.1f} s"


def _how(result: SandboxResult) -> str:
    if result.quarantined:
        return f"made a file that no tool may make ({', '.join(result.quarantined)}) and was ended"
    if result.killed:
        return f"was ended for its limit of {result.killed}"
    by = f" ({result.signal.name})" if result.signal else ""
    return f"ended with exit code {result.exit_code}{by}"
