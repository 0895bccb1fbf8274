"""A file that grows over several attempts until it is whole, with a record of what is safe.

The bytes go to `<folder>/<name>.part`; `<name>.state.json` says how many of them were written and
flushed, and from which source. After any stop, also kill -9, the file is cut back to that length,
so the next attempt goes on from the last safe point.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lorimer.models.local.errors import NotEnoughDisk

_BLOCK = 1 << 20


class GrowingFile:
    """Open with `with`; `length` bytes are safe and hashed in `hash`.

    Args:
        folder: where the part file and its state lie; made when missing.
        source: what the bytes come from; bytes of another source are thrown away.
        tag: a validator of the source's version (an ETag); kept with the state.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source
        self.tag = ""
        self.length = 0
        self.hash = hashlib.sha256()
        self.path = folder / "model.part"
        self._state = folder / "model.state.json"

    def __enter__(self) -> GrowingFile:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = self._read_state()
        self._file = open(self.path, "r+b" if self.path.exists() else "w+b")
        have = self._file.seek(0, os.SEEK_END)
        if kept is None or kept[0] != self.source or kept[1] > have:
            self.restart()
            return self
        _, self.length, self.tag = kept
        self._file.truncate(self.length)
        self._file.seek(0)
        while block := self._file.read(_BLOCK):
            self.hash.update(block)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def restart(self, tag: str = "") -> None:
        """Throw away what is there."""
        self.length, self.tag, self.hash = 0, tag, hashlib.sha256()
        self._file.seek(0)
        self._file.truncate(0)
        self.keep()

    def write(self, block: bytes) -> None:
        """Append; safe only after `keep`.

        Raises:
            NotEnoughDisk: the disk is full. What was kept before stays.
        """
        try:
            self._file.write(block)
        except OSError as fault:
            raise _full_or(fault, self.path) from fault
        self.hash.update(block)
        self.length += len(block)

    def keep(self) -> None:
        """Make all that was written safe.

        Raises:
            NotEnoughDisk: the disk is full.
        """
        record = {"source": self.source, "length": self.length, "tag": self.tag}
        fresh = self._state.with_suffix(".new")
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            fresh.write_text(json.dumps(record), encoding="utf-8")
            os.replace(fresh, self._state)
        except OSError as fault:
            raise _full_or(fault, self.path) from fault

    def move_to(self, final: Path) -> None:
        """Give the whole file its final name, in one step."""
        self.keep()
        os.replace(self.path, final)
        self.discard()

    def discard(self) -> None:
        """Remove the part file and its state."""
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def _read_state(self) -> tuple[str, int, str] | None:
        try:
            record = json.loads(self._state.read_text(encoding="utf-8"))
            return str(record["source"]), int(record["length"]), str(record["tag"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            return None  # a damaged record vouches for nothing: start over


def _full_or(fault: OSError, path: Path) -> Exception:
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return NotEnoughDisk(
            f"The disk is full: {path} could not be written further.",
            next="Free some space and pull again; it goes on from where it stopped.",
        )
    return fault


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """SHA-256 of a file, as 64 hex digits; `on_bytes` is told how many bytes were read so far."""
    state = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            state.update(block)
            done += len(block)
            if on_bytes is not None:
                on_bytes(done)
    return state.hexdigest()
