"""Texts from outside, made safe to stand in the bar: one line, in quotation marks, of limited
length.

Whatever the text holds, it cannot end the tag of the bar, begin a line of it, or hide anything:
angle brackets and what looks like them, control, format, private and unassigned characters, half
surrogates, odd spaces and piled-up marks are written out. What is cut is counted.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_BRACKETS: Final = frozenset(
    "\u2039\u203a\u2329\u232a\u27e8\u27e9\u3008\u3009\u00ab\u00bb\u226a\u226b\ufe64\ufe65\uff1c\uff1e"
    "\u02c2\u02c3\u29fc\u29fd\u276c\u276d\u276e\u276f\u2770\u2771\u1438\u1433"
)
"""What may be read as an angle bracket."""
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b\u180c\u180d")
"""Letters and marks that show nothing."""
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_MOST_MARKS = 2
_EASY = re.compile(r"[ -;=?-~]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,63}")


def quoted(text: str, limit: int) -> str:
    """`text` in quotation marks, at most about `limit` characters of it; what was left out is said
    behind the marks."""
    inside, used = _escaped(text, limit)
    left_out = len(text) - used
    return f'"{inside}"' + (f" (+{left_out:,} characters)" if left_out else "")


def is_name(text: str) -> bool:
    """Whether `text` is a plain name: at most 64 letters, digits and `_.:/-`."""
    return _NAME.fullmatch(text) is not None


def _escaped(text: str, limit: int) -> tuple[str, int]:
    """The escaped beginning of `text`, and how many of its characters that is."""
    head = text[:limit]
    if _EASY.fullmatch(head) and '"' not in head and "\\" not in head and "&" not in head:
        return head, len(head)
    out: list[str] = []
    length = marks = 0
    for used, character in enumerate(head):
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        piece = _one(character, category, marks)
        length += len(piece)
        if length > limit:
            return "".join(out), used
        out.append(piece)
    return "".join(out), len(head)


def _one(character: str, category: str, marks: int) -> str:
    if character in _ENTITIES:
        return _ENTITIES[character]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    hidden = (
        category[0] == "C"
        or category in ("Zl", "Zp")
        or (category == "Zs" and character != " ")
        or character in _UNSEEN
        or character in _BRACKETS
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
        or marks > _MOST_MARKS
    )
    return f"\\u{{{code:x}}}" if hidden else character
