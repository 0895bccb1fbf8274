"""Reading the script of a `ScriptedModel`: every form an item may have, into one; what cannot be
read is refused with where it stands, what it is, and the forms there are."""

from __future__ import annotations

import inspect
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Final

from lorimer.core.calls import ToolCall
from lorimer.core.canonical import canonical_json
from lorimer.core.messages import ReasoningPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import (
    StopReason,
)

WIRE = "scripted"
_ONE_REQUEST = Usage(requests=1)

CallForm = Mapping[str, Any] | ToolCall | tuple[str, Mapping[str, Any]]
"""One call: `{"name": …, "arguments": …}`, a `ToolCall`, or `("name", {arguments})`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the script.

    Attributes:
        text: what is said, before the calls.
        calls: the calls, each `{"name": …, "arguments": …}`, a `ToolCall` or `("name", {…})`;
            `arguments` is a mapping, or text that is used as it is, valid or not; an optional `id`
            stands for the provider's id.
        reasoning: a thought before everything else; text, or a whole reasoning part.
        stop: why the answer ends, a `StopReason` or a word of a provider (`length`, `tool_use`,
            …); by default `CALLS` after calls, else `END`.
        usage: what is reported as used.
        cut_after: the stream breaks after so many events, whatever they are.
    """

    text: str = ""
    calls: Sequence[CallForm] = ()
    reasoning: str | ReasoningPart = ""
    stop: StopReason | str | None = None
    usage: Usage | None = None
    cut_after: int | None = None


Item = (
    str
    | CallForm
    | Sequence[str | CallForm]
    | Reply
    | BaseException
    | type[BaseException]
    | Callable[..., Any]
)
"""What a script is made of: text; one call; a list of calls, with a text before them or without;
a `Reply`, or a dict that says the same; an exception, which is raised; a function, of the request
or of nothing, sync or async, that gives one of these."""

STOP_WORDS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.END,
    "end_turn": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
    **{str(reason): reason for reason in StopReason},
}

FORMS = """\
A script item is one of:
  "text"
  a call: call("add", a=1), {"name": "add", "arguments": {"a": 1} or "text as it is"},
      ("add", {"a": 1}), ToolCall(id, name, raw), or a call as a provider's API writes it
  a list of calls, with a text before them or without: ["text", call("add", a=1), …]
  reply("text", call(…), stop="length"), or {"text": …, "calls": […], "stop": …, "reasoning": …}
  an exception, or a class of one
  a function of the request, or of nothing, sync or async, that gives one of these"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A `Reply` that has been read and is ready to be sent."""

    text: str
    calls: tuple[ToolCall, ...]
    reasoning: ReasoningPart | None
    stop: StopReason
    raw_stop: str
    usage: Usage
    cut_after: int | None


@dataclass(frozen=True, slots=True)
class Function:
    function: Callable[..., Any]
    takes_request: bool


Ready = Answer | Function | BaseException | type[BaseException]


_NAME = ("name", "tool")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
_ID = ("id", "call_id")
_CALL_KEYS = (*_NAME, *_ARGUMENTS, *_ID, "function")
_CALL_TYPES = ("tool_use", "function", "function_call", "tool_call")
_TEXT = ("text", "content")
_CALLS = ("calls", "tool_calls")
_STOP = ("stop", "stop_reason", "finish_reason")
_REPLY_KEYS = (*_TEXT, *_CALLS, *_STOP, "reasoning", "usage", "cut_after", "role")
_REPLY_TYPES = ("text", "message")


class _Bad(Exception):
    """What is wrong with an item; `kind` is the error that the user gets."""

    def __init__(self, message: str, kind: type[Exception] = ValueError) -> None:
        super().__init__(message)
        self.kind = kind


def is_list_of_items(given: Any) -> bool:
    single = isinstance(given, str | bytes | bytearray | Mapping | BaseException | type)
    return isinstance(given, Iterable) and not single and not callable(given)


def read_item(item: Any, where: str) -> Ready:
    """`item`, ready to be sent.

    Raises:
        TypeError, ValueError: when it is none of the forms of `Item`.
    """
    try:
        if isinstance(item, BaseException):
            return item
        if isinstance(item, type):
            if issubclass(item, BaseException):
                return item
            raise _Bad("a class that is no exception", TypeError)
        if callable(item):
            return Function(item, _takes_request(item))
        return _answer(_as_reply(item))
    except _Bad as bad:
        written = repr(item)
        if len(written) > 200:
            written = f"{written[:200]}…"
        kind = type(item).__name__
        raise bad.kind(f"{where} ({kind}: {written}) cannot be used: {bad}.\n{FORMS}") from None


def _takes_request(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins do not say
        return True
    by_place = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    needed = [p for p in by_place if p.default is p.empty]
    if len(needed) > 1 or any(
        p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters
    ):
        raise _Bad("a function has one parameter, the request, or none", TypeError)
    if needed or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    # `lambda n=n: …` binds a value of its own; `def f(request=None)` wants the request.
    return bool(by_place) and by_place[0].default is None


def made(kind: type[BaseException], index: int) -> BaseException:
    try:
        return kind()
    except TypeError as fault:
        raise TypeError(
            f"Item {index} of the script is the class {kind.__name__}, which cannot be made "
            f"without arguments ({fault}); write an instance: {kind.__name__}(…)."
        ) from None


def _as_reply(item: Any) -> Reply:
    if isinstance(item, Reply):
        return item
    if isinstance(item, str):
        return Reply(item)
    if _is_call(item):
        return _call_as_reply(item)
    if isinstance(item, Mapping):
        return _dict_as_reply(item)
    if isinstance(item, list | tuple) or (
        isinstance(item, Sequence) and not isinstance(item, bytes | bytearray | memoryview)
    ):
        if isinstance(item, tuple) and len(item) == 2 and all(isinstance(p, str) for p in item):
            raise _Bad('a tuple is a call, ("name", {arguments}); two texts are two items')
        return Reply(*_parts(item))
    why = "call the function in it, or give the function" if inspect.iscoroutine(item) else ""
    raise _Bad(why or f"{_a(item)} is no form of an answer", TypeError)


def _is_call(part: Any) -> bool:
    if isinstance(part, Mapping):
        kind = part.get("type")
        return any(key in part for key in _CALL_KEYS) or (
            isinstance(kind, str) and kind in _CALL_TYPES
        )
    return isinstance(part, ToolCall) or _is_pair(part)


def _is_pair(part: Any) -> bool:
    if not (isinstance(part, tuple) and len(part) == 2):
        return False
    return isinstance(part[0], str) and isinstance(part[1], Mapping)


def _call_as_reply(item: Any) -> Reply:
    if not isinstance(item, Mapping) or not any(key in item for key in _REPLY_KEYS):
        return Reply(calls=(item,))
    both = [key for key in _CALLS if key in item]
    if both:
        raise _Bad(f"it is a call and has {both[0]!r} too; put every call into {both[0]!r}")
    rest = {key: value for key, value in item.items() if key in _REPLY_KEYS}
    call = {key: value for key, value in item.items() if key not in _REPLY_KEYS}
    return _dict_as_reply({**rest, "calls": (call,)})


def _dict_as_reply(item: Mapping[Any, Any]) -> Reply:
    if not item:
        raise _Bad("it is empty; for an empty answer write reply()")
    _only(
        item, (*_REPLY_KEYS, "type"), f"a call has {_list(_NAME)}, an answer {_list(_REPLY_KEYS)}"
    )
    if item.get("type", "message") not in _REPLY_TYPES:
        raise _Bad(f"the type {item['type']!r} is not known; known are "
                   f"{_list((*_CALL_TYPES, *_REPLY_TYPES))}")  # fmt: skip
    if item.get("role", "assistant") != "assistant":
        raise _Bad(f"the role is {item['role']!r}; a model answers as 'assistant'")
    text = _one_of(item, _TEXT, None)
    calls: tuple[Any, ...] = ()
    if isinstance(text, list | tuple):
        text, calls = _parts(text)
    return Reply(
        "" if text is None else text,
        (*calls, *_as_calls(_one_of(item, _CALLS, None))),
        "" if item.get("reasoning") is None else item["reasoning"],
        _one_of(item, _STOP, None),
        item.get("usage"),
        item.get("cut_after"),
    )


def _parts(parts: Iterable[Any]) -> tuple[str, tuple[Any, ...]]:
    """The text and the calls of a list."""
    texts: list[str] = []
    calls: list[Any] = []
    for at, part in enumerate(parts):
        if isinstance(part, Mapping) and "text" in part and set(part) <= {"type", "text"}:
            part = part["text"]
        if isinstance(part, str):
            if calls:
                raise _Bad(f"part {at} is text after a call; an answer says its text first "
                           "(or is it meant to be the next item?)")  # fmt: skip
            if texts:
                raise _Bad(f"part {at} is a second text; join them, or make them items")
            texts.append(part)
        elif _is_call(part):
            calls.append(part)
        elif isinstance(part, Mapping):
            raise _Bad(f"part {at} is {part!r}, which names no tool (a call has {_list(_NAME)})")
        else:
            raise _Bad(f"part {at} is {_a(part)}; a list holds a text and calls", TypeError)
    return "".join(texts), tuple(calls)


def _as_calls(calls: Any) -> tuple[Any, ...]:
    if calls is None:
        return ()
    if _is_call(calls):
        return (calls,)
    if isinstance(calls, str | bytes | Mapping) or not isinstance(calls, Iterable):
        raise _Bad(f"the calls are {_a(calls)}, not a list of calls", TypeError)
    return tuple(calls)


def _answer(reply: Reply) -> Answer:
    if not isinstance(reply.text, str):
        raise _Bad(f"the text is {_a(reply.text)}; calls belong into `calls`", TypeError)
    thought: Any = reply.reasoning
    if isinstance(thought, str):
        thought = ReasoningPart(thought, WIRE) if thought else None
    if not (thought is None or isinstance(thought, ReasoningPart)):
        raise _Bad(f"the reasoning is {_a(thought)}, not text or a ReasoningPart", TypeError)
    if not (reply.usage is None or isinstance(reply.usage, Usage)):
        raise _Bad(f"the usage is {_a(reply.usage)}, not a Usage", TypeError)
    after: Any = reply.cut_after
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        raise _Bad(f"cut_after is {after!r}, not a number of events")
    calls = tuple(_call(call, at) for at, call in enumerate(_as_calls(reply.calls)))
    stop, raw_stop = _stop(reply.stop, StopReason.CALLS if calls else StopReason.END)
    return Answer(
        reply.text, calls, thought, stop, raw_stop, reply.usage or _ONE_REQUEST, after
    )  # fmt: skip


def _stop(given: Any, default: StopReason) -> tuple[StopReason, str]:
    if given is None:
        return default, str(default)
    found = STOP_WORDS.get(given) if isinstance(given, str) else None
    if found is None:
        raise _Bad(f"{given!r} is no reason to stop; known are {_list(STOP_WORDS)}, and StopReason")
    return found, str(given)


def _call(call: Any, at: int) -> ToolCall:
    if isinstance(call, ToolCall):
        if not all(isinstance(part, str) for part in (call.id, call.name, call.raw)):
            raise _Bad(f"call {at}: id, name and raw of a ToolCall are text", TypeError)
        return ToolCall(call.id, call.name, call.raw, opaque=call.opaque)
    if _is_pair(call):
        name, arguments = call
        if any(key in arguments for key in _NAME) and any(key in arguments for key in _ARGUMENTS):
            raise _Bad(
                f"call {at}: a tuple is a call, (name, arguments), and these arguments are a call "
                'themselves; for text before a call write a list, ["text", call(…)]'
            )
        return ToolCall("", name, _raw(arguments, at))
    if not isinstance(call, Mapping):
        raise _Bad(f"call {at} is {_a(call)}, not a call", TypeError)
    _only(
        call, (*_CALL_KEYS, "type"), f"a call has name, arguments and id (or {_list(_CALL_KEYS)})"
    )
    kind = call.get("type", _CALL_TYPES[0])
    if kind not in _CALL_TYPES:
        raise _Bad(f"call {at} has the type {kind!r}; known are {_list(_CALL_TYPES)}")
    inner: Mapping[Any, Any] = call
    if "function" in call:
        inner = call["function"]
        if not isinstance(inner, Mapping):
            raise _Bad(f"call {at}: 'function' is {_a(inner)}, not a dict with a name", TypeError)
        _only(inner, ("name", "arguments"), "'function' has name and arguments")
        _only(call, (*_ID, "function", "type"), "beside 'function' there are id and type")
    name = _one_of(inner, _NAME, None)
    if name is None:
        raise _Bad(f"call {at} names no tool; write {{'name': …, 'arguments': …}}")
    if not isinstance(name, str):
        raise _Bad(f"call {at}: the name is {_a(name)}, not text", TypeError)
    given_id = _one_of(call, _ID, None)
    if not (given_id is None or isinstance(given_id, str)):
        raise _Bad(f"call {at}: the id is {_a(given_id)}, not text", TypeError)
    return ToolCall(given_id or "", name, _raw(_one_of(inner, _ARGUMENTS, {}), at))


def _raw(arguments: Any, at: int) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        if isinstance(arguments, bytes | bytearray):
            return arguments.decode()
        if isinstance(arguments, Mapping):
            arguments = dict(arguments)
        return canonical_json(arguments).decode()
    except (TypeError, ValueError, RecursionError) as fault:
        kind = TypeError if isinstance(fault, TypeError) else ValueError
        raise _Bad(f"call {at}: the arguments are no JSON ({fault}); "
                   "text is used as it is", kind) from None  # fmt: skip


def _one_of(given: Mapping[Any, Any], keys: Sequence[str], default: Any) -> Any:
    found = [key for key in keys if key in given]
    if len(found) > 1:
        raise _Bad(f"{_list(found)} mean the same; give one of them")
    return given[found[0]] if found else default


def _only(given: Mapping[Any, Any], keys: Sequence[str], known: str) -> None:
    unknown = [key for key in given if key not in keys]
    if unknown:
        what = "an unknown key" if len(unknown) == 1 else "unknown keys"
        raise _Bad(f"{what} {', '.join(map(repr, unknown))}; {known}")


def _list(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))


def _a(thing: Any) -> str:
    return "None" if thing is None else f"of type {type(thing).__name__}"
