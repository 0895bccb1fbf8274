"""The files of a skill's folder: which there are, and what their contents are, as digests."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lorimer.core.errors import LorimerError

MOST_FILES = 2_000
MOST_BYTES = 256 << 20
"""Of all files of one skill together."""
MOST_DEPTH = 12


class SkillFilesFault(LorimerError):
    """A skill's folder is not as it may be. `code` says in which way."""

    def __init__(self, code: str, message: str, *, next: str = "") -> None:
        super().__init__(message, next=next)
        self.code = code


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file. `link` is where it leads when it is a link (always inside the folder)."""

    name: str
    size: int
    executable: bool
    link: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """What is in a skill's folder, without the contents.

    Attributes:
        files: by relative path, in order; names that are not UTF-8 with escapes.
        signature: changes whenever a file was written, added or removed (sizes, times, inodes).
    """

    folder: Path
    files: Mapping[str, SkillFile]
    signature: str


def survey(folder: Path) -> Files:
    """What is in `folder` (a real path); nothing is read.

    Raises:
        SkillFilesFault: for a link that leads out, a file that is no file, or too much.
    """
    files: dict[str, SkillFile] = {}
    seen: list[object] = []
    total = 0
    for path, name, found in _below(os.fsencode(folder), b"", 0):
        shown = os.fsdecode(name).encode("utf-8", "surrogateescape").decode(
            "utf-8", "backslashreplace"
        )  # fmt: skip
        link = ""
        if stat.S_ISLNK(found.st_mode):
            link = os.fsencode(os.readlink(path)).decode("utf-8", "backslashreplace")
            _check_link(folder, path, shown, link)
        elif not stat.S_ISREG(found.st_mode):
            raise SkillFilesFault(
                "special_file", f"{shown!r} in {folder} is neither a file nor a folder.",
                next="Remove it.",
            )  # fmt: skip
        total += found.st_size
        files[shown] = SkillFile(shown, found.st_size, bool(found.st_mode & 0o111), link)
        seen.append(
            (shown, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns,
             found.st_ino, link)
        )  # fmt: skip
        if len(files) > MOST_FILES or total > MOST_BYTES:
            raise SkillFilesFault(
                "too_many_files",
                f"{folder} has more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MB.",
                next="Keep only what the skill needs in its folder.",
            )
    signature = hashlib.sha256(repr(seen).encode("utf-8", "backslashreplace")).hexdigest()
    return Files(folder, files, signature)


def _below(
    folder: bytes, under: bytes, depth: int
) -> Iterator[tuple[bytes, bytes, os.stat_result]]:
    if depth > MOST_DEPTH:
        raise SkillFilesFault(
            "too_deep", f"{os.fsdecode(under)!r} lies more than {MOST_DEPTH} folders deep.",
            next="Keep the files of a skill closer to its SKILL.md.",
        )  # fmt: skip
    try:
        names = sorted(os.listdir(folder))
        for one in names:
            path, name = os.path.join(folder, one), os.path.join(under, one)
            found = os.lstat(path)
            if stat.S_ISDIR(found.st_mode):
                yield from _below(path, name, depth + 1)
            else:
                yield path, name, found
    except OSError as fault:
        raise SkillFilesFault(
            "unreadable",
            f"{os.fsdecode(folder)} cannot be looked into: {fault.strerror or fault}.",
            next="Make it readable for you.",
        ) from None


def _check_link(folder: Path, path: bytes, shown: str, link: str) -> None:
    real = os.path.realpath(path)
    if real == os.path.realpath(os.fsencode(folder)):
        raise SkillFilesFault(
            "link_loop", f"{shown!r} in {folder} is a link to that folder itself: {link}.",
            next="Remove the link: the folder would hold itself.",
        )  # fmt: skip
    if not real.startswith(os.fsencode(folder).rstrip(b"/") + b"/"):
        raise SkillFilesFault(
            "link_outside", f"{shown!r} in {folder} is a link that leads outside: {link}.",
            next="Replace the link by a copy of the file.",
        )  # fmt: skip


def digests(found: Files) -> dict[str, str]:
    """Each file's content as `sha256:…` (with `+x` when it may be run), each link as `link:…`.

    Raises:
        SkillFilesFault: when one cannot be read, or is no file any more.
    """
    out = {}
    for name, one in found.files.items():
        if one.link:
            out[name] = f"link:{one.link}"
            continue
        digest = hashlib.sha256()
        for piece in _pieces(found.folder, name):
            digest.update(piece)
        out[name] = f"sha256:{digest.hexdigest()}{'+x' if one.executable else ''}"
    return out


def whole_digest(files: Mapping[str, str]) -> str:
    """One digest over names and contents."""
    told = json.dumps(sorted(files.items()), ensure_ascii=True).encode()
    return f"sha256:{hashlib.sha256(told).hexdigest()}"


def content(found: Files, name: str, most: int) -> bytes:
    """The first `most` bytes of one file.

    Raises:
        SkillFilesFault: when it cannot be read.
    """
    out = b""
    for piece in _pieces(found.folder, name):
        out += piece
        if len(out) >= most:
            break
    return out[:most]


def _pieces(folder: Path, name: str) -> Iterator[bytes]:
    path = folder / name
    if not os.path.lexists(path):  # an escaped name
        path = next(
            (p for p in path.parent.iterdir() if _escaped(p.name) == path.name), path
        )  # fmt: skip
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(fd, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise SkillFilesFault(
                    "special_file", f"{name!r} in {folder} is no file any more.", next="Look again."
                )
            while piece := file.read(1 << 20):
                yield piece
    except OSError as fault:
        raise SkillFilesFault(
            "unreadable",
            f"{name!r} in {folder} cannot be read: {fault.strerror or fault}.",
            next="Make it readable for you.",
        ) from None


def _escaped(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
