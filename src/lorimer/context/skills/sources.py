"""Where skills lie: the project, the user's home, installed packages, and what lorimer brings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lorimer.context.skills.record import Place, Source

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FOLDERS = (".agents/skills", ".lorimer/skills", ".claude/skills")
"""In the project and in the user's home, the nearest first."""
ENTRY_POINTS = "lorimer.skills"
"""The group in which a package names one of its own packages that holds skill folders."""
MOST_FOLDERS = 2_000
MOST_DEPTH = 3
_SKIPPED = ("node_modules", "__pycache__")


@dataclass(frozen=True, slots=True)
class SkillSources:
    """Which skills an agent has.

    Attributes:
        project, user, packages, bundled: whether those of the workspace (in a trusted folder), of
            the user's home, of installed packages and of lorimer itself are there.
        paths: further folders: a skill, or a folder of skills.
        vouched: your program answers for `paths`: they need no review.
        names: only the skills with these names; `None` for all.
        home: the user's home; the real one when it is `None`.
    """

    project: bool = True
    user: bool = True
    packages: bool = True
    bundled: bool = True
    paths: tuple[Path, ...] = ()
    vouched: bool = False
    names: tuple[str, ...] | None = None
    home: Path | None = None

    @staticmethod
    def of(wanted: bool | Sequence[str | os.PathLike[str]] | SkillSources | None) -> (
        SkillSources | None
    ):  # fmt: skip
        """What an option `skills=` means: `None` or `False` none, `True` all, a list the skills
        with these names and those in these folders."""
        if wanted is None or wanted is False:
            return None
        if isinstance(wanted, SkillSources):
            return wanted
        if wanted is True:
            return SkillSources()
        given = [wanted] if isinstance(wanted, str | os.PathLike) else list(wanted)
        paths = tuple(Path(one).expanduser().absolute() for one in given if is_path(one))
        names = tuple(str(one) for one in given if not is_path(one))
        if not names:
            return SkillSources(False, False, False, False, paths)
        return SkillSources(paths=paths, names=names)


def is_path(one: str | os.PathLike[str]) -> bool:
    """Whether this means a folder, not a name."""
    return not isinstance(one, str) or os.sep in one or one in (".", "..") or one.startswith("~")


@dataclass(slots=True)
class Places:
    """Folders to look into, and what could not be looked into, in words."""

    places: list[Place] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def places_of(sources: SkillSources, workspace: Path, packages: Places) -> Places:
    """The folders of `sources`, the nearest first; only those that exist, but all `paths`.

    Args:
        packages: what `package_places` found.
    """
    out = Places(faults=list(packages.faults) if sources.packages else [])
    for path in sources.paths:
        out.places.append(Place(Source.PATH, path, vouched=sources.vouched))
    home = sources.home or Path(os.path.expanduser("~"))
    same = os.path.realpath(home) == os.path.realpath(workspace)
    if sources.project:
        out.places += _existing(Source.PROJECT, workspace)
    if sources.user and not (same and sources.project):
        out.places += _existing(Source.USER, home)
    if sources.packages:
        out.places += packages.places
    if sources.bundled:
        bundled = Path(__file__).resolve().parents[2] / "skills"
        if os.path.isdir(bundled):
            out.places.append(Place(Source.BUNDLED, bundled, bundled, vouched=True))
    return out


def package_places() -> Places:
    """The folders that installed packages name. Takes some milliseconds: all packages are asked."""
    from importlib.metadata import entry_points

    out = Places()
    for entry in entry_points(group=ENTRY_POINTS):
        folder = _package_folder(entry)
        if folder is None:
            out.faults.append(
                f"The entry point {entry.name!r} of {ENTRY_POINTS} names {entry.value!r}, "
                "which is no folder of its package."
            )
        else:
            out.places.append(Place(Source.PACKAGE, folder, folder))
    return out


def _existing(source: Source, top: Path) -> Iterator[Place]:
    for name in FOLDERS:
        if os.path.isdir(top / name):
            yield Place(source, top / name, top)


def _package_folder(entry: EntryPoint) -> Path | None:
    """The folder of the package that an entry point names; nothing of it is imported where its
    files can be found without."""
    name = entry.value.split(":")[0].strip()
    if entry.dist is not None:
        found = Path(str(entry.dist.locate_file(name.replace(".", "/"))))
        if found.is_dir():
            return found.resolve()
    import importlib.util

    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]).resolve() if places and Path(places[0]).is_dir() else None


def skill_folders(place: Place) -> tuple[list[Path], bool]:
    """The folders below `place` that are to be loaded, by name, and whether all were looked at.

    A folder with a `SKILL.md` is one; others are looked into, and are named too when nothing was
    found in them.
    """
    if has_skill(place.folder):
        return [place.folder], True
    left = [MOST_FOLDERS]
    found = list(_below(place.folder, place, 0, left))
    if place.source is Source.PATH and not found:
        found = [place.folder]
    return found, left[0] > 0


def _below(folder: Path, place: Place, depth: int, left: list[int]) -> Iterator[Path]:
    for one in _subfolders(folder):
        left[0] -= 1
        if left[0] <= 0:
            return
        if has_skill(one):
            yield one
            continue
        inner: Iterable[Path] = ()
        if depth + 1 < MOST_DEPTH and not one.is_symlink():
            inner = list(_below(one, place, depth + 1, left))
        if inner:
            yield from inner
        elif depth == 0:
            yield one


def _subfolders(folder: Path) -> list[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        folder / one.name
        for one in entries
        if os.path.isdir(one.path) and not one.name.startswith(".") and one.name not in _SKIPPED
    ]


def has_skill(folder: Path) -> bool:
    """Whether a `SKILL.md` lies in the folder, however it is written."""
    try:
        return any(name.lower() == "skill.md" for name in os.listdir(folder))
    except OSError:
        return False
