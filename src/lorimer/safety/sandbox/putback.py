"""Protected names where no mount can protect them: watched, and put back when the tree is gone.

Landlock's rules only add rights: below a writable folder nothing can be taken out. So what lies
under a protected name is remembered before the run. When any of it changes, the tree is killed, and
afterwards everything is as it was; what had been put there is renamed to `quarantined-…`. Until
then the change exists, for some milliseconds. A change time cannot be forged by a program without
privileges, so no change is missed.

Not covered: a repository made in a sub-folder during the run, and repositories more than three
folders deep.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety import protected
from lorimer.safety.sandbox.guard import nested_repositories

_MOST_FILES = 2_000
_MOST_BYTES = 32 << 20
_GIT_INSIDE = ("hooks", "config", "config.worktree", "modules", "commondir")
_Mark = tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    """What lay at one place: a folder's entries have lines of their own."""

    mode: int
    content: bytes | None
    mark: _Mark


@dataclass(slots=True)
class PutBack:
    """What must be as it is now when the run has ended."""

    workspace: Path
    _kept: dict[Path, _Kept] = field(default_factory=dict)
    _absent: list[Path] = field(default_factory=list)
    _repositories: dict[Path, tuple[int, _Mark]] = field(default_factory=dict)
    _size: int = 0

    @staticmethod
    def over(workspace: Path) -> PutBack:
        """Look at the workspace as it is now.

        Raises:
            SandboxUnavailable: when there is too much under protected names to be remembered.
        """
        self = PutBack(workspace)
        names = [n for n in protected.AT_ROOT if not n.startswith(".git/")]
        places = [workspace / name for name in names if name != ".git"]
        own = workspace / ".git"
        repositories = [own] if own.is_dir() and not own.is_symlink() else []
        if not repositories:
            places.append(own)
        for folder in [*repositories, *nested_repositories(workspace)]:
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            self._repositories[folder] = (fd, _identity(os.fstat(fd)))
            places += [folder / name for name in _GIT_INSIDE]
        for place in places:
            self._remember(place)
        return self

    def _remember(self, place: Path) -> None:
        try:
            found = place.lstat()
        except OSError:
            self._absent.append(place)
            return
        content = None
        if stat.S_ISREG(found.st_mode):
            self._size += found.st_size
            if self._size <= _MOST_BYTES:
                content = place.read_bytes()
        elif stat.S_ISLNK(found.st_mode):
            content = os.fsencode(place.readlink())
            named = Path(os.path.realpath(place))
            if named != self.workspace and named.is_relative_to(self.workspace):
                self._remember(named)  # what a link names is obeyed, too
        if place in self._kept:
            return
        self._kept[place] = _Kept(found.st_mode, content, _mark(found))
        if len(self._kept) > _MOST_FILES or self._size > _MOST_BYTES:
            self.close()
            raise SandboxUnavailable(
                f"There is too much under protected names in {self.workspace} to be watched "
                f"(more than {_MOST_FILES:,} files or {_MOST_BYTES >> 20} MiB).",
                next="Install bubblewrap, which protects them without a copy.",
            )
        if stat.S_ISDIR(found.st_mode):
            for name in os.listdir(place):
                self._remember(place / name)

    def changed(self) -> list[Path]:
        """The protected places that are not as they were."""
        out = [place for place in self._absent if os.path.lexists(place)]
        for place, kept in self._kept.items():
            try:
                if _mark(place.lstat()) != kept.mark:
                    out.append(place)
            except OSError:
                out.append(place)
        for folder, (_, identity) in self._repositories.items():
            try:
                if _identity(folder.lstat()) != identity:
                    out.append(folder)
            except OSError:
                out.append(folder)
        return out

    def restore(self) -> tuple[str, ...]:
        """Put everything back; what was changed, in words. Call it when the tree is gone."""
        changed = self.changed()
        told: list[str] = []
        if not changed:
            return ()
        for folder in sorted(p for p in changed if p in self._repositories):
            told += self._make_way(folder)
            told += self._bring_back(folder)
        for place in sorted(p for p in changed if p not in self._repositories):
            told += self._make_way(place)
            kept = self._kept.get(place)
            if kept is None:
                if os.path.lexists(place):
                    told.append(f"{self._name(place)} (now {self._set_aside(place)})")
            elif stat.S_ISDIR(kept.mode):
                told += self._restore_folder(place, kept)
            else:
                told.append(f"{self._name(place)} (put back)")
                self._write(place, kept)
        for place in sorted(self._kept):
            if not os.path.lexists(place):
                told += self._make_way(place)
                self._write(place, self._kept[place])
        return tuple(told)

    def _make_way(self, place: Path) -> list[str]:
        """See to it that everything above `place` is a real folder: nothing here may follow a link
        that the program has made."""
        told = []
        above = [p for p in reversed(place.parents) if p != self.workspace]
        for folder in (p for p in above if p.is_relative_to(self.workspace)):
            if os.path.lexists(folder) and not stat.S_ISDIR(folder.lstat().st_mode):
                told.append(f"{self._name(folder)} (now {self._set_aside(folder)})")
            if not os.path.lexists(folder):
                folder.mkdir()
            elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                folder.chmod(0o700)  # made by the program, or it could not have changed what is in
        return told

    def _bring_back(self, folder: Path) -> list[str]:
        fd, identity = self._repositories[folder]
        told = []
        if os.path.lexists(folder):
            told.append(f"{self._name(folder)} (now {self._set_aside(folder)})")
        now = Path(os.readlink(f"/proc/self/fd/{fd}"))
        try:
            if _identity(now.lstat()) == identity:
                now.rename(folder)
                told.append(f"{self._name(folder)} (was renamed; back again)")
        except OSError:
            told.append(f"{self._name(folder)} (was removed)")
        return told

    def _restore_folder(self, place: Path, kept: _Kept) -> list[str]:
        told = []
        if os.path.lexists(place) and not stat.S_ISDIR(place.lstat().st_mode):
            told.append(f"{self._name(place)} (now {self._set_aside(place)})")
        if not os.path.lexists(place):
            told.append(f"{self._name(place)} (put back)")
            self._write(place, kept)
        place.chmod(stat.S_IMODE(kept.mode) | 0o700)  # it may be another one by now
        for name in os.listdir(place):
            if place / name not in self._kept:
                inner = place / name
                told.append(f"{self._name(inner)} (now {self._set_aside(inner)})")
        place.chmod(stat.S_IMODE(kept.mode))
        return told

    def _write(self, place: Path, kept: _Kept) -> None:
        """Make it anew, in a folder that is a real one."""
        if os.path.lexists(place):
            self._set_aside(place)
        if stat.S_ISDIR(kept.mode):
            place.mkdir()
            place.chmod(stat.S_IMODE(kept.mode))
        elif kept.content is None:
            return  # a socket or the like: nothing that could be obeyed
        elif stat.S_ISLNK(kept.mode):
            os.symlink(os.fsdecode(kept.content), place)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(place, flags, 0o600), "wb") as file:
                file.write(kept.content)
                os.fchmod(file.fileno(), stat.S_IMODE(kept.mode))

    def _set_aside(self, place: Path) -> str:
        plain = self._name(place).replace("/", "-").replace(".", "")
        name = f"quarantined-{plain}-{os.urandom(4).hex()}"
        if stat.S_ISDIR(place.lstat().st_mode):
            place.chmod(0o700)  # to be moved it must be writable
        place.rename(self.workspace / name)
        return name

    def _name(self, place: Path) -> str:
        return str(place.relative_to(self.workspace))

    def close(self) -> None:
        for fd, _ in self._repositories.values():
            os.close(fd)
        self._repositories = {}


def _mark(found: os.stat_result) -> _Mark:
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns)


def _identity(found: os.stat_result) -> _Mark:
    return (found.st_dev, found.st_ino)
