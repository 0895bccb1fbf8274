"""`run_script`: one script that calls many tools, of which only the end enters the context."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import anyio
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency, Outcome
from lorimer.core.errors import MissingExtra
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.trust import Trust
from lorimer.toolkits.execution.monty import (
    Printed,
    Raised,
    ScriptFault,
    ScriptLimits,
    run,
)
from lorimer.tools.function import tool
from lorimer.tools.tool import (
    CallTool,
    Category,
    Description,
    EffectMark,
    InnerEnd,
    Tool,
    ToolContext,
    ToolError,
)

_LONGEST_S = 1800
_PRINTED = 4000
_LIMITS = ScriptLimits()
_LISTED = 40
_TEACH = {
    "NotImplementedError": "This is a subset of Python: write it with plain functions, lists, "
    "dicts and loops, and call tools in a loop or a comprehension, not inside map() or a sort key.",
    "ModuleNotFoundError": "There are no packages, only some of the standard library: json, re, "
    "math, datetime, collections, itertools, csv. Use run_python for others.",
    "ImportError": "There are no packages, only some of the standard library.",
    "PermissionError": "A script has no files of its own: use the tools, e.g. read_file(path=…).",
    "FileNotFoundError": "A script has no files of its own: use the tools, e.g. read_file(path=…).",
    "TimeoutError": "Do less in one script, or use run_python for heavy computing.",
    "MemoryError": "Keep less at a time.",
    "RecursionError": "Use a loop.",
    "crashed": "Do less in one script.",
}


@tool(
    description=Description(
        "Run a Python script that calls your other tools by name: read_file(path='a.txt') gives "
        "its result (JSON as values, else text) to the script only. help(read_file) describes one.",
        use_when="many calls, or large results of which little matters: loop, filter, count.",
        not_when="one call does it, or packages or files are needed (run_python).",
        cost="each call runs, and may be asked for, as if you made it.",
        returns="what it printed, its last expression's value. A failed call raises RuntimeError "
        "with the error as JSON.",
    ),
    examples=(
        {
            "script": "found = []\nfor n in range(1, 51):\n    text = read_file(path=f'p{n}.md')\n"
            "    if 'error' in text:\n        found.append(n)\nfound"
        },
    ),
    category=Category.EXECUTION,
    effects=Effects.WRITE,
    idempotency=Idempotency.NONE,
    timeout_s=_LONGEST_S + 30,
    trust=Trust.USER_DATA,
    calls_tools=True,
    group="code",
)
async def run_script(
    script: Annotated[
        str, Field(min_length=1, description="Python, e.g. 'len(list_directory(path=\".\"))'")
    ],
    timeout_s: Annotated[
        int, Field(ge=1, le=_LONGEST_S, description="Most seconds, calls included, e.g. 600")
    ] = 300,
    *,
    context: ToolContext,
) -> list[TextPart]:
    """Cancellation stops the call under way, and records it, before it goes on; what the calls
    before had done stays done."""
    context.will_mark()
    calls = context.call_tool
    if calls is None:
        raise ToolError(
            "Scripts can only be run in a session.",
            next="Call the tools one by one.",
            code="no_session",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            retryable=False,
        )
    printed = Printed(_LIMITS.printed, context.on_output)
    hosted = _Hosted(calls, context)
    try:
        with anyio.fail_after(timeout_s):
            value = await run(script, hosted, hosted.names, _LIMITS, printed)
    except TimeoutError:
        raise _failed(
            f"The script was stopped: it took longer than {timeout_s} s. What its calls had done "
            "stays done.",
            "Look at what was done, then do the rest in a shorter script.",
            "timeout",
            calls,
            printed,
        ) from None
    except MissingExtra as fault:
        raise ToolError(
            fault.message,
            next=f"Call the tools one by one. Tell the user: {fault.next}",
            code="missing_extra",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            retryable=False,
        ) from fault
    except ScriptFault as fault:
        step = _TEACH.get(fault.kind, "Correct the script.")
        if _mark(calls.ends) is not EffectMark.NOT_BEGUN:
            step += " What its calls had done stays done: do not do it again."
        code = "timeout" if fault.kind == "TimeoutError" else "script_error"
        raise _failed(
            f"The script did not come to its end:\n{fault.where}", step, code, calls, printed
        ) from fault
    return _told(value, printed, calls.ends)


class _Hosted:
    """Answers the names that a script does not define: the tools, and `help`."""

    def __init__(self, calls: CallTool, context: ToolContext) -> None:
        self._calls, self._context = calls, context
        self._tools = {one.name: one for one in calls.tools}

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self._tools, "help"))

    async def __call__(
        self, name: str, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        if name == "help":
            return self._help(positional)
        one = self._tools.get(name)
        if one is None:
            near = difflib.get_close_matches(name, self._tools, n=3) or sorted(self._tools)
            raise Raised(
                "NameError",
                f"name {name!r} is not defined, and no tool is called so. Tools: {', '.join(near)}",
            )
        if len(self._calls.ends) >= _LIMITS.calls:
            raise Raised(
                "RuntimeError", f"A script may make {_LIMITS.calls} calls; they are used up."
            )
        arguments = _arguments(one, positional, named)
        if one.effects is not Effects.READ:
            self._context.set_mark(EffectMark.BEGUN)
        try:
            end = await self._calls(name, arguments)
        except (TypeError, ValueError) as fault:
            raise Raised("TypeError", f"{name}: JSON cannot hold its arguments: {fault}") from fault
        finally:
            self._context.set_mark(_mark(self._calls.ends))
        if end.error is not None:
            raise Raised("RuntimeError", json.dumps(end.error, ensure_ascii=False, default=repr))
        return _value(end)

    def _help(self, positional: tuple[Any, ...]) -> str:
        if len(positional) != 1:
            return "Tools: " + ", ".join(sorted(self._tools))
        wanted = positional[0]
        name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", str(wanted))
        one = self._tools.get(name)
        if one is None:
            return f"No tool is called {name!r}. Tools: {', '.join(sorted(self._tools))}"
        schema = json.dumps(one.input_schema, ensure_ascii=False)
        return f"{one.name}\n{one.spec.description}\nArguments: {schema}"


def _arguments(one: Tool, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    names = list(one.input_schema.get("properties", {}))
    if len(positional) > len(names):
        raise Raised(
            "TypeError",
            f"{one.name}() takes {len(names)} arguments ({', '.join(names)}), "
            f"{len(positional)} were given",
        )
    out = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name in out:
            raise Raised("TypeError", f"{one.name}() got {name!r} twice")
        out[name] = value
    return out


def _value(end: InnerEnd) -> Any:
    if any(isinstance(part, ImagePart) for part in end.parts):
        return "\n".join(
            part.text if isinstance(part, TextPart) else f"[{part.media_type} image]"
            for part in end.parts
        )
    return end.value


def _mark(ends: Sequence[InnerEnd]) -> EffectMark:
    """How far the script has come with effects, by what its calls have come to."""
    outcomes = {end.outcome for end in ends if end.changes}
    if Outcome.UNKNOWN in outcomes:
        return EffectMark.BEGUN
    happened = outcomes & {Outcome.DONE, Outcome.FAILED_AFTER_EFFECT}
    return EffectMark.COMPLETE if happened else EffectMark.NOT_BEGUN


def _truth(calls: CallTool) -> Outcome:
    match _mark(calls.ends):
        case EffectMark.BEGUN:
            return Outcome.UNKNOWN
        case EffectMark.COMPLETE:
            return Outcome.FAILED_AFTER_EFFECT
        case _:
            return Outcome.FAILED_BEFORE_EFFECT


def _failed(message: str, step: str, code: str, calls: CallTool, printed: Printed) -> ToolError:
    details: dict[str, Any] = {}
    if printed.total:
        text = str(printed)
        details["printed"] = text if len(text) <= _PRINTED else f"…{text[-_PRINTED:]}"
    if calls.ends:
        details["calls"] = _listed(calls.ends)
    return ToolError(
        message, next=step, code=code, outcome=_truth(calls), retryable=True, details=details
    )


def _listed(ends: Sequence[InnerEnd]) -> list[str]:
    """Those that change something, each with its end; of the others how many there were."""
    lines = [f"{end.id} {end.tool}: {_how(end)}" for end in ends if end.changes]
    if len(lines) > _LISTED:
        lines[_LISTED:] = [f"and {len(lines) - _LISTED} more, which are in the record"]
    reads = Counter(f"{end.tool}: {_how(end)}" for end in ends if not end.changes)
    return lines + [f"{count} × {text}" for text, count in sorted(reads.items())]


def _how(end: InnerEnd) -> str:
    code = "" if end.error is None else f" ({end.error.get('error', '')})"
    return f"{end.outcome}{code}"


def _told(value: Any, printed: Printed, ends: Sequence[InnerEnd]) -> list[TextPart]:
    pieces = []
    if printed.total:
        pieces.append(str(printed))
    if value is not None:
        pieces.append(value if isinstance(value, str) else _json(value))
    if not pieces:
        pieces.append("[it gave nothing: end with an expression, or print()]")
    text = "\n".join(pieces)
    outside = {
        part.source: None
        for end in ends
        for part in end.parts
        if getattr(part, "trust", None) is Trust.EXTERNAL
    }
    trust = Trust.EXTERNAL if outside else Trust.USER_DATA
    source = f"run_script over {', '.join(outside)}" if outside else "run_script"
    return [TextPart(text, trust, source), TextPart(f"\n[{_summary(ends)}]")]


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def _summary(ends: Sequence[InnerEnd]) -> str:
    if not ends:
        return "no calls"
    counted = Counter((end.tool, "" if end.error is None else f" {_how(end)}") for end in ends)
    words = ", ".join(f"{count} {name}{how}" for (name, how), count in counted.items())
    return f"calls: {words}"
