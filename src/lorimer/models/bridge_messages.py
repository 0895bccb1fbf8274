"""What the bridge sends: entries as frozen records, and records as pydantic-ai's messages.

A record is canonical JSON: the kind of the entry and its parts, with ids, names, notes and
arguments as they may stand in a history. Messages are made from the frozen bytes only, never from
the entry, so that what is sent stays what was stored.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from lorimer.core.canonical import canonical_json
from lorimer.core.messages import (
    CallPart,
    Entry,
    Kind,
    Part,
    ResultPart,
    TextPart,
    part_to_json,
)
from lorimer.core.specs import ToolSpec
from lorimer.models.rendering import (
    NO_MESSAGE,
    NO_REPLY,
    arguments_json,
    described,
    encodable,
    note_text,
    wire_id,
    wire_name,
)

if TYPE_CHECKING:
    from pydantic_ai import messages as pai
    from pydantic_ai.tools import ToolDefinition

WIRE: Final = "bridge"
OURS: Final = "pydantic_ai"
"""The key in an `opaque` object under which pydantic-ai's own fields are kept."""


def render_prefix(system: str, tools: Sequence[ToolSpec]) -> bytes:
    """The system prompt and the tools as a record."""
    listed = [
        {"name": t.name, "description": described(t), "input_schema": t.input_schema} for t in tools
    ]
    return _record({"system": system, "tools": listed})


def render_entry(entry: Entry, id_pattern: str) -> bytes:
    """`entry` as a record."""
    parts = [_sendable(part, entry.kind, id_pattern) for part in entry.parts]
    return _record({"kind": str(entry.kind), "parts": parts})


def _sendable(part: Part, kind: Kind, id_pattern: str) -> dict[str, Any]:
    match part:
        case TextPart(text) if kind is Kind.NOTE:
            part = TextPart(note_text(text))
        case CallPart(call):
            name, raw = wire_name(call.name), arguments_json(call.raw)
            part = CallPart(replace(call, id=wire_id(call.id, id_pattern), name=name, raw=raw))
        case ResultPart():
            call_id = wire_id(part.call_id, id_pattern)
            part = replace(part, call_id=call_id, name=wire_name(part.name))
    return part_to_json(part)


def _record(value: Mapping[str, Any]) -> bytes:
    try:
        return canonical_json(value)
    except UnicodeEncodeError:  # Half a surrogate pair: the record of the session keeps it.
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return encodable(text).encode()


def prefix_of(rendered: bytes) -> tuple[str, list[ToolDefinition]]:
    """The system prompt and the tools that `render_prefix` wrote. Never strict: pydantic-ai
    rewrites a schema for that."""
    from pydantic_ai.tools import ToolDefinition

    record = json.loads(rendered)
    tools = [
        ToolDefinition(
            name=t["name"],
            description=t["description"],
            parameters_json_schema=t["input_schema"],
            strict=False,
        )
        for t in record["tools"]
    ]
    return record["system"], tools


@dataclass(frozen=True, slots=True)
class Reading:
    """What decides how a record becomes a message.

    Attributes:
        images, documents: whether the model reads them; what it cannot read is named instead.
        hand_back: whether this reasoning may go back to the model in this response.
    """

    images: bool
    documents: bool
    hand_back: Callable[[pai.ModelResponse, pai.ThinkingPart], bool]


@dataclass(slots=True)
class History:
    """The messages of one growing list of records; each record is read once."""

    reading: Reading
    fragments: list[bytes] = field(default_factory=list)
    _read: list[list[pai.ModelRequestPart] | pai.ModelResponse] = field(default_factory=list)

    def messages(self, system: str, fragments: Sequence[bytes]) -> list[pai.ModelMessage]:
        """All messages of a request. Neighbours of the user's side are one message, and between two
        answers stands a message that says that none was recorded."""
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

        self._take(fragments)
        out: list[pai.ModelMessage] = []
        waiting: list[pai.ModelRequestPart] = [SystemPromptPart(system)] if system else []
        for message in self._read:
            if isinstance(message, list):
                waiting += message
                continue
            if out and not waiting:
                waiting = [UserPromptPart(NO_MESSAGE)]
            if waiting:
                out.append(ModelRequest(waiting))
            out.append(message)
            waiting = []
        return [*out, ModelRequest(waiting)] if waiting else out

    def _take(self, fragments: Sequence[bytes]) -> None:
        known = 0
        for mine, given in zip(self.fragments, fragments, strict=False):
            if mine is not given:
                break
            known += 1
        del self.fragments[known:], self._read[known:]
        for fragment in fragments[known:]:
            self._read.append(_message(json.loads(fragment), self.reading))
            self.fragments.append(fragment)


def _message(
    record: Mapping[str, Any], reading: Reading
) -> list[pai.ModelRequestPart] | pai.ModelResponse:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    kind, parts = Kind(record["kind"]), record["parts"]
    if kind is Kind.ASSISTANT:
        return _answer(parts, reading)
    if kind is Kind.TOOL_RESULT:
        return [
            ToolReturnPart(
                part["name"],
                _content(part["content"], reading) or "",
                part["call_id"],
                outcome="failed" if part["is_error"] else "success",
            )
            for part in parts
        ]
    return [UserPromptPart(_content(parts, reading) or NO_MESSAGE)]


def _content(parts: Iterable[Mapping[str, Any]], reading: Reading) -> Any:
    """Text as one text; with media, a list in order."""
    items = [_item(part, reading) for part in parts]
    if all(isinstance(item, str) for item in items):
        return "\n\n".join(items)
    return [item for item in items if item]


def _item(part: Mapping[str, Any], reading: Reading) -> Any:
    from pydantic_ai.messages import BinaryContent, ImageUrl

    if part["type"] == "text":
        return part["text"]
    image = part["type"] == "image"
    if not (reading.images if image else reading.documents):
        name = part.get("name") or part.get("source") or part["type"]
        return f"[{name} ({part['media_type']}) cannot be shown to this model]"
    if image and part["url"]:
        return ImageUrl(part["url"], media_type=part["media_type"] or None)
    return BinaryContent(base64.b64decode(part["data"]), media_type=part["media_type"])


def _answer(parts: Sequence[Mapping[str, Any]], reading: Reading) -> pai.ModelResponse:
    from pydantic_ai.messages import ModelResponse, ThinkingPart, ToolCallPart
    from pydantic_ai.messages import TextPart as PaiText

    response: dict[str, Any] = {}
    made: list[Any] = []
    thoughts: list[int] = []
    for part in parts:
        opaque = part.get("opaque") or {}
        own = opaque.get(OURS) if isinstance(opaque, Mapping) else None
        fields: dict[str, Any] = own["fields"] if own else {}
        response = response or (own or {}).get("response", {})
        if part["type"] == "text":
            made.append(PaiText(part["text"]))
        elif part["type"] == "call":
            made.append(ToolCallPart(part["name"], part["raw"], part["id"], **fields))
        elif own is None:
            continue  # Reasoning of another wire is never sent.
        elif own["of"] == "thinking":
            thoughts.append(len(made))
            made.append(ThinkingPart(part["text"], **fields))
        elif own["of"] == "text" and made and isinstance(made[-1], PaiText):
            made[-1] = replace(made[-1], **fields)
        elif own["of"] == "late":
            at = thoughts[own["nth"]]
            made[at] = replace(made[at], **fields)
    answer = ModelResponse([], **response)
    kept = [p for p in made if not isinstance(p, ThinkingPart) or reading.hand_back(answer, p)]
    if all(isinstance(p, ThinkingPart) for p in kept):
        kept.append(PaiText(NO_REPLY))
    return replace(answer, parts=kept)


def own_fields(
    part: Any, *, of: str, response: Mapping[str, str], nth: int | None = None
) -> dict[str, Any]:
    """The `opaque` object that keeps what pydantic-ai wants back beside a part: `id`, `signature`,
    `provider_name`, `provider_details`, and of the whole answer what it checks them by.

    Args:
        of: `thinking`, `call`; `text` for the text that stands before; `late` for what was added to
            thought number `nth` of the answer after it had ended (then with its whole content).
    """
    from pydantic_core import to_jsonable_python

    names = ["id", "signature", "provider_name", "provider_details"]
    if of == "late":
        names.append("content")
    fields = {name: getattr(part, name, None) for name in names}
    own: dict[str, Any] = {
        "of": of,
        "fields": to_jsonable_python({k: v for k, v in fields.items() if v is not None}),
    }
    if nth is not None:
        own["nth"] = nth
    if response:
        own["response"] = dict(response)
    return {OURS: own}
