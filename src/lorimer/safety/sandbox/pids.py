"""A cgroup for one tree: the number of processes (version 1 or 2), total memory (version 2).

`RLIMIT_NPROC` does not bind a process whose real user is root, also not in a user namespace.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")


class PidsGroup:
    """A cgroup of our own with at most `limit` processes and threads.

    Attributes:
        memory: whether it limits the memory of all its processes together, too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.memory = False

    @staticmethod
    def create(limit: int, memory_bytes: int | None = None) -> PidsGroup | None:
        """A new group, or `None` where none can be made."""
        for base in _bases():
            folder = base / f"lorimer-{os.urandom(8).hex()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            group = PidsGroup(folder)
            try:
                (folder / "pids.max").write_text(f"{limit}\n")
            except OSError:
                group.remove()
                continue
            if memory_bytes is not None:
                group.memory = group._limit_memory(memory_bytes)
            return group
        return None

    def _limit_memory(self, size: int) -> bool:
        """Version 2 only: `memory.max` with no swap, and the whole group goes at once."""
        if not (self._folder / "memory.max").exists():
            return False
        try:
            (self._folder / "memory.max").write_text(f"{size}\n")
            for name, text in (("memory.swap.max", "0\n"), ("memory.oom.group", "1\n")):
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / name).write_text(text)
        except OSError:
            return False
        return True

    def out_of_memory(self) -> bool:
        """Whether the kernel had to kill something of the group."""
        return self._counted("memory.events", "oom_kill")

    def add(self, pid: int) -> None:
        """Move `pid` into the group; its later children are in it too.

        Raises:
            OSError: when the kernel refuses.
        """
        (self._folder / "cgroup.procs").write_text(f"{pid}\n")

    def hit(self) -> bool:
        """Whether the limit refused a fork."""
        return self._counted("pids.events", "max")

    def _counted(self, file: str, what: str) -> bool:
        with contextlib.suppress(OSError, ValueError):
            for line in (self._folder / file).read_text().splitlines():
                if line.startswith(f"{what} ") and int(line.split()[1]) > 0:
                    return True
        return False

    def remove(self) -> None:
        """Remove the group; it must be empty by now."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _bases() -> Iterator[Path]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "pids" in controllers.split(","):
            yield _MOUNT / "pids" / path.lstrip("/")
        elif not controllers:
            own = _MOUNT / path.lstrip("/")
            for base in (own, own.parent):
                with contextlib.suppress(OSError):
                    if "pids" in (base / "cgroup.subtree_control").read_text().split():
                        yield base
