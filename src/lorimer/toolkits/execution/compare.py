"""Showing a change, and finding the place an edit may have meant."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable

_MOST_LINES = 60
_LONGEST = 200
_QUOTES = str.maketrans("‘’‚‛“”„‟«»′″", '\'\'\'\'""""""\'"')
_DASHES = str.maketrans("‐‑‒–—―−", "-------")
_ODD_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\u2009\u200a\u3000", " "))
_INVISIBLE = str.maketrans(dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff"))

_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("line ends (CRLF in one, LF in the other)", lambda s: s.replace("\r\n", "\n")),
    ("the Unicode form (NFC in one, NFD in the other)", lambda s: unicodedata.normalize("NFC", s)),
    ("curly and straight quotes", lambda s: s.translate(_QUOTES)),
    ("kinds of dash", lambda s: s.translate(_DASHES)),
    ("kinds of space (a no-break space)", lambda s: s.translate(_ODD_SPACES)),
    ("invisible characters", lambda s: s.translate(_INVISIBLE)),
    ("spaces at the end of lines", lambda s: re.sub(r"[ \t]+(?=\r?\n|$)", "", s)),
    ("tabs, or how many spaces there are", lambda s: re.sub(r"[ \t]+", " ", s)),
    ("upper and lower case", str.casefold),
)


def nearest(text: str, wanted: str) -> str:
    """Why `wanted` is not in `text`: the place that comes nearest and how it differs; or nothing.

    Only for the message: nothing is ever edited on the strength of it.
    """
    for what, plain in _DIFFERENCES:
        place = _line_of(plain(text), plain(wanted))
        if place:
            return f"{_at(text, wanted, place)} It differs in {what}."
    squeezed_text, squeezed_wanted = text, wanted
    steps = []
    for what, plain in _DIFFERENCES:
        if plain(squeezed_text) != squeezed_text or plain(squeezed_wanted) != squeezed_wanted:
            steps.append(what)
        squeezed_text, squeezed_wanted = plain(squeezed_text), plain(squeezed_wanted)
        place = _line_of(squeezed_text, squeezed_wanted)
        if place:
            return f"{_at(text, wanted, place)} It may differ in: {'; '.join(steps)}."
    lines = text.split("\n")[:20_000]
    key = max(wanted.split("\n"), key=len).strip()
    close = difflib.get_close_matches(key, [line[:500] for line in lines], n=1, cutoff=0.6)
    if not close:
        return ""
    place = next(n for n, line in enumerate(lines, 1) if line[:500] == close[0])
    return f"The most similar line is line {place}: {_short(close[0])}"


def _line_of(text: str, wanted: str) -> int:
    place = text.find(wanted) if wanted else -1
    return text.count("\n", 0, place) + 1 if place >= 0 else 0


def _at(text: str, wanted: str, line: int) -> str:
    there = text.split("\n")[line - 1 :]
    for offset, given in enumerate(wanted.split("\n")):
        if offset >= len(there):
            break
        if given not in there[offset]:
            return (
                f"Similar text begins at line {line}; line {line + offset} there is "
                f"{_short(there[offset])}, you gave {_short(given)}."
            )
    return f"Similar text begins at line {line}: {_short(there[0] if there else '')}."


def _short(line: str) -> str:
    text = repr(line[:_LONGEST])
    return text + "…" if len(line) > _LONGEST else text


def diff(before: str, after: str, first_line: int = 1) -> str:
    """A small unified diff of two texts that begin at line `first_line` of a file."""
    if before.count("\n") + after.count("\n") > 4_000:
        return (
            f"{_lines(before):,} lines were replaced by {_lines(after):,} lines "
            "(too many for a diff)"
        )
    a, b = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    out: list[str] = []
    for line in difflib.unified_diff(a, b, n=3):
        if line.startswith(("--- ", "+++ ")) and not out:
            continue
        if line.startswith("@@"):
            line = re.sub(r"(?<=[-+])\d+", lambda m: str(int(m[0]) + first_line - 1), line)
        out.append(_shown(line))
    if len(out) > _MOST_LINES:
        return "\n".join([*out[:_MOST_LINES], f"… {len(out) - _MOST_LINES:,} more lines of diff"])
    return "\n".join(out)


def _shown(line: str) -> str:
    ended = line.endswith("\n")
    text = line.removesuffix("\n").replace("\r", "\\r")
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    return text if ended or line.startswith("@@") else text + " (no newline at the end)"


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def around(content: str, begin: int, end: int, lines: int = 3) -> tuple[int, int]:
    """The range of `content` from `lines` lines before `begin` to `lines` lines after `end`."""
    for _ in range(lines + 1):
        begin = content.rfind("\n", 0, begin)
        if begin < 0:
            break
    for _ in range(lines + 1):
        found = content.find("\n", end)
        if found < 0:
            end = len(content)
            break
        end = found + 1
    return begin + 1, end
