"""Events as the model reads them: a batch in one message, each with a marker, counted at the end.

What an event says can forge neither a marker nor a tag. Content that is not of the principal is
outside content: it stands in the same tags as an outside result, and its parts are labelled so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from lorimer.core.clock import to_rfc3339
from lorimer.core.errors import UsageFault
from lorimer.core.messages import Entry, Kind, Part, TextPart
from lorimer.core.trust import Trust

USER: Final = "user"
"""The `source` of parts that are the principal's own words."""
MOST_EVENTS: Final = 50
"""Events in one batch; more wait for the next."""
MOST_CHARACTERS: Final = 40_000
"""Characters of content in one batch, shared by its events; the record keeps all of it."""
_LEAST_CHARACTERS: Final = 200
_MOST_FIELD: Final = 100

_UNSEEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*"
_KIND = re.compile(r"[a-z][a-z0-9_]{0,29}(?:\.[a-z][a-z0-9_]{0,29}){0,3}")
_SPACED = _UNSEEN + r"\s*" + _UNSEEN
_MARKER = re.compile(
    r"[\[［【]" + _SPACED + _UNSEEN.join("unprocessed") + _SPACED + _UNSEEN.join("event"), re.I
)
_OWN_TAGS = ("events", "external_content", "agent_status", "skills", "context_summary", "note",
             "system", "tool_result")  # fmt: skip
_TAG = re.compile(
    r"<(?=" + _SPACED + r"/?" + _SPACED + "(?:"
    + "|".join(_UNSEEN.join(name) for name in _OWN_TAGS) + r")\b)",
    re.I,
)  # fmt: skip
_COUNT = re.compile(rf"^(?={_SPACED}\d+ events?:)", re.M | re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+|" + _UNSEEN.rstrip("*") + "+")


@dataclass(frozen=True, slots=True)
class Context:
    """The background of an event.

    Attributes:
        kind: what it is, in words with points between: `user.input`, `timer.trigger`.
        priority: `low`, `normal`, `high` or `urgent`.
        reply_to: where an answer to it belongs, e.g. the id of a message.
        relation: what it has to do with the running task, in a few words.
    """

    kind: str = "external.message"
    priority: str = "normal"
    reply_to: str = ""
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that arrived.

    Attributes:
        source: who: a name, an address, a program.
        channel: how: `terminal`, `email`, `webhook`, …
        content: what, as text.
        trust: `EXTERNAL` unless the code that posts it knows better. Only an event that is
            `TRUSTED` and whose source is `user` or the principal counts as the user's words.

    Raises:
        UsageFault: when the kind or the priority is none, or the content cannot be text.
    """

    source: str
    channel: str
    content: str
    context: Context = field(default_factory=Context)
    trust: Trust = Trust.EXTERNAL
    at: datetime | None = None

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(self.context.kind):
            raise UsageFault(
                f"{self.context.kind!r} is no kind of event.",
                next="Use lowercase words with points between, e.g. timer.trigger.",
            )
        if self.context.priority not in ("low", "normal", "high", "urgent"):
            raise UsageFault(
                f"{self.context.priority!r} is no priority.",
                next="Use low, normal, high or urgent.",
            )
        if not isinstance(self.content, str):
            raise UsageFault(
                f"The content of an event is text, not {type(self.content).__name__}.",
                next="Put files where a tool can read them, and name them.",
            )
        for text in (self.source, self.channel, self.content):
            if any(0xD800 <= ord(c) < 0xE000 for c in text):
                raise UsageFault(
                    "The event holds half a surrogate pair.",
                    next="Take it out: it is no character.",
                )

    @staticmethod
    def of_user(text: str, *, channel: str = "terminal", at: datetime | None = None) -> Event:
        """Something that the principal says."""
        return Event(USER, channel, text, Context("user.input"), Trust.TRUSTED, at)

    def is_of(self, principal: str) -> bool:
        """Whether these are the own words of the principal."""
        return self.trust is Trust.TRUSTED and self.source in (USER, principal)

    def to_json(self) -> dict[str, Any]:
        """The whole event, as it is kept in the record."""
        return {
            "source": self.source, "channel": self.channel, "content": self.content,
            "kind": self.context.kind, "priority": self.context.priority,
            "reply_to": self.context.reply_to, "relation": self.context.relation,
            "trust": str(self.trust), "at": None if self.at is None else to_rfc3339(self.at),
        }  # fmt: skip


def escaped(text: str) -> str:
    """`text` that can forge no marker, no count, and open or close none of lorimer's tags."""
    text = _MARKER.sub(lambda m: "&#91;" + m[0][1:], text)
    return _COUNT.sub("&#8203;", _TAG.sub("&lt;", text))


def batch_parts(events: Sequence[Event], principal: str = USER) -> tuple[TextPart, ...]:
    """The batch as labelled parts; joined by blank lines they are `batch_text`.

    Args:
        principal: whose own words are the user's words.

    Raises:
        UsageFault: when there are no events, or more than `MOST_EVENTS`.
    """
    if not 1 <= len(events) <= MOST_EVENTS:
        raise UsageFault(
            f"A batch holds 1 to {MOST_EVENTS} events, not {len(events)}.",
            next="Make several batches.",
        )
    shares = _shares([len(event.content) for event in events], MOST_CHARACTERS)
    parts: list[TextPart] = []
    for number, (event, share) in enumerate(zip(events, shares, strict=True), 1):
        own = event.is_of(principal)
        source = USER if own else _named(event)
        trust = Trust.TRUSTED if own else event.trust
        start = "<events>\n" if number == 1 else ""
        header = f"{start}[Unprocessed event {number}/{len(events)}] {_header(event)}"
        # What the header names came from outside too; it is no word of the user in any case.
        parts.append(TextPart(header, trust, "" if own else source))
        text = escaped(_cut(event.content, share))
        if trust is Trust.EXTERNAL:
            text = f'<external_content source="{source}">\n{text}\n</external_content>'
        parts.append(TextPart(text, trust, source))
    parts.append(TextPart(f"{_counted(events)}\n</events>"))
    return tuple(parts)


def batch_text(events: Sequence[Event], principal: str = USER) -> str:
    """The batch as the model reads it: a marker before each event, and a count by kind at the end.

    Raises:
        UsageFault: see `batch_parts`.
    """
    return "\n\n".join(part.text for part in batch_parts(events, principal))


def event_entry(
    events: Sequence[Event], at: datetime, *, principal: str = USER, seq: int = -1
) -> Entry:
    """The `EVENT` entry of a batch; its meta keeps each event whole."""
    parts: tuple[Part, ...] = batch_parts(events, principal)
    meta: Mapping[str, Any] = {"events": [event.to_json() for event in events]}
    return Entry(Kind.EVENT, parts, at, seq, meta)


def _header(event: Event) -> str:
    context = event.context
    words = [context.kind, f"from {_field(event.source)}", f"by {_field(event.channel)}"]
    if event.at is not None:
        words.append(f"at {event.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    if context.priority != "normal":
        words.append(f"priority {context.priority}")
    if context.reply_to:
        words.append(f"reply to {_field(context.reply_to)}")
    if context.relation:
        words.append(f"about {_field(context.relation)}")
    return " · ".join(words)


def _field(text: str) -> str:
    """A short text on one line, in quotes where it is more than a plain name."""
    flat = _CONTROL.sub(" ", text).strip()
    if len(flat) > _MOST_FIELD:
        flat = f"{flat[:_MOST_FIELD]}… ({len(flat)} characters)"
    flat = escaped(flat).replace("·", "•").replace('"', "'").replace("<", "&lt;")
    flat = flat.replace("[", "&#91;").replace("]", "&#93;")
    return flat if re.fullmatch(r"[\w.@+-]+", flat) else f'"{flat}"'


def _named(event: Event) -> str:
    """Where an event is from, for labels."""
    text = f"{event.channel}: {event.source}"
    return _field(text).strip('"') or "event"


def _shares(lengths: Sequence[int], room: int) -> list[int]:
    """How many characters of each may be shown: short ones whole, what is left for the long."""
    shares = list(lengths)
    left, waiting = room, sorted(range(len(lengths)), key=lambda n: lengths[n])
    while waiting:
        fair = max(_LEAST_CHARACTERS, left // len(waiting))
        number = waiting.pop(0)
        shares[number] = min(lengths[number], fair)
        left -= shares[number]
    return shares


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text or "(nothing was said)"
    head = most * 3 // 4
    tail = most - head
    left_out = len(text) - most
    return (
        f"{text[:head]}\n[… {left_out} of {len(text)} characters of this event are left out "
        f"here …]\n{text[-tail:]}"
    )


def _counted(events: Sequence[Event]) -> str:
    counts = Counter(event.context.kind for event in events)
    kinds = ", ".join(
        f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one))
    )
    return f"{len(events)} event{'s' if len(events) > 1 else ''}: {kinds}"
