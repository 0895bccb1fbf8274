"""Computed prefixes on disk: the engine's state after reading a system prompt and tool list.

A file is named by a hash of the model file, the engine build and the token ids, so it can only be
found again for exactly what it was made from. The folder is kept under a size; what was used
longest ago goes first.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from lorimer.core.home import home

MAX_BYTES = 2 << 30
MIN_TOKENS = 64
"""Shorter prefixes are read again in less time than a file is worth."""


def cache_folder() -> Path:
    """`<home>/cache/kv`. May not exist yet."""
    return home() / "cache" / "kv"


def state_name(fingerprint: str, build: str, tokens: Sequence[int]) -> str:
    """The file name of the state of `tokens` for one model file and engine build."""
    key = json.dumps([fingerprint, build, list(tokens)], separators=(",", ":"))
    return hashlib.sha256(key.encode()).hexdigest()[:40] + ".kv"


def prune(folder: Path, max_bytes: int = MAX_BYTES) -> int:
    """Remove the files used longest ago until the folder holds at most `max_bytes`; returns the
    bytes removed. Files that others remove meanwhile are no fault."""
    found = []
    for path in folder.glob("*.kv*"):
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue
        found.append((stat.st_mtime_ns, stat.st_size, path))
    left = sum(size for _, size, _ in found)
    removed = 0
    for _, size, path in sorted(found):
        if left <= max_bytes:
            break
        path.unlink(missing_ok=True)
        left -= size
        removed += size
    return removed


def touch(path: Path) -> None:
    """Mark a state as used now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return
