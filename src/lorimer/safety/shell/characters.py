"""Characters that make a shell text read differently from what a shell does with it.

Checked before any grammar: a parser and a shell may disagree about them, and a person who approves
the text cannot see them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_IFS = re.compile(r"\$(?:IFS\b|\{[#!]?IFS\b)")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ZERO_WIDTH = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_PLAIN = re.compile(r"[\t\n -~]*")


def faults(text: str) -> Iterator[str]:
    """Say what is wrong with the characters of `text`, one sentence a kind; nothing if fine."""
    if _IFS.search(text):
        yield "$IFS stands where a space should: the words are not what they look like"
    if _PLAIN.fullmatch(text):
        return
    seen: set[str] = set()
    for character in text:
        fault = _fault(character)
        if fault and fault not in seen:
            seen.add(fault)
            yield f"{fault} (U+{ord(character):04X})"


def _fault(c: str) -> str | None:
    code = ord(c)
    if c in "\t\n" or 0x20 <= code < 0x7F:
        return None
    if c == "\r":
        return "a carriage return: a parser and a shell split this line differently"
    if c == "\0":
        return "a NUL character: a shell stops or drops it"
    if 0xD800 <= code <= 0xDFFF:
        return "half of a surrogate pair: not a character"
    if c in "\u2028\u2029\u0085\v\f":
        return "a line separator that a shell does not take as a new line"
    if c in _BIDI:
        return "a character that changes the direction of the text, so it shows in another order"
    if c in _ZERO_WIDTH or 0xE0000 <= code <= 0xE0FFF or 0xFE00 <= code <= 0xFE0F:
        return "an invisible character"
    if c in _FILLERS:
        return "a letter that shows as a blank"
    category = unicodedata.category(c)
    if category == "Zs":
        return "a blank that a shell takes as part of a word"
    if category in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp"):
        return "a control or unassigned character"
    return None


def as_parsed(text: str) -> str:
    """`text` with faulty characters replaced by what they are at worst to a shell.

    A carriage return becomes a new line, every other one a visible part of its word.
    """
    if _PLAIN.fullmatch(text):
        return text
    swap: dict[str, int | str | None] = {
        c: "\n" if c == "\r" else "\N{REPLACEMENT CHARACTER}" for c in set(text) if _fault(c)
    }
    return text.translate(str.maketrans(swap)).replace("\n\n", "\n") if swap else text
