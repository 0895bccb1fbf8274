"""A system call filter as classic BPF, built by hand for bubblewrap's `--seccomp`.

Default is to allow: the namespaces do the main work, and the filter closes what they leave open
(socket families that no network namespace covers, io_uring, nested user namespaces, keyrings,
tracing, mounts, files that run as their owner). Where nothing but Landlock stands behind it, it
also closes what Landlock does not look at (`alone`). The instruction format and
`struct seccomp_data` are those of seccomp(2); the call numbers are in `calls.py`.

Not covered: arguments behind pointers (a filter cannot see the address of a `connect`), and other
architectures, where `build` refuses.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.calls import MACHINES, Machine

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_NR, _ARCH, _ARGUMENTS = 0, 4, 16

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SET_FILE_FLAGS = (0x40086602, 0x40047602, 0x401C5820)  # FS_IOC_SETFLAGS, SETVERSION, FSSETXATTR
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # Linux, 32 bits, old version, ask
_MAY_CREATE = 0o100 | 0x400000  # O_CREAT, __O_TMPFILE
_RUNS_AS_OWNER = 0o6000  # S_ISUID | S_ISGID


_ABSENT = frozenset(
    {"clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register", "fchmodat2"}
)
"""Answered with ENOSYS, so that programs fall back to the older call (glibc does, for clone3)."""


def build(machine: str | None = None, *, unix_sockets: bool = False, alone: bool = False) -> bytes:
    """The filter as an array of `struct sock_filter`.

    Args:
        machine: as `platform.machine()` gives it; `None` for this one.
        unix_sockets: whether `socket(AF_UNIX)` is allowed; `socketpair` always is.
        alone: no namespaces and no read-only mounts stand behind the filter: no sockets of any
            family but pairs, no System V or POSIX queues, no change of modes, owners, attributes
            and times by path, no change of other processes' limits and priorities.

    Raises:
        SandboxUnavailable: for a machine whose call numbers are not known here.
    """
    name = machine or platform.machine()
    known = MACHINES.get(name)
    if known is None:
        raise SandboxUnavailable(
            f"No system call filter is known for {name} machines.",
            next=f"Use one of: {', '.join(MACHINES)}.",
        )
    families = [] if alone else [_AF_INET, _AF_INET6, *([_AF_UNIX] if unix_sockets else [])]
    program = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQUAL, known.arch, 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NR),
    ]
    if known.x32:  # the x32 calls have numbers of their own above this bit
        program += [_op(_JUMP_AT_LEAST, 0x40000000, 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    forbidden = {**known.forbidden, **known.alone} if alone else known.forbidden
    for call, number in forbidden.items():
        code = errno.ENOSYS if call in _ABSENT else errno.EPERM
        program += [_op(_JUMP_EQUAL, number, 0, 1), _op(_RETURN, _ERRNO | code)]
    program += _when(known.clone, [
        _op(_LOAD, _ARGUMENTS),
        _op(_JUMP_ANY_BIT, _NEW_NAMESPACES, 0, 1),
        _op(_RETURN, _ERRNO | errno.EPERM),
        _op(_RETURN, _ALLOW),
    ])  # fmt: skip
    program += _when(known.socket, _only(families))
    program += _when(known.socketpair, _only([_AF_UNIX]))
    refused = (_TIOCSTI, _TIOCLINUX, *(_SET_FILE_FLAGS if alone else ()))
    program += _when(known.ioctl, _none_of(refused))
    program += _when(known.personality, _one_of(0, _PERSONALITIES))
    program += _no_file_that_runs_as_its_owner(known)
    if alone:
        program += _when(known.prlimit, _unless_zero(0))
        program += _when(known.utimensat, _unless_zero(1))
    program.append(_op(_RETURN, _ALLOW))
    return b"".join(program)


def _op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _when(number: int, block: Sequence[bytes]) -> list[bytes]:
    """Run `block`, which ends in returns, for this call; else go on behind it."""
    return [_op(_JUMP_EQUAL, number, 0, len(block)), *block]


def _only(families: Sequence[int]) -> list[bytes]:
    block = [_op(_LOAD, _ARGUMENTS)]
    for place, family in enumerate(families):
        block.append(_op(_JUMP_EQUAL, family, len(families) - place, 0))
    return [
        *block,
        _op(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
        _op(_RETURN, _ALLOW),
    ]


def _none_of(commands: Sequence[int]) -> list[bytes]:
    """Refuse these values of the second argument."""
    block = [_op(_LOAD, _ARGUMENTS + 8)]
    for place, command in enumerate(commands):
        block.append(_op(_JUMP_EQUAL, command, len(commands) - place, 0))
    return [*block, _op(_RETURN, _ALLOW), _op(_RETURN, _ERRNO | errno.EPERM)]


def _one_of(argument: int, values: Sequence[int]) -> list[bytes]:
    """Refuse all but these values of an argument (its lower 32 bits)."""
    block = [_op(_LOAD, _ARGUMENTS + 8 * argument)]
    for place, value in enumerate(values):
        block.append(_op(_JUMP_EQUAL, value, len(values) - place, 0))
    return [*block, _op(_RETURN, _ERRNO | errno.EPERM), _op(_RETURN, _ALLOW)]


def _unless_zero(argument: int) -> list[bytes]:
    """Refuse any value of this argument (64 bits) but zero: this process, or a null pointer."""
    return [
        _op(_LOAD, _ARGUMENTS + 8 * argument),
        _op(_JUMP_EQUAL, 0, 0, 3),
        _op(_LOAD, _ARGUMENTS + 8 * argument + 4),
        _op(_JUMP_EQUAL, 0, 0, 1),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _ERRNO | errno.EPERM),
    ]


def _no_file_that_runs_as_its_owner(known: Machine) -> list[bytes]:
    """No set-user-id and set-group-id bits: outside, such a file would run as the user."""
    program: list[bytes] = []
    for number, mode in known.modes:
        program += _when(number, [
            _op(_LOAD, _ARGUMENTS + 8 * mode),
            _op(_JUMP_ANY_BIT, _RUNS_AS_OWNER, 0, 1),
            _op(_RETURN, _ERRNO | errno.EPERM),
            _op(_RETURN, _ALLOW),
        ])  # fmt: skip
    for number, flags, mode in known.opens:  # without a new file, the bits are left-over garbage
        program += _when(number, [
            _op(_LOAD, _ARGUMENTS + 8 * flags),
            _op(_JUMP_ANY_BIT, _MAY_CREATE, 0, 3),
            _op(_LOAD, _ARGUMENTS + 8 * mode),
            _op(_JUMP_ANY_BIT, _RUNS_AS_OWNER, 0, 1),
            _op(_RETURN, _ERRNO | errno.EPERM),
            _op(_RETURN, _ALLOW),
        ])  # fmt: skip
    return program
