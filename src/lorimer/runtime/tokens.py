"""How full a session's context is: asked before each request, put right by each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lorimer.context.tokens import (
    CHARACTER_COUNT,
    TAIL_TOKENS,
    Ratios,
    TokenCounter,
    TokenEstimate,
    has_vocabulary,
    vocabulary,
)
from lorimer.core.home import home
from lorimer.core.messages import Entry, Kind
from lorimer.core.usage import Usage
from lorimer.core.watch import Warned
from lorimer.models.served_window import SELF_HOSTED

if TYPE_CHECKING:
    from lorimer.runtime.session import Session

WINDOW: Final = "window"
"""In the meta of an entry with usage: the context window of the model, where it is known."""
_DEFAULT_OUTPUT: Final = 8192
_MOST_RESERVED: Final = 4
"""At most one part in so many of the window is kept free for the answer: models that may write
384,000 tokens seldom do."""
_QUESTIONS: Final = 2
_NEAR: Final = 0.5
_LARGE: Final = 0.02
_DOUBT: Final = 2.5
"""How far a count by characters may be too low (digits, base64)."""


class SessionTokens:
    """Counts the requests of one session.

    While a request is surely far from its bound, texts are counted by their characters; o200k is
    loaded (0.3 s, once in a process) when the difference could matter.

    Args:
        ratios: what was learned; by default the file in the home folder.
    """

    def __init__(self, session: Session, ratios: Ratios | None = None) -> None:
        self._session = session
        model = session.model
        self._ratios = ratios or shared_ratios(home() / "tokens" / "ratios.json")
        self._ratios.tell = lambda words: session.tell(Warned(words))
        self.counter = TokenCounter(model.name, model.profile, self._ratios, count=CHARACTER_COUNT)
        self._served: int | None = None
        self._asked = 0
        self._looked = 0
        self._changed_at = -1

    @property
    def window(self) -> int | None:
        """The model's context window in tokens; `None` where it is not known."""
        return self._session.model.profile.context_window or self._served

    async def find_window(self) -> None:
        """Ask a server of one's own how large its window is, where nobody else knows. Twice at the
        most: some say it only after they have loaded the model."""
        profile = self._session.model.profile
        if self.window is None and profile.name in SELF_HOSTED and self._asked < _QUESTIONS:
            ask = getattr(self._session.model, "served_window", None)
            self._asked += 1
            self._served = None if ask is None else await ask()

    @property
    def reserved(self) -> int:
        """Tokens that are kept free for the answer."""
        profile = self._session.model.profile
        wanted = self._session.settings.max_output_tokens or profile.max_output_tokens
        wanted = wanted or _DEFAULT_OUTPUT
        return wanted if self.window is None else min(wanted, self.window // _MOST_RESERVED)

    @property
    def budget(self) -> int | None:
        """What a request may have: the window without what is kept for the answer."""
        return None if self.window is None else self.window - self.reserved

    def before_request(self) -> TokenEstimate:
        """The size of the next request, as the session stands now. Its cost is what is new since
        the last time."""
        estimate = self._estimate()
        if self._matters(estimate):
            self.counter.count_by(vocabulary())
            estimate = self._estimate()
        return estimate

    def share(self, estimate: TokenEstimate | None = None) -> float | None:
        """The part of the budget that the next request takes: 0.8 is four fifths; `None` where the
        window is not known."""
        if self.budget is None:
            return None
        return (estimate or self.before_request()).tokens / max(1, self.budget)

    def tokens_of(self, entry: Entry) -> int:
        """The size of one entry, e.g. of a status bar."""
        return self.counter.tokens_of(entry)

    def answered(self, usage: Usage) -> dict[str, Any]:
        """Learn from what the provider reported for the request just answered, before its answer is
        recorded. What the record keeps beside the usage."""
        session = self._session
        tail = session.tail
        best = self.counter.basis != CHARACTER_COUNT.basis or not has_vocabulary()
        if self.window is not None and best:
            self.counter.learn(
                session.trajectory.prefix, session.trajectory.view, usage,
                tail=tail, changed_at=self._change(),
            )  # fmt: skip
        facts = {} if tail is None else {TAIL_TOKENS: self.tokens_of(tail)}
        return facts if self.window is None else facts | {WINDOW: self.window}

    def close(self) -> None:
        """Keep what was learned."""
        self._ratios.save()
        self._ratios.tell = None

    def _estimate(self) -> TokenEstimate:
        session = self._session
        return self.counter.estimate(
            session.trajectory.prefix, session.trajectory.view,
            tail=session.tail, changed_at=self._change(),
        )  # fmt: skip

    def _matters(self, estimate: TokenEstimate) -> bool:
        if self.budget is None or self.counter.basis != CHARACTER_COUNT.basis:
            return False
        large = estimate.estimated >= _LARGE * self.budget
        return large and estimate.measured + _DOUBT * estimate.estimated >= _NEAR * self.budget

    def _change(self) -> int:
        """The number of the last entry that changed what is sent of those before it."""
        entries = self._session.trajectory.entries
        for at in range(self._looked, len(entries)):
            if entries[at].kind in (Kind.COMPACTION, Kind.REBASE):
                self._changed_at = entries[at].seq
        self._looked = len(entries)
        return self._changed_at


@lru_cache(maxsize=8)
def shared_ratios(file: Path) -> Ratios:
    """The ratios of one file, for all sessions of this process."""
    return Ratios(file)


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a context is: `tokens` of `window`; `share` 1.0 is full. `None`: not known."""

    tokens: int
    window: int | None
    share: float | None

    @staticmethod
    def after(meta: Mapping[str, Any]) -> Fill | None:
        """After the answer whose entry has `meta`: its request and what was written, as the
        provider counted; `None` when it reported nothing."""
        usage = meta.get("usage")
        if not isinstance(usage, Mapping) or not usage.get("input_tokens"):
            return None
        tokens = int(usage["input_tokens"]) + int(usage.get("output_tokens", 0))
        window = meta.get(WINDOW)
        return Fill(tokens, window, round(tokens / window, 4) if window else None)

    def words(self) -> str:
        """`12,345 of 200,000 tokens (6 %)`."""
        if self.window is None or self.share is None:
            return f"{self.tokens:,} tokens; the window of this model is not known"
        return f"{self.tokens:,} of {self.window:,} tokens ({self.share:.0%})"
