"""Repairs of broken JSON, each with the words that are told to the model. Off by default."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable
from typing import Any

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.S)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.S)


def readings(raw: str, read: Callable[[str], Any]) -> list[tuple[Any, str]]:
    """The different values that `raw` can be repaired to, with what was done for each.

    Tried: a code fence taken off, trailing commas taken out, missing closing brackets added, a
    Python literal (single quotes, `True`) read as JSON. A text cut inside a string is not
    repaired: what is missing cannot be known. What a repair leads to must be JSON by the same
        rules as any arguments.

    Args:
        read: reads JSON by the rules of the parse station; raises `ValueError`.
    """
    found: dict[str, tuple[Any, str]] = {}
    fenced = _FENCE.match(raw)
    for text, steps in (
        (raw, ()),
        *((((fenced.group(1)), ("code fence taken off",)),) if fenced else ()),
    ):
        for candidate, how in _variants(text, steps):
            try:
                value = read(candidate)
            except ValueError:
                continue
            found.setdefault(json.dumps(value, sort_keys=True), (value, how))
        literal = _python_literal(text)
        if literal is not None:
            try:
                value = read(json.dumps(literal, allow_nan=False, ensure_ascii=False))
            except (ValueError, TypeError, RecursionError):
                continue
            how = ", ".join((*steps, "a Python literal read as JSON"))
            found.setdefault(json.dumps(value, sort_keys=True), (value, how))
    return list(found.values())


def _python_literal(text: str) -> dict[str, Any] | None:
    """The object that `text` is in Python's own notation, if JSON can hold it as it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # e.g. an escape that Python does not know
            tree = ast.parse(text.strip(), mode="eval").body
            value = ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, Warning):
        return None
    if not isinstance(value, dict) or not _json_like(value) or _twice(tree):
        return None
    return value


def _json_like(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _json_like(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_json_like, value))
    return value is None or isinstance(value, str | bool | int | float)


def _twice(tree: ast.expr) -> bool:
    """Whether a key stands twice in one object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            if len(set(keys)) != len(keys):
                return True
    return False


def _variants(text: str, steps: tuple[str, ...]) -> list[tuple[str, str]]:
    out = []
    if steps:
        out.append((text, ", ".join(steps)))
    trimmed = _TRAILING_COMMA.sub(lambda m: m.group(1) or "", text)
    if trimmed != text:
        steps = (*steps, "trailing comma taken out")
        out.append((trimmed, ", ".join(steps)))
    closed = _close(trimmed)
    if closed is not None:
        out.append((closed, ", ".join((*steps, "missing closing brackets added"))))
    return out


def _close(text: str) -> str | None:
    stack: list[str] = []
    inside = escaped = False
    for character in text:
        if inside:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                inside = False
        elif character == '"':
            inside = True
        elif character in "{[":
            stack.append("}" if character == "{" else "]")
        elif character in "}]" and (not stack or stack.pop() != character):
            return None
    if inside or not stack or text.rstrip().endswith((",", ":")):
        return None
    return text + "".join(reversed(stack))
