"""What faults of SQLite and of its files mean, as errors of the store."""

from __future__ import annotations

import os
import sqlite3

from lorimer.core.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly

BUSY_S = 30.0
"""How long a connection waits for another process."""


def translate(fault: sqlite3.Error, path: str) -> StoreError:
    """The store error that `fault` means."""
    text = str(fault).lower()
    if "full" in text:
        return StoreFull(
            f"No space is left for the store {path}.",
            next="Free some disk space and run again; nothing was half-written.",
        )
    folder = os.path.dirname(os.path.abspath(path))
    no_writing = "unable to open" in text and not os.access(folder, os.W_OK)
    if "readonly" in text or "read-only" in text or no_writing:
        return StoreReadOnly(
            f"The store {path} cannot be written.",
            next="Check its permissions, or choose another folder with LORIMER_HOME.",
        )
    if "unable to open" in text:
        return StoreError(
            f"The store {path} cannot be opened: {fault}.",
            next="Check that its folder exists and can be written, or set LORIMER_HOME.",
        )
    if any(w in text for w in ("malformed", "not a database", "corrupt", "already exists")):
        return StoreCorrupt(
            f"{path} is not a usable store: {fault}.",
            next="Run `lorimer audit verify`; move the file and its `.head` away to start anew.",
        )
    if "locked" in text or "busy" in text:
        return StoreError(
            f"The store {path} was locked by another process for {BUSY_S:.0f} s.",
            next="End the process that holds it, or try again.",
        )
    return StoreError(f"The store {path} failed: {fault}.")


def damaged(fault: Exception, path: str) -> StoreCorrupt:
    """The error of pages that give no usable values."""
    return StoreCorrupt(
        f"{path} is not a usable store: its pages are damaged ({fault}).",
        next="Run `lorimer audit verify`; move the file and its `.head` away to start anew.",
    )
