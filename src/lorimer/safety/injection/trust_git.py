"""What git obeys in a folder, for trust in it: settings, hooks, attributes.

A command that only reads (`git status`) runs what these name, so it is taken to be harmless only
where a person has trusted them. Of a file of settings those count that can run a program or lead
elsewhere, so that ordinary work (a new branch) does not ask again; see `git_config.steering`.

A `.git` file is followed to the repository that it names. Not covered: attributes and repositories
in sub-folders, but for submodules.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from lorimer.safety import git_config

_SETTINGS = ("config", "config.worktree")
_DEPTH = 6


def files(folder: Path, most: int) -> Iterator[tuple[str, str, bool]]:
    """(name, path, whether it is a file of settings) of each file that counts, `most` at most.

    The name is the path from `folder`.
    """
    for number, one in enumerate(_files(folder)):
        if number >= most:
            return
        yield one


def settings_digest(path: str) -> str | None:
    """Of the settings that count; empty when none does; `None` when it cannot be understood, and
    then every byte counts."""
    text = git_config.read(Path(path))
    if text is None or len(text) >= git_config.LARGEST:
        return None
    try:
        kept = git_config.steering(text)
    except ValueError:
        return None
    if not kept:
        return ""
    digest = f"sha256:{hashlib.sha256(json.dumps(kept, ensure_ascii=True).encode()).hexdigest()}"
    if not os.path.islink(path):
        return digest
    return f"link:{os.fsencode(os.readlink(path)).decode('utf-8', 'backslashreplace')} {digest}"


def _files(folder: Path) -> Iterator[tuple[str, str, bool]]:
    git = folder / ".git"
    if os.path.lexists(git) and (not git.is_dir() or git.is_symlink()):
        yield ".git", str(git), False
    own = git_config.folder_of(git)
    if own is None:
        return
    named: dict[str, tuple[str, bool]] = {}

    def name_it(path: Path, *, settings: bool = False) -> None:
        if os.path.lexists(path):
            named[os.path.relpath(path, folder)] = (str(path), settings)

    for repository in _repositories(own, 0):
        for name in _SETTINGS:
            name_it(repository / name, settings=True)
        for path in git_config.included(repository):
            name_it(path, settings=True)
        for name in ("commondir", "info/attributes"):
            name_it(repository / name)
        hooks = [repository / "hooks"]
        common = git_config.read(repository / "commondir")
        if common is not None:
            hooks.append(repository / common.strip() / "hooks")
            name_it(repository / common.strip() / "info/attributes")
        for key, value in git_config.of_repository(repository):
            if key == "core.hookspath" and value:
                hooks.append(folder / os.path.expanduser(value))
            if key == "core.attributesfile" and value:
                name_it(folder / os.path.expanduser(value))
        for place in hooks:
            for path in _programs(place):
                name_it(path)
    for name, (where, settings) in sorted(named.items()):
        yield name, where, settings


def _repositories(git: Path, depth: int) -> Iterator[Path]:
    """This one and those of its submodules, whose names may have slashes."""
    yield git
    waiting = [(git / "modules", 0)]
    while waiting:
        folder, deep = waiting.pop()
        for name in _listed(folder):
            inner = folder / name
            if not inner.is_dir() or inner.is_symlink():
                continue
            if (inner / "HEAD").exists() or (inner / "config").exists():
                if depth < _DEPTH:
                    yield from _repositories(inner, depth + 1)
            elif deep < _DEPTH:
                waiting.append((inner, deep + 1))


def _programs(folder: Path) -> Iterator[Path]:
    """The hooks in a folder that git would run."""
    for name in _listed(folder):
        path = folder / name
        try:
            found = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o111 and not name.endswith(".sample"):
            yield path


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
