"""What earlier compactions of a session came to, read from its entries: the same after a restart.

A compaction has worked when the next request that the provider measured is smaller than the one
before it. Whatever else happens is a failure, and failures in a row open the breaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lorimer.context.compaction.notes import NOTE
from lorimer.core.messages import Entry, Kind

FAILED: Final = "compaction_failed"
"""In the meta of an `ARCHIVE` entry: why a compaction failed."""
TOKENS: Final = "tokens_before"
"""In the meta of a compaction: the size of the request as it would have been."""
CLOSED: Final = "breaker_closed"


@dataclass(slots=True)
class History:
    """Feed it the entries; it looks at each once.

    Attributes:
        failures: in a row, up to now.
        why: why the last one failed.
        done: compactions that were recorded.
        noted: number of the last entry that a note covers.
    """

    failures: int = 0
    why: str = ""
    done: int = 0
    noted: int = -1
    _looked: int = 0
    _before: int = 0

    def feed(self, entries: Sequence[Entry]) -> None:
        """Take what is new in `entries`."""
        for entry in entries[self._looked :]:
            self._take(entry)
        self._looked = len(entries)

    def _take(self, entry: Entry) -> None:
        if entry.kind is Kind.COMPACTION:
            self.done += 1
            self._before = int(entry.meta.get(TOKENS, 0))
        elif entry.kind is Kind.ARCHIVE:
            if FAILED in entry.meta:
                self._fail(str(entry.meta[FAILED]))
            if CLOSED in entry.meta:
                self.failures, self.why = 0, ""
            if NOTE in entry.meta:
                self.noted = int(entry.meta[NOTE]["last"])
        elif self._before and "usage" in entry.meta:
            measured = int((entry.meta["usage"] or {}).get("input_tokens", 0))
            if measured:
                if measured < self._before:
                    self.failures, self.why = 0, ""
                else:
                    self._fail(
                        f"the request after it had {measured:,} tokens, {self._before:,} before"
                    )
                self._before = 0

    def _fail(self, why: str) -> None:
        self.failures += 1
        self.why = why

    def open(self, most: int) -> bool:
        """Whether the breaker is open: no more tries in this session."""
        return self.failures >= most
