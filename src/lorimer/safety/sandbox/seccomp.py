"""A system call filter as classic BPF, built by hand for bubblewrap's `--seccomp`.

Default is to allow: the namespaces do the main work, and the filter closes what they leave open
(socket families that no network namespace covers, io_uring, nested user namespaces, keyrings,
tracing, mounts). The instruction format and `struct seccomp_data` are those of seccomp(2); the call
numbers those of `asm/unistd_64.h` (x86-64) and `asm-generic/unistd.h` (aarch64).

Not covered: arguments behind pointers (a filter cannot see the address of a `connect`), and other
architectures, where `build` refuses.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lorimer.core.errors import SandboxUnavailable

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


@dataclass(frozen=True, slots=True)
class _Machine:
    arch: int
    clone: int
    socket: int
    socketpair: int
    ioctl: int
    forbidden: Mapping[str, int]
    x32: bool = False


_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "open_tree_attr": 467,
}  # fmt: skip

_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, clone=56, socket=41, socketpair=53, ioctl=16, x32=True,
        forbidden=_COMMON | {
            "ptrace": 101, "syslog": 103, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
            "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
            "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
            "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
            "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227,
            "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
            "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
            "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
            "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
            "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
            "bpf": 321, "userfaultfd": 323,
        },
    ),
    "aarch64": _Machine(
        0xC00000B7, clone=220, socket=198, socketpair=199, ioctl=29,
        forbidden=_COMMON | {
            "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
            "vhangup": 58, "quotactl": 60, "acct": 89, "kexec_load": 104, "init_module": 105,
            "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
            "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170,
            "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
            "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241,
            "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265,
            "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
            "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
            "userfaultfd": 282, "kexec_file_load": 294, "unshare": 97,
        },
    ),
}  # fmt: skip

_ABSENT = frozenset({"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"})
"""Answered with ENOSYS, so that programs fall back to the older call (glibc does, for clone3)."""


def build(machine: str | None = None, *, unix_sockets: bool = False) -> bytes:
    """The filter as an array of `struct sock_filter`.

    Args:
        machine: as `platform.machine()` gives it; `None` for this one.
        unix_sockets: whether `socket(AF_UNIX)` is allowed; `socketpair` always is.

    Raises:
        SandboxUnavailable: for a machine whose call numbers are not known here.
    """
    name = machine or platform.machine()
    known = _MACHINES.get(name)
    if known is None:
        raise SandboxUnavailable(
            f"No system call filter is known for {name} machines.",
            next=f"Use one of: {', '.join(_MACHINES)}.",
        )
    families = [_AF_INET, _AF_INET6, *([_AF_UNIX] if unix_sockets else [])]
    program = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQUAL, known.arch, 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NR),
    ]
    if known.x32:  # the x32 calls have numbers of their own above this bit
        program += [_op(_JUMP_AT_LEAST, 0x40000000, 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    for call, number in known.forbidden.items():
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
    program += _when(known.ioctl, [
        _op(_LOAD, _ARGUMENTS + 8),
        _op(_JUMP_EQUAL, _TIOCSTI, 1, 0),
        _op(_JUMP_EQUAL, _TIOCLINUX, 0, 1),
        _op(_RETURN, _ERRNO | errno.EPERM),
        _op(_RETURN, _ALLOW),
    ])  # fmt: skip
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
