"""Canonical JSON: the same value is always the same bytes.

Sorted keys, no spaces, UTF-8 without escapes, no NaN. Numbers are written as Python writes them.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> bytes:
    """`value` as canonical JSON bytes.

    Raises:
        ValueError: for NaN, an infinity, a circular value, or text with half a surrogate pair.
        TypeError: for something that JSON cannot hold, or keys that do not sort.
    """
    return _encoder.encode(value).encode("utf-8")


def digest(data: bytes) -> str:
    """SHA-256 of `data`, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()
