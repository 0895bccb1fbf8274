"""Texts of skills made safe to stand in a list: one line, nothing invisible, no tags."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_USEFUL = "\u200c\u200d"
"""Joiners that some scripts and pictures need."""
_SAFE_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def one_line(text: str) -> str:
    """`text` without line breaks and characters that nobody sees."""
    kept = (" " if c in "\t\n\r\x0b\x0c\x85\u2028\u2029" else c for c in text)
    seen = (c for c in kept if c in _USEFUL or unicodedata.category(c) not in _HIDDEN)
    return " ".join("".join(seen).split())


def escaped(text: str) -> str:
    """`text` so that it can neither open nor close a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def is_plain_name(name: str) -> bool:
    """Whether a name is nothing but a short word: a stranger's name can be shown then."""
    return len(name) <= 64 and _SAFE_NAME.fullmatch(name) is not None
