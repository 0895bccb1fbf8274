"""Characters that nobody sees: in the texts of a stranger they may hide words from the person."""

from __future__ import annotations

import unicodedata

_INVISIBLE = {
    *map(chr, range(0x200B, 0x2010)), *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2060, 0x2070)), "\u00ad", "\u180e", "\ufeff", "\u3164", "\uffa0",
}  # fmt: skip
_JOINERS = "\u200c\u200d"


def is_hidden(character: str, line: str, place: int) -> bool:
    """Whether `character`, at `place` of `line`, shows nothing and is not needed there."""
    if character in _JOINERS and 0 < place < len(line) - 1:
        around = line[place - 1], line[place + 1]
        if not any(c.isascii() for c in around):
            return False  # scripts and pictures need them there
    if character in _INVISIBLE or 0xE0000 <= ord(character) <= 0xE0FFF:
        return True
    if 0xFE00 <= ord(character) <= 0xFE0F:
        return place == 0 or (line[place - 1].isascii() and line[place - 1] not in "#*0123456789")
    return unicodedata.category(character) == "Cc" and character not in "\t\r\x0c"


def revealed(line: str) -> str:
    """The line with what nobody sees written out, as `⟪U+200B⟫`."""
    return "".join(f"⟪U+{ord(c):04X}⟫" if is_hidden(c, line, n) else c for n, c in enumerate(line))
