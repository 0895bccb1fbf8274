"""Words of a command as they are after expansion, as far as that is known before it runs.

A word is made of characters and of `Unknown` parts. Quoting decides what happens to them: braces
are expanded in unquoted literal text, values of variables are split at blanks and may be patterns.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

BRACES_MAX = 64
NUMBERS_MAX = 10_000


class TooManyWords(Exception):
    """Braces make more words than are looked at."""


class Kind(StrEnum):
    """What is known of an unknown part.

    `NAMES`: names of files below the current folder. `NUMBER`: digits. `PIPE`: a descriptor that
    the shell opens for a process substitution. `ANY`: nothing.
    """

    ANY = "any"
    NAMES = "names"
    NUMBER = "number"
    PIPE = "pipe"


class Quote(IntEnum):
    NONE = 0
    QUOTED = 1
    EXPANDED = 2


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that is known only when it runs.

    `origins`: "network", "decoded", "secret"; for names of files also "hidden" (names that begin
    with a dot may be among them) and "aimed" (they were looked for as secrets are).
    """

    kind: Kind = Kind.ANY
    origins: frozenset[str] = frozenset()


Piece = tuple[str | Unknown, Quote]


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    Attributes:
        text: the whole word, or `None` when a part of it is unknown.
        source: how it was written.
        glob: whether it is a pattern for file names (`text` is then the pattern).
        head: the known text before the first unknown part; all of it when `text` is known.
        kind: what is known of the unknown parts; the weakest of them.
        many: whether it may become several words, or none.
        known: all known parts joined, with 1 for an unknown number: to look for names in it.
    """

    text: str | None
    source: str = ""
    glob: bool = False
    head: str = ""
    kind: Kind | None = None
    many: bool = False
    origins: frozenset[str] = frozenset()
    known: str = ""

    @property
    def may_be_option(self) -> bool:
        """Whether a program might take it for an option."""
        if self.head:
            return self.head[0] == "-" or (self.glob and self.head[0] in "*?[")
        return self.text is None and self.kind not in (Kind.NUMBER, Kind.PIPE)

    def __str__(self) -> str:
        return self.text if self.text is not None else (self.source or "?")


def literal(text: str) -> Word:
    return Word(text, text, head=text, known=text)


def unknown(source: str, kind: Kind = Kind.ANY, origins: Iterable[str] = ()) -> Word:
    return Word(None, source, kind=kind, many=True, origins=frozenset(origins))


_PATTERN = re.compile(r"[*?\[]|[@+!]\(")


def assemble(pieces: Sequence[Piece], source: str, *, split: bool, home: str) -> list[Word]:
    """The words that `pieces` become.

    With `split` false (an assignment, a redirection) braces, blanks and patterns do nothing.

    Raises:
        TooManyWords: braces make more than `BRACES_MAX` words.
    """
    if not split:
        return [_word(_tilde(list(pieces), home), source, pattern=False)]
    groups = _braces(list(pieces), itertools.count())
    if groups is None:
        raise TooManyWords(f"it becomes more than {BRACES_MAX} words")
    words = []
    for group in groups:
        for field in _fields(_tilde(group, home)):
            words.append(_word(field, source, pattern=True))
    return words


def _word(pieces: list[Piece], source: str, *, pattern: bool) -> Word:
    parts: list[str] = []
    known: list[str] = []
    head: str | None = None
    kind: Kind | None = None
    many = False
    origins: frozenset[str] = frozenset()
    order = [Kind.PIPE, Kind.NUMBER, Kind.NAMES, Kind.ANY]
    for what, quote in pieces:
        if isinstance(what, Unknown):
            if head is None:
                head = "".join(parts)
            kind = what.kind if kind is None else max(kind, what.kind, key=order.index)
            known.append("1" if what.kind is Kind.NUMBER else "")
            many = many or quote is not Quote.QUOTED
            origins |= what.origins
        else:
            parts.append(what)
            known.append(what)
    text = "".join(parts)
    if kind is Kind.NAMES and not stays_a_name(head or "", text[len(head or "") :]):
        kind = Kind.ANY
    bare = "".join(w for w, q in pieces if isinstance(w, str) and q is not Quote.QUOTED)
    glob = pattern and bool(_PATTERN.search(bare))
    if kind is None:
        return Word(text, source, glob, text, known=text)
    return Word(None, source, glob, head or "", kind, many, origins, "".join(known))


_BEFORE = re.compile(r"(?:\./+)*(?:[\w-][\w.-]*/+)*")
_AFTER = re.compile(r"(?:\.\w+)?(?:/+[\w-][\w.-]*)*/*")


def stays_a_name(before: str, after: str) -> bool:
    """Whether a name from below this folder is still one, and a plain one, with such text around
    it: `./x`, `src/x`, `x.bak`, `x/a.txt`; not `.x`, `~/x`, `x/../..` or `id_x`."""
    if not before and not after:
        return True
    return bool(_BEFORE.fullmatch(before) and _AFTER.fullmatch(after)) and ".." not in before


def _tilde(pieces: list[Piece], home: str) -> list[Piece]:
    if not pieces or pieces[0] != ("~", Quote.NONE):
        return pieces
    name = []
    for what, quote in pieces[1:]:
        if what == "/" or quote is not Quote.NONE:
            break
        name.append(what)
    if not name:
        return [(c, Quote.QUOTED) for c in home] + pieces[1:]
    if name == ["+"]:
        return [(".", Quote.QUOTED), *pieces[2:]]
    return [("/", Quote.QUOTED), (Unknown(), Quote.QUOTED), *pieces[len(name) + 1 :]]


def _fields(pieces: list[Piece]) -> list[list[Piece]]:
    """Split at blanks that came out of an unquoted variable; a word of nothing at all vanishes."""
    out: list[list[Piece]] = []
    field: list[Piece] = []
    for what, quote in pieces:
        if quote is Quote.EXPANDED and isinstance(what, str) and what in " \t\n":
            if field:
                out.append(field)
            field = []
        else:
            field.append((what, quote))
    if field:
        out.append(field)
    return out


def _braces(pieces: list[Piece], made: itertools.count[int]) -> list[list[Piece]] | None:
    """Brace expansion; `None` when it makes more than `BRACES_MAX` words."""
    place = 0
    while True:
        found = _brace(pieces, place)
        if found is None:
            return [pieces]
        begin, end, commas = found
        inside = pieces[begin + 1 : end]
        if commas:
            edges = [begin, *commas, end]
            choices = [pieces[a + 1 : b] for a, b in itertools.pairwise(edges)]
        else:
            steps = _sequence(inside)
            if steps is None:
                place = begin + 1
                continue
            choices = steps
        if len(choices) > BRACES_MAX or next(made) > BRACES_MAX:
            return None
        out: list[list[Piece]] = []
        for choice in choices:
            more = _braces(pieces[:begin] + choice + pieces[end + 1 :], made)
            if more is None or len(out) + len(more) > BRACES_MAX:
                return None
            out.extend(more)
        return out


def _brace(pieces: list[Piece], place: int) -> tuple[int, int, list[int]] | None:
    """The first unquoted `{…}` from `place` with a comma or `..` in it: begin, end, commas."""
    for begin in range(place, len(pieces)):
        if pieces[begin] != ("{", Quote.NONE):
            continue
        depth = 0
        commas = []
        for number in range(begin, len(pieces)):
            what, quote = pieces[number]
            if quote is not Quote.NONE:
                continue
            if what == "{":
                depth += 1
            elif what == "," and depth == 1:
                commas.append(number)
            elif what == "}":
                depth -= 1
                if depth == 0:
                    dots = any(
                        pieces[i][0] == "." and pieces[i + 1][0] == "."
                        for i in range(begin + 1, number - 1)
                    )
                    if commas or dots:
                        return begin, number, commas
                    break
    return None


def _sequence(inside: list[Piece]) -> list[list[Piece]] | None:
    """The words of `{1..5}` or `{a..e}`."""
    if not all(isinstance(w, str) and q is Quote.NONE for w, q in inside):
        return None
    text = "".join(str(w) for w, _ in inside)
    match = re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?", text)
    if match:
        low, high, step = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
        count = abs(high - low) // step + 1
        if BRACES_MAX < count <= NUMBERS_MAX:
            return [[(Unknown(Kind.NUMBER), Quote.NONE)]]
        if count > BRACES_MAX:
            return [[] for _ in range(BRACES_MAX + 1)]
        sign = step if high >= low else -step
        return [[(c, Quote.NONE) for c in str(low + sign * i)] for i in range(count)]
    match = re.fullmatch(r"([A-Za-z])\.\.([A-Za-z])", text)
    if match:
        low, high = ord(match[1]), ord(match[2])
        order = range(low, high + 1) if high >= low else range(low, high - 1, -1)
        return [[(chr(c), Quote.QUOTED)] for c in order]
    return None
