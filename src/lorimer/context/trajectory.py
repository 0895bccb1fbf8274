"""A session's prefix and trajectory, ready to be sent: every entry is rendered once, for good.

`entries` is what happened; it only grows. The *view* is what is sent of it: the same entries, until
a compaction says that some of them are sent in another form (`lorimer.context.view`). For every n
the request of the first n entries is a byte prefix of that of n+1 entries, up to the closing
brackets, except across a compaction or a rebase. The renderings are stored and used again after a
restart, whatever the code that made them has become.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lorimer.context.validity import EntryCheck
from lorimer.context.view import Compacted, View, check_ids, pack, rebased, unpack
from lorimer.core.messages import BESIDE, Entry, Kind
from lorimer.models.protocol import Model, Prefix, Request, Settings


class Trajectory:
    """Entries with their frozen renderings for one model's wire."""

    def __init__(self, model: Model, prefix: Prefix) -> None:
        self.model = model
        self.prefix = prefix
        self.entries: list[Entry] = []
        self._last: Entry | None = None
        self._view = View()
        self._check = EntryCheck()

    @property
    def next_seq(self) -> int:
        return len(self.entries)

    @property
    def last(self) -> Entry | None:
        """The last entry that says something to somebody."""
        return self._last

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of calls that have no result yet."""
        return self._check.open_calls

    @property
    def asked(self) -> bool:
        """Whether there is something for the model to answer."""
        return self._check.asked

    @property
    def view(self) -> Sequence[Entry]:
        """The entries that are sent. An entry that stands for others has the number of the first of
        them."""
        return self._view.entries

    @property
    def fragments(self) -> Sequence[bytes]:
        """The renderings of the entries of the view."""
        return self._view.fragments

    def covers(self) -> Sequence[tuple[int, int]]:
        """For each entry of the view the numbers of the first and the last entry it stands for."""
        return self._view.covers

    def render(self, entry: Entry) -> bytes:
        """The rendering `entry` would have as the next one: bytes of its message; of a compaction
        those of all the entries it brings (`view.pack`), of a rebase those of the new prefix.

        Raises:
            InvalidRequest: when it cannot be the next one, and then nothing may be stored of it.
        """
        self._check.check(entry)
        match entry.kind:
            case Kind.COMPACTION:
                return pack(self._compacted(entry).fresh)
            case Kind.REBASE:
                return rebased(entry, self.model).rendered
            case Kind.ARCHIVE:
                return b""
            case _:
                return self.model.render_entry(entry, self._view.entries)

    def add(self, entry: Entry, rendering: bytes) -> None:
        """Take an entry that is on disk.

        Raises:
            InvalidRequest: when it breaks the message rules that hold for every provider.
        """
        self._check.check(entry)
        match entry.kind:
            case Kind.COMPACTION:
                self._view = self._compacted(entry, unpack(rendering)).view
            case Kind.REBASE:
                self.prefix = rebased(entry, self.model, rendering)
            case Kind.ARCHIVE:
                pass
            case _:
                self._view.append(entry, rendering)
        self._check.feed(entry)
        self.entries.append(entry)
        if entry.kind not in BESIDE:
            self._last = entry

    def _compacted(self, entry: Entry, frozen: Sequence[bytes] | None = None) -> Compacted:
        made = self._view.compacted(entry, self.model, frozen)
        ids = [call.id for one in made.view.entries for call in one.calls]
        check_ids(ids, self._check.ids)
        return made

    def load(self, stored: Iterable[tuple[Entry, bytes | None]]) -> list[tuple[int, bytes]]:
        """Take stored entries; the renderings made now, for those that had none for this wire."""
        made = []
        for entry, rendering in stored:
            if rendering is None:
                rendering = self.render(entry)
                made.append((entry.seq, rendering))
            self.add(entry, rendering)
        return made

    def request(self, settings: Settings, tail: Entry | None = None) -> Request:
        """The next request; `tail` is put last and stands in this request only.

        Raises:
            InvalidRequest: when a call has no result yet; nothing was sent.
        """
        self._check.check_ready()
        return self._request(len(self._view.entries), settings, tail)

    def side_request(self, settings: Settings, tail: Entry, count: int | None = None) -> Request:
        """A request beside the session's own: its prefix, the first `count` entries of its view
        (all, when it is `None`), and `tail`. While calls are open it ends before the answer that
        made them."""
        most = len(self._view.entries) - (1 if self.open_calls else 0)
        count = most if count is None else min(count, most)
        return self._request(count, settings, tail)

    def _request(self, count: int, settings: Settings, tail: Entry | None) -> Request:
        entries, fragments = self._view.entries, self._view.fragments
        if tail is None:
            return Request(self.prefix, entries, fragments, settings)
        before = entries[:count]
        last = self.model.render_entry(tail, before)
        return Request(
            self.prefix, [*before, tail], [*fragments[:count], last], settings, transient=1
        )
