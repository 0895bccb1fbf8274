"""Files of a workspace whose content no program is shown: keys, tokens, `.env`, our own home.

File tools ask before they read such a file. Code in the sandbox is not read before it runs, so the
same files are covered there with something that cannot be read, unless the very call was allowed to
read them. What counts is the one table of `lorimer.safety.sensitive`.

The cover of a file has its size, its time and its x bit, so that git and make do not take
it for changed; to open it fails with "Permission denied". A cover is a mount: it cannot be written,
removed or renamed.

Not covered: files that get such a name while the program runs; further hard links of such a file
under other names; the target of a link once the link is gone; what lies in `node_modules`,
`site-packages` and the objects of git; files deeper than `DEPTH` folders or after `MOST_FOLDERS`
folders (then `Hidden.complete` is false).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEPTH = 8
MOST_FOLDERS = 5_000
MOST_HIDDEN = 1_000
_PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__", ".git"})
_SETTLED_NS = 2_000_000_000
_MOST_KNOWN = 20_000
_Names = tuple[tuple[str, ...], tuple[str, ...]]

_known: dict[tuple[str, str, int], tuple[tuple[int, int, int], _Names]] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Hidden:
    """What to hide: paths below the workspace as it is given, links in it resolved, none below
    another.

    Attributes:
        complete: `False` when the workspace is larger than what is looked at.
    """

    paths: tuple[Path, ...] = ()
    complete: bool = True


def find(workspace: Path, *, own: Path | None = None) -> Hidden:
    """The sensitive files and folders of `workspace`, as they are now.

    What a folder holds is remembered until it changes, so that a second look costs one `stat` for
    each folder (some 4 µs).

    Args:
        own: the home folder of lorimer; hidden whole when it lies in the workspace.
    """
    from lorimer.safety import sensitive

    given, root = os.path.abspath(workspace), os.path.realpath(workspace)
    home = os.path.expanduser("~")
    # who works in a folder of secrets (`~/.ssh`) wants the files in it: only their own names count
    cut = len(root) if sensitive.kind(f"{root}/x", home) is not None else 0
    found: dict[str, None] = {}
    if own is not None:
        ours = os.path.realpath(own)
        if ours.startswith(root.rstrip("/") + "/") and os.path.lexists(ours):
            found[ours] = None
    level, seen = [root], 0
    for _ in range(DEPTH + 1):
        deeper: list[str] = []
        for folder in level:
            seen += 1
            if seen > MOST_FOLDERS or len(found) > MOST_HIDDEN:
                return Hidden(_outermost(found, root, given), complete=False)
            names, folders = _entries(folder, home, cut)
            for name in names:
                place = _place(os.path.join(folder, name), root)
                if place is not None:
                    found[place] = None
            deeper += [inner for name in folders if (inner := f"{folder}/{name}") not in found]
        level = deeper
    return Hidden(_outermost(found, root, given), complete=not level)


def _outermost(found: Iterable[str], root: str, given: str) -> tuple[Path, ...]:
    out: list[str] = []
    for place in sorted(found, key=lambda one: one.count("/")):
        if not any(place == above or place.startswith(above + "/") for above in out):
            out.append(place)
    return tuple(Path(given, os.path.relpath(place, root)) for place in sorted(out))


def _place(path: str, root: str) -> str | None:
    """What there is to hide for a sensitive name; a link is hidden by what it leads to."""
    real = os.path.realpath(path)
    if not real.startswith(root.rstrip("/") + "/"):
        return None  # outside: it is not shown at all
    try:
        kind = os.stat(real).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(kind):
        # a Python environment in a folder `.env` is none of the files that are meant
        return None if os.path.exists(f"{real}/pyvenv.cfg") else real
    return real if stat.S_ISREG(kind) else None


def _entries(folder: str, home: str, cut: int) -> _Names:
    """(sensitive names, folders to go into) of one folder."""
    from lorimer.safety import sensitive

    try:
        here = os.stat(folder)
    except OSError:
        return (), ()
    mark = (here.st_dev, here.st_ino, here.st_ctime_ns)
    key = (folder, home, cut)
    with _lock:
        before = _known.get(key)
    if before is not None and before[0] == mark:
        return before[1]
    by_place = not cut and sensitive.may_lie_in(folder, home)
    names: list[str] = []
    folders: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if _sensitive(entry, is_folder, home, cut, by_place):
                names.append(entry.name)
            elif is_folder and entry.name not in _PASSED_OVER:
                folders.append(entry.name)
    told = tuple(names), tuple(folders)
    # a folder that changed just now could change again within one tick of its clock
    if abs(time.time_ns() - here.st_ctime_ns) > _SETTLED_NS:
        with _lock:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = mark, told
    return told


def _sensitive(
    entry: os.DirEntry[str], is_folder: bool, home: str, cut: int, by_place: bool
) -> bool:
    from lorimer.safety import sensitive

    is_folder = is_folder or _leads_to_folder(entry)
    name = entry.name
    if not by_place and name.isascii() and name.isprintable():  # most of a workspace; be quick
        if is_folder and not name.startswith("."):
            return False
        if not is_folder and not sensitive.has_secret_name(name):
            return False
    # of a folder it counts what is said of a file in it
    path = f"{entry.path}/x" if is_folder else entry.path
    return sensitive.kind(path[cut:], home) is not None


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:
        return False


@dataclass(slots=True)
class Covers:
    """Mounts over the hidden places of one run, and the files that they need. `close` it."""

    mounts: list[str] = field(default_factory=list)
    _folder: str = ""

    @staticmethod
    def over(places: Sequence[Path], shown: Sequence[tuple[str, Path, str]] = ()) -> Covers:
        """Make covers for what of `places` is there.

        Args:
            shown: (how, source, where) of mounts that may lie in a hidden folder and are to be
                seen nevertheless.
        """
        covers = Covers()
        for place in places:
            try:
                found = os.lstat(place)
            except OSError:
                continue
            where = str(place)
            if stat.S_ISDIR(found.st_mode):
                inside = [one for one in shown if one[2].startswith(f"{where}/")]
                covers.mounts += ["--perms", "0111" if inside else "0000", "--tmpfs", where]
                for how, source, at in inside:
                    covers.mounts += [how, str(source), at]
                covers.mounts += ["--remount-ro", where]
            elif stat.S_ISREG(found.st_mode):
                covers.mounts += ["--ro-bind", covers._cover(found), where]
        return covers

    def _cover(self, like: os.stat_result) -> str:
        """A file that nobody can read, of the size and time of another."""
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="lorimer-hidden-")
        path = os.path.join(self._folder, str(len(self.mounts)))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, like.st_size)
            os.fchmod(fd, like.st_mode & 0o100)
            os.utime(fd, ns=(like.st_mtime_ns, like.st_mtime_ns))
        finally:
            os.close(fd)
        return path

    def close(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
