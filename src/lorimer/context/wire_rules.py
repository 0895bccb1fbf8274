"""The message rules of each provider, as strict as the provider or stricter. Pure functions over a
parsed body; each returns every fault it finds, in words.

Sources: https://developers.openai.com/api/docs/guides/function-calling ·
https://developers.openai.com/api/reference/resources/responses ·
https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use ·
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages ·
https://ai.google.dev/gemini-api/docs/function-calling
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

DUPLICATE_KEYS = "\0duplicate keys"
"""Marks a parsed object in which a key stood twice."""

_RESPONSES_INPUT = ("input_text", "input_image", "input_file")
_GEMINI_DATA = {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class _Calls:
    """Which calls are open, which ids are used."""

    def __init__(self, pattern: str, extra_pattern: str) -> None:
        self.faults: list[str] = []
        self.open: dict[str, str] = {}
        self._used: set[str] = set()
        self._patterns = [re.compile(p) for p in (pattern, extra_pattern) if p]

    def call(self, where: str, call_id: Any, name: Any) -> None:
        if not isinstance(call_id, str) or not all(p.fullmatch(call_id) for p in self._patterns):
            self.faults.append(f"{where}: the call id {call_id!r} is not of the right form")
        elif call_id in self._used:
            self.faults.append(f"{where}: the call id {call_id!r} is used twice")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.faults.append(f"{where}: the name {name!r} is not of the right form")
        self._used.add(str(call_id))
        self.open[str(call_id)] = str(name)

    def result(self, where: str, call_id: Any, name: Any = None) -> None:
        opened = self.open.pop(str(call_id), None)
        if opened is None:
            self.faults.append(f"{where}: a result for {call_id!r}, which is not an open call")
        elif name is not None and name != opened:
            self.faults.append(f"{where}: the result of {opened!r} is called {name!r}")

    def none_open(self, where: str) -> None:
        if self.open:
            self.faults.append(f"{where}: no result yet for {', '.join(self.open)}")
            self.open.clear()

    def say(self, fault: str) -> None:
        self.faults.append(fault)


def openai_chat(
    body: Mapping[str, Any],
    *,
    alternate: bool = False,
    id_pattern: str = "",
    status_role: str = "",
) -> list[str]:
    """Chat Completions."""
    calls = _Calls(r".{1,64}", id_pattern)
    _common(body, calls, "model")
    names = _tools(calls, (t.get("function", {}) for t in body.get("tools", ())), "parameters")
    choice = body.get("tool_choice", "auto")
    wanted = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    _choice(calls, choice, wanted, names, ("auto", "none", "required"))
    previous = ""
    for where, message in _records(calls, body, "messages"):
        role = message.get("role")
        content = message.get("content")
        if role == "tool":
            calls.result(where, message.get("tool_call_id"))
            if not isinstance(content, str | list):
                calls.say(f"{where}: a tool message needs content")
            _kinds(calls, where, content, "text")
        else:
            calls.none_open(where)
        if role == status_role and previous not in ("", "system"):
            _not_empty(calls, where, content)
            continue  # a word of the operator, which may stand behind any message
        if role in ("system", "developer"):
            if previous not in ("", "system"):
                calls.say(f"{where}: a {role} message after the start")
            role = "system"
        elif role == "assistant":
            _chat_assistant(calls, where, message)
        elif role == "user":
            _not_empty(calls, where, content)
            _kinds(calls, where, content, "text", "image_url", "file", "input_audio")
        elif role != "tool":
            calls.say(f"{where}: unknown role {role!r}")
        if alternate:
            _alternates(calls, where, previous, str(role))
        previous = str(role)
    calls.none_open("end")
    if previous not in ("user", "tool"):
        calls.say(f"end: the last message is {previous!r}, there is nothing to answer")
    return calls.faults


def _chat_assistant(calls: _Calls, where: str, message: Mapping[str, Any]) -> None:
    tool_calls = message.get("tool_calls")
    if tool_calls is None:
        _not_empty(calls, where, message.get("content"))
        return
    if not isinstance(tool_calls, list) or not tool_calls:
        calls.say(f"{where}: tool_calls is empty")
        return
    for call in tool_calls:
        function = call.get("function", {})
        if call.get("type") != "function":
            calls.say(f"{where}: a call of type {call.get('type')!r}")
        calls.call(where, call.get("id"), function.get("name"))
        _arguments(calls, where, function.get("arguments"))


def _alternates(calls: _Calls, where: str, previous: str, role: str) -> None:
    """After a tool message comes the next tool message or an answer; else user and assistant."""
    allowed = {
        "": ("system", "user"),
        "system": ("user",),
        "user": ("assistant",),
        "tool": ("tool", "assistant"),
        "assistant": ("user", "tool"),
    }
    if role not in allowed.get(previous, ()):
        calls.say(f"{where}: {role} after {previous or 'the start'} does not alternate")


def openai_responses(
    body: Mapping[str, Any],
    *,
    alternate: bool = False,
    id_pattern: str = "",
    status_role: str = "",
) -> list[str]:
    """Responses, without state on the server."""
    calls = _Calls(r".{1,64}", id_pattern)
    _common(body, calls, "model")
    names = _tools(calls, body.get("tools", ()), "parameters")
    choice = body.get("tool_choice", "auto")
    wanted = choice.get("name") if isinstance(choice, dict) else None
    _choice(calls, choice, wanted, names, ("auto", "none", "required"))
    if not isinstance(body.get("instructions", ""), str):
        calls.say("instructions is not text")
    reasoning, last = "", ""
    items: set[Any] = set()
    for where, item in _records(calls, body, "input"):
        kind = item.get("type", "message")
        role = item.get("role", "") if kind == "message" else ""
        if role in ("system", "developer") and last not in ("", "system", "developer"):
            if role != status_role:
                calls.say(f"{where}: a {role} message after the start")
            calls.none_open(where)
            _not_empty(calls, where, item.get("content"))
            _kinds(calls, where, item.get("content"), *_RESPONSES_INPUT)
            continue
        last = role if kind == "message" else kind
        if reasoning and last not in ("assistant", "function_call", "reasoning"):
            calls.say(f"{where}: the reasoning before it led to nothing")
        reasoning = where if kind == "reasoning" else ""
        if item.get("id") is not None:
            if item["id"] in items:
                calls.say(f"{where}: the item id {item['id']!r} is used twice")
            items.add(item["id"])
        if kind == "function_call":
            calls.call(where, item.get("call_id"), item.get("name"))
            _arguments(calls, where, item.get("arguments"))
        elif kind == "function_call_output":
            calls.result(where, item.get("call_id"))
            if not isinstance(item.get("output"), str | list):
                calls.say(f"{where}: a result needs output")
            _kinds(calls, where, item.get("output"), *_RESPONSES_INPUT)
        elif kind == "message":
            if item.get("role") not in ("user", "assistant", "system", "developer"):
                calls.say(f"{where}: unknown role {item.get('role')!r}")
            if item.get("role") != "assistant":
                calls.none_open(where)
            _not_empty(calls, where, item.get("content"))
            said = item.get("role") == "assistant"
            kinds = ("output_text", "refusal") if said else _RESPONSES_INPUT
            _kinds(calls, where, item.get("content"), *kinds)
        elif kind == "reasoning":
            if not isinstance(item.get("summary"), list) or not item.get("encrypted_content"):
                calls.say(f"{where}: reasoning without summary or encrypted content")
        else:
            calls.say(f"{where}: unknown item {kind!r}")
    calls.none_open("end")
    if last not in ("user", "function_call_output"):
        calls.say(f"end: the last item is {last!r}, there is nothing to answer")
    return calls.faults


_MOST_BREAKPOINTS = 4


def _breakpoints(value: Any) -> int:
    """How many cache breakpoints stand in a Messages body; the one of the whole body counts. What
    is inside arguments and schemas is none."""
    if isinstance(value, list):
        return sum(map(_breakpoints, value))
    if not isinstance(value, dict):
        return 0
    inner = [v for k, v in value.items() if k in ("tools", "system", "messages", "content")]
    return (value.get("cache_control") is not None) + sum(map(_breakpoints, inner))


def anthropic(
    body: Mapping[str, Any],
    *,
    alternate: bool = False,
    id_pattern: str = "",
    status_role: str = "",
) -> list[str]:
    """Messages."""
    calls = _Calls(r"[a-zA-Z0-9_-]{1,128}", id_pattern)
    _common(body, calls, "model")
    names = _tools(calls, body.get("tools", ()), "input_schema")
    choice = body.get("tool_choice", {"type": "auto"})
    kind = choice.get("type") if isinstance(choice, dict) else choice
    _choice(calls, choice, choice.get("name") if kind == "tool" else None, names,
            ("auto", "any", "none", "tool"), kind)  # fmt: skip
    bound = body.get("max_tokens")
    if not isinstance(bound, int) or isinstance(bound, bool) or bound < 1:
        calls.say("max_tokens is missing or no positive number")
    marks = _breakpoints(body)
    if marks > _MOST_BREAKPOINTS:
        calls.say(f"{marks} cache breakpoints; there may be {_MOST_BREAKPOINTS}")
    thinking = (body.get("thinking") or {}).get("type") == "enabled"
    previous = ""
    for where, message in _records(calls, body, "messages"):
        role = message.get("role")
        blocks = _blocks(message.get("content"))
        if not blocks:
            calls.say(f"{where}: no content")
        if not previous and role != "user":
            calls.say(f"{where}: the first message must be of the user")
        if alternate and role == previous:
            calls.say(f"{where}: {role} after {previous} does not alternate")
        if role == "user":
            _anthropic_user(calls, where, blocks)
        elif role == "assistant":
            calls.none_open(where)
            _anthropic_assistant(calls, where, blocks, thinking)
        elif role == "system" and status_role == "system":
            _anthropic_system(calls, where, blocks, previous)
        elif role == "system":
            calls.say(f"{where}: this model takes no system message among the messages")
        else:
            calls.say(f"{where}: unknown role {role!r}")
        if previous == "system" and role == "user":
            calls.say(f"{where}: only an answer may follow a system message")
        previous = str(role)
    calls.none_open("end")
    if previous not in ("user", "system"):
        calls.say(f"end: the last message is {previous!r}, there is nothing to answer")
    return calls.faults


def _anthropic_system(
    calls: _Calls, where: str, blocks: Sequence[Mapping[str, Any]], previous: str
) -> None:
    if previous not in ("user", "system"):
        calls.say(f"{where}: a system message must follow one of the user")
    calls.none_open(where)
    for block in blocks:
        if block.get("type") != "text":
            calls.say(f"{where}: a {block.get('type')!r} block in a system message")
        _anthropic_text(calls, where, block)


def _anthropic_user(calls: _Calls, where: str, blocks: Sequence[Mapping[str, Any]]) -> None:
    others = False
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            if others:
                calls.say(f"{where}: results must stand before everything else")
            calls.result(where, block.get("tool_use_id"))
            content = block.get("content", [])
            if content != []:
                _kinds(calls, where, content, "text", "image", "document", "search_result")
                for part in _blocks(content):
                    _anthropic_text(calls, where, part)
        elif kind in ("text", "image", "document"):
            others = True
            _anthropic_text(calls, where, block)
        else:
            calls.say(f"{where}: a {kind!r} block of the user")
    calls.none_open(where)


def _anthropic_assistant(
    calls: _Calls, where: str, blocks: Sequence[Mapping[str, Any]], thinking: bool
) -> None:
    kinds = [block.get("type") for block in blocks]
    for block in blocks:
        match block.get("type"):
            case "text":
                _anthropic_text(calls, where, block)
            case "tool_use":
                calls.call(where, block.get("id"), block.get("name"))
                if not isinstance(block.get("input"), dict):
                    calls.say(f"{where}: the input of a call is not an object")
            case "thinking":
                if not block.get("signature") or not isinstance(block.get("thinking"), str):
                    calls.say(f"{where}: thinking without its signature")
            case "redacted_thinking":
                if not block.get("data"):
                    calls.say(f"{where}: redacted thinking without its data")
            case other:
                calls.say(f"{where}: a {other!r} block of the assistant")
    if kinds and kinds[-1] in ("thinking", "redacted_thinking"):
        calls.say(f"{where}: an answer may not end in thinking")
    if thinking and "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking"):
        calls.say(f"{where}: with thinking on, an answer with calls must begin with thinking")


def _anthropic_text(calls: _Calls, where: str, block: Mapping[str, Any]) -> None:
    if block.get("type") == "text" and not str(block.get("text") or "").strip():
        calls.say(f"{where}: a text block without text")


def gemini(
    body: Mapping[str, Any],
    *,
    alternate: bool = False,
    id_pattern: str = "",
    status_role: str = "",
) -> list[str]:
    """generateContent. Ids are demanded here on calls and results, which the server leaves open."""
    calls = _Calls(r".{1,128}", id_pattern)
    _common(body, calls)
    declared = [d for t in body.get("tools", ()) for d in t.get("functionDeclarations", ())]
    # Google's own SDK writes this one field in snake case; the server reads both.
    names = _tools(calls, declared, "parametersJsonSchema", "parameters_json_schema")
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    for wanted in calling.get("allowedFunctionNames", ()):
        _choice(calls, "ANY", wanted, names, ("ANY",))
    previous = ""
    for where, content in _records(calls, body, "contents"):
        role = content.get("role")
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            calls.say(f"{where}: no parts")
            parts = []
        if role not in ("user", "model") or (not previous and role != "user"):
            calls.say(f"{where}: role {role!r} cannot stand here")
        if alternate and role == previous:
            calls.say(f"{where}: {role} after {previous} does not alternate")
        if role == "model":
            calls.none_open(where)
            if previous == "model" and any("functionCall" in part for part in parts):
                calls.say(f"{where}: a call must come right after the user or after results")
        for part in parts:
            _gemini_part(calls, where, part, role)
        if role == "user":
            calls.none_open(where)
        previous = str(role)
    calls.none_open("end")
    if previous != "user":
        calls.say(f"end: the last content is {previous!r}, there is nothing to answer")
    return calls.faults


def _gemini_part(calls: _Calls, where: str, part: Mapping[str, Any], role: Any) -> None:
    call, response = part.get("functionCall"), part.get("functionResponse")
    if len(_GEMINI_DATA.intersection(part)) > 1:
        calls.say(f"{where}: a part holds one thing, this holds {', '.join(part)}")
    if call is not None:
        if role != "model":
            calls.say(f"{where}: a call of the user")
        calls.call(where, call.get("id"), call.get("name"))
        if not isinstance(call.get("args", {}), dict):
            calls.say(f"{where}: args is not an object")
    elif response is not None:
        if role != "user":
            calls.say(f"{where}: a result of the model")
        calls.result(where, response.get("id"), response.get("name"))
        if not isinstance(response.get("response"), dict):
            calls.say(f"{where}: response is not an object")
    elif "text" in part:
        if not part["text"] and not part.get("thoughtSignature"):
            calls.say(f"{where}: a text part without text")
    elif not {"inlineData", "fileData"}.intersection(part):
        calls.say(f"{where}: a part of no known kind ({', '.join(part)})")


def _common(body: Mapping[str, Any], calls: _Calls, *needed: str) -> None:
    for key in needed:
        if not isinstance(body.get(key), str) or not body[key]:
            calls.say(f"{key} is missing")
    if DUPLICATE_KEYS in body:
        calls.say("a key stands twice in the body")


def _records(calls: _Calls, body: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    records = body.get(key)
    if not isinstance(records, list) or not records:
        calls.say(f"{key} is missing or empty")
        return
    for number, record in enumerate(records):
        if not isinstance(record, dict) or DUPLICATE_KEYS in record:
            calls.say(f"{key}[{number}] is not an object, or has a key twice")
        else:
            yield f"{key}[{number}]", record


def _tools(calls: _Calls, tools: Any, *schema_keys: str) -> set[str]:
    names: set[str] = set()
    for tool in tools:
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
            calls.say(f"tools: the name {name!r} is wrong or stands twice")
        schema = next((tool[key] for key in schema_keys if key in tool), None)
        if not isinstance(schema, dict) or schema.get("type") != "object":
            calls.say(f"tools: the schema of {name!r} is not of an object")
        names.add(str(name))
    return names


def _choice(
    calls: _Calls,
    choice: Any,
    wanted: Any,
    names: set[str],
    words: Sequence[str],
    word: Any = None,
) -> None:
    word = word if word is not None else choice
    if wanted is not None:
        if wanted not in names:
            calls.say(f"tool_choice names {wanted!r}, which is no tool")
    elif word not in words:
        calls.say(f"tool_choice is {choice!r}")
    elif word in ("required", "any") and not names:
        calls.say("tool_choice demands a call, and there are no tools")


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _not_empty(calls: _Calls, where: str, content: Any) -> None:
    blocks = _blocks(content)
    if not blocks or any(
        str(block.get("type", "")).endswith("text") and not block.get("text") for block in blocks
    ):
        calls.say(f"{where}: no content, or empty text")


def _kinds(calls: _Calls, where: str, content: Any, *allowed: str) -> None:
    """Which blocks may stand in `content`; text alone always may."""
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict) or block.get("type") not in allowed:
            kind = block.get("type") if isinstance(block, dict) else block
            calls.say(f"{where}: a {kind!r} block cannot stand here")


def _arguments(calls: _Calls, where: str, arguments: Any) -> None:
    try:
        if isinstance(arguments, str) and isinstance(json.loads(arguments, parse_int=str), dict):
            return
    except (ValueError, RecursionError):
        pass
    calls.say(f"{where}: the arguments {str(arguments)[:80]!r} are not a JSON object in a text")
