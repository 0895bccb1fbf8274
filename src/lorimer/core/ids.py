"""Ids that sort by the time they were made.

An id is `<prefix>_<26 characters>`: 48 bits of milliseconds since 1970 and 80 random bits in
Crockford base32, as in the ULID specification (https://github.com/ulid/spec). Two ids made in the
same millisecond by one process sort in the order they were made.
"""

from __future__ import annotations

import os
import threading

from lorimer.core.clock import Clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_lock = threading.Lock()
_last = 0
_seed_pid = 0


def new_id(prefix: str, clock: Clock) -> str:
    """A new id, e.g. `s_01k8…`; larger than every id this process made before."""
    global _last, _seed_pid
    ms = int(clock.now().timestamp() * 1000)
    number = (ms << 80) | int.from_bytes(os.urandom(10))
    with _lock:
        if _seed_pid == os.getpid() and number <= _last and (_last >> 80) == ms:
            number = _last + 1
        _last = number
        _seed_pid = os.getpid()
    return f"{prefix}_{_base32(number)}"


def _base32(number: int) -> str:
    digits = [""] * 26
    for place in range(25, -1, -1):
        digits[place] = _ALPHABET[number & 31]
        number >>= 5
    return "".join(digits)
