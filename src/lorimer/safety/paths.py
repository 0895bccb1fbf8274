"""Paths that a model writes, opened so that they cannot lead outside the session's folders.

A path is walked from the descriptor of a root, one component at a time, and links are read and
followed by us, so no step can leave the root: not by `..`, not by a link, not by a folder that is
swapped for a link while we look. What is checked is the descriptor that was opened, and that same
descriptor is used. On Linux 5.6 and later openat2(2) with `RESOLVE_BENEATH` walks the folders; the
walk by descriptors is used elsewhere, and wherever openat2 is stricter than we need (an absolute
link that points inside the root).

Links that stay inside their root are followed. Mounts are crossed: whoever mounts something inside
a workspace means it to be there. Names are used byte for byte: case and Unicode form are the file
system's business.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lorimer.safety import openat2, protected
from lorimer.safety.path_faults import (
    PathRefused,
    check_text,
    faults,
    kind_of,
    not_found,
    only_regular,
    outside,
)

_MAX_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that a session may use."""

    path: Path
    writable: bool = False


@dataclass(slots=True)
class Opened:
    """A file or folder that was opened and checked. Use `fd`, never the path again; close it."""

    fd: int
    root: Root
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it really lies: absolute, without links."""
        return self.root.path.joinpath(*self.parts)

    @property
    def shown(self) -> str:
        """The path as a model should write it: relative to the workspace."""
        return "/".join(self.parts) if self.root.writable else str(self.path)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class Slot(Opened):
    """A place for a file: `name` in the opened folder `fd`. The file may exist or not.

    Attributes:
        name: the last component; never a link.
        missing: folders that must be made below `fd` first, outermost first.
        found: `lstat` of the file, `None` when it does not exist.
    """

    name: str = ""
    missing: tuple[str, ...] = ()
    found: os.stat_result | None = None


@dataclass(slots=True)
class _Place:
    """Where a walk ended: `folder` is open; `rest` does not exist below it; or `name` does."""

    folder: int
    parts: list[str]
    name: str | None = None
    found: os.stat_result | None = None
    rest: list[str] = field(default_factory=list)


class Roots:
    """The folders of a session, and the only way its tools open anything in them.

    Args:
        workspace: the folder that may be written; relative paths start here.
        read_only: further folders that absolute paths may read.
        use_openat2: `None` to use it where the kernel has it.
    """

    def __init__(
        self, workspace: Path, read_only: Sequence[Path] = (), *, use_openat2: bool | None = None
    ) -> None:
        self.workspace = Root(Path(os.path.realpath(workspace)), writable=True)
        self.read_only = tuple(Root(Path(os.path.realpath(p))) for p in read_only)
        self._given = {os.path.abspath(workspace): self.workspace}
        self._given |= {os.path.abspath(p): r for p, r in zip(read_only, self.read_only)}  # noqa: B905
        self._openat2 = openat2.is_available() if use_openat2 is None else use_openat2

    def open_file(self, path: str) -> Opened:
        """Open a regular file for reading.

        Raises:
            PathRefused: when it lies outside, does not exist, or is not a regular file.
        """
        with self._resolved(path) as (root, place):
            if place.name is None:
                raise _not_a(place, path, "a file")
            fd = _open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, path)
            parts = (*place.parts, place.name)
        opened = Opened(fd, root, parts)
        try:
            only_regular(os.fstat(fd), path)
        except BaseException:
            opened.close()
            raise
        os.set_blocking(fd, True)
        return opened

    def open_folder(self, path: str) -> Opened:
        """Open a folder for listing or as the start of a search.

        Raises:
            PathRefused: when it lies outside, does not exist, or is not a folder.
        """
        with self._resolved(path) as (root, place):
            if place.rest:
                raise _not_a(place, path, "a folder")
            if place.name is None:
                return Opened(_reopen(place.folder, path), root, tuple(place.parts))
            return Opened(_open(place, _FOLDER, path), root, (*place.parts, place.name))

    def slot(self, path: str) -> Slot:
        """The place for a file to be written: its folder opened, the file not yet touched.

        A link is followed to the file it names, so that writing changes that file.

        Raises:
            PathRefused: also when the name is protected or the root is read-only.
        """
        with self._resolved(path) as (root, place):
            last = place.rest[-1] if place.rest else place.name
            if last is None or path.endswith("/"):
                raise PathRefused(
                    "not_a_file", f"{path!r} is a folder.", next="Give the path of a file in it."
                )
            parts = (*place.parts, *place.rest) if place.rest else (*place.parts, last)
            if not root.writable:
                raise PathRefused(
                    "read_only",
                    f"{path!r} may be read, not written.",
                    next="Write to a path relative to the workspace instead.",
                )
            why = protected.reason(parts)
            if why is not None:
                raise PathRefused(
                    "protected",
                    f"{path!r} may not be written by a tool: {why}.",
                    next="Tell the user what should be changed there; only they can do it.",
                )
            if place.found is not None:
                only_regular(place.found, path)
            folder = _reopen(place.folder, path)
            return Slot(
                folder, root, parts, name=last, missing=tuple(place.rest[:-1]), found=place.found
            )

    def _locate(self, path: str) -> tuple[Root, list[str]]:
        """The root that `path` belongs to, and the components below it, as text only."""
        check_text(path)
        if not path.startswith("/"):
            return self.workspace, path.split("/")
        best: tuple[int, Root, str] | None = None
        for text, root in self._candidates():
            inside = path == text or path.startswith(text.rstrip("/") + "/")
            if inside and (best is None or len(text) > best[0]):
                best = (len(text), root, path[len(text.rstrip("/")) :])
        if best is None:
            raise outside(path, self.workspace.path)
        return best[1], best[2].split("/")

    def _candidates(self) -> Iterator[tuple[str, Root]]:
        yield from self._given.items()
        for root in (self.workspace, *self.read_only):
            yield str(root.path), root

    @contextmanager
    def _resolved(self, path: str) -> Iterator[tuple[Root, _Place]]:
        """Walk to `path`; the folder of the place is closed at the end."""
        root, parts = self._locate(path)
        place: _Place | None = None
        try:
            with faults(path, self.workspace.path):
                start = os.open(root.path, _FOLDER)
                try:
                    place = self._by_openat2(root, start, parts) if self._openat2 else None
                    if place is None:
                        place = _walk(root, start, parts)
                finally:
                    os.close(start)
                yield root, place
        finally:
            if place is not None:
                os.close(place.folder)

    def _by_openat2(self, root: Root, start: int, parts: Sequence[str]) -> _Place | None:
        """The kernel's own walk; `None` when ours must decide."""
        names = [p for p in parts if p not in ("", ".")]
        for _ in range(_MAX_LINKS):
            last = names[-1] if names and names[-1] != ".." else None
            prefix = "/".join(names[:-1] if last is not None else names) or "."
            try:
                folder = openat2.open_beneath(start, prefix, _FOLDER)
            except OSError:
                return None
            inside = _below(start, folder)
            if inside is None:
                os.close(folder)
                return None
            if last is None:
                return _Place(folder, inside)
            try:
                found = os.stat(last, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISLNK(found.st_mode):
                    return _Place(folder, inside, last, found)
                target = os.readlink(last, dir_fd=folder)
            except FileNotFoundError:
                return _Place(folder, inside, rest=[last])
            except OSError:
                os.close(folder)
                return None
            os.close(folder)
            if target.startswith("/"):
                return None
            names = [*inside, *(p for p in target.split("/") if p not in ("", "."))]
        return None


def _walk(root: Root, start: int, parts: Sequence[str]) -> _Place:
    """Walk by descriptors; every link is read, never followed by the kernel."""
    folders = [os.dup(start)]
    inside: list[str] = []
    pending = deque(parts)
    links = 0
    try:
        while pending:
            name = pending.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                if len(folders) == 1:
                    raise OSError(errno.EXDEV, "leads outside")
                os.close(folders.pop())
                inside.pop()
                continue
            ends = not any(p not in ("", ".") for p in pending)
            try:
                found = os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            except FileNotFoundError:
                rest = [name, *(p for p in pending if p not in ("", "."))]
                if ".." in rest:
                    raise
                return _Place(folders.pop(), inside, rest=rest)
            if stat.S_ISLNK(found.st_mode):
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, "too many links")
                target = os.readlink(name, dir_fd=folders[-1])
                if target.startswith("/"):
                    target = os.path.relpath(target, root.path) if _under(root, target) else ".."
                    while len(folders) > 1:
                        os.close(folders.pop())
                    inside.clear()
                pending.extendleft(reversed(target.split("/")))
            elif ends and not stat.S_ISDIR(found.st_mode):
                return _Place(folders.pop(), inside, name, found)
            else:
                try:
                    folders.append(os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folders[-1]))
                except OSError as fault:
                    if stat.S_ISDIR(found.st_mode) and fault.errno in (errno.ELOOP, errno.ENOTDIR):
                        links += 1  # swapped for a link since we looked: look again
                        if links > _MAX_LINKS:
                            raise
                        pending.appendleft(name)
                        continue
                    raise
                inside.append(name)
        return _Place(folders.pop(), inside)
    finally:
        for fd in folders:
            os.close(fd)


def _under(root: Root, target: str) -> bool:
    top = str(root.path).rstrip("/")
    return (target == top or target.startswith(top + "/")) and ".." not in target.split("/")


def _below(start: int, folder: int) -> list[str] | None:
    """The components that lead from `start` to `folder`, asked of the kernel."""
    if os.fstat(folder).st_nlink == 0:
        return None
    top = os.readlink(f"/proc/self/fd/{start}").rstrip("/")
    real = os.readlink(f"/proc/self/fd/{folder}")
    if real == (top or "/"):
        return []
    if not real.startswith(top + "/"):
        return None
    return real[len(top) + 1 :].split("/")


def _open(place: _Place, flags: int, path: str) -> int:
    """Open the last component, which must not be a link and not be special."""
    assert place.name is not None
    assert place.found is not None
    if not flags & os.O_DIRECTORY:
        only_regular(place.found, path)
    return os.open(place.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)


def _reopen(folder: int, path: str) -> int:
    return os.open(".", _FOLDER, dir_fd=folder)


def _not_a(place: _Place, path: str, wanted: str) -> PathRefused:
    if place.rest:
        return not_found(path)
    kind = "a folder" if place.found is None else kind_of(place.found)
    code = "not_a_folder" if wanted == "a folder" else "not_a_file"
    return PathRefused(code, f"{path!r} is {kind}, not {wanted}.", next=f"Give {wanted}'s path.")
