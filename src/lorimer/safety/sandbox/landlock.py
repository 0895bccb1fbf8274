"""The `landlock` level: Landlock, a stricter system call filter, limits, a subreaper.

For machines without bubblewrap or without user namespaces, and only where the caller says so. The
program sees the machine's own file system, of which it may read programs, libraries, a few settings
and what it is shown, and write its workspace, an empty home and an empty folder for temporary
files. It has no sockets but pairs, no capabilities, cannot trace or signal what is outside, and
everything it started ends with it.

What stays open at this level, and nothing else that the escape suite knows:

- that a file outside exists, its size, owner and times, and where a link points (`stat`);
- kernel and account names (`uname`, `/etc/passwd`);
- secret files in the workspace: `SandboxSpec.hidden` is not kept;
- kernels before 6.12 (Landlock ABI < 6): signals to other processes of the same user, also to the
  one that ends what is left at the end.

What does not work that works with bubblewrap: any network, loopback too; `chmod`, `chown`, setting
times and attributes by name (so: `cp -p`, linkers that mark their output executable); `/proc`
beyond a few files; `/dev/shm`; System V and POSIX queues. Protected names are put back after the
run, see `putback.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import mounts, seccomp
from lorimer.safety.sandbox.putback import PutBack
from lorimer.safety.sandbox.quotas import Quota
from lorimer.safety.sandbox.reaped import Reaped
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec, signal_of
from lorimer.safety.sandbox.streams import captures_of
from lorimer.safety.sandbox.supervise import supervise

LEAST_ABI = 3
"""Before it (Linux 6.2) a file can be cut off by `truncate` without the right to write it."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_MAKE_SOCK, _MAKE_FIFO, _MAKE_SYM, _REFER, _TRUNCATE = 1 << 9, 1 << 10, 1 << 12, 1 << 13, 1 << 14

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE
WRITE = (
    _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO
    | _MAKE_SYM | _REFER | _TRUNCATE
)  # fmt: skip
_ALL_FS = {3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_ALL_NET = 0b11  # bind and connect of TCP, since ABI 4
_ALL_SCOPES = 0b11  # abstract unix sockets and signals, since ABI 6

_ETC = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROC = (
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg",
    "/proc/version", "/proc/filesystems", "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/pipe-max-size",
    "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What a Landlock domain handles (so: forbids), and which rights it gives where."""

    fs: int
    net: int
    scope: int
    rules: tuple[tuple[str, int], ...]

    def confinement(self, code: bytes) -> bytes:
        """As `reaper.py` takes it, with a system call filter."""
        fields = [str(self.fs), str(self.net), str(self.scope), code.hex()]
        for path, rights in self.rules:
            fields += [str(rights), path]
        return b"\0".join(os.fsencode(field) for field in fields)


def abi() -> int:
    """The kernel's Landlock version; 0 when it has none or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_long(0)
    found = libc.syscall(ctypes.c_long(444), zero, zero, ctypes.c_long(1))
    return max(0, int(found))


def ruleset(spec: SandboxSpec, version: int, private: Sequence[Path]) -> Ruleset:
    """The rules for one run.

    Args:
        version: the kernel's Landlock ABI, at least `LEAST_ABI`.
        private: empty folders of this run, which the program may write.

    Raises:
        SandboxUnavailable: when the workspace is a folder that cannot be given to a program.
    """
    rules: list[tuple[str, int]] = [("/usr", RUN)]
    rules += [(path, RUN) for path in mounts.SYSTEM]
    rules += [(path, READ) for path in (*mounts.ETC, *_ETC, *_PROC)]
    rules += [(path, READ | _WRITE_FILE) for path in _DEVICES]
    rules += [(os.path.abspath(path), RUN) for path in spec.read_only]
    if spec.workspace is not None:
        workspace = mounts.workspace_of(spec.workspace)
        rules.append((str(workspace), RUN | WRITE if spec.writable else RUN))
    rules += [(str(folder), RUN | WRITE) for folder in (*private, *spec.folders.values())]
    return Ruleset(
        fs=_ALL_FS[min(version, max(_ALL_FS))],
        net=_ALL_NET if version >= 4 else 0,
        scope=_ALL_SCOPES if version >= 6 else 0,
        rules=tuple(rules),
    )


def usable() -> int:
    """The Landlock ABI, when this level can be had here.

    Raises:
        SandboxUnavailable: with the reason.
    """
    version = abi()
    if version < LEAST_ABI:
        has = f"has version {version} of it" if version else "has none, or it is switched off"
        raise SandboxUnavailable(
            f"This kernel's Landlock cannot confine a program: version {LEAST_ABI} is needed and "
            f"it {has}.",
            next="Use Linux 6.2 or later with `landlock` among the `lsm=` of its command line, or "
            "install bubblewrap.",
        )
    seccomp.build(alone=True)
    return version


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` confined by Landlock and wait for the end of everything it started.

    Cancellation kills the tree and waits until nothing of it is left, then raises; what the program
    had done to a writable workspace by then stays done, except under protected names.

    Raises:
        SandboxUnavailable: the kernel cannot do it, or the call wants what this level cannot give;
            nothing was run.
    """
    started = time.monotonic()
    version = usable()
    if spec.unix_sockets:
        raise SandboxUnavailable(
            "The level `landlock` cannot grant unix sockets: it could not tell which ones.",
            next="Use the level `os`, which needs bubblewrap.",
        )
    for inside, folder in spec.folders.items():
        if Path(inside) != folder:
            raise SandboxUnavailable(
                f"The level `landlock` cannot show {folder} at another path ({inside}).",
                next="Use the level `os`, which needs bubblewrap.",
            )
    if spec.workspace is not None and not spec.workspace.is_dir():
        raise SandboxUnavailable(
            f"The workspace {spec.workspace} is not a folder.", next="Start in an existing folder."
        )
    written = (spec.workspace,) if spec.workspace is not None and spec.writable else ()
    guard = PutBack.over(mounts.workspace_of(written[0])) if written else None
    private = Path(tempfile.mkdtemp(prefix="lorimer-"))
    try:
        places = [private / "home", private / "tmp"]
        for place in places:
            place.mkdir(mode=0o700)
        rules = ruleset(spec, version, places)
        quota = Quota(spec.limits, written=(*written, private, *spec.folders.values()))
        environment = {
            **mounts.environment(spec), "HOME": str(places[0]), "TMPDIR": str(places[1]),
        }  # fmt: skip
        tree = Reaped(
            argv, spec.limits, cwd=spec.workspace or places[0],
            environment={**environment, **spec.environment}, feeds_stdin=stdin is not None,
            pass_fds=spec.pass_fds, confinement=rules.confinement(seccomp.build(alone=True)),
        )  # fmt: skip
        captures = captures_of(spec, on_output)
        put_back: tuple[str, ...] = ()
        try:
            missing = tree.limit_processes(spec.limits)
            quota.pids = tree.pids
            quota.memory_group = tree.group
            tree.release()

            def watch() -> str:
                if guard is not None and guard.changed():
                    return "protected"
                return quota.check()

            try:
                ending = await supervise(
                    tree, tree.pipes, captures, spec.limits, stdin=stdin, watch=watch
                )
            finally:
                outputs = [c.close() for c in captures]
                put_back = guard.restore() if guard is not None else ()
            code = tree.process.wait()
            failure = tree.failure()
        finally:
            quota.close()
            tree.close()
    finally:
        if guard is not None:
            guard.close()
        remove(private)
    if failure:
        raise SandboxUnavailable(
            f"Nothing was run: {failure}.",
            next="Check that the program exists and lies in what this call may read.",
        )
    faults = [f"the whole output was not stored: {c.fault}" for c in captures if c.fault]
    return SandboxResult(
        exit_code=None if ending.killed else code,
        signal=None if ending.killed else signal_of(code),
        stdout=outputs[0],
        stderr=outputs[1],
        killed=ending.killed or ("protected" if put_back else ""),
        duration_s=ending.gone_at - started,
        quiescent_s=ending.quiescent_s,
        quarantined=put_back,
        not_enforced=(*missing, *_gaps(version), *_not_hidden(spec), *faults),
        level="landlock",
        watched=quota.watched(),
    )


def _not_hidden(spec: SandboxSpec) -> list[str]:
    """Landlock gives rights to whole folders; it cannot take one file out of them."""
    return [f"secret files are not hidden ({len(spec.hidden)})"] if spec.hidden else []


def _gaps(version: int) -> list[str]:
    if version >= 6:
        return []
    return [
        f"signals to other processes of this user, and with them a clean end (Landlock {version}, "
        "needs 6)"
    ]


def remove(folder: Path) -> None:
    """Remove a folder with all that a program has left in it, whatever the modes."""

    def again(_: object, path: str, fault: object) -> None:
        with contextlib.suppress(OSError):
            parent = os.path.dirname(path)
            for place in (parent, path):
                if stat.S_ISDIR(os.lstat(place).st_mode):
                    os.chmod(place, 0o700)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(folder, onerror=again)
    if folder.exists():
        raise OSError(errno.ENOTEMPTY, "could not be removed", str(folder))
