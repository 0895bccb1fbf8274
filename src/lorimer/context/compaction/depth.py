"""How much of what is replaced is still told: the steps of a compaction, from much to little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Depth:
    """One step.

    Attributes:
        facts, terms: factors of the options' `fact_share` and `term_share`.
        fold: earlier summaries are made shorter, too.
        small: results up to so many characters are told in groups.
        share: of what a group replaces, what its lines may take.
        mixed: a group may hold calls of several tools.
        said: characters of the model's own words that stay; the newest.
        error: characters of the text of each failure.
        failures: failures that are told one by one; the newest.
    """

    facts: float = 1.0
    terms: float = 1.0
    fold: bool = False
    small: float = 900
    share: float = 0.5
    mixed: bool = False
    said: float = float("inf")
    error: int = 1_500
    failures: int = 1_000


WHOLE: Final = Depth()
DEPTHS: Final = (
    WHOLE,
    Depth(0.3, 0.5, True, 900, 0.3, True, error=600, failures=100),
    Depth(0.0, 0.25, True, 2_000, 0.15, True, 8_000, 300, 30),
    Depth(0.0, 0.1, True, 7_000, 0.05, True, 3_000, 200, 10),
    Depth(0.0, 0.0, True, float("inf"), 0.0, True, 800, 120, 3),
)
"""Each is tried when the one before it was not small enough. The last has a bounded size whatever
it stands for."""
