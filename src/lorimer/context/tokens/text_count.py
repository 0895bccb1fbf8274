"""Counting the tokens of a text: by o200k_base where tiktoken is there, else by its characters.

The vocabulary comes with lorimer (`o200k_base.xz`, 0.8 MB, MIT, made by `scripts/vocabulary.py`),
so that nothing is fetched at run time. Loading it takes about 0.3 s and 75 MB, once in a process,
when it is first needed.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final, Protocol

O200K: Final = "o200k"
CHARACTERS: Final = "characters"

_PIECE: Final = 100_000
"""Characters that are counted at once: memory stays small, and a cut costs at most one token."""


class TextCount(Protocol):
    """Counts the tokens of texts. `basis` names how."""

    @property
    def basis(self) -> str: ...

    def count(self, text: str) -> int: ...


class Characters:
    """A guess without a vocabulary: 4 ASCII characters are a token, and so is any other character.

    For English and code that is near o200k; other scripts are counted up to twice too high, never
    much too low.
    """

    basis = CHARACTERS

    def count(self, text: str) -> int:
        if text.isascii():
            return (len(text) + 3) // 4
        plain = len(text.encode("ascii", "ignore"))
        return (plain + 3) // 4 + len(text) - plain


class Vocabulary:
    """o200k_base, by tiktoken."""

    basis = O200K

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Tokens of `text`, special marks in it counted as the text they are."""
        if len(text) <= _PIECE:
            return len(self._encoding.encode_ordinary(text))
        pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)


CHARACTER_COUNT: Final = Characters()
_loading = threading.Lock()


def vocabulary() -> TextCount:
    """The best that there is: o200k_base, or by characters where tiktoken is not installed."""
    with _loading:
        return _vocabulary()


@lru_cache(maxsize=1)
def has_vocabulary() -> bool:
    """Whether `vocabulary()` gives o200k_base. Loads nothing."""
    return find_spec("tiktoken") is not None


@lru_cache(maxsize=1)
def _vocabulary() -> TextCount:
    if not has_vocabulary():
        return CHARACTER_COUNT
    import tiktoken

    pattern, ranks = read_ranks()
    return Vocabulary(
        tiktoken.Encoding("o200k_base", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    )


def read_ranks() -> tuple[str, dict[bytes, int]]:
    """The pattern that cuts text, and each token with its rank."""
    import json
    import lzma
    from importlib.resources import files

    packed = files("lorimer.context.tokens").joinpath("o200k_base.xz").read_bytes()
    line, _, plain = lzma.decompress(packed).partition(b"\n")
    head = json.loads(line)
    lengths = plain[: head["tokens"]]
    ranks: dict[bytes, int] = {}
    at = len(lengths)
    for rank, length in enumerate(lengths):
        ranks[plain[at : at + length]] = rank
        at += length
    return head["pattern"], ranks
