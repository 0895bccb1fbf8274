"""Attempts on other processes. The victims are processes that do nothing but wait."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

P = dict[str, Any]
_NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "kcmp": 312, "prlimit64": 302},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "kcmp": 272, "prlimit64": 261},
}[os.uname().machine]
_SEIZE, _DETACH = 0x4206, 17


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    got = int(libc.syscall(ctypes.c_long(number), *wide))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def _any_victim(p: P, work: Any) -> str:
    last: OSError | None = None
    for victim in p["victims"]:
        try:
            return str(work(victim))
        except OSError as fault:
            last = fault
    raise last or OSError("no victim")


def terminate(p: P) -> str:
    def one(victim: int) -> str:
        os.kill(victim, signal.SIGTERM)
        return "signalled it"

    return _any_victim(p, one)


def signal_all(p: P) -> str:
    os.kill(-1, signal.SIGURG)  # ignored by whoever does not ask for it; the victim ends at it
    return "signalled whatever it may"


def signal_parent_group(p: P) -> str:
    os.kill(p["runner"], 0)
    return "may signal lorimer"


def trace(p: P) -> str:
    def one(victim: int) -> str:
        _call(_NUMBERS["ptrace"], _SEIZE, victim, 0, 0)
        return "traces it"

    return _any_victim(p, one)


def trace_parent(p: P) -> str:
    _call(_NUMBERS["ptrace"], _SEIZE, os.getppid(), 0, 0)
    return "traces it"


def read_memory(p: P) -> str:
    def one(victim: int) -> str:
        buffer = ctypes.create_string_buffer(16)
        local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
        remote = (ctypes.c_void_p * 2)(0, 16)
        try:
            _call(_NUMBERS["process_vm_readv"], victim, local, 1, remote, 1, 0)
        except OSError as fault:
            if fault.errno != 14:  # EFAULT: nothing lies at address 0, but it was allowed to look
                raise
        return "may read its memory"

    return _any_victim(p, one)


def open_memory(p: P) -> str:
    def one(victim: int) -> str:
        os.close(os.open(f"/proc/{victim}/mem", os.O_RDONLY))
        return "opened its memory"

    return _any_victim(p, one)


def steal_descriptor(p: P) -> str:
    def one(victim: int) -> str:
        fd = _call(434, victim, 0)
        _call(438, fd, 0, 0)
        return "has its descriptor"

    return _any_victim(p, one)


def change_limits(p: P) -> str:
    def one(victim: int) -> str:
        now = (ctypes.c_uint64 * 2)()
        _call(_NUMBERS["prlimit64"], victim, 7, None, now)
        _call(_NUMBERS["prlimit64"], victim, 7, now, None)
        return "may set its limits"

    return _any_victim(p, one)


def compare(p: P) -> str:
    def one(victim: int) -> str:
        _call(_NUMBERS["kcmp"], victim, victim, 0, 0, 0)
        return "may compare its kernel objects"

    return _any_victim(p, one)


def daemon(p: P) -> str:
    """Two forks and a session of its own; ends by itself when nobody ends it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            _beat(p["beat"], p["for_s"])
        os._exit(0)
    os.wait()
    while not os.path.exists(p["beat"]):
        time.sleep(0.005)
    return "left a process behind"


def ignore_time_out(p: P) -> str:
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            break
    _beat(p["beat"], 30.0)
    return "was not ended"


def _beat(path: str, for_s: float) -> None:
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        try:
            with open(path, "w") as file:
                file.write(str(time.monotonic_ns()))
        except OSError:
            sys.exit(0)
        time.sleep(0.002)
    os._exit(0)
