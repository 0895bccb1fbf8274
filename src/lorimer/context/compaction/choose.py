"""What stays of a batch of results, by code alone: lines word for word, and terms for each page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lorimer.context.compaction.digest import Digest
from lorimer.context.compaction.scoring import best_lines, page_terms

_WORD = re.compile(r"[^\W\d_]{5,}")
_WHOLE = 500
"""Characters up to which a result stays whole."""


def chosen(
    digests: Sequence[Digest],
    *,
    fact_share: float,
    term_share: float,
    asked: Iterable[str] = (),
    noted: Mapping[str, Sequence[str]] | None = None,
) -> list[Digest]:
    """The digests with their lines and terms. Short results stay whole; those of low value, and
    failed ones (they are quoted anyway), get none.

    Args:
        fact_share, term_share: of the characters of each result.
        asked: the user's messages.
        noted: by call id, lines of it that a note of its turn holds; they come first.
    """
    long = [d for d in digests if not d.low_value and not d.failed and len(d.text) > _WHOLE]
    words = {w.casefold() for text in asked for w in _WORD.findall(text)}
    first = [_fitting((noted or {}).get(d.call.id, ()), fact_share * len(d.text)) for d in long]
    rooms = [
        round(fact_share * len(d.text)) - sum(len(one) + 3 for one in some)
        for d, some in zip(long, first, strict=True)
    ]
    lines = best_lines([d.text for d in long], rooms, words) if fact_share else [[] for _ in long]
    lines = [
        sorted({*some, *more}, key=d.text.find)
        for d, some, more in zip(long, first, lines, strict=True)
    ]
    terms = (
        page_terms([d.text for d in long], [d.pages for d in long], term_share)
        if term_share
        else [[""] * len(d.pages) for d in long]
    )
    made = {
        d.call.id: replace(d, lines=tuple(some), terms=tuple(named))
        for d, some, named in zip(long, lines, terms, strict=True)
    }
    return [made.get(d.call.id, d) for d in digests]


def _fitting(lines: Iterable[str], room: float) -> list[str]:
    out = []
    for line in lines:
        if len(line) + 3 <= room:
            room -= len(line) + 3
            out.append(line)
    return out


def is_whole(digest: Digest) -> bool:
    """Whether the result is short enough to stay as it is."""
    return len(digest.text) <= _WHOLE and not digest.low_value
