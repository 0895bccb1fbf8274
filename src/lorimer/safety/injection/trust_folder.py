"""Trust in a folder, by the content of the files that steer an agent in it.

A repository that was cloned a minute ago can hold instructions (AGENTS.md, CLAUDE.md), servers
(.mcp.json), settings (lorimer.toml, .lorimer/) and skills. They are a stranger's words until the
person has looked at them and trusted the folder; a change of any of them asks again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from lorimer.core.errors import LorimerError
from lorimer.safety.injection import trust_git

FILES = (
    "AGENTS.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "SKILL.md",
    ".mcp.json", "lorimer.toml", ".cursorrules", ".windsurfrules", ".clinerules",
    ".github/copilot-instructions.md", ".gitattributes", ".gitmodules",
)  # fmt: skip
"""Files at the top of a folder that count; compared without regard to case."""

FOLDERS = (".lorimer", ".agents", ".claude", ".cursor/rules", ".github/instructions", "skills")
"""Folders at the top whose every file counts."""

MOST_FILES = 2_000
MOST_BYTES = 4 * 1024 * 1024
"""Of one file; what is longer counts by its first part, its size and when its inode changed."""
MOST_DEPTH = 12


class FolderTrustError(LorimerError):
    """The record of trusted folders cannot be used, or a folder cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """Whether a folder's own files may steer the agent.

    Attributes:
        folder: with symlinks resolved.
        state: `changed`: it was trusted, with other content.
        files: relative path → digest (`sha256:…`, `link:…`, `unreadable:…`, `large:…`) of all that
            counts, as they are now.
        changed: relative path → `added`, `changed` or `removed` since it was trusted.
        complete: `False` when there are more files than are looked at; then it is never trusted.
    """

    folder: str
    state: Literal["trusted", "unknown", "changed"]
    files: Mapping[str, str]
    changed: Mapping[str, str]
    complete: bool = True

    @property
    def digest(self) -> str:
        """Of all files together."""
        return digest_of(self.files)


def digest_of(files: Mapping[str, str]) -> str:
    """One digest over names and contents."""
    told = json.dumps(sorted(files.items()), ensure_ascii=True).encode()
    return f"sha256:{hashlib.sha256(told).hexdigest()}"


class FolderTrust:
    """The folders that a person has trusted, in `trusted.json` of the home folder.

    Args:
        home: the home folder of lorimer; made when something is written.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / "trusted.json"

    def is_trusted(self, folder: Path) -> Trusted:
        """What is known of `folder`, and how its files compare with what was trusted.

        Raises:
            FolderTrustError: when there is no such folder, or the record cannot be read.
        """
        where = _real(folder)
        files, complete = steering_files(where)
        known = self._read().get(str(where))
        if known is None:
            return Trusted(str(where), "unknown", files, {}, complete)
        before = known["files"]
        changed = {name: "added" for name in files if name not in before}
        changed |= {name: "removed" for name in before if name not in files}
        changed |= {n: "changed" for n, d in files.items() if n in before and before[n] != d}
        same = not changed and complete
        return Trusted(
            str(where), "trusted" if same else "changed", files, dict(sorted(changed.items())),
            complete,
        )  # fmt: skip

    def trust(self, folder: Path, *, seen: str | None = None) -> Trusted:
        """Trust the folder's files as they are now.

        Args:
            seen: the `digest` that the person was shown; another content is refused.

        Raises:
            FolderTrustError: also when a file cannot be read, or there are too many.
        """
        where = _real(folder)
        files, complete = steering_files(where)
        bad = [name for name, told in files.items() if told.startswith("unreadable:")]
        if bad:
            raise FolderTrustError(
                f"{where} was not trusted: {bad[0]} cannot be read"
                f"{f', nor {len(bad) - 1} more' if len(bad) > 1 else ''}.",
                next="Make it readable, or remove it, and try again.",
            )
        if not complete:
            raise FolderTrustError(
                f"{where} was not trusted: it has more than {MOST_FILES} files that steer an "
                "agent, or they lie too deep to be looked at.",
                next=f"Keep less in {', '.join(FOLDERS)}.",
            )
        if seen is not None and seen != digest_of(files):
            raise FolderTrustError(
                f"{where} was not trusted: its files changed after they were shown.",
                next="Look at them again with `lorimer trust FOLDER`.",
            )
        with self._changing() as record:
            record[str(where)] = {
                "files": dict(files), "digest": digest_of(files),
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
            }  # fmt: skip
        return Trusted(str(where), "trusted", files, {})

    def forget(self, folder: Path) -> bool:
        """Trust it no more; whether it had been. The folder itself may be gone."""
        wanted = {str(folder), os.path.realpath(folder)}
        with self._changing() as record:
            gone = [name for name in record if name in wanted]
            for name in gone:
                del record[name]
        return bool(gone)

    def folders(self) -> dict[str, str]:
        """Every trusted folder, and since when (RFC 3339)."""
        return {name: entry["at"] for name, entry in sorted(self._read().items())}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The record, to be changed by one process at a time; written as a whole or not at all."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise self._unusable("written", fault) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = self._read()
            yield record
            try:
                _replace(self.path, {"version": 1, "folders": record})
            except OSError as fault:
                raise self._unusable("written", fault) from None
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Any]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as fault:
            raise self._unusable("read", fault) from None
        try:
            folders = json.loads(raw)["folders"]
            for entry in folders.values():
                if not isinstance(entry["at"], str) or not isinstance(entry["files"], dict):
                    raise TypeError("an entry is not as lorimer writes it")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise FolderTrustError(
                f"{self.path} is not a record of trusted folders: {fault}.",
                next="Remove that file; the folders then have to be trusted again.",
            ) from None
        return dict(folders)

    def _unusable(self, how: str, fault: OSError) -> FolderTrustError:
        return FolderTrustError(
            f"{self.path} cannot be {how}: {fault.strerror or fault}.",
            next="Set LORIMER_HOME to a folder that you own.",
        )


def steering_files(folder: Path) -> tuple[dict[str, str], bool]:
    """What in `folder` would steer an agent: relative path → digest; and whether that is all.

    A symlink counts by where it leads and by the content there, folders too. Names that are not
    UTF-8 are written with escapes. Never more than `MOST_FILES`.
    """
    out: dict[str, str] = {}
    complete = True
    for name in sorted(_wanted(folder)):
        complete &= _take(os.path.join(folder, name), name, out, ())
        if len(out) > MOST_FILES:
            return dict(list(out.items())[:MOST_FILES]), False
    for name, path, is_settings in trust_git.files(folder, MOST_FILES + 1 - len(out)):
        told = trust_git.settings_digest(path) if is_settings else None
        told = _digest(path) if told is None else told
        if told:
            out[_shown(name)] = told
    if len(out) > MOST_FILES:
        return dict(list(out.items())[:MOST_FILES]), False
    return out, complete


def _take(path: str, name: str, out: dict[str, str], above: tuple[tuple[int, int], ...]) -> bool:
    """Add one file, or every file below a folder; whether all of it was looked at. `above` are the
    folders around it, by device and inode: a link back to one of them ends there."""
    try:
        there = os.stat(path)
        folder = stat.S_ISDIR(there.st_mode)
    except OSError:
        folder = False
    if not folder:
        out[_shown(name)] = _digest(path)
        return len(out) <= MOST_FILES
    if os.path.islink(path):
        out[_shown(name)] = f"link:{_shown(os.readlink(path))}"
    inode = (there.st_dev, there.st_ino)
    if inode in above:
        return True
    if len(above) >= MOST_DEPTH:
        return False
    try:
        entries = sorted(os.listdir(path))
    except OSError as fault:
        out[_shown(name)] = f"unreadable:{fault.errno}"
        return True
    complete = True
    for entry in entries:
        inner = os.path.join(path, entry)
        complete &= _take(inner, f"{name}/{entry}", out, (*above, inode))
        if len(out) > MOST_FILES:
            return False
    return complete


def _wanted(folder: Path) -> Iterator[str]:
    for wanted in (*FILES, *FOLDERS):
        yield from _matching(str(folder), wanted.split("/"), "")


def _matching(folder: str, parts: list[str], under: str) -> Iterator[str]:
    """The paths below `folder` that `parts` names, whatever their case."""
    try:
        names = os.listdir(os.path.join(folder, under) if under else folder)
    except OSError:
        return
    for name in names:
        if name.casefold() == parts[0].casefold():
            found = f"{under}/{name}" if under else name
            if len(parts) == 1:
                yield found
            else:
                yield from _matching(folder, parts[1:], found)


def _digest(path: str) -> str:
    """What one file is, as text: its content by hash. Devices, sockets and pipes are not opened."""
    link = ""
    try:
        if os.path.islink(path):
            link = f"link:{_shown(os.readlink(path))} "
            if not os.path.exists(path):
                return f"{link}missing"
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "unreadable:not a file"
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as fault:
        return f"unreadable:{fault.errno}"
    try:
        kind = os.fstat(descriptor)
        if not stat.S_ISREG(kind.st_mode):
            return "unreadable:not a file"
        digest, left = hashlib.sha256(), MOST_BYTES
        while left and (part := os.read(descriptor, min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        if kind.st_size > MOST_BYTES:
            return f"{link}large:{digest.hexdigest()}:{kind.st_size}:{kind.st_ctime_ns}"
        return f"{link}sha256:{digest.hexdigest()}"
    except OSError as fault:
        return f"unreadable:{fault.errno}"
    finally:
        os.close(descriptor)


def _shown(name: str) -> str:
    """A name as text that JSON can hold: bytes that are not UTF-8 as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _real(folder: Path) -> Path:
    where = Path(os.path.realpath(folder.expanduser()))
    if not where.is_dir():
        raise FolderTrustError(
            f"There is no folder {folder}.", next="Name a folder that exists, or go into it first."
        )
    return where


def _replace(path: Path, record: Mapping[str, Any]) -> None:
    """Write the record beside its place, flush it to the disk, and put it there in one step."""
    written = json.dumps(record, ensure_ascii=True, indent=1, sort_keys=True).encode()
    descriptor, beside = tempfile.mkstemp(prefix=".trusted-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise
