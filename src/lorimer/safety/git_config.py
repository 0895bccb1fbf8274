"""A file of git's settings, read as git reads it, without running git.

For two questions: which of a repository's settings can run a program or lead elsewhere (so that
trust in a folder covers them), and which must be overruled for a command that only reads.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

LARGEST = 1 << 20
_MOST_FILES = 20
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_PLAIN_CORE = frozenset(
    {
        "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates",
        "core.ignorecase", "core.precomposeunicode", "core.symlinks",
    }
)  # fmt: skip
_PLAIN_SECTIONS = ("branch.", "user.")

Entry = tuple[str, str]
"""`section.subsection.key` (section and key in lower case), and the value."""


def parse(text: str) -> list[Entry]:
    """The settings in their order.

    Raises:
        ValueError: it is no such file; git would refuse it, too.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    out: list[Entry] = []
    section, at = "", 0
    while at < len(text):
        character = text[at]
        if character in " \t\n":
            at += 1
        elif character in "#;":
            at = _end_of_line(text, at)
        elif character == "[":
            found = _SECTION.match(text, at)
            if found is None:
                raise ValueError(f"no section at character {at}")
            section = found[1].lower()
            if found[2] is not None:
                section += "." + re.sub(r"\\(.)", r"\1", found[2])
            at = found.end()
        else:
            key = _KEY.match(text, at)
            if key is None:
                raise ValueError(f"no setting at character {at}")
            value, at = _value(text, key.end())
            out.append((f"{section}.{key[0].lower()}".lstrip("."), value))
    return out


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> tuple[str, int]:
    while at < len(text) and text[at] in " \t":
        at += 1
    if at >= len(text) or text[at] in "\n#;":
        return "true", _end_of_line(text, at)
    if text[at] != "=":
        raise ValueError(f"no = at character {at}")
    at += 1
    out: list[str] = []
    quoted, solid = False, 0
    while at < len(text) and (text[at] != "\n"):
        character = text[at]
        if character == "\\":
            if text[at + 1 : at + 2] in ("\n", ""):
                at += 2
                continue
            if text[at + 1 : at + 2] not in _ESCAPES:
                raise ValueError(f"no escape at character {at}")
            out.append(_ESCAPES[text[at + 1]])
            at, solid = at + 2, len(out)
            continue
        if character == '"':
            quoted, solid = not quoted, len(out)
        elif character in "#;" and not quoted:
            at = _end_of_line(text, at)
            break
        elif out or quoted or character not in " \t":
            out.append(character)
            if quoted or character not in " \t":
                solid = len(out)
        at += 1
    if quoted:
        raise ValueError("a quote that does not end")
    return "".join(out[:solid]), at


def steering(text: str) -> list[Entry]:
    """The settings that can run a program, or that lead elsewhere: all but those of branches, of
    the person, and of how the repository is stored. Sorted; keys that repeat keep their order.

    Raises:
        ValueError: as `parse`.
    """
    kept = [
        entry
        for entry in parse(text)
        if entry[0] not in _PLAIN_CORE and not entry[0].startswith(_PLAIN_SECTIONS)
    ]
    return sorted(kept, key=lambda entry: entry[0])


def of_repository(git: Path) -> Iterator[Entry]:
    """The settings of the repository whose `.git` (folder, or file that names one) is `git`, with
    those of files that they include. What cannot be read or understood is left out."""
    for _, entries in _all_files(git):
        yield from entries


def included(git: Path) -> Iterator[Path]:
    """The files that the settings of a repository include, directly or not."""
    for place, _ in _all_files(git):
        if place.name not in ("config", "config.worktree") or place.parent != folder_of(git):
            yield place


def _all_files(git: Path) -> Iterator[tuple[Path, list[Entry]]]:
    folder = folder_of(git)
    if folder is None:
        return
    places = [folder / "config", folder / "config.worktree"]
    common = read(folder / "commondir")
    if common is not None:
        places.append(folder / common.strip() / "config")
    seen: set[str] = set()
    while places and len(seen) < _MOST_FILES:
        place = places.pop(0)
        real = os.path.realpath(place)
        text = None if real in seen else read(place)
        seen.add(real)
        if text is None:
            continue
        try:
            entries = parse(text)
        except ValueError:
            entries = []
        for key, value in entries:
            if key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
                places.append(place.parent / os.path.expanduser(value))
        yield place, entries


def folder_of(git: Path) -> Path | None:
    """The folder of a repository: `git` itself, or what the file `git` names, if there is one."""
    if git.is_dir():
        return git
    told = read(git)
    if told is None or not told.startswith("gitdir:"):
        return None
    named = git.parent / told.removeprefix("gitdir:").strip()
    return named if named.is_dir() else None


def read(path: Path) -> str | None:
    """The first MiB of a file, as text; `None` when it cannot be read or is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return file.read(LARGEST).decode("utf-8", "surrogateescape")
