"""A program below a reaper of its own: the parts that the levels without bubblewrap share."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.pids import PidsGroup
from lorimer.safety.sandbox.spec import Limits
from lorimer.safety.sandbox.supervise import Pipes, close_all, exited

_REAPER = str(Path(__file__).with_name("reaper.py"))


class Reaped:
    """The reaper and what is below it; a `supervise.Tree`.

    Args:
        confinement: as `reaper.py` takes it, applied to the program; empty for none. The
            program starts when `release` is called.
    """

    def __init__(
        self,
        argv: Sequence[str],
        limits: Limits,
        *,
        cwd: Path | None,
        environment: Mapping[str, str],
        feeds_stdin: bool,
        confinement: bytes = b"",
        pass_fds: Sequence[int] = (),
    ) -> None:
        if not hasattr(os, "pidfd_open"):
            raise SandboxUnavailable(
                "This level needs Linux's process descriptors.", next="Run on Linux 5.3 or later."
            )
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        into, inside = os.pipe() if feeds_stdin else (None, None)
        told, tell = os.pipe()
        self._status, status = os.pipe()
        self.pipes = Pipes(out, err, inside)
        self._confinement, self._tell, self._pidfd = confinement, tell, -1
        self.group: PidsGroup | None = None
        numbers = (limits.cpu_s, limits.memory_bytes, limits.file_bytes, limits.processes,
                   limits.open_files)  # fmt: skip
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", _REAPER, str(told), str(status),
                 *map(str, numbers), *argv],
                stdin=subprocess.DEVNULL if into is None else into,
                stdout=out_inside, stderr=err_inside, start_new_session=True,
                cwd=cwd, env=dict(environment), pass_fds=[told, status, *pass_fds],
            )  # fmt: skip
        except BaseException:
            close_all(out, err, inside, tell, self._status)
            raise
        finally:
            close_all(into, out_inside, err_inside, told, status)
        for fd in (out, err, inside, self._status):
            if fd is not None:
                os.set_blocking(fd, False)
        self._pidfd = os.pidfd_open(self.process.pid)

    def limit_processes(self, limits: Limits) -> list[str]:
        """A cgroup, where one can be made; what is not enforced, in words."""
        self.group = PidsGroup.create(limits.processes + 1, limits.tree_memory_bytes)
        try:
            if self.group is not None:
                self.group.add(self.process.pid)
                return []
        except OSError:  # a group that we may make, but not move a process to
            if self.group is not None:
                self.group.remove()
                self.group = None
        if os.geteuid() != 0:
            return []  # RLIMIT_NPROC holds
        return ["the number of processes (root without a pids cgroup)"]

    def release(self) -> None:
        """Let the program begin."""
        fd, self._tell = self._tell, -1
        try:
            view = memoryview(self._confinement)
            while view:
                view = view[os.write(fd, view) :]
        except BrokenPipeError:
            return  # it was killed; the end is told like any other
        finally:
            os.close(fd)

    def pids(self) -> list[int]:
        """Every process below the reaper that can be seen, without the reaper."""
        children: dict[int, list[int]] = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    with open(f"/proc/{name}/stat", "rb") as file:
                        parent = int(file.read().rpartition(b")")[2].split()[1])
                    children.setdefault(parent, []).append(int(name))
        found, ahead = [], [self.process.pid]
        while ahead:
            below = children.pop(ahead.pop(), [])
            found += below
            ahead += below
        return found

    def kill(self) -> None:
        if self._tell >= 0:
            close_all(self._tell)
            self._tell = -1
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    async def gone(self) -> None:
        await exited(self._pidfd)
        self.process.wait()

    def failure(self) -> str:
        """Why the program was never begun; empty when it was. Call it at the end."""
        try:
            return os.read(self._status, 4096).decode("utf-8", "replace")
        except BlockingIOError:
            return ""

    def close(self) -> None:
        if self.group is not None:
            self.group.remove()
        close_all(
            self._tell,
            self._status,
            self._pidfd,
            self.pipes.stdout,
            self.pipes.stderr,
            self.pipes.stdin,
        )
