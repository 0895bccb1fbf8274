"""JSON as it stood on the wire: parsing that never fails on a number, and exact slices of a text.

Arguments that a provider sends as an object must be recorded as they were written (G4), so their
text is cut out of the event, not serialised again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from lorimer.core.errors import BadAnswer

# Python refuses integers of more than 4,300 digits; nothing we read as a number is near that.
_MAX_DIGITS = 4000
_SPACE = " \t\n\r"


def _integer(text: str) -> int | str:
    return int(text) if len(text) < _MAX_DIGITS else text


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)
_skipper = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def event_object(data: str) -> dict[str, Any]:
    """The JSON object of one event.

    Raises:
        BadAnswer: when `data` is not JSON, or no object.
    """
    try:
        value = _decoder.decode(data)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(
            f"The provider sent an event that is not JSON ({error}): {data[:200]!r}",
            next="Ask again; if it stays so, the base URL may belong to another protocol.",
        ) from None
    if not isinstance(value, dict):
        raise BadAnswer(f"The provider sent an event that is not an object: {data[:200]!r}")
    return value


def is_object(text: str) -> bool:
    """Whether `text` is one valid JSON object (RFC 8259; no NaN, nothing behind it)."""
    try:
        return isinstance(_skipper.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def slice_at(text: str, path: Sequence[str | int]) -> str:
    """The text of the value at `path` in the valid JSON `text`, byte for byte.

    Raises:
        KeyError: when nothing stands there.
    """
    start, end = _skip(text, 0), len(text)
    for step in path:
        start, end = (
            _member(text, start, step) if isinstance(step, str) else _item(text, start, step)
        )
    return text[start:end] if path else text[start:end].rstrip(_SPACE)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _member(text: str, at: int, key: str) -> tuple[int, int]:
    found: tuple[int, int] | None = None
    if text[at] != "{":
        raise KeyError(key)
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _skipper.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)  # over the colon
        _, end = _skipper.raw_decode(text, start)
        if name == key:
            found = (start, end)  # the last one wins, as in json.loads
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    if found is None:
        raise KeyError(key)
    return found


def _item(text: str, at: int, index: int) -> tuple[int, int]:
    if text[at] != "[":
        raise KeyError(index)
    at = _skip(text, at + 1)
    number = 0
    while text[at] != "]":
        _, end = _skipper.raw_decode(text, at)
        if number == index:
            return at, end
        number += 1
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    raise KeyError(index)
