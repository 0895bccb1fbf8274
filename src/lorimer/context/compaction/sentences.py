"""A text in pieces that can stand alone: sentences of prose, lines of tables, items of JSON. Every
piece is a slice of the text, word for word."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 420
_SENTENCE = re.compile(r"(?<=[.!?])[\"”')\]]*\s+(?=\S)|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|ca|no|nr|fig|dr|mr|mrs|ms|st|inc|ltd|z\.B|bzw|[A-Z])\.)$",
    re.I,
)
_ORDINAL = re.compile(r"(?:^|\s)\d{1,3}\.$")
_OF_ORDINAL = re.compile(
    r"[a-zäöü]|(?:Jän|Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrh|Etage|Stock|Klasse)"
)
"""What follows the dot of a German ordinal: "am 12. März" is no end of a sentence."""
_TAIL: Final = 16
_OBJECT = re.compile(r"(?<=[}\]]),\s*(?=[{\[\"])|;\s+")
_COMMA = re.compile(r",\s*")


def sentences_of(text: str, longest: int = LONGEST) -> list[str]:
    """The pieces of `text` in order, each at most `longest` characters where there is a place to
    cut."""
    out: list[str] = []
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        for piece in _cut(line):
            out += _short(piece, longest) if len(piece) > longest else [piece]
    return out


def _cut(line: str) -> list[str]:
    out: list[str] = []
    begin = 0
    for match in _SENTENCE.finditer(line):
        end = match.end()
        tail = line[max(begin, end - _TAIL) : end].rstrip()  # of a long line not all, each time
        if _ABBREVIATION.search(tail):
            continue
        if _ORDINAL.search(tail) and _OF_ORDINAL.match(line, end):
            continue
        piece = line[begin:end].strip()
        out.append(piece)
        begin = match.end()
    rest = line[begin:].strip()
    return [*out, rest] if rest else out


def _short(piece: str, longest: int) -> list[str]:
    for pattern in (_OBJECT, _COMMA):
        parts = _split(piece, pattern)
        if len(parts) > 1:
            return _packed(parts, longest, pattern)
    return [piece[at : at + longest] for at in range(0, len(piece), longest)]


def _split(piece: str, pattern: re.Pattern[str]) -> list[str]:
    out = []
    begin = 0
    for match in pattern.finditer(piece):
        out.append(piece[begin : match.end()])
        begin = match.end()
    return [*out, piece[begin:]]


def _packed(parts: list[str], longest: int, pattern: re.Pattern[str]) -> list[str]:
    """Objects stand alone; smaller parts are joined up to `longest`."""
    if pattern is _OBJECT:
        out: list[str] = []
        for part in parts:
            out += _short(part, longest) if len(part) > longest else [part.strip()]
        return [one for one in out if one]
    out, now = [], ""
    for part in parts:
        if now and len(now) + len(part) > longest:
            out.append(now.strip())
            now = ""
        now += part
    if now.strip():
        out.append(now.strip())
    return out
