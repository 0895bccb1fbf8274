"""Station 1, parse: from the text the model wrote to a JSON value, without guessing.

Duplicate keys, NaN, numbers that do not fit, half surrogate pairs, trailing text and truncation are
faults. A repair happens only where the deployment allows it and only when there is exactly one
reading; it is recorded and told to the model.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation, Overflow
from typing import Any

from lorimer.core.calls import Diff, Refusal
from lorimer.tools.dispatch.repair import readings
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.schema import pointer

_MINUS_ZERO = re.compile(r"(?<![\w.+-])-0(?![\w.])")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_INTEGER = re.compile(r"-?\d+")
_SPACE = " \t\n\r"
_DEEPEST = 128
_NEXT = "Write the arguments again as one JSON object, complete and with nothing after it."


class Fault(ValueError):
    """Arguments that are not the JSON we accept. `code` is `not_json` or `truncated`; `next` is
    what to do about it."""

    def __init__(self, code: str, message: str, next: str = _NEXT) -> None:
        super().__init__(message)
        self.code = code
        self.next = next


async def parse(state: CallState, around: Surroundings) -> Refusal | None:
    raw = state.call.raw
    try:
        state.value, diffs = read(raw)
    except Fault as fault:
        if around.allow_repair:
            found = readings(raw, lambda text: read(text)[0])
            if len(found) == 1:
                state.value, how = found[0]
                state.diffs.append(Diff("", raw, state.value, f"repaired: {how}"))
                return None
            if len(found) > 1:
                return Refusal(
                    "ambiguous",
                    f"The arguments are not JSON and can be read in {len(found)} ways: {fault}",
                    next=_NEXT,
                    retryable=True,
                )
        return Refusal(fault.code, str(fault), next=fault.next, retryable=True)
    state.diffs += diffs
    return None


def read(raw: str) -> tuple[Any, list[Diff]]:
    """The JSON value of `raw`, and every number that could not be kept as it was written.

    No arguments at all (an empty text, which several providers send for `{}`) reads as `{}` and is
    recorded.

    Raises:
        Fault: with what is wrong and where.
    """
    if not raw.strip(_SPACE):
        return {}, [Diff("", raw, {}, "no arguments were written")]
    inexact: list[str] = []

    def number(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise Fault(
                "not_json",
                f"The number {_short(text)} is too large for a 64-bit float.",
                "Call again with a number below 1e308.",
            )
        if not exact(text, value):
            inexact.append(text)
        return value

    try:
        value = json.loads(
            raw, object_pairs_hook=_object, parse_constant=_constant, parse_float=number
        )
    except json.JSONDecodeError as fault:
        raise _describe(raw, fault) from fault
    except RecursionError as fault:
        raise Fault("not_json", "The arguments are nested too deeply.") from fault
    except Fault:
        raise
    except ValueError as fault:
        raise Fault(
            "not_json", f"The arguments hold a number that cannot be read: {fault}."
        ) from fault
    if raw.count("{") + raw.count("[") > _DEEPEST and _deeper(value, _DEEPEST):
        raise Fault("not_json", f"The arguments are nested deeper than {_DEEPEST} levels.")
    if _HALF.search(raw) or not raw.isascii():
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise Fault(
                "not_json",
                "The arguments hold half of a surrogate pair (\\ud800–\\udfff), which is no "
                "character.",
            ) from None
    if inexact or ("-0" in raw and _MINUS_ZERO.search(_without_strings(raw))):
        return value, _changed_numbers(raw)
    return value, []


def exact(text: str, value: float) -> bool:
    """Whether the number written as `text` is the same as `value` shown in its shortest form."""
    if repr(value) == text:
        return True
    digits, _, _ = text.lower().partition("e")
    if value == 0.0:  # decided without Decimal, which refuses the largest exponents
        return not digits.strip("-0.")
    try:
        return Decimal(repr(value)) == Decimal(text)
    except (InvalidOperation, Overflow):
        return False


class _Number(str):
    """A number as it was written."""


def _changed_numbers(raw: str) -> list[Diff]:
    """Where each number stands that is not kept as it was written."""
    diffs: list[Diff] = []
    waiting: list[tuple[str, Any]] = [("", json.loads(raw, parse_float=_Number, parse_int=_Number))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(path + pointer([key]), item) for key, item in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(f"{path}/{at}", item) for at, item in reversed([*enumerate(value)])]
        elif isinstance(value, _Number):
            text = str(value)
            if text == "-0":
                diffs.append(Diff(path, text, 0, "integers have no negative zero"))
            elif not _INTEGER.fullmatch(text) and not exact(text, float(text)):
                diffs.append(Diff(path, text, float(text), "nearest 64-bit float"))
    return diffs


def _deeper(value: Any, most: int) -> bool:
    """Whether `value` is nested more than `most` levels."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > most:
            return any(isinstance(item, dict | list) for item in level)
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Fault(
                    "not_json",
                    f"The key {_short(key)!r} stands twice in one object.",
                    f"Call again with {_short(key)!r} once.",
                )
            seen.add(key)
    return out


def _constant(text: str) -> Any:
    raise Fault(
        "not_json", f"{text} is not a JSON value.", "Call again with a number, or leave it out."
    )


def _without_strings(raw: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', raw, flags=re.S)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"


_WORDS = {
    "Unterminated string starting at": "a text is not closed",
    "Expecting value": "a value is missing or is no JSON",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
}


def _words(fault: json.JSONDecodeError) -> str:
    return _WORDS.get(fault.msg, fault.msg)


def _describe(raw: str, fault: json.JSONDecodeError) -> Fault:
    rest = raw[fault.pos :].strip(_SPACE)
    if fault.msg == "Extra data":
        return Fault(
            "not_json", f"Text follows the JSON value at character {fault.pos}: {_short(rest)!r}."
        )
    if not rest or fault.msg.startswith("Unterminated string"):
        return Fault(
            "truncated",
            f"The arguments end in the middle, after {len(raw)} characters: {_words(fault)}.",
        )
    return Fault(
        "not_json",
        f"The arguments are not JSON at character {fault.pos}: {_words(fault)}; there stands "
        f"{_short(rest)!r}.",
    )
