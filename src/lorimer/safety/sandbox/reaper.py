"""Runs one program and sees to it that nothing it started is left. Started as a script of its own.

It sets the limits, becomes the parent of every orphan below it (Linux), waits for the program, and
kills whatever is left of its tree. SIGTERM means: kill the tree now. It imports nothing of lorimer,
so that it starts in milliseconds. A program that wants to can kill this process first: this is
order, not security.

Usage: `reaper.py CPU_S MEMORY_BYTES FILE_BYTES PROCESSES OPEN_FILES PROGRAM [ARGUMENT …]`
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(arguments: list[str]) -> int:
    cpu, memory, file, processes, files = (int(a) for a in arguments[:5])
    argv = arguments[5:]
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    stop = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, {*stop, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*stop, signal.SIGCHLD})
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        for kind, value in (
            (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, cpu), (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_NOFILE, files),
            (resource.RLIMIT_NPROC, _others() + processes),
        ):  # fmt: skip
            _limit(kind, value)
        try:
            os.execvp(argv[0], argv)
        except OSError as fault:
            os.write(2, f"cannot run {argv[0]}: {fault.strerror}\n".encode())
        os._exit(127)
    code = None
    while code is None:
        if signal.sigwait({*stop, signal.SIGCHLD}) in stop:
            break
        code = _reap(child)
    _kill_rest(child)
    return 137 if code is None else code


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))


def _reap(child: int) -> int | None:
    """Collect what has ended; the program's exit code once it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def _kill_rest(child: int) -> None:
    """Kill every descendant, again and again until there is none."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for pid, parent, _ in _processes():
        parents[pid] = parent
    me, found = os.getpid(), []
    for pid in parents:
        above, steps = pid, 0
        while above in parents and above != me and steps < 10_000:
            above, steps = parents[above], steps + 1
        if above == me and pid != me:
            found.append(pid)
    return found


def _others() -> int:
    """Threads that this user has already: `RLIMIT_NPROC` counts them too."""
    return sum(threads for *_, threads in _processes(os.getuid()))


def _processes(user: int | None = None) -> list[tuple[int, int, int]]:
    """(pid, parent, threads) of every process (of `user`) that can be seen."""
    out = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    if user is not None and os.stat(f"/proc/{name}").st_uid != user:
                        continue
                    with open(f"/proc/{name}/stat", "rb") as file:
                        fields = file.read().rpartition(b")")[2].split()
                    out.append((int(name), int(fields[1]), int(fields[17])))
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
