"""The `os` level on Linux: bubblewrap, a system call filter, resource limits.

The program gets its own user, pid, ipc, network (nothing but loopback) and host name spaces; the
system's programs and libraries read-only; an empty home and `/tmp`; the workspace read-only or
writable; an environment without anything of ours. It has no capabilities, cannot gain any, and when
it ends, or is killed, everything it started ends with it.

The totals (memory of all processes, growth of the workspace, number of files) are watched, see
`quotas.py`. Not covered: Landlock as a second fence inside. What a running kernel cannot enforce is
in `SandboxResult.not_enforced`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import mounts, seccomp
from lorimer.safety.sandbox.egress import PORT as EGRESS_PORT
from lorimer.safety.sandbox.egress import granted
from lorimer.safety.sandbox.guard import Guard
from lorimer.safety.sandbox.hidden import Covers
from lorimer.safety.sandbox.netns import listen_inside
from lorimer.safety.sandbox.pids import PidsGroup
from lorimer.safety.sandbox.quotas import Quota, is_other_root
from lorimer.safety.sandbox.spec import Limits, OnOutput, SandboxResult, SandboxSpec, signal_of
from lorimer.safety.sandbox.streams import captures_of
from lorimer.safety.sandbox.supervise import Pipes, close_all, exited, supervise

_START_S = 20.0


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` in a new sandbox and wait for the end of everything it started.

    Call it from the thread that lives as long as the run: the sandbox dies with the thread that
    started it.

    Cancellation kills the tree and waits until nothing of it is left, then raises; what the program
    had done to a writable workspace by then stays done.

    Raises:
        SandboxUnavailable: bubblewrap is missing or could not set the sandbox up; nothing was run.
    """
    started = time.monotonic()
    guard = _guard(spec)
    quota = Quota(spec.limits, written=_written(spec))
    covers = Covers()
    try:
        if spec.hidden:
            covers = Covers.over(spec.hidden, mounts.shown_anyway(spec))
        command = mounts.arguments(spec, guard.mounts if guard else (), covers.mounts)
        launch = _Launch(command, list(argv), spec, feeds_stdin=stdin is not None)
        try:
            not_enforced = await launch.start(spec.limits)
            launch.locate(quota, spec)
            captures = captures_of(spec, on_output)

            def watch() -> str:
                if guard is not None and guard.appeared():
                    return "protected"
                return launch.too_many(spec.limits.processes) or quota.check()

            try:
                async with granted(spec.egress, launch.network):
                    ending = await supervise(
                        launch, launch.pipes, captures, spec.limits, stdin=stdin, watch=watch
                    )
            finally:
                outputs = [c.close() for c in captures]
                quarantined = guard.quarantine() if guard is not None else ()
                quota.close()
            exit_code = launch.exit_code(outputs[1].text() if outputs[1].total < 4096 else "")
        finally:
            launch.close()
    finally:
        covers.close()
        if guard is not None:
            guard.close()
    killed = ending.killed or ("protected" if quarantined else "")
    faults = [f"the whole output was not stored: {c.fault}" for c in captures if c.fault]
    return SandboxResult(
        exit_code=None if ending.killed else exit_code,
        signal=None if ending.killed else signal_of(exit_code),
        stdout=outputs[0],
        stderr=outputs[1],
        killed=killed,
        duration_s=ending.gone_at - started,
        quiescent_s=ending.quiescent_s,
        quarantined=quarantined,
        not_enforced=(*not_enforced, *quota.gaps(), *faults),
        watched=quota.watched(),
    )


def _guard(spec: SandboxSpec) -> Guard | None:
    if spec.workspace is None:
        return None
    if not spec.workspace.is_dir():
        raise SandboxUnavailable(
            f"The workspace {spec.workspace} is not a folder.", next="Start in an existing folder."
        )
    return Guard.over(spec.workspace) if spec.writable else None


def program() -> str:
    """Where bubblewrap is.

    Raises:
        SandboxUnavailable: when it is not installed.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            "bubblewrap (the program `bwrap`) is not installed.",
            next="Install it, e.g. `apt install bubblewrap` or `dnf install bubblewrap`; or allow "
            "the weaker level `landlock`, which needs no program.",
        )
    return found


def _written(spec: SandboxSpec) -> tuple[Path, ...]:
    workspace = (spec.workspace,) if spec.workspace is not None and spec.writable else ()
    return (*workspace, *spec.folders.values())


class _Launch:
    """One bubblewrap: it waits inside until its limits are set, and is killed by its init."""

    def __init__(
        self, command: Sequence[str], argv: list[str], spec: SandboxSpec, *, feeds_stdin: bool
    ) -> None:
        bwrap = program()
        self._init = self._outer = -1
        self._grants = spec.egress is not None
        self.network: socket.socket | None = None
        self._group: PidsGroup | None = None
        self._init_pid = 0
        self._reported = b""
        self._status, status = os.pipe()
        block, self._release = os.pipe()
        data = mounts.sealed(seccomp.build(unix_sockets=spec.unix_sockets))
        identity, identity_arguments = mounts.identity_files()
        out, out_inside = os.pipe()
        err, err_inside = os.pipe()
        into, inside = os.pipe() if feeds_stdin else (None, None)
        # the program reads `into`; we write `inside`
        self.pipes = Pipes(out, err, inside)
        handed = [status, block, data, *identity]
        try:
            self._process = subprocess.Popen(
                [bwrap, *command, *identity_arguments, "--remount-ro", "/",
                 "--seccomp", str(data), "--json-status-fd", str(status),
                 "--block-fd", str(block), "--", *argv],
                stdin=subprocess.DEVNULL if into is None else into,
                stdout=out_inside, stderr=err_inside, pass_fds=[*handed, *spec.pass_fds],
                env=mounts.environment(spec), cwd="/", start_new_session=True,
            )  # fmt: skip
        except BaseException:
            close_all(self._status, self._release, out, err, inside)
            raise
        finally:
            close_all(*handed, into, out_inside, err_inside)
        for fd in (self._status, out, err, inside):
            if fd is not None:
                os.set_blocking(fd, False)

    async def start(self, limits: Limits) -> list[str]:
        """Set the limits on the sandbox's init, then let the program begin.

        Returns:
            What could not be enforced, in words.
        """
        try:
            self._outer = os.pidfd_open(self._process.pid)
            with anyio.fail_after(_START_S):
                await self._find_init()
            for kind, value in _rlimits(limits):
                resource.prlimit(self._init_pid, kind, (value, value))
            missing = self._limit_processes(limits)
            if self._grants:
                self.network = await listen_inside(self._init_pid, EGRESS_PORT)
            os.write(self._release, b"x")
        except BaseException as fault:
            with anyio.CancelScope(shield=True):
                if self._init < 0 and not isinstance(fault, TimeoutError | SandboxUnavailable):
                    await self._find_init_to_kill()
                self.kill()
                await self.gone()
            if isinstance(fault, TimeoutError | OSError):
                raise self._failed(str(fault) or "it did not start in time") from fault
            raise
        return missing

    async def _find_init(self) -> None:
        """Wait until bubblewrap reports its child, the init of the new pid namespace."""
        while True:
            await anyio.wait_readable(self._status)
            piece = os.read(self._status, 4096)
            self._reported += piece
            for line in self._reported.split(b"\n"):
                if b"child-pid" in line and line.rstrip().endswith(b"}"):
                    self._init_pid = int(json.loads(line)["child-pid"])
                    self._init = os.pidfd_open(self._init_pid)
                    return
            if not piece:
                raise self._failed("")

    async def _find_init_to_kill(self) -> None:
        """Bubblewrap killed in the middle of its start would leave its child waiting for ever, so
        the child must be known first. It cannot run anything before it is released."""
        with anyio.move_on_after(_START_S), contextlib.suppress(SandboxUnavailable, OSError):
            await self._find_init()

    def _failed(self, why: str) -> SandboxUnavailable:
        try:
            said = os.read(self.pipes.stderr, 4096).decode("utf-8", "replace").strip()
        except BlockingIOError:
            said = ""
        return SandboxUnavailable(
            f"bubblewrap could not set up a sandbox here: {said or why or 'it ended at once'}",
            next="Check that user namespaces are allowed here (sysctl user.max_user_namespaces, "
            "kernel.apparmor_restrict_unprivileged_userns, the container's seccomp profile).",
        )

    def _limit_processes(self, limits: Limits) -> list[str]:
        self._group = PidsGroup.create(limits.processes, limits.tree_memory_bytes)
        try:
            if self._group is not None:
                self._group.add(self._init_pid)
                return []
        except OSError:  # a group that we may make, but not move a process to
            if self._group is not None:
                self._group.remove()
                self._group = None
        if os.geteuid() != 0:
            return []  # RLIMIT_NPROC holds
        return ["the number of processes (root without a pids cgroup: counted, and killed if over)"]

    def locate(self, quota: Quota, spec: SandboxSpec) -> None:
        """Tell `quota` where to look at this tree; call it when the tree has started."""
        inside = Path(f"/proc/{self._init_pid}/root")
        quota.root, quota.proc = inside, inside / "proc"
        quota.pids = lambda: [int(n) for n in _listed(quota.proc) if n.isdigit()]
        quota.temporary = tuple(
            inside / folder.lstrip("/") for folder in mounts.TEMPORARY if folder not in spec.folders
        )
        quota.memory_group = self._group

    def too_many(self, limit: int) -> str:
        """`processes` when the limit was run into (pids cgroup) or passed (counted)."""
        if os.geteuid() != 0 or self._group is not None:
            return ""
        inside = Path(f"/proc/{self._init_pid}/root")
        if not is_other_root(inside):
            return ""  # it is still being set up
        count = sum(n.isdigit() for n in _listed(inside / "proc"))
        return "processes" if count > limit else ""

    def kill(self) -> None:
        """Kill the init of the pid namespace; the kernel kills the rest with it."""
        for fd in (self._init, self._outer):
            if fd >= 0:
                try:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    async def gone(self) -> None:
        """Until the init has exited, which it does after everything in its namespace has."""
        if self._init >= 0:
            await exited(self._init)
        if self._outer >= 0:
            await exited(self._outer)
        self._process.wait()

    def exit_code(self, said: str) -> int:
        """The program's exit code.

        Raises:
            SandboxUnavailable: when bubblewrap failed before the program began.
        """
        try:
            reported = os.read(self._status, 4096)
        except BlockingIOError:
            reported = b""
        for line in reported.split(b"\n"):
            if b"exit-code" in line:
                return int(json.loads(line)["exit-code"])
        code = self._process.wait()
        if code == 1 and said.startswith("bwrap: "):
            first = said.splitlines()[0]
            raise SandboxUnavailable(
                f"bubblewrap could not set up a sandbox here: {first}",
                next="Check that the program and every folder of the call exist.",
            )
        return code

    def close(self) -> None:
        if self._group is not None:
            self._group.remove()
        close_all(self._status, self._release, self._init, self._outer)
        if self.network is not None:
            self.network.close()
        close_all(self.pipes.stdout, self.pipes.stderr, self.pipes.stdin)


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _rlimits(limits: Limits) -> list[tuple[int, int]]:
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
    ]
    capped = []
    for kind, value in wanted:
        hard = resource.getrlimit(kind)[1]
        capped.append((kind, value if hard == resource.RLIM_INFINITY else min(value, hard)))
    return capped
