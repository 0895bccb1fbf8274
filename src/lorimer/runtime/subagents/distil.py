"""Distilled hand-over: one request over the caller's own conversation, which rides its prompt
cache, writes what a sub-agent must know. What binds the work is quoted, and a quote that stands
nowhere is
dropped: nothing may be added on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.runtime.subagents.tags import Speaker

if TYPE_CHECKING:
    from lorimer.runtime.reply import Reply

MOST_TOKENS = 900
MOST_FACTS = 15
MOST_QUOTES = 15
_LONGEST = 600
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_FIGURE = re.compile(r"\d[\d.,:/_-]*\d|\d")

INSTRUCTION = """\
This is beside the conversation; do not go on with it, and call no tool.
Another agent is about to get the task below. It sees nothing of this conversation. Write what it \
must know to do the task well, and nothing else it could find itself, as one JSON object:
{{"facts": ["short sentences: what is known, decided, or was tried in vain"], \
"constraints": ["sentences that bind how the task may be done, copied word for word from what the \
user said or what a result says; never your own words"]}}
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
    quotes = [quote for one in wanted if (quote := _find(one, said)) is not None]
    if len(quotes) < len(wanted):
        notes.append(
            f"{len(wanted) - len(quotes)} of its constraints stand nowhere in the conversation and "
            "were dropped"
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
    """Every text of the conversation that may be quoted, as whose words; not the model's own."""
    for entry in entries:
        for part in entry.parts:
            if entry.kind in (Kind.USER, Kind.EVENT) and isinstance(part, TextPart):
                users = entry.kind is Kind.USER and "speaker" not in entry.meta
                users = users and part.trust is not Trust.EXTERNAL
                who = Speaker.USER if users else Speaker.MAIN_AGENT
                yield part.text, Quote("", who, "", part.trust, part.source)
        for result in entry.results:
            for one in result.content:
                if isinstance(one, TextPart):
                    about = f"{result.call_id} {result.name}"
                    source = one.source or result.name
                    yield one.text, Quote("", Speaker.TOOL_RESULT, about, one.trust, source)


def _find(wanted: str, said: Sequence[tuple[str, Quote]]) -> Quote | None:
    """`wanted` as a quote of the first who said it; the user's own words come first."""
    even = _even(wanted)
    if len(even) < 3:
        return None
    for text, quote in sorted(said, key=lambda pair: pair[1].speaker is not Speaker.USER):
        if even in _even(text):
            trust = quote.trust if quote.trust is Trust.EXTERNAL else Trust.USER_DATA
            return Quote(wanted.strip(), quote.speaker, quote.about, trust, quote.source)
    return None


def _even(text: str) -> str:
    return " ".join(text.split())


def _figures_known(fact: str, every: str) -> bool:
    return all(figure in every for figure in _FIGURE.findall(fact))
