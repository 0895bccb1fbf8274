"""The forms in which a value may stand in a text: as it is, and as programs encode it."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

from lorimer.safety.secrets.vault import SHORTEST_REDACTED

_LINE = 16
"""Characters that a line of a longer value must have to be looked for by itself."""


def forms_of(value: str) -> set[str]:
    """Every text that gives `value` away; empty for a value too short to be looked for.

    Plain, JSON and Python escapes, URL and HTML encoding, hex, base64 (both alphabets) at each of
    the three places that it can have in a longer encoded text, and each long line of a value that
    has several. Not: other encryptions or compressions of it, and pieces of it.
    """
    out: set[str] = set()
    for text in {value, value.strip(), *_lines(value)}:
        if len(text) >= SHORTEST_REDACTED:
            out |= _forms(text)
    return {form for form in out if len(form) >= SHORTEST_REDACTED}


def _lines(value: str) -> list[str]:
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) < 2:
        return []
    return [line for line in lines if len(line) >= _LINE and not line.startswith("-----")]


def _forms(text: str) -> set[str]:
    data = text.encode("utf-8")
    quoted = {quote(text, safe=""), quote(text), quote_plus(text)}
    out = {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
        html.escape(text, quote=False),
        data.hex(),
        data.hex().upper(),
        *quoted,
        *map(_lower_escapes, quoted),
    }
    for before in range(3):
        inner = _inner_base64(data, before)
        out |= {inner, inner.replace("+", "-").replace("/", "_")}
    return out


def _lower_escapes(quoted: str) -> str:
    head, *rest = quoted.split("%")
    return "%".join([head, *(piece[:2].lower() + piece[2:] for piece in rest)])


def _inner_base64(data: bytes, before: int) -> str:
    """The characters of base64 that depend on `data` alone when `before` bytes (mod 3) stand in
    front of it (RFC 4648: 6 bits a character)."""
    encoded = base64.b64encode(bytes(before) + data).decode("ascii").rstrip("=")
    first = -(-before * 8 // 6)
    last = (before + len(data)) * 8 // 6
    return encoded[first:last]
