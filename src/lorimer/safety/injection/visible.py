"""Outside content as it is, with what a person would not see written out.

Invisible characters, direction controls, tag characters and long runs of variation selectors can
carry text that a model reads and a person does not; HTML comments and hidden elements as well.
`reveal` writes them as `⟦U+200B⟧`, `⟦tags: …⟧`, `⟦comment: …⟧`, `⟦hidden (display:none): …⟧`.
Nothing is taken away, and what scripts and emoji need stays as it is:

- ZWJ between the parts of an emoji; one ZWJ or ZWNJ after a letter of a script that joins (Arabic,
  Syriac, the Indic scripts, Mongolian, …); more than one in a row is shown;
- LRM, RLM and ALM next to a letter that is written from right to left; the controls that override
  or embed a direction are always shown;
- one variation selector after a character that can have one; the tags of the three flags that
  Unicode recommends (England, Scotland, Wales).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from lorimer.safety.injection.hidden import mark_hidden

_JOINERS = "\u200c\u200d"
_MARKS = "\u200e\u200f\u061c"
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0\u2028\u2029"
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067"
    "|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_SUSPECT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    f"{_FILLERS}\ufe00-\ufe0f\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_JOINING = (
    (0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0E00, 0x109F), (0x1700, 0x18AF), (0x1900, 0x1CFF),
    (0xA840, 0xA87F), (0xA8E0, 0xA9FF), (0xAA60, 0xAA7F), (0xABC0, 0xABFF), (0xFB50, 0xFDFF),
    (0xFE70, 0xFEFE), (0x10A00, 0x10AFF), (0x10D00, 0x10F6F), (0x11000, 0x11FFF),
    (0x1E900, 0x1E95F),
)  # fmt: skip
_MOST_FOUND = 40


def reveal(text: str) -> tuple[str, list[str]]:
    """`text` with everything unseen written out, and a line for each kind of thing found.

    Linear in the length of the text; raises nothing. Text without any of it comes back unchanged.
    """
    found: Counter[str] = Counter()
    if "<" in text or "]:" in text:
        text = mark_hidden(text, found)
    if _SUSPECT.search(text):
        text = _characters(text, found)
    lines = [what if count == 1 else f"{count} × {what}" for what, count in found.items()]
    if len(lines) > _MOST_FOUND:
        lines[_MOST_FOUND:] = [f"and {len(lines) - _MOST_FOUND} other kinds"]
    return text, lines


def _characters(text: str, found: Counter[str]) -> str:
    flags = {match.start() + 1 for match in _FLAG.finditer(text)}
    out: list[str] = []
    at = 0
    for match in _SUSPECT.finditer(text):
        out.append(text[at : match.start()])
        out.append(_run(text, match.start(), match.end(), flags, found))
        at = match.end()
    out.append(text[at:])
    return "".join(out)


def _run(text: str, start: int, end: int, flags: set[int], found: Counter[str]) -> str:
    """What stands for one run of suspect characters."""
    kept = ""
    if start in flags:
        kept, start = text[start : start + 6], start + 6  # the tags of a flag
    elif start == 0 and text[0] == "\ufeff":
        kept, start = "\ufeff", 1  # a byte order mark
    elif _selects(text, start) and not (start + 1 < end and _selector(text[start + 1])):
        kept, start = text[start], start + 1
    run = text[start:end]
    if not run or (len(run) == 1 and _needed(text, start)):
        return kept + run
    if len(run) == 1:
        found[_told(run)] += 1
        return f"{kept}⟦U+{ord(run):04X}⟧"
    for name, decoded in (("tags", _tags(run)), ("variation selectors", _selectors(run))):
        if decoded is not None:
            found[f"{name} that say {decoded[:80]!r}"] += 1
            return f"{kept}⟦{name}: {decoded}⟧"
    return kept + _codes(run, found)


def _codes(run: str, found: Counter[str]) -> str:
    """Each character by its code; the same one several times in a row is written once."""
    out: list[str] = []
    at = 0
    while at < len(run):
        end = at + 1
        while end < len(run) and run[end] == run[at]:
            end += 1
        found[_told(run[at])] += end - at
        times = f" ×{end - at}" if end - at > 1 else ""
        out.append(f"U+{ord(run[at]):04X}{times}")
        at = end
    return f"⟦{' '.join(out)}⟧"


def _told(character: str) -> str:
    name = unicodedata.name(character, "") or "control character"
    return f"U+{ord(character):04X} {name.lower()}"


def _needed(text: str, at: int) -> bool:
    """Whether this one character belongs to how the text around it is written."""
    character = text[at]
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if character in _JOINERS:
        if character == "\u200d" and _pictured(before) and _pictured(after):
            return True
        return _joining(before) and not (after.isascii() and after.isalnum())
    if character in _MARKS:
        return any(
            unicodedata.bidirectional(near) in ("R", "AL")
            for near in text[max(0, at - 2) : at + 3]
            if near not in _MARKS
        )
    return False


def _selects(text: str, at: int) -> bool:
    """Whether a variation selector stands where one can."""
    if not at or not _selector(text[at]):
        return False
    before = text[at - 1]
    if ord(text[at]) >= 0xE0100:
        return 0x3400 <= ord(before) <= 0x3FFFF
    return before in "#*0123456789" or not (before.isascii() or before.isspace())


def _selector(character: str) -> bool:
    return 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF


def _pictured(character: str) -> bool:
    """An emoji, or what may follow one inside a sequence (a skin tone, a variation selector)."""
    return bool(character) and (
        ord(character) == 0xFE0F or unicodedata.category(character) in ("So", "Sk")
        or 0x1F000 <= ord(character) <= 0x1FAFF
    )  # fmt: skip


def _joining(character: str) -> bool:
    return bool(character) and any(low <= ord(character) <= high for low, high in _JOINING)


def _tags(run: str) -> str | None:
    if not all(0xE0000 <= ord(c) <= 0xE007F for c in run):
        return None
    return "".join(chr(ord(c) - 0xE0000) if 32 <= ord(c) - 0xE0000 < 127 else "·" for c in run)


def _selectors(run: str) -> str | None:
    """The bytes that a run of variation selectors can spell: 0–15 and 16–255."""
    if not all(map(_selector, run)):
        return None
    spelt = bytes(c - 0xFE00 if c < 0xE0000 else c - 0xE0100 + 16 for c in map(ord, run))
    said = spelt.decode("utf-8", "replace")
    return "".join(c if c.isprintable() and c != "\ufffd" else "·" for c in said)
