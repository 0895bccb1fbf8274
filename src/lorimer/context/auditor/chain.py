"""The auditor: is this request the one before it, with something appended?

It keeps the last body and a hash for each of its segments, chained. Of a request that begins with
the bytes of the last one only the new part is read and hashed; the history is compared in one
step of the machine, never read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lorimer.context.auditor.causes import Difference, first_difference
from lorimer.context.auditor.finding import CacheBreak, Cause, Finding
from lorimer.context.auditor.parts import MESSAGE, SYSTEM, TOOL, Segment, Split
from lorimer.context.auditor.segments import extend, split
from lorimer.context.auditor.settings import setting_notes


@dataclass(frozen=True, slots=True)
class Link:
    """A segment as it is kept beyond the process: kind, label, size in bytes, digest."""

    kind: str
    label: str
    size: int
    digest: bytes

    def to_json(self) -> list[str | int]:
        return [self.kind, self.label, self.size, self.digest.hex()]

    @staticmethod
    def from_json(record: Sequence[str | int]) -> Link:
        kind, label, size, digest = record
        return Link(str(kind), str(label), int(size), bytes.fromhex(str(digest)))


class Auditor:
    """Checks the requests of one conversation, in order.

    Stand-alone use, for any client: `Auditor().check("openai_chat", body)` before each request.

    Args:
        strict: raise `CacheBreak` for a break that was not announced.
        redact: takes secrets out of a text before parts of it are shown.
    """

    def __init__(self, *, strict: bool = False, redact: Callable[[str], str] | None = None) -> None:
        self.strict = strict
        self._redact = redact
        self._last: Split | None = None
        self._stable = b""
        self._size = 0
        self._loaded: tuple[str, list[Link]] | None = None
        self._links: list[bytes] = []
        self._announced = ""

    def expect_break(self, reason: str) -> None:
        """The next request may break the prefix, for `reason` (a compaction, a rebase)."""
        self._announced = reason or "announced"

    def links(self, first: int = 0) -> list[Link]:
        """The segments of the last request from number `first` on, to be kept."""
        if self._last is None:
            return [] if self._loaded is None else self._loaded[1][first:]
        return [Link(s.kind, s.label, s.size, s.digest) for s in self._last.ordered()[first:]]

    def load(self, wire: str, links: Iterable[Link]) -> None:
        """Go on from a chain that was kept: the next request is held against its hashes."""
        self._loaded = (wire, list(links))
        self._last = None

    def forget(self) -> None:
        """Begin anew: the next request is a first one."""
        self._last, self._loaded, self._stable = None, None, b""

    def check(self, wire: str, body: bytes, *, keep: bool = True, transient: int = 0) -> Finding:
        """Compare `body`, the bytes about to be sent, with the request before it.

        Args:
            wire: `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `local` (a rendered
                prompt, or a request to a completion server) or `scripted`.
            keep: whether the next request is held against this one. A side request that only
                rides the prefix (a summary) is not kept.
            transient: so many messages at the end may be replaced in the next request (a status
                bar that is put last each time).

        Raises:
            CacheBreak: in strict mode; nothing is kept of the request.
            Unreadable: when `body` is no request on `wire`.
        """
        old = self._last
        grown = None
        if (
            old is not None
            and old.wire == wire
            and old.grows_at >= 0
            and body.startswith(self._stable)
        ):
            grown = extend(old, body)
        if grown is not None and old is not None:
            added = grown.messages[len(old.messages) :]
            size = self._size + sum(s.size for s in added)
            finding = Finding(
                wire,
                segments=len(grown.system) + len(grown.tools) + len(grown.messages),
                new=len(added),
                shared_bytes=self._size,
                prompt_bytes=size,
                before_bytes=self._size,
            )
            if grown.settings is not old.settings:
                finding = setting_notes(finding, old.settings, grown.settings)
            new = grown
        else:
            new = split(wire, body)
            size = new.size
            finding = replace(self._compare(new), prompt_bytes=size)
        if finding.broken and self._announced:
            finding = replace(finding, announced=self._announced)
        if self.strict and finding.broken and not finding.announced:
            raise CacheBreak(finding)
        if not keep:
            return finding
        self._announced = ""
        chain = self._chain(new, len(old.messages) if grown is not None and old else None)
        self._keep(new, size, transient)
        return replace(finding, chain=chain)

    def _compare(self, new: Split) -> Finding:
        count = len(new.system) + len(new.tools) + len(new.messages)
        old = self._last
        if old is None and self._loaded is not None and self._loaded[0] == new.wire:
            old = _from_links(new.wire, self._loaded[1])
        if old is None or old.wire != new.wire:
            other = old is not None or self._loaded is not None
            notes = ("The wire changed: nothing that was cached can serve.",) if other else ()
            return Finding(new.wire, notes=notes, segments=count, new=count, other_cache=other)
        before = self._size if self._last is not None else old.size
        found = first_difference(old, new, self._redact)
        if found is None:
            fewer = len(old.messages) - len(new.messages)
            notes = ()
            if fewer > 0:
                notes = (f"Taken back since the request before: its last {fewer} message(s).",)
            finding = Finding(
                new.wire, notes=notes, segments=count, new=max(0, -fewer),
                shared_bytes=min(before, new.size), before_bytes=before,
            )  # fmt: skip
        else:
            finding = _broken(found, new, count, before)
        return setting_notes(finding, old.settings, new.settings)

    def _chain(self, new: Split, known: int | None) -> str:
        """The chained hash; of a request that only grew it goes on from the last one."""
        if known is None or not self._links:
            self._links = [b""]
            todo: Sequence[Segment] = new.ordered()
        else:
            todo = new.messages[known:]
        link = self._links[-1]
        for segment in todo:
            link = hashlib.sha256(link + segment.kind.encode() + segment.digest).digest()
        self._links = [link]
        return link.hex()

    def _keep(self, new: Split, size: int, transient: int) -> None:
        if transient:
            kept = max(0, len(new.messages) - transient)
            dropped, new.messages = new.messages[kept:], new.messages[:kept]
            size -= sum(s.size for s in dropped)
            new.grows_at = new.messages[-1].end if new.messages and new.grows_at >= 0 else -1
            self._links = []
        self._last, self._size, self._loaded = new, size, None
        self._stable = new.body[: new.grows_at] if new.grows_at >= 0 else b""


def _broken(found: Difference, new: Split, count: int, before: int) -> Finding:
    return Finding(
        new.wire,
        cause=found.cause,
        segment=found.segment,
        place=found.place,
        was=found.was,
        now=found.now,
        detail=found.detail,
        segments=count,
        new=count - found.place,
        shared_bytes=found.shared_bytes,
        before_bytes=before,
    )


def _from_links(wire: str, links: Sequence[Link]) -> Split:
    """A split of which only the hashes are known; its bytes are empty."""
    out = Split(wire, b"")
    groups = {SYSTEM: out.system, TOOL: out.tools, MESSAGE: out.messages}
    at = 0
    for link in links:
        groups[link.kind].append(Segment(link.kind, link.label, at, at + link.size, link.digest))
        at += link.size
    return out


__all__ = ["Auditor", "CacheBreak", "Cause", "Finding", "Link"]
