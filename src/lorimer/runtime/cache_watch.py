"""The cache auditor at work in one session: each request is checked before it is sent, and what
came of it is kept with the answer (`meta["cache"]` of the assistant entry)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lorimer.context.auditor import Auditor, CacheBreak, Finding, Link, Unreadable
from lorimer.context.auditor.expected import (
    Measured,
    cached_told,
    expected_tokens,
    is_miss,
)
from lorimer.context.auditor.segments import message_count
from lorimer.core.errors import ConfigError
from lorimer.core.messages import Entry, Kind
from lorimer.core.usage import Usage
from lorimer.core.watch import Warned
from lorimer.models.protocol import Model, Request

ANNOUNCING = frozenset({Kind.COMPACTION, Kind.REBASE})
"""Kinds of entries after which the prefix may be another one."""
_NOT_SEEN = (
    "{name} does not show the bytes of its requests: nothing is known of its prompt cache, and "
    "strict_cache cannot hold it."
)


class CacheWatch:
    """Watches the requests of one session.

    Args:
        strict: refuse to send a request that breaks the prefix without announcement.
        redact: takes secrets out of excerpts.
        tell: tells those who watch.
        remark: `(action, why)`, for the audit; written with the next entry.
    """

    def __init__(
        self,
        model: Model,
        *,
        strict: bool,
        redact: Callable[[str], str],
        tell: Callable[[Any], None],
        remark: Callable[[str, str], None],
    ) -> None:
        self._model = model
        self._tell = tell
        self._remark = remark
        self._auditor = Auditor(strict=strict, redact=redact)
        self._saved = 0  # leading segments that the store has
        self._pending: Finding | None = None
        self._before: Measured | None = None
        self._before_model = ""
        self._said: set[str] = set()
        self._sent = False

    def expect_break(self, reason: str) -> None:
        """The next request may break the prefix, for `reason`."""
        self._auditor.expect_break(reason)

    # --- loading ---

    def load(self, entries: Sequence[Entry]) -> None:
        """Take up the chain of a stored session. Another model renders by other rules and has a
        cache of its own: its chain begins anew."""
        links: list[Link] = []
        wire = ""
        announced = ""
        for entry in entries:
            if entry.kind in ANNOUNCING:
                announced = str(entry.kind)
            record = entry.meta.get("cache")
            if not isinstance(record, Mapping) or "from" not in record:
                continue
            links[int(record["from"]) :] = map(Link.from_json, record["segments"])
            wire, announced = str(record["wire"]), ""
            self._before_model = str(entry.meta.get("model", ""))
            usage = entry.meta.get("usage") or {}
            self._before = Measured(
                int(usage.get("input_tokens", 0)), int(record["bytes"]), entry.at.timestamp()
            )
        if announced:
            self._auditor.expect_break(announced)
        if wire and self._before_model == self._model.name:
            self._auditor.load(wire, links)
            self._saved = len(links)

    # --- a request ---

    def watched(self, request: Request) -> Request:
        """`request`, to be checked when its bytes are about to be sent."""
        self._sent = False
        messages = 0
        if request.transient:
            wire, last = self._model.profile.wire, request.fragments[-request.transient :]
            messages = message_count(wire, last)
        return replace(request, tap=lambda body: self._check(body, messages))

    def aside(self, request: Request) -> Request:
        """`request`, which rides the prefix and is no part of the conversation; what it shares with
        the request before it is checked, and nothing of it is kept."""

        def check(body: bytes) -> None:
            wire = self._model.profile.wire
            try:
                finding = self._auditor.check(wire, body, keep=False)
            except Unreadable as fault:
                self._once(f"The prompt cache is not audited: {fault}")
                return
            if finding.broken and not finding.announced:
                self._remark("cache.break", f"a request beside the conversation: {finding.words()}")

        return replace(request, tap=check)

    def _check(self, body: bytes, transient: int = 0) -> None:
        self._sent = True
        wire = self._model.profile.wire
        try:
            finding = self._auditor.check(wire, body, transient=transient)
        except CacheBreak as fault:
            self._remark("cache.refused", fault.finding.words())
            raise
        except Unreadable as fault:
            self._once(f"The prompt cache is not audited: {fault}")
            self._auditor.forget()
            self._pending = None
            return
        if finding.broken or finding.other_cache:
            self._saved = 0 if finding.other_cache else min(self._saved, finding.place)
        if finding.broken:
            words = finding.words()
            if finding.announced:
                self._remark("cache.rebased", f"{finding.announced}: {words}")
            else:
                self._remark("cache.break", words)
                self._tell(Warned(f"{words} {finding.advice}"))
        elif self._pending is not None and not finding.new and self._pending.broken:
            return  # the same request once more, after it failed
        self._pending = finding

    def _once(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._tell(Warned(words))

    # --- its answer ---

    def answered(self, usage: Usage, at: datetime) -> dict[str, Any] | None:
        """What is kept of the request that was just answered; `None` when it was not seen."""
        finding, self._pending = self._pending, None
        if finding is None:
            if not self._sent and self._model.profile.wire != "bridge":
                self._once(_NOT_SEEN.format(name=self._model.name))
            return None
        changed = finding.other_cache or (
            bool(self._before_model) and self._before_model != self._model.name
        )
        notes = list(finding.notes)
        if changed and not finding.other_cache:
            notes.append(f"The model changed from {self._before_model}: its cache is another one.")
        expected = 0 if changed else expected_tokens(self._before, finding.shared_bytes)
        now_s = at.timestamp()
        idle_s = now_s - self._before.at_s if self._before is not None else 0.0
        cached = cached_told(usage, self._model.profile)
        links = self._auditor.links(self._saved)
        record: dict[str, Any] = {
            "wire": finding.wire,
            "chain": finding.chain,
            "from": self._saved,
            "segments": [link.to_json() for link in links],
            "bytes": finding.prompt_bytes,
            "cached": cached,
            "expected": expected,
        }
        if notes:
            record["notes"] = notes
        if finding.broken:
            record["break"] = {
                "cause": str(finding.cause), "segment": finding.segment, "was": finding.was,
                "now": finding.now, "detail": finding.detail, "announced": finding.announced,
            }  # fmt: skip
        if is_miss(cached, expected, self._model.profile, idle_s):
            record["miss"] = True
            words = (
                f"{self._model.name} read nothing from its cache, though about {expected} tokens "
                "of this request were in the one before."
            )
            self._remark("cache.miss", words)
            if "miss" not in self._said:
                self._said.add("miss")
                self._tell(Warned(f"{words} `lorimer cache report` shows each request."))
        self._saved += len(links)
        self._before = Measured(usage.input_tokens, finding.prompt_bytes, now_s)
        self._before_model = self._model.name
        return record


def check_strict(model: Model) -> None:
    """Raises `ConfigError` when the prefix of `model` cannot be proven."""
    if model.profile.wire == "bridge":
        raise ConfigError(
            f"strict_cache does not work with {model.name}: what is sent is written by "
            "pydantic-ai, and its bytes are not seen here.",
            next="Use a wire of lorimer's own (openai:, anthropic:, gemini:, …), or leave it out.",
        )
