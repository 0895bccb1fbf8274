"""The anchor: a file beside the database that says how far the audit chain had come.

A chain that does not reach it has lost lines. It is not synced: after a crash it may lag, never
lead. It only moves forward; one that the chain does not know is left as it is: it is evidence.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from lorimer.store.transaction import GENESIS, Transaction, head_text


class Anchor:
    """The `.head` file of the store at `path`; of a store in memory (`None`) there is none."""

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else path + ".head"

    def make(self) -> None:
        """The anchor of a new store, before its first line.

        Raises:
            OSError: when it cannot be written.
        """
        if self._path is None:
            return
        try:
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            return
        try:
            os.write(descriptor, head_text(0, GENESIS).encode())
        finally:
            os.close(descriptor)

    def move(self, transaction: Transaction) -> None:
        """To the newest line. What cannot be written is a finding of `audit verify`, not a reason
        to lose a commit."""
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            now = _parse(os.pread(descriptor, 200, 0))
            if now is not None and now[0] <= transaction.n and transaction.knows(*now):
                os.pwrite(descriptor, transaction.head.encode(), 0)
        except (OSError, sqlite3.Error):
            return
        finally:
            os.close(descriptor)

    def read(self) -> tuple[int, str] | None:
        """Number and hash of the line it stands at; `None` when it is missing or damaged."""
        if self._path is None:
            return None
        try:
            return _parse(Path(self._path).read_bytes())
        except OSError:
            return None


def _parse(data: bytes) -> tuple[int, str] | None:
    """Number and hash from an anchor; `None` unless it is exactly as it was written."""
    number, _, line_hash = data.decode("ascii", "replace").strip().partition(" ")
    if not number.isdecimal() or head_text(int(number), line_hash).encode() != data:
        return None
    return int(number), line_hash
