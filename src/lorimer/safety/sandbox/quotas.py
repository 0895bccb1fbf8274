"""Total memory, total disk, number of files and of processes of one run, watched from outside.

The kernel has limits for one file and one process. For the whole tree there is a memory cgroup
where one can be made (version 2); everywhere else these totals are looked at every tenth of a
second, and the tree is killed when it is over. So a program can be over for that long.

Memory, where it is watched, is what the processes hold themselves, what lies in their temporary
file systems, and files without a name (memfd). What the kernel holds for them (buffers of sockets
and pipes, System V segments that nobody has attached) is not in that sum; a tree is therefore also
killed when the machine is about to have no memory left.

What a workspace has grown by: the free space of its file system tells when there may be too much
(one cheap call); then the files changed since the start, and the deleted ones that the tree still
holds open, are added up. A program is killed only when both say so: other programs write, too.
A file that was there before counts whole once it is changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lorimer.safety.sandbox.pids import PidsGroup
from lorimer.safety.sandbox.spec import Limits

_EVERY_S = 0.1
_PAUSE = 5  # times as long as a scan took, until the next one, when it found little
_NOTHING_KNOWN = 1 << 62
_OWN_PROCESSES = 2  # bubblewrap's init, or what waits for the program
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CLOCK_SLACK_NS = 20_000_000  # file times come from a coarser clock than ours


@dataclass(frozen=True, slots=True)
class Grown:
    """Bytes, and files and folders: what changed since a moment, or what room there is."""

    size: int = 0
    inodes: int = 0


class Quota:
    """The totals of one run. Make it just before the start; `check` is a `supervise` watch.

    Args:
        written: folders on ordinary file systems that the program may write.
        pids: every process of the tree, as numbers that `proc` knows.
        proc: the folder of a proc file system in which to look for them.
        temporary: the program's own temporary file systems, as seen from here.
        root: the program's root folder, as seen from here; while it is still ours, the sandbox is
            not set up and nothing is looked at. `None` when it is ours for ever.
        memory_group: a cgroup that limits the memory already, asked whether it had to.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        written: Sequence[Path] = (),
        pids: Callable[[], Iterable[int]] | None = None,
        proc: Path = Path("/proc"),
        temporary: Sequence[Path] = (),
        root: Path | None = None,
        memory_group: PidsGroup | None = None,
    ) -> None:
        self.limits = limits
        self.written = tuple(written)
        self.pids = pids
        self.proc = proc
        self.temporary = tuple(temporary)
        self.root = root
        self.memory_group = memory_group
        self._began_ns = time.time_ns() - _CLOCK_SLACK_NS
        self._free = {folder: _free(folder) for folder in self.written}
        self._next = 0.0
        self._not_before = self._scan_took = 0.0
        self._thread: ThreadPoolExecutor | None = None
        self._scan: Future[Grown] | None = None
        self._stop = self._blind = False

    def check(self) -> str:
        """`processes`, `memory`, `disk` or `inodes` when there is too much of it, else nothing."""
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + _EVERY_S
        if self.root is not None and not self._set_up(self.root):
            return ""
        return self._check_temporary() or self._check_processes() or self._check_written(now)

    def gaps(self) -> list[str]:
        """What could not be looked at during the run, in words."""
        if self._blind:
            return [
                "total memory and the number of temporary files (/proc of the sandbox is closed)"
            ]
        return []

    def _set_up(self, root: Path) -> bool:
        try:
            return not os.path.samestat(os.stat(root), os.stat("/"))
        except PermissionError:
            self._blind = True
        except OSError:  # it has ended
            pass
        return False

    def watched(self) -> tuple[str, ...]:
        """The limits that are looked after here, in words."""
        memory = self.memory_group is None or not self.memory_group.memory
        return (
            *(("total memory (there is no memory cgroup to be had)",) if memory else ()),
            *(("growth of the workspace and number of files",) if self.written else ()),
        )

    def close(self) -> None:
        """Stop a scan that is under way."""
        self._stop = True
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def _check_temporary(self) -> str:
        for place in self.temporary:
            with contextlib.suppress(OSError):
                found = os.statvfs(place)
                if found.f_files - found.f_ffree > self.limits.inodes:
                    return "inodes"
        return ""

    def _check_processes(self) -> str:
        pids = list(self.pids()) if self.pids is not None else []
        if len(pids) > self.limits.processes + _OWN_PROCESSES:
            return "processes"
        if self.memory_group is not None and self.memory_group.memory:
            return "memory" if self.memory_group.out_of_memory() else ""
        if _memory_is_short():
            return "memory"
        limit = self.limits.tree_memory_bytes - self._temporary_bytes() - self._nameless_bytes(pids)
        if sum(self._anonymous(pid) for pid in pids) <= limit:
            return ""
        return "memory" if sum(self._proportional(pid) for pid in pids) > limit else ""

    def _temporary_bytes(self) -> int:
        total = 0
        for place in self.temporary:
            with contextlib.suppress(OSError):
                found = os.statvfs(place)
                total += (found.f_blocks - found.f_bfree) * found.f_frsize
        return total

    def _nameless_bytes(self, pids: Iterable[int]) -> int:
        """Files in memory that have no name, each once; those in the workspace count as disk."""
        disks = {os.stat(folder).st_dev for folder in self.written if folder.exists()}
        found = {}
        for pid in pids:
            for entry in self._deleted_but_open(pid):
                if entry.st_dev not in disks:
                    found[entry.st_dev, entry.st_ino] = entry.st_blocks * 512
        return sum(found.values())

    def _anonymous(self, pid: int) -> int:
        """Resident bytes, without the files it shares; counts shared pages again and again."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self.proc / str(pid) / "status").read_bytes().splitlines():
                if line.startswith(b"RssFile:"):
                    shared = int(line.split()[1]) * 1024
                    resident = int((self.proc / str(pid) / "statm").read_bytes().split()[1])
                    return max(0, resident * _PAGE - shared)
        return 0

    def _proportional(self, pid: int) -> int:
        """Like `_anonymous`, but a page shared by n processes counts as its n-th part."""
        total = 0
        try:
            for line in (self.proc / str(pid) / "smaps_rollup").read_bytes().splitlines():
                if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
                    total += int(line.split()[1]) * 1024
        except (OSError, ValueError, IndexError):
            return self._anonymous(pid)
        return total

    def _check_written(self, now: float) -> str:
        if not self.written:
            return ""
        if self._scan is not None:
            if not self._scan.done():
                return ""
            grown, self._scan = self._scan.result(), None
            much = 2 * grown.size > self.limits.disk_bytes or 2 * grown.inodes > self.limits.inodes
            self._not_before = now if much else now + _PAUSE * self._scan_took
            less = self._less_free()
            if grown.size > self.limits.disk_bytes and less.size > self.limits.disk_bytes:
                return "disk"
            if grown.inodes > self.limits.inodes and less.inodes > self.limits.inodes:
                return "inodes"
            return ""
        less = self._less_free()
        suspicious = less.size > self.limits.disk_bytes or less.inodes > self.limits.inodes
        if suspicious and now >= self._not_before:
            self._thread = self._thread or ThreadPoolExecutor(1, "lorimer-quota")
            self._scan = self._thread.submit(self._measure)
        return ""

    def _less_free(self) -> Grown:
        """By how much the file systems have less room than at the start. One that is full, or that
        does not count inodes, tells nothing, so it counts as much too full."""
        size = inodes = 0
        for folder, before in self._free.items():
            now = _free(folder)
            size = max(size, before.size - now.size if now.size else _NOTHING_KNOWN)
            inodes = max(inodes, before.inodes - now.inodes if now.inodes else _NOTHING_KNOWN)
        return Grown(size, inodes)

    def _measure(self) -> Grown:
        size = inodes = 0
        began = time.monotonic()
        for found in self._changed():
            size += found.st_blocks * 512
            inodes += 1
        self._scan_took = time.monotonic() - began
        return Grown(size, inodes)

    def _changed(self) -> Iterator[os.stat_result]:
        seen: set[tuple[int, int]] = set()
        for found in self._candidates():
            key = (found.st_dev, found.st_ino)
            if found.st_ctime_ns >= self._began_ns and key not in seen:
                seen.add(key)
                yield found

    def _candidates(self) -> Iterator[os.stat_result]:
        ahead = list(self.written)
        while ahead and not self._stop:
            with contextlib.suppress(OSError), os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        yield entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            ahead.append(Path(entry.path))
        for pid in self.pids() if self.pids is not None else ():
            yield from self._deleted_but_open(pid)

    def _deleted_but_open(self, pid: int) -> Iterator[os.stat_result]:
        folder = self.proc / str(pid) / "fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    found = os.stat(folder / name)
                    if found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                        yield found


def _memory_is_short() -> bool:
    """Whether the machine has less than a twentieth of its memory left, and less than 512 MiB."""
    facts = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_bytes().splitlines():
            facts[line.split(b":")[0]] = int(line.split()[1]) * 1024
    free, whole = facts.get(b"MemAvailable"), facts.get(b"MemTotal", 0)
    return free is not None and free < min(whole // 20, 512 << 20)


def is_other_root(root: Path) -> bool:
    """Whether this is a root folder of its own, not ours."""
    try:
        return not os.path.samestat(os.stat(root), os.stat("/"))
    except OSError:
        return False


def _free(folder: Path) -> Grown:
    """Free bytes and free inodes of the file system that holds `folder`."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return Grown()
    return Grown(found.f_bavail * found.f_frsize, found.f_favail)
