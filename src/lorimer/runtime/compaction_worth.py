"""Whether a compaction wins enough: each one breaks the provider's cache from its place on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lorimer.runtime.compaction_report import Report

NEARLY_FULL: Final = 0.95
"""Share of the budget above which it cannot wait: then little is better than nothing, and an open
thinking loop is compacted whole."""
LEAST: Final = 0.15
"""Share of the budget that a compaction must save, when it does not come to `_LOW` anyway."""
STEP: Final = 0.05
"""Share of the budget by which the context has to grow before the next try, when one was not worth
it."""
_LOW: Final = 0.7
"""Of the threshold: a request below it has room for many turns."""
_ROOM: Final = 0.75
"""Of the threshold, what a compaction tries to come down to."""
_SHORTEST: Final = 0.1
"""Of what is replaced, what is hoped to be left at the very least."""
_GOOD_PART: Final = 0.1


@dataclass(frozen=True, slots=True)
class Worth:
    """What a compaction of one request can and should come to, in tokens.

    Attributes:
        full: the threshold. low: a request up to this has enough room.
        least: what it must save otherwise.
        goal: no step says less once this is reached; what cannot be replaced raises it.
        possible: whether it can be worth it at all.
    """

    tokens: int
    full: float
    low: float
    least: float
    goal: float
    possible: bool

    @staticmethod
    def of(tokens: int, free: float, threshold: float, budget: int | None) -> Worth:
        """Args:
        free: share (0 to 1) of the request that may be replaced.
        """
        if budget is None:
            endless = float("inf")
            return Worth(tokens, endless, endless, 0.0, endless, True)
        full = threshold * budget
        low, least = _LOW * full, LEAST * budget
        fixed = tokens * (1 - free)
        goal = max(_ROOM * full, fixed + max(0.25 * (full - fixed), 0.04 * budget))
        reached = fixed + _SHORTEST * (tokens - fixed)
        possible = reached <= low or tokens - reached >= least
        return Worth(tokens, full, low, least, goal, possible)

    def enough(self, report: Report) -> bool:
        """Whether it is worth a break of the cache."""
        saved = report.tokens_before - report.tokens_after
        return report.tokens_after <= self.low or saved >= self.least

    def is_better(self, deeper: Report, best: Report) -> bool:
        """Whether to say less of old results than `best` does: to win enough, to get below the
        threshold, or for a good part of it on the way to the goal. What is large besides is no
        reason."""
        if bool(deeper.why) != bool(best.why):
            return not deeper.why
        saved = best.tokens_after - deeper.tokens_after
        if saved <= 0:
            return False
        if not self.enough(best):
            return True
        if best.tokens_after <= self.goal:
            return False
        crosses = deeper.tokens_after <= self.full < best.tokens_after
        return crosses or saved > _GOOD_PART * self.full
