"""From what a function returned to content parts and a JSON value; nothing is cut or guessed."""

from __future__ import annotations

import json
from typing import Any

from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.trust import Trust
from lorimer.tools.tool import Tool

NOTHING = "(the tool returned nothing)"


class NotJson(TypeError):
    """A tool returned something that is neither text, nor parts, nor JSON."""


def to_content(value: Any, tool: Tool) -> tuple[tuple[TextPart | ImagePart, ...], Any]:
    """Parts for the model, and the value for checks.

    Raises:
        NotJson: naming the type that JSON cannot hold.
    """
    return label(parts_of(value), tool.trust, tool.name)


def parts_of(value: Any) -> tuple[tuple[TextPart | ImagePart, ...], Any]:
    """Parts and value, before the label. Half surrogate pairs (file names that are not UTF-8)
    become visible escapes: no request can hold them.

    Raises:
        NotJson: naming the type that JSON cannot hold.
    """
    if isinstance(value, str):
        text = whole_characters(value)
        return (TextPart(text),), text
    if value is None:
        return (TextPart(NOTHING),), None
    if isinstance(value, TextPart | ImagePart):
        value = (value,)
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(v, TextPart | ImagePart) for v in value)
    ):
        parts = tuple(map(_checked, value))
        texts = [p.text for p in parts if isinstance(p, TextPart)]
        return parts, "".join(texts) if texts else None
    plain = _plain(value)
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as fault:
        raise NotJson(f"it returned {_name(value)}, which JSON cannot hold: {fault}") from fault
    return (TextPart(whole_characters(text)),), plain


def whole_characters(text: str) -> str:
    r"""`text` with half surrogate pairs written as `\udc80`."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _checked(part: TextPart | ImagePart) -> TextPart | ImagePart:
    if isinstance(part, TextPart):
        if not isinstance(part.text, str):
            raise NotJson(f"it returned a TextPart of {_name(part.text)}; its text must be a str")
        return TextPart(whole_characters(part.text), part.trust, part.source)
    if not isinstance(part.data, str) or not isinstance(part.url, str):
        raise NotJson("it returned an ImagePart whose data is not text; encode the bytes as base64")
    return part


def label(
    made: tuple[tuple[TextPart | ImagePart, ...], Any], trust: Trust, source: str
) -> tuple[tuple[TextPart | ImagePart, ...], Any]:
    """Put the tool's trust label on every part that has none of its own."""
    parts, value = made
    out: list[TextPart | ImagePart] = []
    for part in parts:
        if part.source:
            out.append(part)
        elif isinstance(part, TextPart):
            out.append(TextPart(part.text, trust, source))
        else:
            out.append(ImagePart(part.media_type, part.data, part.url, trust, source))
    return tuple(out), value


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if type(value) in (dict, list):
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            pass
        else:
            return value
    if isinstance(value, bytes | bytearray | memoryview):
        raise NotJson(f"it returned {len(value)} bytes; return text, a path, or an ImagePart")
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, inf_nan_mode="constants", bytes_mode="utf8")
    except PydanticSerializationError as fault:
        raise NotJson(f"it returned {_name(value)}, which JSON cannot hold: {fault}") from fault
    except Exception as fault:  # code of the value itself may run here
        raise NotJson(f"it returned {_name(value)}, which JSON cannot hold: {fault}") from fault


def _name(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a ")
