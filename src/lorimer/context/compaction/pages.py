"""A long result in pages, each small enough to be read by one call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PAGE_CHARACTERS: Final = 7_000
PAGE_LINES: Final = 140
OVERLAP: Final = 300
"""Characters that a page repeats of the one before: what stands across a cut is whole in one."""
_LONGEST_LINE: Final = 1_800
_ENDS = (
    re.compile(r"\n(?=#{1,6}\s|={2,}\s)"),
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n(?=[^\s)\]}])"),
    re.compile(r"\n"),
    re.compile(r"[.!?;]\s|\},?\s?"),
    re.compile(r",\s?|\s"),
)
"""Places to cut at, the best first: before a heading, a paragraph, a line that is not indented, a
line, a sentence, a word."""


@dataclass(frozen=True, slots=True)
class Page:
    """Characters `start` to `end` of a text; `number` counts from 1."""

    number: int
    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def pages_of(text: str, most: int = PAGE_CHARACTERS, lines: int = PAGE_LINES) -> list[Page]:
    """`text` in pages of at most `most` characters and `lines` lines, cut at the best place: a
    paragraph, a line, a sentence, a word."""
    out: list[Page] = []
    start = end = 0
    while True:
        end = _end(text, start, most, lines, end)
        out.append(Page(len(out) + 1, start, end))
        if end >= len(text):
            return out
        start = _back(text, start, end)


def _end(text: str, start: int, most: int, lines: int, before: int = 0) -> int:
    """Where a page from `start` on ends: behind `before`, the end of the page before it."""
    limit = start + most
    at = start
    for _ in range(lines):
        at = text.find("\n", at, limit) + 1
        if not at:
            break
    else:
        limit = max(min(limit, at), before + 1)
    if limit >= len(text):
        return len(text)
    for pattern in _ENDS:
        found = [m.end() for m in pattern.finditer(text, start + most // 2, limit)]
        if found and found[-1] > before:
            return found[-1]
    return limit


def _back(text: str, start: int, end: int) -> int:
    """Where the page after one that ends at `end` begins."""
    earliest = max(start + 1, end - min(OVERLAP, (end - start) // 4))
    line = text.find("\n", earliest, end - 1)
    if line >= 0:
        return line + 1
    space = text.find(" ", earliest, end - 1)
    return space + 1 if space >= 0 else earliest


def in_short_lines(text: str) -> str:
    """`text` with breaks in lines that are too long to be shown whole; each is marked by `↩`."""
    return "\n".join(_broken(line) for line in text.split("\n"))


def _broken(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    pieces = pages_without_overlap(line, _LONGEST_LINE - 2)
    return "↩\n".join(pieces)


def pages_without_overlap(line: str, most: int) -> list[str]:
    out = []
    start = 0
    while start < len(line):
        end = _end(line, start, most, PAGE_LINES)
        out.append(line[start:end])
        start = end
    return out
