"""What a session has seen, for decisions: the user's words, and which outside content it has read.

Kept beside the trajectory, entry by entry, and made again from the stored entries when a session is
opened: it lasts as long as they do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lorimer.context.events import USER
from lorimer.core.calls import ToolCall
from lorimer.core.decisions import Conversation
from lorimer.core.messages import CallPart, Entry, Kind, ResultPart, TextPart
from lorimer.core.trust import Trust
from lorimer.safety.injection.provenance import echoes
from lorimer.tools.registry import Registry


class SessionConversation:
    """A `Conversation` over the entries that it is fed."""

    def __init__(self, registry: Registry, above: Conversation | None = None) -> None:
        """`above`: of a sub-agent, what the session that started it has seen: whose words are the
        user's is known from there alone."""
        self._registry = registry
        self._above = above
        self._user: list[str] = []
        self._trusted: list[str] = []
        self._taint: dict[str, None] = {}
        self._private: dict[str, None] = {}
        self._arguments: dict[str, Mapping[str, Any] | None] = {}

    @property
    def user_words(self) -> Sequence[str]:
        return self._user if self._above is None else [*self._above.user_words, *self._user]

    @property
    def trusted_texts(self) -> Sequence[str]:
        if self._above is None:
            return self._trusted
        return [*self._above.trusted_texts, *self._trusted]

    @property
    def tainted_by(self) -> Sequence[str]:
        return tuple(self._taint)

    @property
    def private_from(self) -> Sequence[str]:
        return tuple(self._private)

    def feed(self, entry: Entry) -> None:
        """Take the next entry of the session. Who is named as its speaker is not the user."""
        for tool in entry.meta.get("private_from", ()):
            self._private[tool] = None
        for part in entry.parts:
            if isinstance(part, CallPart):
                self._arguments[part.call.id] = _arguments(part.call)
            elif isinstance(part, ResultPart):
                self._result(part)
            elif getattr(part, "trust", None) is Trust.EXTERNAL:
                self._taint[getattr(part, "source", "") or f"entry {entry.seq}"] = None
            elif isinstance(part, TextPart) and "speaker" not in entry.meta and (
                entry.kind is Kind.USER or (entry.kind is Kind.EVENT and part.source == USER)
            ):  # fmt: skip
                self._user.append(part.text)

    def carry(self, private_from: Sequence[str], tainted_by: Sequence[str] = ()) -> None:
        """Take over which private data and which outside content a sub-agent of this session has
        read."""
        self._private |= dict.fromkeys(private_from)
        self._taint |= dict.fromkeys(tainted_by)

    def inner(self, result: ResultPart) -> None:
        """Take the result of a call that a tool made: it is in no entry."""
        self._result(result)

    def _result(self, result: ResultPart) -> None:
        tool = self._registry.get(result.name)
        arguments = self._arguments.pop(result.call_id, None)
        if tool is not None and not result.is_error:
            if tool.private:
                self._private[tool.name] = None
            self._trust(result, arguments)
        for part in result.content:
            if part.trust is Trust.EXTERNAL:
                self._taint[part.source or result.name] = None

    def _trust(self, result: ResultPart, arguments: Mapping[str, Any] | None) -> None:
        """Take the trusted parts of a result (notes of the harness have no source), unless a model
        that may be hijacked could have put words into them by its arguments."""
        for part in result.content:
            if not isinstance(part, TextPart) or part.trust is not Trust.TRUSTED or not part.source:
                continue
            if self._taint and (arguments is None or echoes(arguments, part.text, self)):
                continue
            self._trusted.append(part.text)


def _arguments(call: ToolCall) -> Mapping[str, Any] | None:
    """What the model wrote; `None` when that cannot be read."""
    try:
        value = json.loads(call.raw) if isinstance(call.raw, str | bytes) else call.value
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
