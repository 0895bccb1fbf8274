"""What lasts: sessions, entries, the call journal, blobs and the audit chain.

`open_store(path)` opens the store of a path; `default_path()` is where it lies by default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lorimer.core.clock import Clock
    from lorimer.store.sqlite import SqliteStore


def default_path() -> Path:
    """`$LORIMER_HOME/store.db`, or in the user's data folder."""
    from lorimer.core.home import home

    return home() / "store.db"


def open_store(
    path: str | os.PathLike[str] | None = None, *, clock: Clock | None = None
) -> SqliteStore:
    """The store at `path` (`None`: the default path; `:memory:`: one that does not last)."""
    from lorimer.store.sqlite import SqliteStore

    return SqliteStore(default_path() if path is None else path, clock=clock)
