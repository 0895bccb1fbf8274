"""Distilled hand-over: one request over the caller's own conversation, which rides its prompt
cache, writes what a sub-agent must know. What binds the work is quoted in whole sentences, and a
quote that stands nowhere is dropped: nothing may be added or turned round on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lorimer.context.events import USER
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.runtime.subagents.sentences import Piece, pieces_of
from lorimer.runtime.subagents.tags import Speaker

if TYPE_CHECKING:
    from lorimer.runtime.reply import Reply

MOST_TOKENS = 900
MOST_FACTS = 15
MOST_QUOTES = 15
_LONGEST = 600
_LAST = 3
_ALONE = 8
"""Shorter ones count only when they are a whole sentence."""
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_FIGURE = re.compile(r"\d[\d.,:/_-]*\d|\d")

INSTRUCTION = """\
This is beside the conversation; do not go on with it, and call no tool.
Another agent is about to get the task below. It sees nothing of this conversation. Write what it \
must know to do the task well, and nothing else it could find itself, as one JSON object:
{{"facts": ["short sentences: what is known, decided, or was tried in vain"], \
"constraints": ["whole sentences that bind how the task may be done, copied word for word from \
what the user said or what a result says; never your own words"]}}
Leave a list empty when there is nothing for it.

The task:
{task}"""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that stand in the conversation, and whose they are."""

    text: str
    speaker: Speaker
    about: str = ""
    trust: Trust = Trust.USER_DATA
    source: str = ""


@dataclass(frozen=True, slots=True)
class Distilled:
    facts: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    notes: tuple[str, ...] = ()


def distilled(reply: Reply, entries: Sequence[Entry]) -> Distilled:
    """What `reply` may hand over of the conversation `entries`."""
    if reply.calls:
        return _nothing("it called a tool")
    if reply.cut:
        return _nothing("it was cut off")
    read = _object(reply.text)
    if read is None:
        return _nothing("it was not the JSON object that was asked for")
    said = list(_said(entries))
    every = "\n".join(_even(text) for text, _ in said)
    notes: list[str] = []
    facts = _texts(read.get("facts"), MOST_FACTS, "facts", notes)
    kept = [fact for fact in facts if _figures_known(fact, every)]
    if len(kept) < len(facts):
        notes.append(
            f"{len(facts) - len(kept)} of its facts held figures that stand nowhere in the "
            "conversation and were dropped"
        )
    wanted = _texts(read.get("constraints"), MOST_QUOTES, "constraints", notes)
    quotes: dict[Quote, None] = {}
    nowhere = grown = 0
    for one in wanted:
        found = _find(one, said)
        nowhere += not found
        grown += any(_even(quote.text) != _even(one) for quote in found)
        quotes |= dict.fromkeys(found)
    if nowhere:
        notes.append(
            f"{nowhere} of its constraints stand nowhere in the conversation as words that may be "
            "quoted and were dropped"
        )
    if grown:
        notes.append(
            f"{grown} of its constraints were parts of sentences and were handed over whole, with "
            "what belongs to them"
        )
    return Distilled(tuple(kept), tuple(quotes), tuple(notes))


def _nothing(why: str) -> Distilled:
    return Distilled(notes=(f"the distilled hand-over was not used: {why}",))


def _object(text: str) -> dict[str, Any] | None:
    found = text.strip()
    blocks = _FENCE.findall(found)
    if len(blocks) == 1:
        found = blocks[0]
    try:
        read = json.loads(found)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _texts(given: Any, most: int, what: str, notes: list[str]) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str):
        given = [given]
    found = [one for one in given if isinstance(one, str) and one.strip()] if isinstance(
        given, list
    ) else []  # fmt: skip
    short = [one.strip() for one in found if len(one) <= _LONGEST]
    dropped = (len(given) if isinstance(given, list) else 1) - len(short[:most])
    if dropped:
        notes.append(
            f"{dropped} of its {what} were too long, too many or no text, and were dropped"
        )
    return short[:most]


def _said(entries: Sequence[Entry]) -> Iterable[tuple[str, Quote]]:
    """Every text of the conversation that may be quoted, as whose words; not the model's own, nor
    those of lorimer."""
    for entry in entries:
        speaker = entry.meta.get("speaker")
        for part in entry.parts:
            if not isinstance(part, TextPart) or speaker == Speaker.HARNESS:
                continue
            plain = part.trust is Trust.TRUSTED and part.source in ("", USER)
            if entry.kind is Kind.USER and speaker is not None:
                yield part.text, Quote("", Speaker.MAIN_AGENT, "", part.trust, part.source)
            elif plain and (entry.kind is Kind.USER or (
                entry.kind is Kind.EVENT and part.source == USER
            )):  # fmt: skip
                yield part.text, Quote("", Speaker.USER)
            elif entry.kind in (Kind.USER, Kind.EVENT) and part.source:
                yield part.text, Quote("", Speaker.TOOL_RESULT, "event", part.trust, part.source)
        for result in entry.results:
            for one in result.content:
                if isinstance(one, TextPart):
                    about = f"{result.call_id} {result.name}"
                    source = one.source or result.name
                    yield one.text, Quote("", Speaker.TOOL_RESULT, about, one.trust, source)


def _find(wanted: str, said: Sequence[tuple[str, Quote]]) -> list[Quote]:
    """The whole sentences in which `wanted` stands: the user's, else those of the first who said
    it. Of what the user said more than once, it is the last `_LAST`: one may take back another."""
    even = _flat(wanted)
    if sum(map(str.isalnum, even)) < 3:
        return []
    users: list[Quote] = []
    for text, quote in said:
        if quote.speaker is Speaker.USER and even in _flat(text):
            users += (replace(quote, text=words) for words in _whole(even, text))
    if users:
        return list(dict.fromkeys(users))[-_LAST:]
    for text, quote in said:
        if quote.speaker is not Speaker.USER and even in _flat(text):
            found = next(_lines(even, text), "")
            if found:
                trust = quote.trust if quote.trust is Trust.EXTERNAL else Trust.USER_DATA
                return [replace(quote, text=found, trust=trust)]
    return []


def _whole(even: str, text: str) -> Iterable[str]:
    """The pieces of the user's `text` that hold `even`, each time it stands there."""
    pieces = pieces_of(text)
    flat, spans = "", list[tuple[int, int]]()
    for piece in pieces:
        words = _flat(piece.text)
        spans.append((len(flat), len(flat) + len(words)))
        flat += f"{words} "
    for start in _places(even, flat):
        held = [
            piece for piece, (first, end) in zip(pieces, spans, strict=True)
            if first < start + len(even) and start < end
        ]  # fmt: skip
        out = _together(held)
        if len(held) < len(pieces) and len(even) < _ALONE and even != _flat(out):
            continue  # a word or two that stand in many sentences
        if not any(piece.foreign for piece in held) and len(out) <= _LONGEST:
            yield out


def _together(pieces: Sequence[Piece]) -> str:
    """Pieces with what leads up to them, that once."""
    out: list[str] = []
    for piece in pieces:
        out += (line for line in piece.lead.split("\n") if line and line not in out)
        out.append(piece.text)
    return "\n".join(out)


def _lines(even: str, text: str) -> Iterator[str]:
    """The lines of a result that hold `even`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    flat, spans = "", list[tuple[int, int]]()
    for line in lines:
        words = _flat(line)
        spans.append((len(flat), len(flat) + len(words)))
        flat += f"{words} "
    for start in _places(even, flat):
        out = "\n".join(
            line for line, (first, end) in zip(lines, spans, strict=True)
            if first < start + len(even) and start < end
        )  # fmt: skip
        if len(out) <= _LONGEST:
            yield out


def _places(even: str, flat: str) -> Iterator[int]:
    """Where `even` stands in `flat` as whole words."""
    at = flat.find(even)
    while at >= 0:
        end = at + len(even)
        before = at > 0 and flat[at - 1].isalnum() and even[0].isalnum()
        after = end < len(flat) and flat[end].isalnum() and even[-1].isalnum()
        if not before and not after:
            yield at
        at = flat.find(even, at + 1)


def _flat(text: str) -> str:
    """`text` for comparing: one space between words, no capitals."""
    return _even(text).lower()


def _even(text: str) -> str:
    return " ".join(text.split())


def _figures_known(fact: str, every: str) -> bool:
    return all(figure in every for figure in _FIGURE.findall(fact))
