"""Running a program through another one that does the confining (`sandbox-exec`, `podman`).

Nothing here confines; it starts the outer program in a session of its own with a small environment,
reads what comes, and sees to its end. Works wherever Python's `subprocess` does on Unix.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import anyio

from lorimer.safety.sandbox.guard import Guard
from lorimer.safety.sandbox.quotas import Quota
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec, signal_of
from lorimer.safety.sandbox.streams import captures_of
from lorimer.safety.sandbox.supervise import Pipes, close_all, supervise

_EACH_END_S = 30.0


async def run(
    command: Sequence[str],
    *,
    spec: SandboxSpec,
    environment: Mapping[str, str],
    level: str,
    guard: Guard | None,
    ends: Sequence[Sequence[str]] = (),
    prepare: Callable[[], None] | None = None,
    not_enforced: Sequence[str] = (),
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run the outer program `command` to its end.

    Args:
        environment: of the outer program, whole.
        guard: closed at the end.
        ends: commands that end what the outer program started elsewhere, run when it is killed.
        prepare: called in the new process before the outer program begins, e.g. for limits.

    Cancellation kills it, runs `ends`, and raises when both are over.
    """
    started = time.monotonic()
    written = (spec.workspace,) if spec.workspace is not None and spec.writable else ()
    quota = Quota(spec.limits, written=written)
    captures = captures_of(spec, on_output)
    quarantined: tuple[str, ...] = ()
    try:
        tree = _Outer(command, environment, ends, prepare, feeds_stdin=stdin is not None)
        try:

            def watch() -> str:
                if guard is not None and guard.appeared():
                    return "protected"
                return quota.check()

            try:
                ending = await supervise(
                    tree, tree.pipes, captures, spec.limits, stdin=stdin, watch=watch
                )
            finally:
                outputs = [c.close() for c in captures]
                quarantined = guard.quarantine() if guard is not None else ()
            code = tree.process.wait()
        finally:
            tree.close()
    finally:
        quota.close()
        if guard is not None:
            guard.close()
    faults = [f"the whole output was not stored: {c.fault}" for c in captures if c.fault]
    return SandboxResult(
        exit_code=None if ending.killed else 128 - code if code < 0 else code,
        signal=None if ending.killed else signal_of(code),
        stdout=outputs[0],
        stderr=outputs[1],
        killed=ending.killed or ("protected" if quarantined else ""),
        duration_s=ending.gone_at - started,
        quiescent_s=ending.quiescent_s,
        quarantined=quarantined,
        not_enforced=(*not_enforced, *faults),
        level=level,
        watched=quota.watched(),
    )


class _Outer:
    """The outer program, its process group, and the commands that end the rest."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        ends: Sequence[Sequence[str]],
        prepare: Callable[[], None] | None,
        *,
        feeds_stdin: bool,
    ) -> None:
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        into, inside = os.pipe() if feeds_stdin else (None, None)
        self.pipes = Pipes(out, err, inside)
        self._ends, self._environment = ends, dict(environment)
        self._ending: list[subprocess.Popen[bytes]] | None = None
        try:
            self.process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL if into is None else into,
                stdout=out_inside, stderr=err_inside, env=self._environment, cwd="/",
                start_new_session=True, preexec_fn=prepare,
            )  # fmt: skip
        except BaseException:
            close_all(out, err, inside)
            raise
        finally:
            close_all(into, out_inside, err_inside)
        for fd in (out, err, inside):
            if fd is not None:
                os.set_blocking(fd, False)

    def kill(self) -> None:
        if self._ending is None:
            self._ending = [
                subprocess.Popen(
                    list(end), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, env=self._environment, start_new_session=True,
                )
                for end in self._ends
            ]  # fmt: skip
        if not self._ends:  # else the outer program goes when what it waits for has gone
            self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        if self._ending:
            await self._end_rest()
            self._kill_group()
        await _in_thread(self.process.wait)
        self._kill_group()  # what it left in its own group
        await self._end_rest()  # when it was killed only while we waited

    async def _end_rest(self) -> None:
        for end in self._ending or ():
            try:
                await _in_thread(partial(end.wait, _EACH_END_S))
            except subprocess.TimeoutExpired:
                end.kill()
                end.wait()

    def close(self) -> None:
        close_all(self.pipes.stdout, self.pipes.stderr, self.pipes.stdin)


async def _in_thread(work: Callable[[], int]) -> None:
    await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
