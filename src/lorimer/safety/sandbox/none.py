"""The `none` level: a plain process of this user, with limits and a clean end. Not a sandbox.

The program can read and write whatever this user can, and use the network. It gets the same limits
and a minimal environment, and its tree is killed at the end as far as a process without privileges
can see to that (see `reaper`). It is used only where a deployment says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec, signal_of
from lorimer.safety.sandbox.streams import Capture
from lorimer.safety.sandbox.supervise import Pipes, close_all, exited, supervise

_REAPER = str(Path(__file__).with_name("reaper.py"))


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` as a plain process. Cancellation kills its tree before this raises.

    Raises:
        SandboxUnavailable: on systems without Linux's process descriptors.
    """
    if not hasattr(os, "pidfd_open"):
        raise SandboxUnavailable(
            "The level `none` needs Linux's process descriptors.", next="Run on Linux 5.3 or later."
        )
    started = time.monotonic()
    limits = spec.limits
    tree = _Process(argv, spec, feeds_stdin=stdin is not None)
    captures = (
        Capture("stdout", limits, _spool(spec, "stdout"), on_output),
        Capture("stderr", limits, _spool(spec, "stderr"), on_output),
    )
    try:
        try:
            ending = await supervise(
                tree, tree.pipes, captures, limits, stdin=stdin, watch=lambda: ""
            )
        finally:
            outputs = [c.close() for c in captures]
        code = tree.process.wait()
    finally:
        tree.close()
    killed = bool(ending.killed)
    faults = [f"the whole output was not stored: {c.fault}" for c in captures if c.fault]
    return SandboxResult(
        exit_code=None if killed else code,
        signal=None if killed else signal_of(code),
        stdout=outputs[0],
        stderr=outputs[1],
        killed=ending.killed,
        duration_s=ending.gone_at - started,
        quiescent_s=ending.quiescent_s,
        not_enforced=("everything but limits: this was no sandbox", *faults),
        level="none",
    )


def _spool(spec: SandboxSpec, name: str) -> Path | None:
    return spec.spool / f"{spec.spool_name}.{name}" if spec.spool is not None else None


class _Process:
    """The reaper and what is below it."""

    def __init__(self, argv: Sequence[str], spec: SandboxSpec, *, feeds_stdin: bool) -> None:
        limits = spec.limits
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        into, inside = os.pipe() if feeds_stdin else (None, None)
        self.pipes = Pipes(out, err, inside)
        self._pidfd = -1
        numbers = (limits.cpu_s, limits.memory_bytes, limits.file_bytes, limits.processes,
                   limits.open_files)  # fmt: skip
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", _REAPER, *map(str, numbers), *argv],
                stdin=subprocess.DEVNULL if into is None else into,
                stdout=out_inside, stderr=err_inside, start_new_session=True,
                cwd=spec.workspace, env=_environment(spec),
            )  # fmt: skip
        except BaseException:
            close_all(out, err, inside)
            raise
        finally:
            close_all(into, out_inside, err_inside)
        for fd in (out, err, inside):
            if fd is not None:
                os.set_blocking(fd, False)
        self._pidfd = os.pidfd_open(self.process.pid)

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
        except ProcessLookupError:
            return

    async def gone(self) -> None:
        await exited(self._pidfd)
        self.process.wait()

    def close(self) -> None:
        close_all(self._pidfd, self.pipes.stdout, self.pipes.stderr, self.pipes.stdin)


def _environment(spec: SandboxSpec) -> dict[str, str]:
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "TMPDIR") if k in os.environ}
    return {"LANG": "C.UTF-8", **kept, **spec.environment}
