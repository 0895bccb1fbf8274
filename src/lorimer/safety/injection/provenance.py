"""Where the values of a call come from: the user's own words, trusted data, or nowhere we know.

A value that stands only in content from outside, or in nothing that was read at all, has no
provenance. Every value is looked at by itself: the items of a list, the fields of an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lorimer.core.decisions import Conversation
from lorimer.safety.injection.forms import Text, plain, prepared
from lorimer.safety.injection.moments import Moment, moment, said
from lorimer.safety.injection.records import named

_HANDLE = re.compile(r"(?:.*_)?ids?_?", re.I)
_QUOTED = re.compile(
    r"(?<!\w)(?:'([^'\n]{1,2000}?)'|\"([^\"\n]{1,2000}?)\"|`([^`\n]{1,2000}?)`)(?!\w)"
)
_GAP = re.compile(r"\{[^{}\n]{1,80}\}")
_STRUCTURE = frozenset(
    {"id", "type", "kind", "name", "value", "key", "email", "file_id", "event_id", "address", "url",
     "path", "content", "text", "title", "description", "amount", "currency", "date", "time"}
)  # fmt: skip
"""Keys inside an argument that say nothing by themselves; any other key is looked at as a value."""
_WORDS = re.compile(r"[^\s\"'`<>()\[\]{},;:]{3,}")
_DEEPEST = 20
_MOST_VALUES = 2_000


class Source(StrEnum):
    """`USER`: in the user's words. `DERIVED`: a time worked out from a time and a duration in them.
    `PATTERN`: a pattern in them with gaps (`'Hotel: {name}'`), each filled from trusted data.
    `NAMED`: in the one trusted record that they name. `TRUSTED`: somewhere in trusted data; that it
    exists, not that the user meant it."""

    USER = "user"
    DERIVED = "derived"
    PATTERN = "pattern"
    NAMED = "named"
    TRUSTED = "trusted"


CHOSEN = frozenset({Source.USER, Source.DERIVED, Source.PATTERN, Source.NAMED})
"""The sources that show that the user meant this very value."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one value comes from.

    Attributes:
        where: the argument, with the place in it: `recipients[0]`.
        source: `None` when it has no provenance.
        by: the name of the record, for `NAMED`.
    """

    where: str
    value: Any
    source: Source | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a call's values come from.

    `origins` has one entry for each value that decides something: `None`, `false`, empty texts and
    empty lists decide nothing; `true` needs the name of its argument in the user's words.
    """

    origins: tuple[Origin, ...]

    def missing(self, enough: frozenset[Source]) -> tuple[Origin, ...]:
        """The values whose source is none of `enough`."""
        return tuple(o for o in self.origins if o.source not in enough)


def trace(
    arguments: Mapping[str, Any],
    conversation: Conversation,
    *,
    only: Sequence[str] | None = None,
    loosely: bool = False,
) -> Provenance:
    """Find the source of each value.

    Args:
        only: the arguments to look at; `None` for all.
        loosely: a record may be named by part of its name.
    """
    user = tuple(prepared(words) for words in conversation.user_words)
    trusted = tuple(conversation.trusted_texts)
    starts = [m for v in arguments.values() if isinstance(v, str) and (m := moment(v)) is not None]
    origins: list[Origin] = []
    for name, given in arguments.items():
        if only is not None and name not in only:
            continue
        for where, value in _values(name, given, 0):
            if len(origins) >= _MOST_VALUES:
                origins.append(Origin(where, "…", None))
                break
            source, by = _source(name, value, user, trusted, starts, loosely)
            origins.append(Origin(where, value, source, by))
    return Provenance(tuple(origins))


def echoes(arguments: Mapping[str, Any], text: str, conversation: Conversation) -> bool:
    """Whether `text`, the result of a call with `arguments`, may hold words that the model put in.

    A trusted tool that answers "nothing found for …" would otherwise turn a stranger's words into
    trusted data. A result for which this is true is not to be a trusted text. Words that are in the
    user's messages or in earlier trusted texts are nobody's trick.
    """
    told = prepared(text)
    known = (*conversation.user_words, *conversation.trusted_texts)
    for name, given in arguments.items():
        for _, value in _values(name, given, 0):
            for word in _WORDS.findall(plain(str(value))):
                if told.holds(word) and not any(prepared(one).says(word) for one in known):
                    return True
    return False


def _values(where: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if value is None or value is False or value == "":
        return
    if depth > _DEEPEST:
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _STRUCTURE:
                yield f"{where} (a key)", key
            yield from _values(f"{where}.{key}", inner, depth + 1)
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            yield from _values(f"{where}[{at}]", inner, depth + 1)
    else:
        yield where, value


def _source(
    argument: str,
    value: Any,
    user: Sequence[Text],
    trusted: Sequence[str],
    starts: Sequence[Moment],
    loosely: bool,
) -> tuple[Source | None, str]:
    if value is True:
        spoken = argument.replace("_", " ")
        return (Source.USER if any(t.says(spoken) for t in user) else None), ""
    written = str(value)
    when = moment(written)
    if when is not None:
        for text in user:
            facts = said(text.raw)
            if facts.has(when):
                return Source.USER, ""
            if any(facts.has_end(when, start) for start in starts if start != when):
                return Source.DERIVED, ""
    handle = _HANDLE.fullmatch(argument) is not None
    if any(text.has(written, handle=handle) for text in user):
        return Source.USER, ""
    if any(_fits_pattern(written, text, user, trusted) for text in user):
        return Source.PATTERN, ""
    name = named(written, user, trusted, loosely=loosely)
    if name is not None:
        return Source.NAMED, name
    if any(prepared(text).has(written, handle=False) for text in trusted):
        return Source.TRUSTED, ""
    return None, ""


def _fits_pattern(value: str, text: Text, user: Sequence[Text], trusted: Sequence[str]) -> bool:
    """Whether the user wrote a pattern in quotes that `value` fills with trusted words."""
    wanted = plain(value)
    if "{" not in text.raw:
        return False
    for match in _QUOTED.finditer(text.raw):
        pattern = next(group for group in match.groups() if group is not None)
        if not _GAP.search(pattern):
            continue
        pieces = _GAP.split(plain(pattern))
        gaps = _gaps(pieces, wanted)
        if gaps and all(
            any(prepared(t).says(gap) for t in trusted) or any(u.says(gap) for u in user)
            for gap in gaps
        ):
            return True
    return False


def _gaps(pieces: Sequence[str], value: str) -> list[str] | None:
    """What stands in `value` between the fixed pieces of a pattern, each piece at its first place;
    `None` when it does not fit. Linear."""
    if not any(c.isalnum() for piece in pieces for c in piece):
        return None  # gaps alone would fit everything
    first, *middle, last = pieces
    if not value.startswith(first) or not value.endswith(last):
        return None
    at, end, gaps = len(first), len(value) - len(last), []
    for piece in middle:
        found = value.find(piece, at + 1)
        if not piece or found < 0 or found + len(piece) > end:
            return None
        gaps.append(value[at:found].strip())
        at = found + len(piece)
    gaps.append(value[at:end].strip() if at <= end else "")
    return gaps if all(gaps) else None
