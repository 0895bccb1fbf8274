"""How a session's context is kept small: the strategies, and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lorimer.core.errors import ConfigError

STRATEGIES: Final = {
    "none": "nothing is ever left out; the session ends when the window is full",
    "per_result": "each long result is summarised by itself as it enters",
    "combined": "the long results of one turn are summarised together as they enter",
    "context_aware": "as combined, with the user's question and what is known so far",
    "context_aware_cited": "as context_aware; a line without a source that holds it is dropped",
    "adaptive": "nothing until the threshold; then all results not compressed yet, in one batch",
    "layered": "previews, notes of each turn, and at the threshold one batch of all old results, "
    "first from the notes, then with the model",
}
"""Every strategy, and what it does in words."""
AT_ENTRY: Final = frozenset({"per_result", "combined", "context_aware", "context_aware_cited"})
"""Strategies that summarise a result as it enters."""
SUMMARY: Final = ("when_needed", "always", "never")


@dataclass(frozen=True, slots=True)
class Compaction:
    """How the context of a session is kept small.

    Args:
        strategy: one of `STRATEGIES`.
        threshold: share of the budget (0 to 1) above which old results are compacted. The budget is
            the window without what is kept free for the answer.
        smaller_by: share (0 to 1) by which what is replaced must shrink; less is discarded.
        most_failures: so many failures in a row open the breaker for the session.
        summary: of `layered`, whether the model writes a summary: `when_needed` (when the notes
            alone are not small enough), `always`, or `never`.
        entry_characters: results up to this size are never summarised at entry.
        fact_share: share of a result that may stay as lines of it, word for word.
        term_share: share of a result that says what each page of it holds.
        summary_tokens: bound on what the model may write as a summary.
        provider_editing: use the provider's own context editing for low-value results, where it has
            one.
        window: tokens of the context window, where the model's profile does not know it.

    Raises:
        ConfigError: for an unknown strategy or a number that cannot be.
    """

    strategy: str = "layered"
    threshold: float = 0.8
    smaller_by: float = 0.3
    most_failures: int = 3
    summary: str = "when_needed"
    entry_characters: int = 4_000
    fact_share: float = 0.06
    term_share: float = 0.12
    summary_tokens: int = 4_000
    provider_editing: bool = True
    window: int | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ConfigError(
                f"No compaction strategy is called {self.strategy!r}.",
                next=f"Use one of: {', '.join(STRATEGIES)}.",
            )
        if self.summary not in SUMMARY:
            raise ConfigError(
                f"summary={self.summary!r} is not known.", next=f"Use one of: {', '.join(SUMMARY)}."
            )
        shares = {"threshold": self.threshold, "smaller_by": self.smaller_by,
                  "fact_share": self.fact_share, "term_share": self.term_share}  # fmt: skip
        for name, share in shares.items():
            if not 0 <= share <= 1 or (name == "threshold" and share == 0):
                raise ConfigError(f"{name}={share!r} is no share.", next="Use a number up to 1.")
        counts = {"most_failures": self.most_failures, "summary_tokens": self.summary_tokens}
        if self.window is not None:
            counts["window"] = self.window
        for name, count in counts.items():
            if count < 1:
                raise ConfigError(f"{name}={count!r} is too small.", next="Use 1 or more.")

    @property
    def at_entry(self) -> bool:
        """Whether results are summarised as they enter."""
        return self.strategy in AT_ENTRY

    @property
    def cited(self) -> bool:
        """Whether each line of a summary must name its source."""
        return self.strategy == "context_aware_cited"


def compaction_of(given: str | Compaction | None) -> Compaction | None:
    """What `Agent(compaction=…)` means: a strategy by its name, or settings.

    Raises:
        ConfigError: see `Compaction`.
    """
    return Compaction(given) if isinstance(given, str) else given
