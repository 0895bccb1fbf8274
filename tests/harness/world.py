"""The world that tools change, apart from lorimer's own record: what is written here happened.

A world is a folder. An effect is a line in `effects`, appended and synced. A keyed effect is
refused when its key is already there, as a far side with idempotency keys would. Points that a run
has reached are empty files; a run that hangs goes on when `release` is there.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

MARK = "LORIMER_TEST_MARK"
_PATIENCE_S = 60.0


def act(world: str, key: str, *, once: bool = False) -> None:
    """Make the effect `key` happen; with `once`, not a second time."""
    descriptor = os.open(Path(world) / "effects", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if once and key in _lines(descriptor):
            return
        os.write(descriptor, f"{key}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lines(descriptor: int) -> list[str]:
    return os.pread(descriptor, 1 << 24, 0).decode().split()


def effects(world: str | Path) -> list[str]:
    """The effects that happened, in order."""
    file = Path(world) / "effects"
    return file.read_text().split() if file.exists() else []


def reach(world: str, point: str) -> None:
    """Say that this point was reached."""
    (Path(world) / f"at-{point}").touch()


def reached(world: str | Path, point: str) -> bool:
    return (Path(world) / f"at-{point}").exists()


def release(world: str | Path) -> None:
    """Let what hangs go on."""
    (Path(world) / "release").touch()


def released(world: str | Path) -> bool:
    return (Path(world) / "release").exists()


def hang(world: str) -> None:
    while not released(world):
        time.sleep(0.002)


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait for the thing itself.

    Raises:
        AssertionError: when it does not come in a minute.
    """
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        await asyncio.sleep(0.002)


def wait_until(condition: Callable[[], object], what: str = "the condition") -> None:
    """`until` for code without an event loop."""
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.002)


def processes_with(mark: str) -> list[int]:
    """Every running process whose environment holds `LORIMER_TEST_MARK=mark`, but this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
                state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if wanted in environment and state != b"Z":
                found.append(int(name))
    return found


def environment(mark: str = "") -> dict[str, str]:
    """For a process that imports what we import, and that `processes_with(mark)` finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), MARK: mark}


def kill_marked(mark: str) -> None:
    """Tidy up after a test that failed."""
    for pid in processes_with(mark):
        os.kill(pid, signal.SIGKILL)
