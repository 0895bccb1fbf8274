"""What the auditor says of one request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lorimer.core.errors import LorimerError


class Cause(StrEnum):
    """Why a request does not begin with the request before it."""

    NONE = "none"
    TIME = "time_in_prefix"
    COUNTER = "counter_in_prefix"
    RANDOM_ID = "random_id_in_prefix"
    USER_DATA = "user_data_in_prefix"
    SYSTEM_CHANGED = "system_changed"
    TOOLS_REORDERED = "tools_reordered"
    TOOL_ADDED = "tool_added"
    TOOL_REMOVED = "tool_removed"
    TOOL_CHANGED = "tool_changed"
    HISTORY_TRIMMED = "history_trimmed"
    MESSAGE_INSERTED = "message_inserted"
    MESSAGE_REWRITTEN = "message_rewritten"
    FLATTENED = "roles_flattened"
    KEY_ORDER = "json_key_order"
    WHITESPACE = "whitespace_or_escaping"


ADVICE = {
    Cause.TIME: "Say the time in the newest message, or let the model call a tool for it.",
    Cause.COUNTER: "Put what counts into the newest message; the prefix must not count.",
    Cause.RANDOM_ID: "Make the id once a session, or leave it out of the prompt.",
    Cause.USER_DATA: "Append what is new about the user as a message; leave what was sent alone.",
    Cause.SYSTEM_CHANGED: "Build the system prompt once a session and send the same bytes.",
    Cause.TOOLS_REORDERED: "Sort the tools by name once, and send the same list every time.",
    Cause.TOOL_ADDED: "Load tools at the start of a session, or append their schemas as a message.",
    Cause.TOOL_REMOVED: "Keep the tool listed and refuse its calls, or begin a new session.",
    Cause.TOOL_CHANGED: "Serialise each tool once a session; put what changes into a message.",
    Cause.HISTORY_TRIMMED: "Keep the history whole until it is compacted once, in one batch.",
    Cause.MESSAGE_INSERTED: "Append messages at the end only.",
    Cause.MESSAGE_REWRITTEN: "Leave sent messages as they are; append a correction instead.",
    Cause.FLATTENED: "Send each message with its role, instead of one growing text.",
    Cause.KEY_ORDER: "Keep the bytes that were sent, or serialise with sorted keys.",
    Cause.WHITESPACE: "Keep the bytes that were sent; always serialise in the same way.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one request has in common with the one before it.

    Attributes:
        cause: `NONE` when it begins with all of the one before, or is the first.
        segment: the first segment that differs, e.g. `system`, `tool get_weather`,
            `message 3 (user)`.
        place: its number among all segments, from 0; -1 without a break.
        was, now: excerpts around the first difference; empty where nothing stood.
        detail: more words about the cause.
        announced: why the break was expected; empty when it was not.
        notes: what does not break the prefix and still matters to the cache.
        segments: how many segments the request has; `new` of them were not in the one before.
        shared_bytes: bytes at its start that the request before had too.
        prompt_bytes: bytes of all its segments.
        before_bytes: the same of the request before; 0 for the first.
        chain: hash over all segments up to the last.
        other_cache: a cache entry of the request before cannot serve (another model or wire).
    """

    wire: str
    cause: Cause = Cause.NONE
    segment: str = ""
    place: int = -1
    was: str = ""
    now: str = ""
    detail: str = ""
    announced: str = ""
    notes: tuple[str, ...] = ()
    segments: int = 0
    new: int = 0
    shared_bytes: int = 0
    prompt_bytes: int = 0
    before_bytes: int = 0
    chain: str = ""
    other_cache: bool = False

    @property
    def broken(self) -> bool:
        return self.cause is not Cause.NONE

    @property
    def advice(self) -> str:
        """What to do about it; empty without a break."""
        return ADVICE.get(self.cause, "")

    def words(self) -> str:
        """One sentence for a person; empty without a break."""
        if not self.broken:
            return ""
        detail = f": {self.detail}" if self.detail else ""
        text = f"The prompt cache breaks at {self.segment} ({self.cause}{detail})."
        if self.was or self.now:
            text += f" Before: {self.was!r}. Now: {self.now!r}."
        return text

    def to_json(self) -> dict[str, Any]:
        return {
            "wire": self.wire, "cause": str(self.cause), "segment": self.segment,
            "place": self.place, "was": self.was, "now": self.now, "detail": self.detail,
            "advice": self.advice, "announced": self.announced, "notes": list(self.notes),
            "segments": self.segments, "new": self.new, "shared_bytes": self.shared_bytes,
            "prompt_bytes": self.prompt_bytes, "before_bytes": self.before_bytes,
            "chain": self.chain, "other_cache": self.other_cache,
        }  # fmt: skip


class CacheBreak(LorimerError):
    """A request would break the prefix, and `strict_cache` is set: it was not sent."""

    exit_code = 7

    def __init__(self, finding: Finding) -> None:
        super().__init__(
            f"{finding.words()} The request was not sent (strict_cache).",
            next=f"{finding.advice} A wanted break is announced with expect_break(reason).",
        )
        self.finding = finding
