"""The note of one turn: what was decided, asked, tried in vain, found. One for each turn of the
user, written by code beside the trajectory; never merged with another, never sent as it is.

It holds references and words as they were written. It is what a compaction falls back on, and what
`lorimer compact --dry-run` and an export show.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from lorimer.context.compaction.constraints import constraints_in
from lorimer.context.compaction.digest import Digest, digest_of
from lorimer.context.compaction.scoring import best_lines
from lorimer.context.compaction.sentences import sentences_of
from lorimer.core.calls import Outcome
from lorimer.core.messages import Entry, Kind

NOTE: Final = "turn_note"
"""Where a note stands in the meta of its `ARCHIVE` entry."""
_DECISION = re.compile(
    r"\b(decid(?:e|ed|ing)|chose|chosen|choose|picked|opted|settled on|instead of|rather than"
    r"|(?:I|we)(?:'ll| will| am going to|'m going to| shall)|going with|agreed|because|therefore"
    r"|the plan is|so I|ruled out)\b",
    re.I,
)
_ROOM_A_RESULT: Final = 1_200
_ROOM: Final = 6_000
_ERROR: Final = 300


@dataclass(frozen=True, slots=True)
class TurnNote:
    """Attributes:
    first, last: numbers of the first and last entry of the turn.
    asked: the user's message, its first words.
    constraints: sentences of the user that bind, word for word.
    decisions: sentences of the model that decide, word for word.
    failed: calls that did not work: tool, arguments, outcome, error.
    open: questions that the model asked and nobody has answered.
    facts: lines of results word for word, each with its call and source.
    """

    first: int
    last: int
    asked: str
    constraints: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    failed: tuple[dict[str, str], ...] = ()
    open: tuple[str, ...] = ()
    facts: tuple[dict[str, str], ...] = field(default=())

    @property
    def empty(self) -> bool:
        return not (
            self.constraints or self.decisions or self.failed or self.open or self.facts
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def turn_note(entries: Sequence[Entry]) -> TurnNote | None:
    """The note of the turn that `entries` are: from a message of the user to before the next;
    `None` when there is nothing in them."""
    if not entries:
        return None
    asked = [e.text for e in entries if e.kind is Kind.USER]
    said = [e.text for e in entries if e.kind is Kind.ASSISTANT and e.text.strip()]
    calls = {c.id: c for e in entries for c in e.calls}
    digests: list[Digest] = []
    failed: list[dict[str, str]] = []
    for entry in entries:
        for result in entry.results:
            call = calls.get(result.call_id)
            if call is None:
                continue
            digest = digest_of(call, result)
            if result.outcome is Outcome.DONE:
                digests.append(digest)
            else:
                failed.append(
                    {"tool": result.name, "arguments": call.raw[:_ERROR],
                     "outcome": str(result.outcome), "error": digest.text[:_ERROR]}
                )  # fmt: skip
    last = said[-1] if said and not entries[-1].calls else ""
    return TurnNote(
        entries[0].seq,
        entries[-1].seq,
        asked[0][:200] if asked else "",
        tuple(one for text in asked for one in constraints_in(text)),
        tuple(s for text in said for s in sentences_of(text) if _DECISION.search(s)),
        tuple(failed),
        tuple(s for s in sentences_of(last) if s.endswith("?")),
        _facts(digests, asked),
    )


def _facts(digests: Sequence[Digest], asked: Sequence[str]) -> tuple[dict[str, str], ...]:
    if not digests:
        return ()
    room = min(_ROOM_A_RESULT, _ROOM // len(digests))
    words = {word.casefold() for text in asked for word in text.split() if len(word) > 4}
    found = best_lines([d.text for d in digests], [room] * len(digests), words)
    return tuple(
        {"call": d.call.id, "tool": d.result.name, "source": d.source, "trust": str(d.trust),
         "line": line}
        for d, lines in zip(digests, found, strict=True)
        for line in lines
    )  # fmt: skip
