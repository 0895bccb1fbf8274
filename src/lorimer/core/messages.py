"""Messages as records: content parts and the entries of a trajectory.

Everything here is frozen and can be written to disk and read back unchanged (`part_to_json`,
`part_from_json`, `Entry.to_json`, `Entry.from_json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.clock import from_rfc3339, to_rfc3339
from lorimer.core.trust import Trust


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text. `source` says where it came from when it is not the speaker's own words."""

    text: str
    trust: Trust = Trust.TRUSTED
    source: str = ""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: base64 `data`, or a `url` the provider may fetch."""

    media_type: str
    data: str = ""
    url: str = ""
    trust: Trust = Trust.USER_DATA
    source: str = ""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file handed to the model whole: base64 `data`."""

    media_type: str
    name: str
    data: str
    trust: Trust = Trust.USER_DATA
    source: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """What the model thought. `opaque` is the provider's own block, handed back untouched where the
    provider demands it; it is never read or changed here."""

    text: str
    wire: str = ""
    opaque: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call the model proposed."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The one result of one call. `content` holds text and image parts only."""

    call_id: str
    name: str
    content: tuple[TextPart | ImagePart, ...]
    is_error: bool
    outcome: Outcome


Part = TextPart | ImagePart | FilePart | ReasoningPart | CallPart | ResultPart


class Kind(StrEnum):
    """What kind of thing happened.

    `NOTE` is a word of the harness itself to the model, `EVENT` a batch of what arrived, `STATUS`
    the status bar, `SKILLS` the catalogue of skills. `COMPACTION` says that earlier entries are
    sent in another form from here on, `REBASE` that the prefix is another one, `ARCHIVE` keeps what
    lorimer noted for itself (the note of a turn, a compaction that failed); these three stand in
    the record only (`lorimer.context.trajectory`).
    """

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    NOTE = "note"
    EVENT = "event"
    STATUS = "status"
    SKILLS = "skills"
    COMPACTION = "compaction"
    REBASE = "rebase"
    ARCHIVE = "archive"


BESIDE = frozenset({Kind.STATUS, Kind.SKILLS, Kind.COMPACTION, Kind.REBASE, Kind.ARCHIVE})
"""Kinds of entries that nobody has to answer."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a session.

    An `ASSISTANT` entry with calls is followed at once by one `TOOL_RESULT` entry that holds the
    results of all of them, in call order.

    Attributes:
        seq: 0, 1, 2 … in the session; -1 before the store has taken it.
        meta: facts that are not content: for `ASSISTANT` the model, stop reason and usage.
    """

    kind: Kind
    parts: tuple[Part, ...]
    at: datetime
    seq: int = -1
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, TextPart))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(p.call for p in self.parts if isinstance(p, CallPart))

    @property
    def results(self) -> tuple[ResultPart, ...]:
        return tuple(p for p in self.parts if isinstance(p, ResultPart))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "at": to_rfc3339(self.at),
            "parts": [part_to_json(p) for p in self.parts],
            "meta": dict(self.meta),
        }

    @staticmethod
    def from_json(record: Mapping[str, Any], seq: int) -> Entry:
        return Entry(
            kind=Kind(record["kind"]),
            parts=tuple(part_from_json(p) for p in record["parts"]),
            at=from_rfc3339(record["at"]),
            seq=seq,
            meta=record["meta"],
        )


def part_to_json(part: Part) -> dict[str, Any]:
    """`part` as a plain JSON object; `part_from_json` reads it back."""
    match part:
        case TextPart(text, trust, source):
            out: dict[str, Any] = {"type": "text", "text": text}
            if trust is not Trust.TRUSTED or source:
                out |= {"trust": str(trust), "source": source}
            return out
        case ImagePart(media_type, data, url, trust, source):
            return {"type": "image", "media_type": media_type, "data": data, "url": url,
                    "trust": str(trust), "source": source}  # fmt: skip
        case FilePart(media_type, name, data, trust, source):
            return {"type": "file", "media_type": media_type, "name": name, "data": data,
                    "trust": str(trust), "source": source}  # fmt: skip
        case ReasoningPart(text, wire, opaque):
            return {"type": "reasoning", "text": text, "wire": wire, "opaque": opaque}
        case CallPart(call):
            out = {"type": "call", "id": call.id, "name": call.name, "raw": call.raw}
            if call.opaque is not None:
                out["opaque"] = call.opaque
            return out
        case ResultPart(call_id, name, content, is_error, outcome):
            return {"type": "result", "call_id": call_id, "name": name, "is_error": is_error,
                    "outcome": str(outcome),
                    "content": [part_to_json(p) for p in content]}  # fmt: skip


def part_from_json(record: Mapping[str, Any]) -> Part:
    """The part that `part_to_json` wrote.

    Raises:
        ValueError: when the record is of no known type.
    """
    match record["type"]:
        case "text":
            return TextPart(
                record["text"],
                Trust(record.get("trust", Trust.TRUSTED)),
                record.get("source", ""),
            )
        case "image":
            return ImagePart(record["media_type"], record["data"], record["url"],
                             Trust(record["trust"]), record["source"])  # fmt: skip
        case "file":
            return FilePart(record["media_type"], record["name"], record["data"],
                            Trust(record["trust"]), record["source"])  # fmt: skip
        case "reasoning":
            return ReasoningPart(record["text"], record["wire"], record["opaque"])
        case "call":
            return CallPart(
                ToolCall(record["id"], record["name"], record["raw"], opaque=record.get("opaque"))
            )
        case "result":
            content = tuple(part_from_json(p) for p in record["content"])
            assert all(isinstance(p, TextPart | ImagePart) for p in content)
            return ResultPart(record["call_id"], record["name"], content,  # type: ignore[arg-type]
                              record["is_error"], Outcome(record["outcome"]))  # fmt: skip
        case other:
            raise ValueError(f"unknown part type {other!r}")
