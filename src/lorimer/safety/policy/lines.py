"""On which line of a TOML text each key stands; the parser of the standard library does not say."""

from __future__ import annotations

import re
from collections import Counter

Key = tuple[str | int, ...]
_HEADER = re.compile(r"[ \t]*(\[\[?)([^\[\]\n]*)\]")
_NAME = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_KEY = re.compile(rf"[ \t]*({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*=")
_PIECE = re.compile(_NAME)


def key_lines(text: str) -> dict[Key, int]:
    """Lines, from 1, of the headers and keys of `text`, which is valid TOML.

    A key is named by its whole way: `("policy", "rule", 0, "tool")` in the first `[[policy.rule]]`.
    Keys inside inline tables are not in it; their table is.
    """
    out: dict[Key, int] = {}
    counts: Counter[Key] = Counter()
    section: Key = ()
    at, line = 0, 1
    while at < len(text):
        header = _HEADER.match(text, at)
        key = None if header else _KEY.match(text, at)
        if header:
            section = _section(_pieces(header[2]), counts, array=header[1] == "[[")
            out.setdefault(section, line)
            end = _line_end(text, header.end())
        elif key:
            way = _pieces(key[1])
            for depth in range(1, len(way) + 1):
                out.setdefault((*section, *way[:depth]), line)
            end = _value_end(text, key.end())
        else:
            end = _line_end(text, at)
        line += text.count("\n", at, end)
        at = end
    return out


def find_line(lines: dict[Key, int], key: Key) -> int:
    """The line of `key`, or of what it stands in."""
    while key:
        if key in lines:
            return lines[key]
        key = key[:-1]
    return 1


def _pieces(text: str) -> Key:
    return tuple(piece.strip("\"'") for piece in _PIECE.findall(text))


def _section(way: Key, counts: Counter[Key], *, array: bool) -> Key:
    """The way of a header: a table below `[[a]]` belongs to its newest element."""
    out: Key = ()
    for depth, piece in enumerate(way, 1):
        out = (*out, piece)
        last = depth == len(way)
        if last and array:
            counts[out] += 1
        if counts[out]:
            out = (*out, counts[out] - 1)
    return out


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _value_end(text: str, at: int) -> int:
    """Where the value that begins at `at` and the rest of its line end."""
    depth = 0
    while at < len(text):
        char = text[at]
        if text.startswith(('"""', "'''"), at):
            at = _string_end(text, at, text[at : at + 3])
        elif char in "\"'":
            at = _string_end(text, at, char)
        elif char == "#":
            at = _line_end(text, at) - 1 if "\n" in text[at:] else len(text)
        elif char in "[{":
            depth += 1
            at += 1
        elif char in "]}":
            depth -= 1
            at += 1
        elif char == "\n":
            at += 1
            if depth <= 0:
                return at
        else:
            at += 1
    return len(text)


def _string_end(text: str, at: int, quote: str) -> int:
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    at += len(quote)
    while len(quote) == 3 and text.startswith(quote[0], at):  # quotes before the closing ones
        at += 1
    return min(at, len(text))
