"""Find tool calls in free text, leniently, for models that write without a constraint.

Forms read: `<tool_call>…</tool_call>`, a fenced code block, bare JSON (object, list, or objects one
after another), and Python calls `f(a=1)`, alone or in a list. The arguments of a call are the exact
slice of the text where they are JSON; for Python calls, which have no JSON, they are written out
from the literals.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from lorimer.core.calls import ToolCall

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "kwargs")
_WHITE = re.compile(r"[\s,]*")
_decoder = json.JSONDecoder(strict=False)


def parse_text(text: str) -> tuple[str, list[ToolCall]]:
    """What was said and what was called.

    Returns:
        The text without the calls, and the calls in order, without ids. Text that holds no call
        comes back whole, except that a `{"say": …}` object is unwrapped.
    """
    text = _THOUGHT.sub("", text)
    for pattern in (_TAGGED, _FENCED):
        calls: list[ToolCall] = []
        taken: list[tuple[int, int]] = []
        for found in pattern.finditer(text):
            inside = _calls_of(found[1])
            if inside:
                calls += inside
                taken.append(found.span())
        if calls:
            return _without(text, taken), calls
    said = _said(text.strip())
    if said is not None:
        return said, []
    calls = _calls_of(text.strip())
    if calls:
        return "", calls
    calls, span = _embedded(text)
    if calls:
        return _without(text, [span]), calls
    return text.strip(), []


def _calls_of(body: str) -> list[ToolCall]:
    """The calls of a text that is nothing but calls; empty when it is not."""
    return list(_json_calls(body)) or _python_calls(body)


def _json_calls(body: str) -> Iterator[ToolCall]:
    at = 0
    found: list[ToolCall] = []
    while at < len(body):
        gap = _WHITE.match(body, at)
        at = gap.end() if gap else at
        if at == len(body):
            break
        try:
            value, end = _decoder.raw_decode(body, at)
        except (ValueError, RecursionError):
            if body[at] != "[":
                break
            at += 1  # a list without its end: its whole members count
            continue
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            inside = [_call_in(body, start) for start, _ in _members(body, at)]
            if any(call is None for call in inside):
                return
            found += [call for call in inside if call is not None]
        elif isinstance(value, dict):
            call = _call_in(body, at)
            if call is None:
                return
            found.append(call)
        else:
            return
        at = end
    yield from found


def _call_in(body: str, start: int) -> ToolCall | None:
    """The call that the JSON object at `start` is, with its exact argument text."""
    value, _ = _decoder.raw_decode(body, start)
    fields = {key: (at, end) for key, at, end in _fields(body, start)}
    if isinstance(value.get("function"), dict) and "function" in fields:
        return _call_in(body, fields["function"][0])
    name_key = next((k for k in _NAME_KEYS if isinstance(value.get(k), str)), None)
    if name_key is not None:
        for key in _ARGUMENT_KEYS:
            if key in fields and isinstance(value[key], dict | str):
                at, end = fields[key]
                raw = body[at:end]
                if isinstance(value[key], str):
                    raw = value[key]  # arguments as a JSON text inside a string
                return ToolCall("", value[name_key], raw)
        return ToolCall("", value[name_key], "{}") if len(value) == 1 else None
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if isinstance(arguments, dict) and re.fullmatch(r"[A-Za-z_][\w.]*", name):
            at, end = fields[name]
            return ToolCall("", name, body[at:end])
    return None


def _fields(body: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Key, begin and end of the value, for each member of the object at `start`."""
    at = start + 1
    while True:
        at = _skip(body, at)
        if body[at] == "}":
            return
        key, at = _decoder.raw_decode(body, at)
        at = _skip(body, body.index(":", at) + 1)
        _, end = _decoder.raw_decode(body, at)
        yield key, at, end
        at = end


def _members(body: str, start: int) -> Iterator[tuple[int, int]]:
    at = start + 1
    while True:
        at = _skip(body, at)
        if body[at] == "]":
            return
        _, end = _decoder.raw_decode(body, at)
        yield at, end
        at = end


def _skip(body: str, at: int) -> int:
    gap = _WHITE.match(body, at)
    return gap.end() if gap else at


def _python_calls(body: str) -> list[ToolCall]:
    """Calls such as `f(a=1)` or `[f(a=1), g(b="x")]`; empty when it is anything else."""
    if "(" not in body or len(body) > 20_000:
        return []
    try:
        tree = ast.parse(body.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
    calls = []
    for node in nodes:
        call = _python_call(node)
        if call is None:
            return []
        calls.append(call)
    return calls


def _python_call(node: ast.expr) -> ToolCall | None:
    if not isinstance(node, ast.Call) or node.args:
        return None
    name = ast.unparse(node.func)
    if not re.fullmatch(r"[A-Za-z_][\w.]*", name):
        return None
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            return None
        try:
            arguments[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError):
            return None
    try:
        return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))
    except (TypeError, ValueError):
        return None


def _said(text: str) -> str | None:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and list(value) == ["say"] and isinstance(value["say"], str):
        return value["say"]
    return None


def _embedded(text: str) -> tuple[list[ToolCall], tuple[int, int]]:
    """The first JSON inside prose that is a call or a list of calls."""
    for found in re.finditer(r"[\[{]", text):
        try:
            _, end = _decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        calls = list(_json_calls(text[found.start() : end]))
        if calls:
            return calls, (found.start(), end)
    return [], (0, 0)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    out, at = [], 0
    for start, end in spans:
        out.append(text[at:start])
        at = end
    return ("".join(out) + text[at:]).strip()
