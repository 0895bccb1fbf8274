"""Locks between processes: `flock` on files beside the store. The kernel frees a lock when its
holder ends, also by kill -9; the holder's pid is written into the file for messages only."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path

from lorimer.core.canonical import digest
from lorimer.core.errors import SessionBusy, StoreReadOnly

_POLL_S = 0.02
_held_in_memory: set[tuple[str, str]] = set()


class FileLock:
    """A lock that is held; `release()` frees it."""

    def __init__(self, descriptor: int | None, memory_key: tuple[str, str] | None = None) -> None:
        self._descriptor = descriptor
        self._memory_key = memory_key

    @property
    def descriptor(self) -> int | None:
        """For a child that must keep the lock until it has ended, should we die first."""
        return self._descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for copies that a keeper holds
            os.close(self._descriptor)
            self._descriptor = None
        if self._memory_key is not None:
            _held_in_memory.discard(self._memory_key)
            self._memory_key = None


async def lock_file(folder: Path | None, kind: str, name: str, *, wait_s: float | None) -> FileLock:
    """Take the lock `name`; wait up to `wait_s` seconds (`None`: for ever).

    Cancellation while waiting takes nothing.

    Raises:
        SessionBusy: when another holder keeps it, with that holder's pid where it is known.
    """
    deadline = None if wait_s is None else time.monotonic() + wait_s
    while True:
        lock, holder = _try(folder, kind, name)
        if lock is not None:
            return lock
        if deadline is not None and time.monotonic() >= deadline:
            who = f"process {holder}" if holder else "another process"
            raise SessionBusy(
                f"The {kind} {name} is in use by {who}.",
                next="Wait for it (`--wait`), or cancel the other one.",
            )
        await asyncio.sleep(_POLL_S)


def _try(folder: Path | None, kind: str, name: str) -> tuple[FileLock | None, str]:
    if folder is None:
        key = (kind, name)
        if key in _held_in_memory:
            return None, str(os.getpid())
        _held_in_memory.add(key)
        return FileLock(None, key), ""
    file = folder / "locks" / f"{kind}-{digest(name.encode())[:32]}"
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise StoreReadOnly(
            f"The lock {file} cannot be opened: {fault.strerror}.",
            next="Check the permissions of the store's folder.",
        ) from fault
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        return None, holder
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return FileLock(descriptor), ""
