"""Attempts by system call.

Arguments are such that nothing happens where the call is allowed: a null pointer, a bad descriptor,
a flag that does not exist. A call that the filter lets through answers with something else than
"not permitted" or "no such call".
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
from typing import Any

P = dict[str, Any]
_X86 = {
    "shmget": 29, "shmat": 30, "clone": 56, "syslog": 103, "personality": 135, "pivot_root": 155,
    "chroot": 161, "mount": 165, "umount2": 166, "reboot": 169, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "finit_module": 313,
    "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_ARM = {
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "personality": 92, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116, "reboot": 142,
    "shmget": 194, "shmat": 196, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220,
    "perf_event_open": 241, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268,
    "finit_module": 273, "bpf": 280, "userfaultfd": 282,
}  # fmt: skip
_BOTH = {
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "clone3": 435,
    "mount_setattr": 442,
}  # fmt: skip
_NUMBERS = {**(_X86 if os.uname().machine == "x86_64" else _ARM), **_BOTH}
_REFUSALS = (errno.EPERM, errno.ENOSYS, errno.EACCES)
_NEW_USER, _NEW_MOUNTS, _CHILD = 0x10000000, 0x00020000, 17


def _call(name: str, *arguments: Any) -> int:
    if name not in _NUMBERS:
        raise OSError(errno.ENOSYS, "this machine has no such call")
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    wide += [ctypes.c_long(0)] * (6 - len(wide))
    got = int(libc.syscall(ctypes.c_long(_NUMBERS[name]), *wide))
    if got < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return got


def _reaches(name: str, *arguments: Any) -> str:
    """Raises when the call is refused; any other answer means that the kernel looked at it."""
    try:
        _call(name, *arguments)
    except OSError as fault:
        if fault.errno in _REFUSALS:
            raise
        return f"{name} reaches the kernel ({errno.errorcode.get(fault.errno or 0)})"
    return f"{name} is allowed"


def _any(*calls: tuple[Any, ...]) -> str:
    last: OSError | None = None
    for name, *arguments in calls:
        try:
            return _reaches(name, *arguments)
        except OSError as fault:
            last = fault
    raise last or OSError("nothing tried")


def mount(p: P) -> str:
    with contextlib.suppress(OSError):
        _call("unshare", _NEW_USER | _NEW_MOUNTS)
    _call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
    return "mounted a file system"


def mount_arguments(p: P) -> str:
    return _reaches("mount", 0, 0, 0, 0, 0)


def new_mount_calls(p: P) -> str:
    return _any(
        ("open_tree", -1, 0, 0x40000000), ("fsopen", 0, 0x40000000),
        ("move_mount", -1, 0, -1, 0, 0x40000000), ("mount_setattr", -1, 0, 0x40000000, 0, 0),
    )  # fmt: skip


def umount(p: P) -> str:
    return _reaches("umount2", 0, 0)


def pivot_root(p: P) -> str:
    with contextlib.suppress(OSError):
        _call("unshare", _NEW_USER | _NEW_MOUNTS)
    return _reaches("pivot_root", 0, 0)


def chroot(p: P) -> str:
    return _reaches("chroot", 0)


def unshare(p: P) -> str:
    _call("unshare", _NEW_USER)
    return "is root in a namespace of its own"


def clone(p: P) -> str:
    child = _call("clone", _NEW_USER | _CHILD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "made a namespace"


def clone3(p: P) -> str:
    arguments = (ctypes.c_uint64 * 8)(_NEW_USER, 0, 0, 0, _CHILD, 0, 0, 0)
    child = _call("clone3", arguments, 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "made a namespace"


def setns(p: P) -> str:
    return _reaches("setns", -1, 0)


def io_uring(p: P) -> str:
    return _reaches("io_uring_setup", 1, 0)


def bpf(p: P) -> str:
    return _reaches("bpf", 0, 0, 1 << 20)


def perf(p: P) -> str:
    return _reaches("perf_event_open", 0, 0, -1, -1, 1 << 30)


def keyrings(p: P) -> str:
    return _any(("keyctl", 9999), ("add_key", 0, 0, 0, 0, 0), ("request_key", 0, 0, 0, 0))


def page_faults(p: P) -> str:
    return _reaches("userfaultfd", 1 | 1 << 30)


def kernel_modules(p: P) -> str:
    return _any(("init_module", 0, 0, 0), ("finit_module", -1, 0, 0), ("delete_module", 0, 0))


def restart(p: P) -> str:
    return _any(("reboot", 0, 0, 0, 0), ("kexec_load", 0, 0, 0, 1 << 30))


def file_handles(p: P) -> str:
    return _any(("name_to_handle_at", -1, 0, 0, 0, 0), ("open_by_handle_at", -1, 0, 0))


def kernel_log(p: P) -> str:
    return _reaches("syslog", 10, 0, 0)


def ports(p: P) -> str:
    return _any(("ioperm", 65536, 1, 0), ("iopl", 5))


def personality(p: P) -> str:
    before = _call("personality", 0xFFFFFFFF)
    _call("personality", before | 0x0400000)  # READ_IMPLIES_EXEC, for this process alone
    return "every page that can be read can be run"


def shared_memory(p: P) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(p["sysv"], None, 0o10000)  # SHM_RDONLY
    if place in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return ctypes.string_at(place, 64).rstrip(b"\0").decode()


def type_into_terminal(p: P) -> str:
    os.setsid()
    _, slave = os.openpty()
    fcntl.ioctl(slave, 0x540E, 0)  # TIOCSCTTY
    try:
        fcntl.ioctl(slave, 0x5412, b"x")  # TIOCSTI
    except OSError as fault:
        if fault.errno != errno.EIO:  # the kernel's own switch, dev.tty.legacy_tiocsti
            raise
    return "may type into a terminal"


def terminal(p: P) -> str:
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return "has the terminal"


def privileges(p: P) -> str | None:
    libc = ctypes.CDLL(None)
    zero = ctypes.c_ulong(0)
    if libc.prctl(39, zero, zero, zero, zero) != 1:  # PR_GET_NO_NEW_PRIVS
        return "set-user-id programs run as their owner"
    return None


def capabilities(p: P) -> str | None:
    libc = ctypes.CDLL(None)
    held = (ctypes.c_uint32 * 6)()
    libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), held)
    if any(held):
        return f"has capabilities {held[0]:x}"
    zero = ctypes.c_ulong(0)
    if libc.prctl(39, zero, zero, zero, zero) == 1:
        return None  # it cannot get any
    bound = [c for c in range(41) if libc.prctl(23, ctypes.c_ulong(c), zero, zero, zero) == 1]
    return f"could get {len(bound)} capabilities" if bound else None
