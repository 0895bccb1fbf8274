"""Attempts to use up something. Each ends by itself after a bound, in case nothing stops it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

P = dict[str, Any]
_MIB = 1 << 20


def processes(p: P) -> str | None:
    made: list[int] = []
    fault: OSError | None = None
    while len(made) < p["bound"]:
        try:
            child = os.fork()
        except OSError as refused:
            fault = refused
            break
        if child == 0:
            time.sleep(20)
            os._exit(0)
        made.append(child)
    if len(made) > p["limit"]:
        time.sleep(0.5)  # whoever counts gets the time to count
    for child in made:
        os.kill(child, signal.SIGKILL)
    if fault is not None:
        if len(made) > p["limit"]:
            return f"{len(made)} processes"
        raise fault
    return f"{len(made)} processes"


def memory(p: P) -> str:
    held = bytearray(p["bound"])
    return f"{len(held) >> 20} MiB in one process"


def memory_of_many(p: P) -> str:
    """Each process holds less than it may; together it is too much."""
    for _ in range(p["many"]):
        if os.fork() == 0:
            held = bytearray(os.urandom(4096) * (p["each"] // 4096))
            time.sleep(3)
            os._exit(held[0] & 0)
    time.sleep(3)
    return f"{p['many'] * p['each'] >> 20} MiB in {p['many']} processes"


def memory_without_name(p: P) -> str:
    """Files in memory belong to no folder, and are in no process's own memory."""
    piece = bytes(_MIB)
    fd = os.memfd_create("held")
    for _ in range(p["bound"] // _MIB):
        os.write(fd, piece)
        time.sleep(0.001)
    time.sleep(2)
    return f"{p['bound'] >> 20} MiB in a file without a name"


def one_file(p: P) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    piece = bytes(_MIB)
    with open("big", "wb", buffering=0) as file:
        while file.tell() < p["bound"]:
            file.write(piece)
    return f"a file of {p['bound'] >> 20} MiB"


def many_files(p: P) -> str:
    piece = bytes(_MIB)
    for number in range(p["bound"] // _MIB):
        with open(f"part-{number}", "wb") as file:
            file.write(piece)
        time.sleep(0.002)
    time.sleep(1)
    return f"{p['bound'] >> 20} MiB in files of 1 MiB"


def deleted_file(p: P) -> str:
    """It has no name, so no scan of folders sees it."""
    piece = bytes(_MIB)
    with open("gone", "wb", buffering=0) as file:
        os.unlink("gone")
        while file.tell() < p["bound"]:
            file.write(piece)
            time.sleep(0.002)
        time.sleep(1)
    return f"{p['bound'] >> 20} MiB in a file without a name"


def temporary_space(p: P) -> str:
    folder = os.environ["TMPDIR"]
    piece = bytes(_MIB)
    with open(os.path.join(folder, "big"), "wb", buffering=0) as file:
        while file.tell() < p["bound"]:
            file.write(piece)
    return f"{p['bound'] >> 20} MiB in the folder for temporary files"


def files(p: P) -> str:
    return _empty_files(".", p["bound"])


def temporary_files(p: P) -> str:
    return _empty_files(os.environ["TMPDIR"], p["bound"])


def _empty_files(folder: str, bound: int) -> str:
    for number in range(bound):
        os.close(os.open(os.path.join(folder, f"f{number}"), os.O_CREAT | os.O_WRONLY, 0o600))
        if number % 100 == 0:
            time.sleep(0.002)
    time.sleep(1)
    return f"{bound} files"


def output(p: P) -> str:
    piece = b"x" * 65536
    for _ in range(p["bound"] // len(piece)):
        os.write(2, piece)
    return f"{p['bound'] >> 20} MiB of output"


def cpu(p: P) -> str:
    end = time.monotonic() + p["for_s"]
    while time.monotonic() < end:
        pass
    return f"{p['for_s']} s of computing"
