"""What happens, for those who watch: the terminal, a console, a test. Never part of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from lorimer.core.calls import Outcome
from lorimer.core.usage import Usage


@dataclass(frozen=True, slots=True)
class CallBegan:
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    effects: str


@dataclass(frozen=True, slots=True)
class CallOutput:
    """Output or progress of a running call."""

    call_id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    call_id: str
    tool: str
    outcome: Outcome
    code: str
    text: str
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the person should know: a retry, a tool that would not stop, a late result."""

    message: str


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A run of a session has begun; `wire` is the protocol that its model speaks."""

    session: str
    model: str
    wire: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """`stop` as in `RunResult`; `error` (a class name) when an exception ended it."""

    session: str
    stop: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class RequestBegan:
    """A model request is sent; `step` counts those of the run from 1."""

    model: str
    step: int
    wire: str = ""


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """The request has its answer; or `error` (a class name) says why it has none."""

    model: str
    step: int
    stop: str = ""
    usage: Usage | None = None
    error: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class SubagentBegan:
    """A sub-agent has been put to work by the call `call_id`; `session` is its own."""

    session: str
    agent: str
    call_id: str
    task: str


@dataclass(frozen=True, slots=True)
class SubagentEnded:
    """It works no more; `status` as in `lorimer.tools.subagents.SubagentStatus`."""

    session: str
    agent: str
    status: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A person is asked; the call waits."""

    call_id: str
    tool: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalEnded:
    """The question is closed: `answer` is `approved`, `edited`, `rejected`, `expired`, `cancelled`
    or `failed`."""

    call_id: str
    tool: str
    answer: str
    waited_s: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something happens too often. `count` of it in the last `window_s` seconds reached `limit`."""

    kind: str
    message: str
    count: int
    limit: int
    window_s: float
    tool: str = ""


def redacted_event(event: Any, redact: Callable[[str], str]) -> Any:
    """`event` with its texts redacted; the same object when nothing in it was."""
    if not is_dataclass(event) or isinstance(event, type):
        return event
    changed: dict[str, Any] = {}
    for name in event.__dataclass_fields__:
        value = getattr(event, name)
        if type(value) in (str, dict, list, tuple):
            clean = _clean(value, redact)
            if clean is not value:
                changed[name] = clean
    return replace(event, **changed) if changed else event


def _clean(value: Any, redact: Callable[[str], str]) -> Any:
    if type(value) is str:
        return redact(value)
    if type(value) is dict:
        pairs = {_clean(k, redact): _clean(v, redact) for k, v in value.items()}
        same = len(pairs) == len(value) and all(pairs.get(k) is v for k, v in value.items())
        return value if same else pairs
    if type(value) in (list, tuple):
        items = [_clean(one, redact) for one in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else type(value)(items)
    return value


Watcher = Callable[[Any], None]
"""Called with the events above and with the model's own (`lorimer.models.protocol`)."""
