"""What the linter of prompts says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Trouble(StrEnum):
    """What kind of thing breaks a cache, or wastes it."""

    CLOCK = "clock"
    COUNTER = "counter"
    RANDOM_ID = "random_id"
    USER_DATA = "user_data"
    VOLATILE = "volatile_words"
    REQUEST = "per_request_value"
    PLACEHOLDER = "placeholder"
    UNSORTED_TOOLS = "unsorted_tools"
    KEY_ORDER = "unstable_order"
    STABILITY = "stability_order"
    DUPLICATE = "said_twice"


_WHY = {
    Trouble.CLOCK: "a time is another one the next time, and the cache ends where it stands",
    Trouble.COUNTER: "a count is another one the next time, and the cache ends where it stands",
    Trouble.RANDOM_ID: "an id is another one each time, and the cache ends where it stands",
    Trouble.USER_DATA: "what is of one user or machine cannot be shared by the others' caches",
    Trouble.VOLATILE: "this is true only for a while, and what comes after it is read anew",
    Trouble.REQUEST: "this is of one request, and everything behind it is read anew at the next",
    Trouble.PLACEHOLDER: "what is filled in here changes, and the cache ends where it stands",
    Trouble.UNSORTED_TOOLS: "tools in another order are another prefix, though nothing was changed",
    Trouble.KEY_ORDER: "an order that nothing fixes is another one in the next process",
    Trouble.STABILITY: "what changes more often stands before what is the same for all",
    Trouble.DUPLICATE: "it is paid twice in every request, and one of the two will be forgotten",
}
_ADVICE = {
    Trouble.CLOCK: "Say the time in the newest message (the status bar does), or give a tool.",
    Trouble.COUNTER: "Let the status bar count (`status=True`), or say it in the newest message.",
    Trouble.RANDOM_ID: "Leave it out, or put it into the message or result that it belongs to.",
    Trouble.USER_DATA: "Put it into a `session` part at the end, or into the first user message.",
    Trouble.VOLATILE: "Say it in the newest message, or say how to find it out.",
    Trouble.REQUEST: "Put it into the user message of that request.",
    Trouble.PLACEHOLDER: "Fill it into a message instead, or into a `session` part at the end.",
    Trouble.UNSORTED_TOOLS: "Sort the tools by name.",
    Trouble.KEY_ORDER: "Sort what has no order of its own before it is written.",
    Trouble.STABILITY: "Order the parts: global, deployment, session.",
    Trouble.DUPLICATE: "Keep the better one of the two.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that would break a cache.

    Attributes:
        part: where it stands: a part's name, or `tool NAME`, or `tools`.
        line: of the part, from 1; 0 where there is none.
        excerpt: what stands there.
        detail: more words, e.g. what it is.
    """

    trouble: Trouble
    part: str
    line: int
    excerpt: str
    detail: str = ""

    @property
    def why(self) -> str:
        return _WHY[self.trouble]

    @property
    def advice(self) -> str:
        return _ADVICE[self.trouble]

    def to_json(self) -> dict[str, Any]:
        return {
            "trouble": str(self.trouble), "part": self.part, "line": self.line,
            "excerpt": self.excerpt, "detail": self.detail, "why": self.why, "advice": self.advice,
        }  # fmt: skip
