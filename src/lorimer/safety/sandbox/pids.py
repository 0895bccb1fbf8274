"""A limit on the number of processes that also binds root: a pids cgroup, version 1 or 2.

`RLIMIT_NPROC` does not bind a process whose real user is root, also not in a user namespace.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")


class PidsGroup:
    """A cgroup of our own with at most `limit` processes and threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def create(limit: int) -> PidsGroup | None:
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
            return group
        return None

    def add(self, pid: int) -> None:
        """Move `pid` into the group; its later children are in it too.

        Raises:
            OSError: when the kernel refuses.
        """
        (self._folder / "cgroup.procs").write_text(f"{pid}\n")

    def hit(self) -> bool:
        """Whether the limit refused a fork."""
        with contextlib.suppress(OSError, ValueError):
            text = (self._folder / "pids.events").read_text()
            return any(
                line.startswith("max ") and int(line.split()[1]) > 0 for line in text.splitlines()
            )
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
