"""How many tokens the next request has: what the provider reported for the last one, and an
estimate of what came after it.

    counter = TokenCounter("anthropic:claude-opus-5-5", profile, Ratios())
    estimate = counter.estimate(prefix, view, changed_at=seq_of_the_last_compaction)

Everything is read from the entries themselves (`meta["usage"]`, `meta["model"]`), so it is the same
after a restart. Each text is counted once; a request costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lorimer.context.tokens.content import (
    Content,
    content_of_entry,
    content_of_prefix,
    resent_output,
    usage_of,
)
from lorimer.context.tokens.ratios import SMALLEST_SAMPLE, Ratios
from lorimer.context.tokens.text_count import TextCount, vocabulary
from lorimer.core.messages import Entry, Kind
from lorimer.core.usage import Usage
from lorimer.models.profiles import Profile
from lorimer.models.protocol import Prefix

TAIL_TOKENS: Final = "tail_tokens"
"""In the meta of an entry with usage: the tokens of its request that stood in that request only (a
status bar that is replaced)."""


SMALLEST_WHOLE: Final = 8000
"""Counted tokens below which nothing is learned from a whole request."""
_LONGEST: Final = 256
"""Entries whose sums are kept; older ones are covered by a measurement."""


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """How large a request is.

    Attributes:
        tokens: `measured + estimated`.
        measured: of these, as the provider counted them.
        estimated: of these, by our own count.
        ratio: tokens for one token that we count.
        basis: `o200k` or `characters`, how we counted; with `measured + ` before it when there is a
            measured part.
        guesses: in words, what had to be guessed (an image without a size, a PDF without pages).
    """

    tokens: int
    measured: int
    estimated: int
    ratio: float
    basis: str
    guesses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last request whose size the provider told, with its answer: `tokens` for the prefix and
    the first `count` entries of the view."""

    count: int
    tokens: int


@dataclass(slots=True)
class _Counted:
    """What was counted of one view: the sum up to each entry."""

    view: Sequence[Entry]
    start: int = 0
    sums: list[Content] = field(default_factory=lambda: [Content()])


@dataclass(slots=True)
class _Looked:
    """The last measurement among the first `upto` entries of a view."""

    view: Sequence[Entry]
    changed_at: int
    upto: int = 0
    found: Anchor | None = None


class TokenCounter:
    """Counts the requests of one session to one model.

    Args:
        model: the model's name, `anthropic:claude-…`.
        count: how texts are counted; by default o200k, or characters where tiktoken is missing.
    """

    def __init__(
        self, model: str, profile: Profile, ratios: Ratios, *, count: TextCount | None = None
    ) -> None:
        self.model = model
        self.profile = profile
        self.ratios = ratios
        self._count = count
        self._counted = _Counted(())
        self._looked = _Looked((), -1)
        self._prefix: tuple[Prefix, Content] | None = None
        self._sample = (0, 0)

    @property
    def count(self) -> TextCount:
        if self._count is None:
            self._count = vocabulary()
        return self._count

    @property
    def basis(self) -> str:
        return self.count.basis

    def count_by(self, count: TextCount) -> None:
        """Count texts by `count` from now on; what was counted before is counted anew."""
        if self._count is not count:
            self._count = count
            self._counted = _Counted(())
            self._prefix = None
            self._sample = (0, 0)

    # --- estimating ---

    def estimate(
        self,
        prefix: Prefix,
        view: Sequence[Entry],
        *,
        tail: Entry | None = None,
        changed_at: int = -1,
    ) -> TokenEstimate:
        """The size of the request that sends `prefix`, `view` and `tail`.

        Args:
            view: the entries that are sent, in order. The same list that has grown is known again;
                another one is counted from its beginning where no measurement covers it.
            tail: stands last, in this request only.
            changed_at: the number of the last entry that changed what is sent of earlier ones (a
                compaction, a rebase); measurements before it do not count.
        """
        found = self.anchor(view, changed_at)
        new = self._since(view, found.count if found else 0)
        if found is None:
            new = self._of_prefix(prefix) + new
        if tail is not None:
            new += self.content(tail)
        ratio = self.ratios.of(self.model, self.basis).value
        measured, estimated = (found.tokens if found else 0), new.tokens(ratio)
        return TokenEstimate(
            measured + estimated,
            measured,
            estimated,
            ratio,
            f"measured + {self.basis}" if found else self.basis,
            new.guesses,
        )

    def anchor(self, view: Sequence[Entry], changed_at: int = -1) -> Anchor | None:
        """The last measurement that holds for `view`. Only what is new in it is looked at."""
        looked = self._looked
        same = looked.view is view and looked.changed_at == changed_at
        if not same or len(view) < looked.upto:
            looked = self._looked = _Looked(view, changed_at)
        for at in range(len(view) - 1, looked.upto - 1, -1):
            measured = self._measured(view[at], at, changed_at)
            if measured is not None:
                looked.found = measured
                break
            if view[at].seq < changed_at:
                break
        looked.upto = len(view)
        return looked.found

    def _measured(self, entry: Entry, at: int, changed_at: int) -> Anchor | None:
        if "usage" not in entry.meta or entry.meta.get("model") != self.model:
            return None
        usage = usage_of(entry)
        if usage is None or usage.input_tokens <= 0 or entry.seq < changed_at:
            return None
        sent = max(0, usage.input_tokens - _tail_tokens(entry))
        if entry.kind is Kind.ASSISTANT:
            return Anchor(at + 1, sent + resent_output(entry, usage, self.profile.reasoning))
        return Anchor(at, sent)  # a note in place of an answer that was not kept

    def content(self, entry: Entry) -> Content:
        """What is in one entry."""
        return content_of_entry(entry, self.model, self.profile.reasoning, self.count)

    def tokens_of(self, entry: Entry) -> int:
        """The size of one entry, e.g. of a status bar."""
        return self.content(entry).tokens(self.ratios.of(self.model, self.basis).value)

    def tokens_in(self, text: str) -> int:
        """The size of a text."""
        return round(self.count.count(text) * self.ratios.of(self.model, self.basis).value)

    # --- learning ---

    def learn(
        self,
        prefix: Prefix,
        view: Sequence[Entry],
        usage: Usage,
        *,
        tail: Entry | None = None,
        changed_at: int = -1,
    ) -> None:
        """Learn from the answer to the request that `estimate` was asked for with these arguments.

        What is compared is what was new in the request; small news are gathered until they say
        enough. A whole request is compared only when it is large, because providers add texts of
        their own. Nothing is learned where the measurement is not of the text alone: sizes of
        media that were guessed, and a new turn where reasoning of the turn before may have been
        left out.
        """
        if usage.input_tokens <= 0:
            return
        found = self.anchor(view, changed_at)
        turn = any(entry.kind is Kind.USER for entry in view[found.count :]) if found else False
        if turn and self.profile.reasoning != "drop":
            return
        new = self._since(view, found.count if found else 0)
        if found is None:
            new = self._of_prefix(prefix) + new
        if tail is not None:
            new += self.content(tail)
        if new.guesses:
            return
        tokens = usage.input_tokens - (found.tokens if found else 0) - new.other
        if found is None:
            if new.text >= SMALLEST_WHOLE:
                self.ratios.learn(self.model, max(0, tokens), new.text, self.basis)
            return
        gathered, counted = self._sample
        gathered, counted = gathered + tokens, counted + new.text
        if counted >= SMALLEST_SAMPLE:
            self.ratios.learn(self.model, max(0, gathered), counted, self.basis)
            gathered, counted = 0, 0
        self._sample = (gathered, counted)

    # --- counting each text once ---

    def _since(self, view: Sequence[Entry], first: int) -> Content:
        """What stands in `view` from the entry `first` on."""
        counted = self._counted
        end = counted.start + len(counted.sums) - 1
        known = counted.view is view and counted.start <= first <= end <= len(view)
        if not known or first - counted.start > _LONGEST:
            counted = self._counted = _Counted(view, first)
        for entry in view[counted.start + len(counted.sums) - 1 :]:
            counted.sums.append(counted.sums[-1] + self.content(entry))
        before, all_ = counted.sums[first - counted.start], counted.sums[-1]
        return replace(
            all_,
            text=all_.text - before.text,
            other=all_.other - before.other,
            guesses=all_.guesses[len(before.guesses) :],
        )

    def _of_prefix(self, prefix: Prefix) -> Content:
        if self._prefix is None or self._prefix[0] is not prefix:
            self._prefix = (prefix, content_of_prefix(prefix, self.count))
        return self._prefix[1]


def _tail_tokens(entry: Entry) -> int:
    told = entry.meta.get(TAIL_TOKENS, 0)
    return told if isinstance(told, int) and not isinstance(told, bool) else 0
