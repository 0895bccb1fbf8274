"""Where the values of a JSON text stand, byte by byte; nothing is written out again.

The text is looked at as Latin-1: one character is one byte, and JSON's own marks are ASCII, so
positions in it are positions in the body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

from lorimer.core.errors import LorimerError

_SPACE = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
# Python refuses integers of more than 4,300 digits; no number is needed here.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


class Unreadable(LorimerError):
    """A body is not what its wire demands, so it has no segments."""


def value_at(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at `at`, and where it ends. Strings in it are still Latin-1 (`utf8`);
    a value that is nested too deep to be read is `None`, its end is found all the same.

    Raises:
        Unreadable: when no whole value stands there.
    """
    try:
        value, end = _decoder.raw_decode(text, at)
    except ValueError:
        raise Unreadable(f"The request body is not JSON at byte {at}.") from None
    except RecursionError:
        return None, _end_of_nested(text, at)
    return value, end


def _end_of_nested(text: str, at: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, at):
        first = text[token.start()]
        if first != '"':
            depth += 1 if first in "{[" else -1
            if depth == 0:
                return token.end()
    raise Unreadable(f"The request body ends inside a value that begins at byte {at}.")


def rest_of_members(text: str, at: int) -> Generator[tuple[str, int], int | None, None]:
    """Name and start of the value of each member of an object, from a place inside it: before a
    name, a comma or the closing brace. Whoever knows where the value ends sends that back
    (`send(end)`); otherwise it is found.

    Raises:
        Unreadable: when it is no whole object.
    """
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if text[at : at + 1] == "}":
            return
        name, at = value_at(text, at)
        at = skip(text, at)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise Unreadable(f"The request body has no member at byte {at}.")
        start = skip(text, at + 1)
        end = yield utf8(name), start
        at = value_at(text, start)[1] if end is None else end


def skip(text: str, at: int) -> int:
    """The first place from `at` on that is no white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


def next_item(text: str, at: int) -> int:
    """Behind white space and a comma."""
    return _BETWEEN.match(text, at).end()  # type: ignore[union-attr]


def utf8(text: str) -> str:
    """A string of `value_at` as what it says. Escapes have given it real characters; bytes beyond
    ASCII are still one character each."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text
