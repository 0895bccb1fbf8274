"""Words for the state of a thing (`shipped`, `paid`, `failed`), and which follow from which.

English only: a state in another language is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_GROUPS: Final = (
    ("cancelled", "canceled", "voided", "aborted"),
    ("failed", "failure", "unsuccessful"),
    ("completed", "complete", "done", "finished", "succeeded", "success", "successful", "passed",
     "ok"),
    ("shipped", "dispatched", "in transit", "on its way", "out for delivery"),
    ("delivered",),
    ("paid", "settled"),
    ("unpaid", "outstanding"),
    ("pending", "waiting", "queued", "awaiting", "scheduled"),
    ("processing", "in progress", "being processed"),
    ("refunded",),
    ("returned",),
    ("approved", "accepted"),
    ("rejected", "declined", "denied"),
    ("overdue", "past due"),
    ("expired",),
    ("confirmed",),
    ("active", "enabled"),
    ("inactive", "disabled"),
    ("suspended",),
    ("closed",),
    ("open",),
    ("merged",),
    ("resolved",),
    ("blocked",),
    ("stopped",),
    ("running",),
    ("backordered", "out of stock"),
    ("in stock",),
)  # fmt: skip
_NAME_OF: Final = {word: group[0] for group in _GROUPS for word in group}
_FOLLOWS: Final = {
    "delivered": {"shipped", "paid", "confirmed", "completed"},
    "shipped": {"confirmed", "paid"},
    "returned": {"shipped", "delivered"},
    "refunded": {"paid", "completed", "returned"},
    "completed": {"paid", "confirmed", "resolved", "closed", "stopped", "approved"},
    "paid": {"completed", "confirmed"},
    "merged": {"closed", "approved", "completed"},
    "overdue": {"unpaid", "open", "pending"},
    "unpaid": {"open", "pending"},
    "pending": {"open", "unpaid", "processing"},
    "processing": {"pending", "open", "running", "confirmed"},
    "running": {"active", "processing"},
    "cancelled": {"closed", "stopped"},
    "resolved": {"closed", "completed"},
    "expired": {"inactive", "closed"},
    "suspended": {"inactive"},
    "rejected": {"closed", "failed"},
    "failed": {"stopped", "rejected"},
    "open": {"unpaid", "pending", "active"},
}
"""state -> what is true as well of a thing in that state."""

_COMMON: Final = frozenset(
    {"complete", "done", "ok", "open", "closed", "active", "running", "success", "successful",
     "passed", "accepted", "waiting", "returned", "finished", "failure", "enabled", "disabled",
     "stopped", "blocked", "scheduled", "resolved", "outstanding", "merged", "settled", "confirmed"}
)  # fmt: skip
"""Words that often say nothing about a state; read only where they are said of something."""

_WORD = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _NAME_OF), key=len, reverse=True)) + r")\b",
    re.IGNORECASE,
)
_SAID_OF = re.compile(
    r"(?:\b(?:is|are|was|were|been|be|now|status|state|marked(?: as)?|remains?|currently|already"
    r"|still|successfully|fully|has|have)\b|[:|→=(])[\s*_`\"'“:]*$",
    re.I,
)
_HEDGED = re.compile(
    r"(?:\b(?:not|n't|never|no|non|without|if|when|once|until|unless|whether|before|after|can|could"
    r"|may|might|would|should|will|shall|must|to be|cannot|or|either|neither|nor|only|than|any|each"
    r"|every)\b|n[’']t\b)(?:\W+\w+){0,3}\W*$",
    re.I,
)
_ASKED = re.compile(r"[^.!\n]*\?")
STATUS_KEY: Final = re.compile(
    r"(?:.*[_-])?(?:status|state|phase|outcome|conclusion|stage|condition)(?:[_-](?:name|text))?",
    re.I,
)
"""Keys of a result whose value is a state."""


def state_of(value: str) -> str:
    """The state that a field says: `IN_TRANSIT` is `shipped`; its own words where unknown."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", value)
    words = re.sub(r"[\W_]+", " ", words).strip().lower()
    return _NAME_OF.get(words, words)


def known(state: str) -> bool:
    """Whether `state` is one of the states that answers are checked for."""
    return state in _NAME_OF


def bears_out(recorded: str, said: str) -> bool:
    """Whether a thing whose recorded state is `recorded` is also `said`; true as well where it
    says that word among others (`partially refunded`)."""
    return (
        recorded == said
        or said in _FOLLOWS.get(recorded, ())
        or any(_NAME_OF.get(word) == said for word in recorded.split())
    )


def said_states(text: str) -> Iterator[tuple[int, int, str]]:
    """The states that `text` says of something, with their places; not those that it denies,
    supposes, or asks for."""
    questions = [(m.start(), m.end()) for m in _ASKED.finditer(text)]
    for match in _WORD.finditer(text):
        word = match[0].lower()
        start = max(text.rfind("\n", 0, match.start()), text.rfind(". ", 0, match.start()), 0)
        before = text[max(start, match.start() - 60) : match.start()]
        if _HEDGED.search(before) or before.endswith(("-", "un")):
            continue
        if word in _COMMON and not _SAID_OF.search(before):
            continue
        if any(a <= match.start() < b for a, b in questions):
            continue
        yield match.start(), match.end(), _NAME_OF[word]


STEMS: Final = {
    "cancelled": ("cancel", "void", "abort"), "refunded": ("refund",), "paid": ("pay",),
    "shipped": ("ship", "dispatch"), "approved": ("approve", "accept"),
    "rejected": ("reject", "decline", "deny"), "closed": ("close",), "confirmed": ("confirm",),
    "returned": ("return",), "merged": ("merge",), "resolved": ("resolve",),
    "stopped": ("stop", "kill", "cancel"), "active": ("enable", "activate"),
    "inactive": ("disable", "deactivate"), "suspended": ("suspend",),
    "completed": ("complete", "finish"), "pending": ("schedule",), "running": ("start", "run"),
}  # fmt: skip
"""state -> parts of the names of tools that bring it about."""
