"""Which is cheaper: to append what changed, or to put the whole bar last in each request. Pure.

With S tokens of the bar, R tokens added between two updates, N updates, and the prices (of an
uncached token: 1) `a` of a token read from the cache and `w` of one written to it:

- appended bars are read again by every later request: `a*S*N/2` for each update, on the mean;
- a replaced bar makes the provider read anew what was added since the update before: `(w-a)*R`.

So append when `a*S*N/2 < (w-a)*R`. R counts only tokens that would otherwise be read from the
cache: where a breakpoint is put before the bar, it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from lorimer.models.cache_prices import cache_prices
from lorimer.models.profiles import Profile

DEFAULT_UPDATES: Final = 20
DEFAULT_ADDED: Final = 1000
"""Tokens taken for R before anything was measured: an answer with a call, and its result."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known when the mode is chosen, in tokens. `from_past`: how many past sessions R and N
    were measured in; 0 where they are guesses."""

    bar: int
    added: int = DEFAULT_ADDED
    updates: float = DEFAULT_UPDATES
    from_past: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """A mode, and what it was chosen by.

    Attributes:
        mode: `append` or `replace`.
        asked: what the settings said.
        why: in words.
        cached, write: price ratios a and w; `None` where they are not known.
    """

    mode: str
    asked: str
    why: str
    bar_tokens: int
    added_tokens: int
    updates: float
    from_past: int
    cached: float | None
    write: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Choice:
        return Choice(**record)

    def words(self) -> str:
        """For the audit."""
        return (
            f"{self.mode} (asked for: {self.asked}): {self.why}; S={self.bar_tokens} "
            f"R={self.added_tokens} N={self.updates:g} a={_ratio(self.cached)} "
            f"w={_ratio(self.write)}; R and N from {self.from_past or 'no'} past session(s)"
        )


def choose(asked: str, profile: Profile, measures: Measures) -> Choice:
    """The mode of a session with the model of `profile`.

    A model whose reasoning is valid only after the very conversation that it was given in cannot
    have a bar taken away: there it is `append`, whatever was asked for.
    """
    cached, write = price_ratios(profile)
    added = 0 if has_breakpoint(profile) else measures.added
    mode, why = _mode(asked, profile, measures, added, cached, write)
    return Choice(
        mode, asked, why, measures.bar, added, measures.updates, measures.from_past, cached, write
    )


def _mode(
    asked: str,
    profile: Profile,
    measures: Measures,
    added: int,
    cached: float | None,
    write: float | None,
) -> tuple[str, str]:
    if profile.bound_reasoning:
        return "append", "this model's reasoning is void once a message before it is taken away"
    if asked != "auto":
        return asked, "the settings say so"
    if profile.wire == "local":
        return "append", "a local model computes again all that stands behind a change"
    if added == 0:
        return "replace", "the cache ends before the bar, so that a replaced bar costs itself only"
    if cached is None or write is None:
        return "append", "no price of cached tokens is known for this model"
    keep, anew = cached * measures.bar * measures.updates / 2, (write - cached) * added
    sign = "<" if keep < anew else ">="
    mode = "append" if keep < anew else "replace"
    return mode, f"a*S*N/2 = {keep:.0f} {sign} (w-a)*R = {anew:.0f}"


def has_breakpoint(profile: Profile) -> bool:
    """Whether the cache of this wire ends where lorimer says, which is before a replaced bar."""
    return profile.wire == "anthropic"


def price_ratios(profile: Profile) -> tuple[float | None, float | None]:
    """What a token costs that is read from the cache, and one that is written to it, an uncached
    one being 1. Nothing costs a local model money; what is not known is `None`."""
    known = cache_prices(profile)
    return (known.read_ratio, known.write_ratio) if known.known else (None, None)


def _ratio(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"
