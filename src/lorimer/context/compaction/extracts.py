"""Whether a line is an extract of a text: one whole statement of it, in its words, figures, signs
and units, in its order. What may be missing is a closed list of words that change nothing.

Nothing else is left out, because no list says which words can go: "in room 7", "in theory" and
"he denied that" look like any other words. A line that leaves out more is not kept; the statement
that it came from can be quoted instead (`Extracts.nearest`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from lorimer.context.compaction.anchors import FUNCTION_WORDS
from lorimer.context.compaction.small_words import (
    EVERY_FREE,
    EVERY_TURNING,
    FREE,
    REVERSING,
    language_of,
)
from lorimer.context.compaction.statements import statements_of, values_of

_TOKEN = re.compile(
    r"https?://[^\s<>\"'`)\]}]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?:(?<![\w.])\.(?=\d))?[^\W_]+(?:[-_./:'’,](?=[^\W_])[^\W_]+)*"
    r"|(?<![^\W_])[-–−](?=[^\W_.])"  # a sign, an option
    r"|(?<=\S\s)[-–−](?=\s\d)|(?<=\d)\s?[-–—−*/](?=\s?\d)"
    r"|\((?=[$€£]?\d[\d.,]*\))"  # a loss in brackets
    r"|#(?=\w)|!(?=[=\w])"
    r"|[^\w\s.,;:\"'“”„‚‘’`()\[\]{}|*\\/#!…·•‣。，、；：！（）「」『』–—−-]"
)
_DASHES = str.maketrans({"–": "-", "—": "-", "−": "-", "’": "'"})
_CLAUSE = re.compile(r";\s+")
_SHORTEST_CLAUSE: Final = 4
_MOST_CLAUSES: Final = 12
_SHARE: Final = 0.6
"""Of the weight of a line's words, what a statement must have to be quoted for it."""
_LONGEST_QUOTE: Final = 320
_SHORT_QUOTE: Final = 160


def tokens_in(text: str) -> tuple[str, ...]:
    """Words, figures, signs and units as they are compared. Upper and lower case are the same,
    but not behind a figure (mW, MW) and not in words written with capitals inside (US, us)."""
    out: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFC", text)):
        token = match.group().strip().rstrip(".,:").translate(_DASHES)
        behind_figure = bool(out) and out[-1][-1:].isdigit()
        if "://" not in token and not behind_figure and token[1:] == token[1:].lower():
            token = token.casefold()
        if token:
            out.append(token)
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Statement:
    """`text` as it stands in the source; empty where it does not stand there in one piece."""

    text: str
    tokens: tuple[str, ...]

    def gives(self, line: tuple[str, ...]) -> bool:
        """Whether `line` is this, but for words that may be missing."""
        free = FREE.get(language_of(self.tokens), frozenset())
        at = 0
        for number, token in enumerate(self.tokens):
            if at < len(line) and line[at] == token:
                at += 1
                continue
            following = self.tokens[number + 1] if number + 1 < len(self.tokens) else ""
            if token not in free or following in EVERY_TURNING or not following[:1].isalpha():
                return False
        return at == len(line)


class Extracts:
    """A text that lines are held against."""

    def __init__(self, text: str) -> None:
        self._statements: list[_Statement] = []
        self._by_key: dict[tuple[str, ...], list[_Statement]] = {}
        self._where: dict[str, list[int]] = {}
        values = values_of(text)
        if not values or "\n" not in text.strip():  # else its lines are values without a path
            for statement in statements_of(text):
                self._add(statement, statement)
                for clause in _clauses(statement):
                    self._add(clause, clause)
        for value in values:
            self._add(value, "")

    def _add(self, text: str, quoted: str) -> None:
        tokens = tokens_in(text)
        if not tokens:
            return
        one = _Statement(quoted, tokens)
        for token in set(tokens) if quoted else ():
            self._where.setdefault(token, []).append(len(self._statements))
        self._statements.append(one)
        self._by_key.setdefault(_key(tokens), []).append(one)

    def has(self, line: str, *, word_for_word: bool = False) -> bool:
        """Whether `line` is one statement of the text."""
        tokens = tokens_in(line)
        found = self._by_key.get(_key(tokens), ()) if tokens else ()
        if word_for_word:
            return any(one.tokens == tokens for one in found)
        return any(one.tokens == tokens or one.gives(tokens) for one in found)

    def nearest(self, line: str) -> tuple[float, str]:
        """How near the nearest statement is (0 to 1), and its words; 0 and nothing where none is
        near enough, or it is too long to be quoted."""
        wanted = {t for t in tokens_in(line) if t not in FUNCTION_WORDS and len(t) > 1}
        total = len(self._statements) + 1
        weights = {t: math.log(1 + total / (1 + len(self._where.get(t, ())))) for t in wanted}
        scores: dict[int, float] = {}
        shared: dict[int, int] = {}
        for token, weight in weights.items():
            for at in self._where.get(token, ()):
                scores[at] = scores.get(at, 0.0) + weight
                shared[at] = shared.get(at, 0) + 1
        most = min(_LONGEST_QUOTE, max(_SHORT_QUOTE, 2 * len(line)))
        near = [
            (score / sum(weights.values()), -len(self._statements[at].text), -at)
            for at, score in scores.items()
            if shared[at] > 1 and len(self._statements[at].text) <= most
        ]
        if not near or max(near)[0] < _SHARE:
            return 0.0, ""
        best = max(near)
        return best[0], self._statements[-best[2]].text


def _key(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(token for token in tokens if token not in EVERY_FREE)


def _clauses(statement: str) -> list[str]:
    """The clauses between semicolons, where what stands beside one cannot turn it."""
    parts = _CLAUSE.split(statement)
    if not 2 <= len(parts) <= _MOST_CLAUSES:
        return []
    tokens = [tokens_in(part) for part in parts]
    if not language_of(tokens_in(statement)):
        return []
    return [
        part
        for at, part in enumerate(parts)
        if len(tokens[at]) >= _SHORTEST_CLAUSE and not any(map(_turns, parts[:at]))
        and not any(word in REVERSING for later in tokens[at + 1 :] for word in later)
    ]  # fmt: skip


def _turns(part: str) -> bool:
    return ":" in part or any(token in EVERY_TURNING for token in tokens_in(part))
