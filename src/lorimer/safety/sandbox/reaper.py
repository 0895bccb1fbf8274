"""Runs one program and sees to it that nothing it started is left. Started as a script of its own.

It waits for what to do on `FD`, sets the limits, becomes the parent of every orphan below it
(Linux), waits for the program, and kills whatever is left of its tree. SIGTERM means: kill the tree
now. It imports nothing of lorimer, so that it starts in milliseconds.

On `FD` comes nothing (no confinement: a program that wants to can kill this process first; this is
order, not security) or the confinement of the program, but not of this process, as fields with a
zero byte between them: three numbers (what a Landlock ruleset handles: files, network, scopes), a
seccomp program in hex, and then pairs of rights and path. Modules that are slow to import are not
used here: most of the time that this costs is their import.

If the program cannot be begun, the reason goes to `STATUS`, which no program ever has: nobody else
can say so.

Usage: `reaper.py FD STATUS CPU_S MEMORY_BYTES FILE_BYTES PROCESSES OPEN_FILES PROGRAM [ARGUMENT …]`
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 22, 24, 28, 38
_PR_CAP_AMBIENT, _CLEAR_ALL = 47, 4
_NO_ROOT_BITS = 0x2F  # root is nobody special at exec and setuid, locked
_FIRST_USER_NAMESPACE = "user:[4026531837]"  # PROC_USER_INIT_INO
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_FOR_FILES = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000  # rights that make sense for what is no folder


def main(arguments: list[str]) -> int:
    told, status, cpu, memory, file, processes, files = (int(a) for a in arguments[:7])
    argv = arguments[7:]
    os.set_inheritable(status, False)
    with open(told, "rb") as begin:
        confinement = begin.read()
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    stop = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, {*stop, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*stop, signal.SIGCHLD})
        try:  # noqa: SIM105
            os.setpgid(0, 0)
        except OSError:
            pass  # it leads a group already
        for kind, value in (
            (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, cpu), (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_NOFILE, files),
            (resource.RLIMIT_NPROC, _threads(processes)),
        ):  # fmt: skip
            _limit(kind, value)
        try:
            if confinement:
                _confine(confinement.split(b"\0"))
        except Exception as fault:  # noqa: BLE001 - whatever it is: not confined means not run
            os.write(status, f"could not confine the program: {fault}".encode())
            os._exit(126)
        try:
            os.execvp(argv[0], argv)
        except OSError as fault:
            text = f"cannot run {argv[0]}: {fault.strerror}"
            os.write(status, text.encode())
            os.write(2, f"{text}\n".encode())
        os._exit(127)
    os.close(status)
    code = None
    while code is None:
        if signal.sigwait({*stop, signal.SIGCHLD}) in stop:
            break
        code = _reap(child)
    _kill_rest(child)
    return 137 if code is None else code


def _confine(wanted: list[bytes]) -> None:
    """Landlock, no capabilities, the filter: for this process and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prctl(option: int, first: int, second: object = 0) -> int:
        rest = second if isinstance(second, bytes) else ctypes.c_ulong(0)
        zero = ctypes.c_ulong(0)
        return int(libc.prctl(option, ctypes.c_ulong(first), rest, zero, zero))

    def call(number: int, *arguments: int | bytes) -> int:
        wide = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
        return int(libc.syscall(ctypes.c_long(number), *wide))

    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    fs, net, scope = (int(number) for number in wanted[:3])
    attributes = b"".join(number.to_bytes(8, sys.byteorder) for number in (fs, net, scope))
    size = 24 if scope else 16 if net else 8
    ruleset = _checked(call(_CREATE_RULESET, attributes, size, 0), "landlock ruleset")
    for number, path in zip(wanted[4::2], wanted[5::2], strict=True):
        rights = int(number)
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            continue  # not there (any more): no right to give
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FOR_FILES
        rule = (rights & fs).to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
        _checked(call(_ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {os.fsdecode(path)}")
        os.close(place)
    for capability in range(64):
        prctl(_PR_CAPBSET_DROP, capability)
    prctl(_PR_SET_SECUREBITS, _NO_ROOT_BITS)
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    _checked(prctl(_PR_SET_NO_NEW_PRIVS, 1), "no new privileges")
    header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)  # version 3, this process
    _checked(libc.capset(header, bytes(24)), "no capabilities")
    _checked(call(_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)
    code = bytes.fromhex(wanted[3].decode())
    held = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(held))
    _checked(prctl(_PR_SET_SECCOMP, 2, bytes(program)), "seccomp")


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:  # noqa: SIM105
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        pass  # not every system has every limit


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
    try:  # noqa: SIM105
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass  # the group is empty
    while _has_children():
        for pid in _descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _has_children() -> bool:
    """Orphans below are children, too; so without any there is nothing left (Linux)."""
    if not sys.platform.startswith("linux"):
        return True
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


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


def _threads(more: int) -> int:
    """The limit that lets this program have `more` threads, itself among them.

    `RLIMIT_NPROC` counts all threads of the user; in a user namespace of its own only those that
    lie in it (Linux 5.14). It does not bind root, so there nothing is counted.
    """
    mine = _user_namespace("self")
    everywhere = mine in ("", _FIRST_USER_NAMESPACE)
    if everywhere and os.getuid() == 0:
        return more
    return (
        more
        - 1
        + sum(
            threads
            for pid, _, threads in _processes(os.getuid())
            if everywhere or _user_namespace(str(pid)) == mine
        )
    )


def _user_namespace(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return ""


def _processes(user: int | None = None) -> list[tuple[int, int, int]]:
    """(pid, parent, threads) of every process (of `user`) that can be seen."""
    out: list[tuple[int, int, int]] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return out
    for name in names:
        if not name.isdigit():
            continue
        try:
            if user is not None and os.stat(f"/proc/{name}").st_uid != user:
                continue
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            out.append((int(name), int(fields[1]), int(fields[17])))
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
