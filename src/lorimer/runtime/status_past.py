"""What status bars of past sessions came to: how often they were updated, how much was added
between updates. In one small file beside the store; without it nothing is known, and nothing
breaks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from lorimer.context.status.mode import DEFAULT_ADDED, DEFAULT_UPDATES, Measures

FILE: Final = "status-bars.json"
_MOST_SESSIONS: Final = 50


@dataclass(slots=True)
class Tally:
    """Of one session: `updates` of its bar; tokens of what was `added` between them, in all."""

    updates: int = 0
    added: int = 0

    @property
    def mean_added(self) -> float:
        return self.added / self.updates if self.updates else 0.0


class PastBars:
    """The tallies of the last sessions of a store.

    Args:
        folder: where the file is; `None`: nothing is kept.
        warn: told once when the file cannot be written.
    """

    def __init__(self, folder: Path | None, warn: Callable[[str], None]) -> None:
        self._file = None if folder is None else folder / FILE
        self._warn: Callable[[str], None] | None = warn

    def measures(self, session: str, model: str, bar_tokens: int) -> Measures:
        """R and N of the other sessions with this model, as they were on the mean."""
        past = [
            tally
            for (of, name), tally in self._read().items()
            if of != session and name == model and tally.updates
        ]
        if not past:
            return Measures(bar_tokens, DEFAULT_ADDED, DEFAULT_UPDATES)
        updates = fmean(tally.updates for tally in past)
        added = fmean(tally.mean_added for tally in past)
        return Measures(bar_tokens, round(added), round(updates, 1), len(past))

    def keep(self, session: str, model: str, tally: Tally) -> None:
        """Write down what is known of `session` by now; whole or not at all."""
        if self._file is None:
            return
        kept = self._read()
        kept.pop((session, model), None)
        kept[session, model] = tally
        rows = [[s, m, t.updates, t.added] for (s, m), t in kept.items()][-_MOST_SESSIONS:]
        new = self._file.with_name(f"{FILE}.{os.getpid()}")
        try:
            new.write_text(json.dumps(rows), encoding="utf-8")
            os.replace(new, self._file)
        except OSError as fault:
            if self._warn is not None:
                self._warn(
                    f"{self._file} cannot be written ({fault.strerror}): later sessions choose the "
                    "mode of their status bar by default figures."
                )
                self._warn = None

    def _read(self) -> dict[tuple[str, str], Tally]:
        if self._file is None:
            return {}
        try:
            rows: Any = json.loads(self._file.read_bytes())
            return {(str(s), str(m)): Tally(int(u), int(a)) for s, m, u, a in rows}
        except (OSError, ValueError, TypeError):
            return {}
