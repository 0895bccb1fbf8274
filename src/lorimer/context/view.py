"""What is sent of a trajectory: its entries, and for some of them others that stand in their place.

A `COMPACTION` entry has in its meta `spans`, a list of `{"first": a, "last": b, "entries": […]}`:
the entries numbered a to b (both included) are sent as these entries from now on. Spans do not
overlap, and what an earlier compaction put in place of others is replaced whole or not at all. The
entry that follows a span is rendered anew where a wire wants another message before it.

A `REBASE` entry has `system` and `tools` (as `ToolSpec.to_json` writes them): the prefix from now
on; `prompt` says of which parts the system text is (`lorimer.context.prefix`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from lorimer.context.prefix.parts import boundaries_of, render
from lorimer.context.validity import EntryCheck
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import BESIDE, Entry, Kind
from lorimer.core.specs import ToolSpec
from lorimer.models.protocol import Model, Prefix


@dataclass(slots=True)
class View:
    """Entries as they are sent, their renderings, and the numbers of those they stand for."""

    entries: list[Entry] = field(default_factory=list)
    fragments: list[bytes] = field(default_factory=list)
    covers: list[tuple[int, int]] = field(default_factory=list)

    def append(self, entry: Entry, rendering: bytes) -> None:
        self.entries.append(entry)
        self.fragments.append(rendering)
        self.covers.append((entry.seq, entry.seq))

    def compacted(
        self, compaction: Entry, model: Model, frozen: Sequence[bytes] | None = None
    ) -> Compacted:
        """The view after `compaction`, with the renderings `frozen`, or made by `model`.

        Raises:
            InvalidRequest: when the spans do not fit, or no valid request would come of them.
        """
        spans = sorted(_spans(compaction), key=lambda span: span.first)
        given = None if frozen is None else iter(frozen)
        out = View()
        fresh: list[bytes] = []
        at = 0

        def take(entry: Entry, cover: tuple[int, int]) -> None:
            bytes_ = model.render_entry(entry, out.entries) if given is None else _next(given)
            fresh.append(bytes_)
            out.entries.append(entry)
            out.fragments.append(bytes_)
            out.covers.append(cover)

        def keep(until: int) -> None:
            nonlocal at
            while at < len(self.covers) and self.covers[at][0] < until:
                if self.covers[at][1] >= until:
                    raise _bad(f"a span begins at {until}, inside what was compacted before")
                out.entries.append(self.entries[at])
                out.fragments.append(self.fragments[at])
                out.covers.append(self.covers[at])
                at += 1

        for place, span in enumerate(spans):
            if at and self.covers[at - 1][1] >= span.first:
                raise _bad(f"the spans overlap at {span.first}")
            keep(span.first)
            start = at
            while at < len(self.covers) and self.covers[at][1] <= span.last:
                at += 1
            if at == start:
                raise _bad(f"there is nothing from {span.first} to {span.last}")
            if at < len(self.covers) and self.covers[at][0] <= span.last:
                raise _bad(f"a span ends at {span.last}, inside what was compacted before")
            for entry in span.entries:
                take(entry, (span.first, span.last))
            following = spans[place + 1].first if place + 1 < len(spans) else None
            if at < len(self.covers) and self.covers[at][0] != following:
                take(self.entries[at], self.covers[at])
                at += 1
        keep(compaction.seq)
        if given is not None and next(given, None) is not None:
            raise _bad("there is a rendering too many")
        _check(out.entries, asked=_asks(self.entries))
        return Compacted(out, fresh)


@dataclass(frozen=True, slots=True)
class Compacted:
    """A view after a compaction, and the renderings that are new in it, in order."""

    view: View
    fresh: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Span:
    """Entries `first` to `last` are sent as `entries`."""

    first: int
    last: int
    entries: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "last": self.last,
            "entries": [entry.to_json() for entry in self.entries],
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Span:
        first = int(record["first"])
        entries = tuple(Entry.from_json(one, first) for one in record["entries"])
        return Span(first, int(record["last"]), entries)


def rebased(entry: Entry, model: Model, rendered: bytes | None = None) -> Prefix:
    """The prefix that a `REBASE` entry brings."""
    system = str(entry.meta["system"])
    tools = tuple(ToolSpec.from_json(one) for one in entry.meta["tools"])
    if rendered is None:
        rendered = render(model, system, tools, boundaries_of(entry.meta))
    return Prefix(system, tools, rendered)


def pack(fragments: Sequence[bytes]) -> bytes:
    """Several renderings as one: each after its length (8 bytes, big-endian)."""
    return b"".join(struct.pack(">Q", len(one)) + one for one in fragments)


def unpack(packed: bytes) -> list[bytes]:
    """What `pack` put together.

    Raises:
        InvalidRequest: when it is something else.
    """
    out = []
    at = 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 8], "big")
        one = packed[at + 8 : at + 8 + size]
        if at + 8 > len(packed) or len(one) != size:
            raise _bad("its renderings are not whole")
        out.append(one)
        at += 8 + size
    return out


def _spans(compaction: Entry) -> list[Span]:
    try:
        spans = [Span.from_json(one) for one in compaction.meta["spans"]]
    except (KeyError, TypeError, ValueError) as fault:
        raise _bad(f"its spans cannot be read ({fault!r})") from fault
    for span in spans:
        if not 0 <= span.first <= span.last < compaction.seq:
            raise _bad(f"{span.first} to {span.last} is no span before it")
    return spans


def _next(given: Iterator[bytes]) -> bytes:
    try:
        return next(given)
    except StopIteration:
        raise _bad("a rendering is missing") from None


def check_ids(ids: Iterable[str], known: AbstractSet[str]) -> None:
    """Raises `InvalidRequest` when a compaction brings calls that were never made: their ids may be
    given to others later."""
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise _bad(f"the calls {', '.join(unknown)} were never made")


def _asks(entries: Sequence[Entry]) -> bool:
    """Whether there is something to answer."""
    says = (e.kind for e in reversed(entries) if e.kind not in BESIDE or e.kind is Kind.COMPACTION)
    return next(says, Kind.ASSISTANT) is not Kind.ASSISTANT


def _check(entries: Sequence[Entry], *, asked: bool) -> None:
    check = EntryCheck()
    for entry in entries:
        if entry.kind is Kind.REBASE or (entry.kind is Kind.COMPACTION and not entry.parts):
            raise _bad(f"a {entry.kind} entry is no message")
        try:
            check.feed(entry)
        except InvalidRequest as fault:
            raise _bad(f"what would be sent is no valid request ({fault.message})") from fault
    if check.open_calls:
        raise _bad(f"the calls {', '.join(check.open_calls)} would have no result")
    if asked and not check.asked:
        raise _bad("what the model has to answer next would be lost")


def _bad(why: str) -> InvalidRequest:
    return InvalidRequest(
        f"This compaction cannot be: {why}.",
        next="Nothing was changed; the session goes on as it is.",
    )
