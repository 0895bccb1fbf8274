"""What a request body is made of: segments, and the body they are cut from.

Segments stand in the order in which a provider reads them, whatever their order in the body:
tools, system, messages for Anthropic
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching), system, tools, messages for
the others, whose chat templates write the tools behind the system text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lorimer.context.auditor.scan import next_item, rest_of_members, utf8, value_at

SYSTEM: Final = "system"
TOOL: Final = "tool"
MESSAGE: Final = "message"
DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a prompt: `start` and `end` are its bytes in the body, `label` is its role, its
    tool's name, or its kind."""

    kind: str
    label: str
    start: int
    end: int
    digest: bytes

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(slots=True)
class Split:
    """A body and its segments.

    Attributes:
        system, tools, messages: in the order of the body.
        settings: the other members of the body, each as its bytes.
        grows_at: where the next message would begin, if nothing of the prompt stands behind it;
            -1 otherwise.
    """

    wire: str
    body: bytes
    system: list[Segment] = field(default_factory=list)
    tools: list[Segment] = field(default_factory=list)
    messages: list[Segment] = field(default_factory=list)
    settings: dict[str, bytes] = field(default_factory=dict)
    grows_at: int = -1

    def groups(self) -> tuple[tuple[str, list[Segment]], ...]:
        """The segments in the order in which the provider reads them."""
        if self.wire == "anthropic":
            return ((TOOL, self.tools), (SYSTEM, self.system), (MESSAGE, self.messages))
        return ((SYSTEM, self.system), (TOOL, self.tools), (MESSAGE, self.messages))

    def ordered(self) -> list[Segment]:
        return [segment for _, group in self.groups() for segment in group]

    def raw(self, segment: Segment) -> bytes:
        return self.body[segment.start : segment.end]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(s.size for s in self.system + self.tools + self.messages)


def segment_of(body: bytes, kind: str, label: str, start: int, end: int) -> Segment:
    return Segment(kind, label, start, end, digest_of(body[start:end]))


def digest_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:DIGEST_BYTES]


def latin_digest(piece: str) -> bytes:
    """The digest of bytes that are looked at as Latin-1."""
    return digest_of(piece.encode("latin-1"))


def label_of(value: Any) -> str:
    if isinstance(value, dict):
        for key in ("role", "type", "kind"):
            if isinstance(value.get(key), str):
                return utf8(value[key])
        return ""
    return "user" if isinstance(value, str) else ""


def read_tools(out: Split, text: str, at: int) -> int:
    """Take the tools of the list at `at`; where it ends. Gemini's tools are lists themselves."""
    value, end = value_at(text, at)
    for item, start, stop in _items(value, text, at):
        inner = _declarations(item, text, start)
        if inner is None:
            out.tools.append(segment_of(out.body, TOOL, tool_name(item), start, stop))
            continue
        for one, first, last in _items(*inner):
            out.tools.append(segment_of(out.body, TOOL, tool_name(one), first, last))
    return end


def _items(value: Any, text: str, at: int) -> Iterator[tuple[Any, int, int]]:
    """The items of the list `value` that stands at `at`, with their places."""
    place = at + 1
    for item in value if isinstance(value, list) else ():
        start = next_item(text, place)
        place = value_at(text, start)[1]
        yield item, start, place


def _declarations(tool: Any, text: str, at: int) -> tuple[Any, str, int] | None:
    if isinstance(tool, dict):
        for name, start in rest_of_members(text, at + 1):
            if name in ("functionDeclarations", "function_declarations"):
                found = value_at(text, start)[0]
                return (found, text, start) if isinstance(found, list) else None
    return None


def tool_name(tool: Any) -> str:
    """The name in a tool's record, of any wire."""
    if isinstance(tool, str):
        return utf8(tool)
    if isinstance(tool, dict):
        if isinstance(tool.get("function"), dict):
            tool = tool["function"]
        for key in ("name", "type"):
            if isinstance(tool.get(key), str):
                return utf8(tool[key])
    return ""
