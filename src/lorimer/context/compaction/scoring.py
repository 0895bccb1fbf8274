"""Which lines of a result to keep word for word, and what to say of each of its pages.

Nothing here knows what a fact looks like in any one text. A line is worth keeping when it holds
figures, ids or names that few other places hold, and when few lines are built like it; a page is
described by the names and keys that few other pages have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lorimer.context.compaction.anchors import FUNCTION_WORDS, read_line
from lorimer.context.compaction.constraints import binds
from lorimer.context.compaction.pages import Page
from lorimer.context.compaction.sentences import sentences_of

_NAME = re.compile(
    r"(?<![\w.])[A-ZÄÖÜ][\w'’-]*(?: (?:(?:of|the|de|van|von|der|la|and|&) )?[A-ZÄÖÜ0-9][\w'’.-]*)+"
    r"|(?<![\w.])[A-ZÄÖÜ][\w'’-]{2,}"
)
_CODE = re.compile(r"(?<![\w-])(?=[\w./-]*\d)(?=[\w./-]*[A-Za-z])[A-Za-z0-9][\w./-]{2,40}")
_QUOTED = re.compile(r"[\"“']([^\"“”'\n]{3,60})[\"”']")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+|={2,}\s*)(.{3,80}?)\s*#*\s*$", re.M)
_WORD = re.compile(r"(?<!\w)[a-zà-ÿ_]{5,}(?:[-_][a-zà-ÿ]+)*")
_DIGITS = re.compile(r"\d+")
_ALL_NAMES = re.compile(r"[A-ZÄÖÜ][\w'’-]+")
_SHORTEST: Final = 12
_SMALL_PAGE: Final = 2_400
"""Characters; a smaller page is described as if it had so many."""


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of result number `result`, at place `at` in it."""

    result: int
    at: int
    text: str


def best_lines(
    texts: Sequence[str], rooms: Sequence[int], wanted: Iterable[str] = ()
) -> list[list[str]]:
    """For each text the pieces of it that say most, word for word and in order, in at most so many
    characters: those with figures and names that are rare, and those that state a rule.

    Args:
        texts: the results that are compacted together; what is rare is judged over all of them.
        rooms: characters for each text.
        wanted: words that the user asked about; pieces with them count more.
    """
    lines = [
        Line(result, at, piece)
        for result, text in enumerate(texts)
        for at, piece in enumerate(sentences_of(text))
        if len(piece) >= _SHORTEST
    ]
    readings = [read_line(line.text) for line in lines]
    rules = [binds(line.text) for line in lines]
    seen: Counter[str] = Counter()
    for reading in readings:
        seen.update(set(reading.anchors))
        seen.update(set(reading.words))
    shapes = Counter(_shape(line.text) for line in lines)
    asked = {word.casefold()[:6] for word in wanted}
    total = max(2, len(lines))

    def worth(number: int) -> float:
        reading, line = readings[number], lines[number]
        rare = sum(_weight(a) * math.log(total / seen[a]) for a in reading.anchors)
        rare += 0.25 * sum(math.log(total / seen[w]) for w in reading.words)
        if rules[number]:
            rare *= 1.5
        if asked:
            rare *= 1 + 0.25 * sum(1 for w in reading.words if w in asked)
        return float(rare / math.sqrt(len(line.text) + 40) / shapes[_shape(line.text)] ** 0.25)

    chosen: list[list[Line]] = [[] for _ in texts]
    left = list(rooms)
    taken: set[str] = set()
    for number in sorted(range(len(lines)), key=worth, reverse=True):
        line = lines[number]
        if line.text in taken or not (readings[number].anchors or rules[number]):
            continue
        if len(line.text) + 3 <= left[line.result]:
            left[line.result] -= len(line.text) + 3
            chosen[line.result].append(line)
            taken.add(line.text)
    return [[line.text for line in sorted(some, key=lambda one: one.at)] for some in chosen]


def _weight(anchor: str) -> float:
    """What a figure or name says by itself: of a small number, little."""
    return 0.4 if anchor.isdigit() and len(anchor) <= 3 else 1.0


def _shape(text: str) -> str:
    """How a line is built: its figures and names are left out."""
    return _ALL_NAMES.sub("N", _DIGITS.sub("0", text))[:60]


def page_terms(
    texts: Sequence[str], pages: Sequence[Sequence[Page]], share: float
) -> list[list[str]]:
    """What each page of each text holds: its headings, names, ids and keys, the rarest first
    chosen, in the order in which they stand; about `share` of the page's characters."""
    found = [
        [_terms(page.of(text)) for page in some] for text, some in zip(texts, pages, strict=True)
    ]
    held: Counter[str] = Counter()
    for of_text in found:
        for terms in of_text:
            held.update(terms.keys())
    count = sum(len(some) for some in pages) + 1
    return [
        [
            _chosen(terms, held, count, round(share * max(_SMALL_PAGE, page.end - page.start)))
            for terms, page in zip(of_text, some, strict=True)
        ]
        for of_text, some in zip(found, pages, strict=True)
    ]


@dataclass(slots=True)
class _Term:
    """Where a term stands first, and whether a piece of the text begins with it: then it is most
    likely what that piece is about."""

    at: int
    leads: bool = False


def _chosen(terms: dict[str, _Term], held: Counter[str], count: int, room: int) -> str:
    def worth(term: str) -> float:
        kind = 1.0 if term[:1].isupper() else 0.6 if _DIGITS.search(term) else 0.3
        if terms[term].leads:
            kind *= 3.0
        return kind * math.log(count / held[term]) / math.sqrt(len(term) + 4)

    chosen: list[str] = []
    for term in sorted(terms, key=worth, reverse=True):
        if len(term) + 2 > room or any(term in one or one in term for one in chosen):
            continue
        room -= len(term) + 2
        chosen.append(term)
    chosen.sort(key=lambda term: terms[term].at)
    return ", ".join(chosen)


def _terms(text: str) -> dict[str, _Term]:
    """The terms of a page."""
    out: dict[str, _Term] = {}
    for pattern in (_HEADING, _NAME, _QUOTED, _CODE, _WORD):
        for match in pattern.finditer(text):
            term = _bare(match.group(1) if pattern.groups else match.group())
            if 3 <= len(term) <= 80:
                out.setdefault(term, _Term(match.start()))
    for piece in sentences_of(text):
        names = (_bare(m.group()) for m in _NAME.finditer(piece))
        lead = next((name for name in names if len(name) > 2), "")
        if lead in out and _DIGITS.search(piece):
            out[lead].leads = True
    return out


def _bare(term: str) -> str:
    """`term` without marks around it and without the small words it begins with; empty when nothing
    else is in it."""
    words = term.strip(" .,;:'’-").split(" ")
    while words and words[0].casefold() in _OPENERS:
        words.pop(0)
    return " ".join(words).removesuffix("'s").removesuffix("’s")


_OPENERS: Final = frozenset(FUNCTION_WORDS) | {
    "in", "on", "at", "by", "a", "an", "as", "it", "of", "to", "is", "if", "or", "so",
}  # fmt: skip
