"""Whether a request is valid, before it is sent (G12).

Two checks. `EntryCheck` looks at entries one by one as they are appended and costs the same
however long the session is: the loop runs it before each request. `validate_body` reads a whole
request body by the message rules of its provider; it is strict, slow, and for tests and for finding
faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from lorimer.context import wire_rules
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import (
    BESIDE,
    CallPart,
    Entry,
    Kind,
    ReasoningPart,
    ResultPart,
    TextPart,
)


class EntryCheck:
    """The structure every wire needs, checked entry by entry.

    A session begins with a user message or another word to the model; calls are answered at once,
    in one entry, one result a call in call order; ids are there and used once. Entries that nobody
    has to answer (`BESIDE`) may stand wherever no result is due. What raises leaves the check as it
    was.
    """

    __slots__ = ("_asked", "_begun", "_count", "_ids", "_open")

    def __init__(self) -> None:
        self._count = 0
        self._ids: set[str] = set()
        self._begun = False
        self._asked = False
        self._open: tuple[str, ...] = ()

    def check(self, entry: Entry) -> None:
        """Whether `entry` can be the next one; nothing is taken.

        Raises:
            InvalidRequest: when no valid request can contain it here.
        """
        if entry.kind is Kind.TOOL_RESULT:
            self._check_results(entry)
        elif self._open:
            self._refuse(entry, f"the calls {', '.join(self._open)} have no result yet")
        elif entry.kind is Kind.ASSISTANT:
            self._check_assistant(entry)
        elif any(isinstance(p, CallPart | ResultPart | ReasoningPart) for p in entry.parts):
            self._refuse(entry, f"a {entry.kind} entry holds calls, results or reasoning")

    def feed(self, entry: Entry) -> None:
        """Take the next entry. Raises like `check`."""
        self.check(entry)
        if entry.kind is Kind.TOOL_RESULT:
            self._open = ()
        elif entry.kind is Kind.ASSISTANT:
            self._open = tuple(call.id for call in entry.calls)
            self._ids.update(self._open)
        if entry.kind not in BESIDE or (entry.kind is Kind.COMPACTION and entry.parts):
            self._asked = entry.kind is not Kind.ASSISTANT
        self._begun = True
        self._count += 1

    def check_ready(self) -> None:
        """Whether the model can be asked now.

        Raises:
            InvalidRequest: when calls are open, or there is nothing to answer.
        """
        if self._open:
            raise InvalidRequest(f"The calls {', '.join(self._open)} have no result yet.")
        if not self._asked:
            raise InvalidRequest("There is nothing for the model to answer.")

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of the calls that must be answered by the next entry."""
        return self._open

    @property
    def asked(self) -> bool:
        """Whether there is something for the model to answer."""
        return self._asked

    @property
    def ids(self) -> AbstractSet[str]:
        """The ids of all calls so far."""
        return self._ids

    def _check_assistant(self, entry: Entry) -> None:
        if not self._begun:
            self._refuse(entry, "a session cannot begin with an answer")
        if not self._asked:
            self._refuse(entry, "there is nothing to answer after an answer")
        if not all(isinstance(p, TextPart | CallPart | ReasoningPart) for p in entry.parts):
            self._refuse(entry, "an answer holds text, reasoning and calls only")
        ids = tuple(call.id for call in entry.calls)
        if not all(ids):
            self._refuse(entry, "a call has no id")
        if len(set(ids)) != len(ids) or not self._ids.isdisjoint(ids):
            self._refuse(entry, f"a call id is used twice ({', '.join(ids)})")

    def _check_results(self, entry: Entry) -> None:
        if not self._open:
            self._refuse(entry, "there is no call to answer")
        ids = tuple(p.call_id for p in entry.parts if isinstance(p, ResultPart))
        if len(ids) != len(entry.parts):
            self._refuse(entry, "a tool result entry holds results only")
        if ids != self._open:
            self._refuse(
                entry, f"results for {', '.join(ids)} stand where {', '.join(self._open)} must"
            )

    def _refuse(self, entry: Entry, why: str) -> None:
        raise InvalidRequest(
            f"Entry {self._count} ({entry.kind}) cannot stand here: {why}.",
            next="This is a fault in lorimer; the session on disk is unchanged.",
        )


_EPOCH = "1970-01-01T00:00:00Z"
Rules = Callable[..., list[str]]
_RULES: dict[str, Rules] = {
    "openai_chat": wire_rules.openai_chat,
    "openai_responses": wire_rules.openai_responses,
    "anthropic": wire_rules.anthropic,
    "gemini": wire_rules.gemini,
}


def validate_body(
    wire: str,
    body: bytes,
    *,
    alternate: bool = False,
    id_pattern: str = "",
    status_role: str = "",
) -> list[str]:
    """Every way in which `body` breaks the rules of `wire`; empty means valid.

    Args:
        wire: `openai_chat`, `openai_responses`, `anthropic`, `gemini`; for `scripted` and `local`,
            `body` is a JSON array of entries as the scripted model renders them (what a local model
            is sent is text of its template, whose structure is that of the entries).
        alternate: user and assistant messages must alternate (chat wire).
        id_pattern: regular expression that call ids must match, beyond the wire's own rule.
        status_role: the role that the model takes for words of its operator inside a conversation;
            without one, such words are a fault.

    Raises:
        KeyError: for a wire that is not known.
    """
    try:
        value = json.loads(
            body, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_int=_integer
        )
    except (ValueError, RecursionError) as error:
        return [f"not JSON: {error}"]
    if wire in ("scripted", "local"):
        return _entries(value)
    rules = _RULES[wire]
    if not isinstance(value, dict):
        return ["the body is not an object"]
    return rules(value, alternate=alternate, id_pattern=id_pattern, status_role=status_role)


def _entries(value: Any) -> list[str]:
    if not isinstance(value, list):
        return ["the body is not a list of entries"]
    check = EntryCheck()
    try:
        for seq, record in enumerate(value):
            check.feed(Entry.from_json({"at": _EPOCH, "meta": {}, **record}, seq))
        check.check_ready()
    except InvalidRequest as error:
        return [error.message]
    except (KeyError, TypeError, ValueError) as error:
        return [f"entry {seq} cannot be read: {error!r}"]
    return []


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        # Allowed inside arguments, which go back as they were written; the rules look at the mark.
        record[wire_rules.DUPLICATE_KEYS] = True
    return record


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _integer(text: str) -> int:
    return int(text) if len(text) < 4000 else 0
