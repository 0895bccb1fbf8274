"""Protected names in a writable workspace: mounted read-only where they exist, watched where not.

A read-only mount on `.git/hooks` is worth nothing while `.git` can be renamed, so `.git` is bound
on itself first: a mount point cannot be renamed. A name that does not exist cannot be mounted over
without leaving empty files in the user's folder, so it is watched: when it appears the tree is
killed, and after the tree is gone it is renamed to a name that nothing obeys. Until then it exists
for some milliseconds.

Whatever appears under such a name is renamed, also when it was the user who made it during the
run; the result says so. Not covered: a new repository made in a sub-folder, and repositories more
than three folders deep.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lorimer.safety import protected

_DEPTH = 3
_MOST_FOLDERS = 5_000


@dataclass(slots=True)
class Guard:
    """What to mount, and what to watch, for one run in one workspace."""

    workspace: Path
    mounts: list[str] = field(default_factory=list)
    _watched: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    _folder: int = -1

    @staticmethod
    def over(workspace: Path) -> Guard:
        """Look at the workspace as it is now."""
        guard = Guard(workspace)
        guard._folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        is_repository = False
        for name in protected.AT_ROOT:
            if name.startswith(".git/") and not is_repository:
                continue
            path = workspace / name
            found = _lstat(path)
            if found is None or stat.S_ISLNK(found.st_mode):
                guard._watched[name] = _identity(found)
            if found is None:
                continue
            if name == ".git" and stat.S_ISDIR(found.st_mode):
                is_repository = True
                guard.mounts += ["--bind", str(path), str(path)]
            elif not stat.S_ISLNK(found.st_mode):
                guard.mounts += ["--ro-bind", str(path), str(path)]
            else:
                guard._mount_target(path)
        for folder in nested_repositories(workspace):
            guard.mounts += ["--bind", str(folder), str(folder)]
            for name in ("hooks", "config", "config.worktree", "modules", "commondir"):
                inner = folder / name
                found = _lstat(inner)
                if found is not None and not stat.S_ISLNK(found.st_mode):
                    guard.mounts += ["--ro-bind", str(inner), str(inner)]
        return guard

    def _mount_target(self, path: Path) -> None:
        """A link: what it names is protected too, when it lies in the workspace."""
        target = Path(os.path.realpath(path))
        if target.exists() and target.is_relative_to(self.workspace) and target != self.workspace:
            self.mounts += ["--ro-bind", str(target), str(target)]

    def appeared(self) -> list[str]:
        """The watched names that are not as they were."""
        changed = []
        for name, before in self._watched.items():
            try:
                found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            except OSError:
                continue
            if _identity(found) != before:
                changed.append(name)
        return changed

    def quarantine(self) -> tuple[str, ...]:
        """Rename what appeared to `quarantined-…`; call it when the tree is gone."""
        moved = []
        for name in self.appeared():
            harmless = (
                f"quarantined-{name.replace('/', '-').replace('.', '')}-{os.urandom(4).hex()}"
            )
            os.rename(name, harmless, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            moved.append(f"{name} (now {harmless})")
        return tuple(moved)

    def close(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _identity(found: os.stat_result | None) -> tuple[int, ...] | None:
    """Numbers of inodes are used again, so they alone do not tell."""
    return None if found is None else (found.st_dev, found.st_ino, found.st_mode, found.st_ctime_ns)


def nested_repositories(workspace: Path) -> Iterator[Path]:
    level = [workspace]
    seen = 0
    for depth in range(_DEPTH + 1):
        deeper: list[Path] = []
        for folder in level:
            seen += 1
            if seen > _MOST_FOLDERS:
                return
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if entry.name == ".git":
                        if depth > 0:
                            yield Path(entry.path)
                    elif entry.name != "node_modules":
                        deeper.append(Path(entry.path))
        level = deeper
