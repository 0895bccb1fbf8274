"""The figures, names, dates and addresses of a sentence (its anchors) and its other words: by them
lines are weighed, and it is said of a line that was dropped what is wrong with it. Whether a line
may stay is decided by `extracts.py`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_TOKEN = re.compile(
    r"https?://[^\s<>\"'`)\]}]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|[^\W_]+(?:[-_./:'’,](?=[^\W_])[^\W_]+)*%?",
)
_GROUPS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{3,120})[\"”]")
_SPACE = re.compile(r"\s+")
_NEGATIONS_WORDS: Final = """
    not no never none without cannot can't cant won't isn't wasn't aren't weren't doesn't didn't
    don't hasn't haven't shouldn't mustn't neither nor nicht kein keine nie ohne
"""
_NEGATIONS = frozenset(_NEGATIONS_WORDS.split())
_AMOUNTS_WORDS: Final = """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
    thousand million billion dozen half twice double triple quarter
"""
_AMOUNTS = frozenset(_AMOUNTS_WORDS.split())
_FUNCTION_WORDS: Final = """
    the this that these those there their they then than with from have has had been were was
    are and but for its also which when what where who whom will would could about into over
    under after before while only such each some any other more most very been being according
    said says you your our his her him she let may might
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())


def tokens_of(text: str) -> list[str]:
    """The words of `text` as they are compared: lower case, digits without grouping marks."""
    return [_GROUPS.sub("", t).casefold().replace("’", "'") for t in _raw(text)]


def _raw(text: str) -> list[str]:
    return [m.group().rstrip(".,:") for m in _TOKEN.finditer(text)]


def squeezed(text: str) -> str:
    """`text` with every run of spaces as one: for comparing word for word."""
    return _SPACE.sub(" ", text).strip()


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence as it is checked: what must stand in the source (`anchors`), the other words, what
    is quoted, and the words that deny."""

    anchors: tuple[str, ...]
    words: tuple[str, ...]
    quoted: tuple[str, ...]
    denials: tuple[str, ...]


def read_line(line: str) -> Reading:
    """The anchors and words of one sentence."""
    raw = _raw(line)
    anchors: dict[str, None] = {}
    words: dict[str, None] = {}
    denials: list[str] = []
    for at, (written, token) in enumerate(zip(raw, tokens_of(line), strict=True)):
        if _is_denial(token):
            denials.append(token)
        elif any(c.isdigit() for c in token) or token in _AMOUNTS or "://" in token or "@" in token:
            anchors[token] = None
        elif token in FUNCTION_WORDS:
            continue
        elif _is_name(written, first=at == 0):
            anchors[token] = None
        elif len(token) > 2:
            words[_stem(token)] = None
    quoted = tuple(squeezed(q).casefold() for q in _QUOTED.findall(line))
    return Reading(tuple(anchors), tuple(words), quoted, tuple(sorted(denials)))


def _is_name(word: str, *, first: bool) -> bool:
    """Whether `word` may be a name; the first word of a sentence may be one too."""
    shortest = 4 if first and not word.isupper() else 2
    return word[:1].isupper() and len(word) >= shortest


def _stem(token: str) -> str:
    return token[:6]


class SourceText:
    """A text in which words are looked for, wherever they stand."""

    def __init__(self, text: str) -> None:
        self._flat = squeezed(text).casefold()
        self._tokens = frozenset(tokens_of(text))

    def has_words(self, line: str) -> bool:
        """Whether `line` stands here word for word, but for spaces and its last mark; not inside
        another word or figure."""
        flat = squeezed(line).casefold().rstrip(".;,")
        at = self._flat.find(flat) if len(flat) > 2 else -1
        while at >= 0:
            before = self._flat[max(0, at - 2) : at]
            behind = self._flat[at + len(flat) : at + len(flat) + 2]
            if not _is_cut(before, flat, behind):
                return True
            at = self._flat.find(flat, at + 1)
        return False

    def missing(self, reading: Reading) -> list[str]:
        """The anchors and quotations that stand nowhere here."""
        out = [anchor for anchor in reading.anchors if anchor not in self._tokens]
        return out + [quote for quote in reading.quoted if quote not in self._flat]


def _is_cut(before: str, text: str, behind: str) -> bool:
    """Whether `text` begins or ends inside a word or a figure."""
    if before[-1:].isalnum() and text[0].isalnum():
        return True
    if text[0].isdigit() and re.fullmatch(r"\d[.,]", before):
        return True
    return behind[:1].isalnum() or re.match(r"[.,]\d", behind) is not None


def _is_denial(token: str) -> bool:
    return token in _NEGATIONS or token.endswith("n't")
