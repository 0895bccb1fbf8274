"""What a session has seen of files, kept in the call journal."""

from __future__ import annotations

from collections.abc import Iterable

from lorimer.store.protocol import CallRecord


class SessionViews:
    """`FileViews` whose new entries are written with the end of the call that made them."""

    def __init__(self, records: Iterable[CallRecord] = ()) -> None:
        self.views: dict[str, str] = {}
        self._new: dict[str, str] = {}
        for record in sorted(records, key=lambda r: (r.finished_at is None, r.finished_at or 0)):
            self.views.update(record.views)

    def seen(self, path: str) -> str | None:
        return self.views.get(path)

    def remember(self, path: str, content_hash: str) -> None:
        self.views[path] = content_hash
        self._new[path] = content_hash

    def take_new(self) -> dict[str, str]:
        """The entries since the last time; asked for when a call ends."""
        new, self._new = self._new, {}
        return new
