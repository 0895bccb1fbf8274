"""Station 3, shape: the arguments against the tool's JSON Schema; all faults at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from lorimer.core.calls import Diff, Problem, Refusal
from lorimer.tools.dispatch.confirm import take_token
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.schema import integral, kind_of, pointer, problems, shown
from lorimer.tools.tool import Normaliser, Tool

_ORDER = ("missing", "extra", "type", "value")
_SHOWN_PROBLEMS = 20
_TOLD = 3


async def shape(state: CallState, around: Surroundings) -> Refusal | None:
    tool = state.tool
    assert tool is not None
    if not isinstance(state.value, dict):
        return Refusal(
            "not_object",
            f"The arguments of {tool.name} are of type {kind_of(state.value)}, not object.",
            (Problem("", shown(state.value), "an object: {…}"),),
            next=f"Call again with a JSON object of the arguments by name: {_names(tool)}.",
            retryable=True,
        )
    unusable = [fault for n in tool.normalisers if (fault := _normalise(state, n)) is not None]
    if tool.validator.is_valid(state.value):
        if unusable:
            return _refuse(tool.name, unusable)
        if tool.confirm:
            take_token(state)
        state.value, diffs = integral(tool.input_schema, state.value)
        state.diffs += diffs
        found = [] if tool.convert is None else _conversion_problems(tool.convert, state.value)
        return _refuse(tool.name, found) if found else None
    return _refuse(tool.name, problems(tool.input_schema, tool.validator, state.value))


def _names(tool: Tool) -> str:
    return ", ".join(tool.input_schema.get("properties", {})) or "none"


def _refuse(name: str, found: list[tuple[str, Problem]]) -> Refusal:
    codes = {code for code, _ in found}
    code = next((c for c in _ORDER if c in codes), "value")
    more = ""
    if len(found) > _SHOWN_PROBLEMS:
        more = f" There are {len(found)} problems; the first {_SHOWN_PROBLEMS} are shown."
    elif len(found) > 1:
        more = f" There are {len(found)} problems."
    found = found[:_SHOWN_PROBLEMS]
    first = next((one for one in found if one[0] == code), found[0])
    return Refusal(
        code,
        f"The arguments of {name} do not fit: {in_words(*first)}.{more} Nothing was run.",
        tuple(problem for _, problem in found),
        next=_advice(found),
        retryable=True,
    )


def in_words(code: str, problem: Problem) -> str:
    """One fault of the arguments, as part of a sentence."""
    where = problem.path or "the object"
    match code:
        case "missing":
            return f"{where} is missing"
        case "extra":
            return f"there is no argument {where}"
        case _:
            given = json.dumps(problem.given, ensure_ascii=False)
            return f"{where} is {given}, expected {problem.expected}"


def _normalise(state: CallState, normaliser: Normaliser) -> tuple[str, Problem] | None:
    """Apply a declared repair; each change is a `Diff`. A value that it cannot take stays as it was
    written: the schema judges it first, then this."""
    argument = normaliser.argument
    if argument not in state.value:
        return None
    before = state.value[argument]
    try:
        after = normaliser.apply(deepcopy(before))
        changed = _text(after) != _text(before)
    except Exception:  # noqa: BLE001 - it met a value it was not made for
        return "value", Problem(f"/{argument}", shown(before), normaliser.doc)
    if changed:
        state.value = {**state.value, argument: after}
        state.diffs.append(Diff(f"/{argument}", before, after, f"declared: {normaliser.name}"))
    return None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _conversion_problems(
    convert: Callable[[Mapping[str, Any]], Any], value: Mapping[str, Any]
) -> list[tuple[str, Problem]]:
    """What the types of the function refuse although the schema lets it pass (e.g. a date that does
    not exist)."""
    from pydantic import ValidationError

    try:
        convert(value)
    except ValidationError as fault:
        return [
            ("value", Problem(pointer(e["loc"]), shown(e["input"]), e["msg"]))
            for e in fault.errors(include_url=False, include_context=False)
        ]
    return []


def _advice(found: list[tuple[str, Problem]]) -> str:
    steps = []
    codes = {code for code, _ in found}
    if "missing" in codes:
        names = ", ".join(p.path.rsplit("/", 1)[-1] for code, p in found if code == "missing")
        steps.append(f"add {names}")
    if "extra" in codes:
        names = ", ".join(p.path.rsplit("/", 1)[-1] for code, p in found if code == "extra")
        steps.append(f"leave out {names}")
    wrong = {p.path or "the object": p.expected for c, p in found if c in ("type", "value")}
    for name, expected in [*wrong.items()][:_TOLD]:
        steps.append(f"correct {name} (expected {expected})")
    if len(wrong) > _TOLD:
        steps.append(f"correct {', '.join([*wrong][_TOLD:])} (see problems)")
    text = "; ".join(steps)
    ask = " If a value is not known, ask for it; do not invent it." if "missing" in codes else ""
    return f"Call again: {text}.{ask}"
