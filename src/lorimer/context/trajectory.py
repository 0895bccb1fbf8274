"""A session's prefix and trajectory, ready to be sent: every entry is rendered once, for good.

For every n, the request of the first n entries is a byte prefix of that of n+1 entries, up to the
closing brackets; the renderings are stored and used again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable

from lorimer.context.validity import EntryCheck
from lorimer.core.messages import Entry
from lorimer.models.protocol import Model, Prefix, Request, Settings


class Trajectory:
    """Entries with their frozen renderings for one model's wire."""

    def __init__(self, model: Model, prefix: Prefix) -> None:
        self.model = model
        self.prefix = prefix
        self.entries: list[Entry] = []
        self.fragments: list[bytes] = []
        self._check = EntryCheck()

    @property
    def next_seq(self) -> int:
        return len(self.entries)

    @property
    def last(self) -> Entry | None:
        return self.entries[-1] if self.entries else None

    def render(self, entry: Entry) -> bytes:
        """The rendering `entry` would have as the next one."""
        return self.model.render_entry(entry, self.entries)

    def add(self, entry: Entry, rendering: bytes) -> None:
        """Take an entry that is on disk.

        Raises:
            InvalidRequest: when it breaks the message rules that hold for every provider.
        """
        self._check.feed(entry)
        self.entries.append(entry)
        self.fragments.append(rendering)

    def load(self, stored: Iterable[tuple[Entry, bytes | None]]) -> list[tuple[int, bytes]]:
        """Take stored entries; the renderings made now, for those that had none for this wire."""
        made = []
        for entry, rendering in stored:
            if rendering is None:
                rendering = self.render(entry)
                made.append((entry.seq, rendering))
            self.add(entry, rendering)
        return made

    def request(self, settings: Settings) -> Request:
        """The next request.

        Raises:
            InvalidRequest: when a call has no result yet; nothing was sent.
        """
        self._check.check_ready()
        return Request(self.prefix, self.entries, self.fragments, settings)
