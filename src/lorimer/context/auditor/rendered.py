"""Segments of prompts that are one text: what a local model reads, and the scripted form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from lorimer.context.auditor.parts import (
    MESSAGE,
    SYSTEM,
    TOOL,
    Segment,
    Split,
    label_of,
    latin_digest,
    read_tools,
    segment_of,
    tool_name,
)
from lorimer.context.auditor.scan import value_at

_OPENERS: Sequence[tuple[re.Pattern[bytes], bytes]] = (
    (re.compile(rb"<\|im_start\|>(\w+)\n"), b"<|im_end|>"),
    (re.compile(rb"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n*"), b"<|eot_id|>"),
    (re.compile(rb"<start_of_turn>(\w+)\n"), b"<end_of_turn>"),
    (re.compile(rb"<\|(system|user|assistant|tool)\|>\n?"), b"<|end|>"),
)
"""What begins a message in the templates of the common open model families, and what ends it."""
_TOOL_LINE = re.compile(
    rb'^\{"(?:name|type)": ?"[^\n]*"(?:arguments|parameters|function)": ?\{[^\n]*\}$', re.MULTILINE
)


def split_text(body: bytes) -> Split:
    prompt = _prompt_of(body)
    out = Split("local", prompt)
    return more_text(out, 0)


def _prompt_of(body: bytes) -> bytes:
    """The prompt itself; of a request to a completion server (`{"prompt": "…"}`) that field."""
    if body.lstrip()[:1] != b"{":
        return body
    try:
        record = json.loads(body)
    except ValueError:
        return body
    prompt = record.get("prompt") if isinstance(record, dict) else None
    if isinstance(prompt, str):
        return prompt.encode("utf-8", "surrogatepass")
    if isinstance(prompt, list):
        return b" ".join(str(token).encode() for token in prompt)
    return body


def more_text(out: Split, at: int) -> Split:
    """Read the prompt from `at` on. The last message counts when it is closed: the open one behind
    it is where the model writes."""
    body = out.body
    for opener, closer in _OPENERS:
        starts = list(opener.finditer(body, at))
        if not starts and not out.messages:
            continue
        if at and closer not in body[:at]:
            continue
        for place, found in enumerate(starts):
            limit = starts[place + 1].start() if place + 1 < len(starts) else len(body)
            end = body.find(closer, found.end(), limit)
            if end < 0 and limit == len(body):
                break
            stop = limit if end < 0 else end + len(closer)
            while body[stop : stop + 1] == b"\n":
                stop += 1
            role = found[1].decode()
            if role == SYSTEM and not out.messages:
                _system_text(out, found.start(), stop)
            else:
                out.messages.append(segment_of(body, MESSAGE, role, found.start(), stop))
            out.grows_at = stop
        return out
    if body:
        out.messages.append(segment_of(body, MESSAGE, "prompt", 0, len(body)))
    return out


def _system_text(out: Split, start: int, stop: int) -> None:
    place = start
    for line in _TOOL_LINE.finditer(out.body, start, stop):
        if line.start() > place and not (out.tools and line.start() == place + 1):
            out.system.append(segment_of(out.body, SYSTEM, SYSTEM, place, line.start()))
        try:
            name = tool_name(json.loads(line[0]))
        except ValueError:
            name = ""
        out.tools.append(segment_of(out.body, TOOL, name, line.start(), line.end()))
        place = line.end()
    if place < stop:
        out.system.append(segment_of(out.body, SYSTEM, SYSTEM, place, stop))


# --- the scripted model ------------------------------------------------------------------------


def split_scripted(body: bytes) -> Split:
    out = Split("scripted", body)
    text = body.decode("latin-1")
    head, end = value_at(text, 0)
    if isinstance(head, dict) and "system" in head:
        at = text.index('"system":') + len('"system":')
        out.system.append(segment_of(body, SYSTEM, SYSTEM, at, value_at(text, at)[1]))
        at = text.find('"tools":', out.system[0].end)
        if at >= 0:
            read_tools(out, text, at + len('"tools":'))
    else:
        end = 0
    out.grows_at = end
    read_values(out, text[end:], end)
    return out


def read_values(out: Split, text: str, base: int) -> None:
    at = 0
    while at < len(text):
        value, end = value_at(text, at)
        out.messages.append(
            Segment(MESSAGE, label_of(value), base + at, base + end, latin_digest(text[at:end]))
        )
        at = end
    out.grows_at = base + at
