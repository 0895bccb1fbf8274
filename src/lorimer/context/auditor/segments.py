"""A request body cut into segments: system, each tool, each message, and the settings beside.

A breakpoint at the end of a message (`cache_control`, Anthropic) says where the cache ends and is
no part of what is cached; it moves from request to request, and a message is the same with and
without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.context.auditor.parts import (
    MESSAGE,
    SYSTEM,
    Segment,
    Split,
    label_of,
    latin_digest,
    read_tools,
    segment_of,
)
from lorimer.context.auditor.rendered import more_text, read_values, split_scripted, split_text
from lorimer.context.auditor.scan import Unreadable, next_item, rest_of_members, skip, value_at


@dataclass(frozen=True, slots=True)
class _Names:
    """How a wire calls the parts of its body."""

    messages: str
    system: tuple[str, ...] = ()
    tools: tuple[str, ...] = ("tools",)
    leading: frozenset[str] = frozenset()
    """Roles that are system while they stand before all other messages."""


_JSON: Mapping[str, _Names] = {
    "openai_chat": _Names(
        "messages", tools=("tools", "functions"), leading=frozenset({"system", "developer"})
    ),
    "openai_responses": _Names(
        "input", ("instructions",), leading=frozenset({"system", "developer"})
    ),
    "anthropic": _Names("messages", ("system",)),
    "gemini": _Names("contents", ("systemInstruction", "system_instruction")),
}
WIRES = (*_JSON, "local", "scripted")
_BREAKPOINT = re.compile(r',"cache_control":\{[^{}]*\}(?=\}\]\}\Z)')


def split(wire: str, body: bytes) -> Split:
    """The segments of `body`, which is a request on `wire`.

    Raises:
        Unreadable: when it is none, or `wire` is unknown.
    """
    if wire == "local":
        return split_text(body)
    if wire == "scripted":
        return split_scripted(body)
    if wire not in _JSON:
        raise Unreadable(
            f"Nothing is known of the wire {wire!r}.", next=f"Known are: {', '.join(WIRES)}."
        )
    out = Split(wire, body)
    text = body.decode("latin-1")
    at = skip(text, 0)
    if text[at : at + 1] != "{":
        raise Unreadable("The request body is no JSON object.")
    _read_members(out, text, at + 1)
    return out


def message_count(wire: str, fragments: Sequence[bytes]) -> int:
    """How many messages of a request `fragments` are, each rendered as complete messages."""
    if wire in _JSON:
        return sum(len(json.loads(b"[" + one + b"]")) for one in fragments)
    return len(fragments)


def extend(old: Split, body: bytes) -> Split | None:
    """The segments of `body`, which begins with the bytes of `old` up to `old.grows_at`: only what
    is new is read. `None` when it must be read whole."""
    at = old.grows_at
    out = Split(old.wire, body, old.system, old.tools, [*old.messages])
    if old.wire == "local":
        return more_text(out, at) if old.messages else None
    if old.wire == "scripted":
        read_values(out, body[at:].decode("latin-1"), at)
        return out
    text = body[at:].decode("latin-1")
    messages, end = _items(text, 0, at, out.messages, _JSON[old.wire].leading)
    if messages is None:
        return None
    out.messages = messages
    out.grows_at = at + end
    if body[at + end :] == old.body[at:]:
        out.settings = old.settings  # what stands behind the messages is what stood there before
        return out
    out.settings = {
        name: value for name, value in old.settings.items() if _stands_before(old, name)
    }
    prompt = _prompt_names(old.wire)
    inside = rest_of_members(text, skip(text, end) + 1)
    for name, start in inside:
        if name in prompt:
            return None
        stop = value_at(text, start)[1]
        out.settings[name] = text[start:stop].encode("latin-1")
    return out


def _stands_before(old: Split, name: str) -> bool:
    """Whether a setting stood before the messages, in the part that did not change."""
    return old.body.find(b'"' + name.encode() + b'"', 0, old.grows_at) >= 0


def _prompt_names(wire: str) -> frozenset[str]:
    names = _JSON[wire]
    return frozenset({names.messages, *names.system, *names.tools})


def _read_members(out: Split, text: str, at: int) -> None:
    names = _JSON[out.wire]
    members: Any = rest_of_members(text, at)
    end: int | None = None
    try:
        name, start = next(members)
        while True:
            if name == names.messages:
                end = _read_messages(out, text, start, names)
            elif name in names.tools:
                end = read_tools(out, text, start)
                out.grows_at = -1
            elif name in names.system:
                end = _read_system(out, text, start, name)
                out.grows_at = -1
            else:
                end = value_at(text, start)[1]
                out.settings[name] = out.body[start:end]
            name, start = members.send(end)
    except StopIteration:
        return


def _read_messages(out: Split, text: str, at: int, names: _Names) -> int:
    if text[at : at + 1] != "[":
        _, end = value_at(text, at)  # Responses: the input may be one text
        out.messages = [segment_of(out.body, MESSAGE, "user", at, end)]
        out.grows_at = -1
        return end
    messages, end = _items(text, at + 1, 0, [], names.leading, out.system)
    if messages is None:
        raise Unreadable(f"The list of messages that begins at byte {at} has no end.")
    out.messages, out.grows_at = messages, end
    return skip(text, end) + 1


def _items(
    text: str,
    at: int,
    base: int,
    known: list[Segment],
    leading: frozenset[str],
    system: list[Segment] | None = None,
) -> tuple[list[Segment] | None, int]:
    """Messages from `at` to the end of their list; `text` begins at byte `base` of the body. Gives
    the end of the last one as well, in `text`."""
    end = at
    while True:
        at = next_item(text, end)
        here = text[at : at + 1]
        if here == "]":
            return known, end
        if not here:
            return None, end
        value, stop = value_at(text, at)
        label = label_of(value)
        said = text[at:stop]
        if said.endswith("}}]}"):
            said = _BREAKPOINT.sub("", said)
        found = Segment(MESSAGE, label, base + at, base + stop, latin_digest(said))
        if system is not None and not known and label in leading:
            system.append(Segment(SYSTEM, label, found.start, found.end, found.digest))
        else:
            known.append(found)
        end = stop


def _read_system(out: Split, text: str, at: int, name: str) -> int:
    value, end = value_at(text, at)
    if isinstance(value, list):
        place = at + 1
        for _ in value:
            place = next_item(text, place)
            stop = value_at(text, place)[1]
            out.system.append(segment_of(out.body, SYSTEM, name, place, stop))
            place = stop
    elif value is not None:
        out.system.append(segment_of(out.body, SYSTEM, name, at, end))
    return end
