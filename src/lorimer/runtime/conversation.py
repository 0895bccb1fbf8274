"""What a session has seen, for decisions: the user's words, and which outside content it has read.

Kept beside the trajectory, entry by entry, and made again from the stored entries when a session is
opened: it lasts as long as they do.
"""

from __future__ import annotations

from collections.abc import Sequence

from lorimer.core.messages import Entry, Kind, ResultPart, TextPart
from lorimer.core.trust import Trust
from lorimer.tools.registry import Registry


class SessionConversation:
    """A `Conversation` over the entries that it is fed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._user: list[str] = []
        self._trusted: list[str] = []
        self._taint: dict[str, None] = {}
        self._private: dict[str, None] = {}

    @property
    def user_words(self) -> Sequence[str]:
        return self._user

    @property
    def trusted_texts(self) -> Sequence[str]:
        return self._trusted

    @property
    def tainted_by(self) -> Sequence[str]:
        return tuple(self._taint)

    @property
    def private_from(self) -> Sequence[str]:
        return tuple(self._private)

    def feed(self, entry: Entry) -> None:
        """Take the next entry of the session."""
        for part in entry.parts:
            if isinstance(part, ResultPart):
                self._result(part)
            elif getattr(part, "trust", None) is Trust.EXTERNAL:
                self._taint[getattr(part, "source", "") or f"entry {entry.seq}"] = None
            elif entry.kind is Kind.USER and isinstance(part, TextPart):
                self._user.append(part.text)

    def _result(self, result: ResultPart) -> None:
        tool = self._registry.get(result.name)
        for part in result.content:
            if part.trust is Trust.EXTERNAL:
                self._taint[part.source or result.name] = None
        if tool is None or result.is_error:
            return
        if tool.private:
            self._private[tool.name] = None
        if tool.trust is Trust.TRUSTED:
            self._trusted += [p.text for p in result.content if isinstance(p, TextPart)]
