"""Usage as every provider counts it -> usage as we count it; and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from lorimer.core.usage import Usage
from lorimer.models.profiles import Price, Profile

_MILLION = Decimal(1_000_000)


def read_usage(raw: Mapping[str, Any], profile: Profile) -> Usage:
    """The provider's usage object `raw` in our fields, with the cost by the profile's price.

    A field of the profile is a sum of terms joined by `+`; a term is one JSON pointer (RFC 6901),
    or several joined by `|`, of which the first that is present counts. What stands between two
    `|` may be several pointers joined by `&`: added, as far as they are present. What is absent
    counts 0.
    """
    counts = {
        ours: _count(raw, expression)
        for ours, expression in profile.usage_fields.items()
        if ours != "cost"
    }
    usage = Usage(
        input_tokens=counts.get("input_tokens", 0),
        cached_tokens=counts.get("cached_tokens", 0),
        cache_write_tokens=counts.get("cache_write_tokens", 0),
        output_tokens=counts.get("output_tokens", 0),
        reasoning_tokens=counts.get("reasoning_tokens", 0),
        requests=1,
        raw=dict(raw),
    )
    cost = _told_cost(raw, profile.usage_fields.get("cost", ""))
    if cost is None and profile.price is not None:
        cost = cost_of(usage, profile.price)
    return replace(usage, cost=cost)


def cost_of(usage: Usage, price: Price) -> Decimal:
    """US dollars for `usage`; cached and written tokens at their own price where there is one."""
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    plain = max(0, usage.input_tokens - cached - written)
    total = (
        plain * price.input
        + cached * (price.input if price.cached is None else price.cached)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return total / _MILLION


_Pointer = tuple[str, ...]


def tells_cached(raw: Mapping[str, Any], profile: Profile) -> bool:
    """Whether `raw` has a counter of cached tokens at all: without one, 0 means unknown."""
    return any(
        _number(raw, pointer) is not None
        for alternatives in _terms(profile.usage_fields.get("cached_tokens", ""))
        for pointers in alternatives
        for pointer in pointers
    )


@lru_cache(maxsize=256)
def _terms(expression: str) -> tuple[tuple[tuple[_Pointer, ...], ...], ...]:
    """Terms, of alternatives, of pointers that are added."""
    return tuple(
        tuple(
            tuple(_steps(pointer) for pointer in alternative.split("&"))
            for alternative in term.split("|")
        )
        for term in expression.split("+")
    )


def _steps(pointer: str) -> _Pointer:
    return tuple(
        step.replace("~1", "/").replace("~0", "~")
        for step in pointer.strip().removeprefix("/").split("/")
    )


def _count(raw: Mapping[str, Any], expression: str) -> int:
    total = 0
    for alternatives in _terms(expression):
        for pointers in alternatives:
            found = [_number(raw, pointer) for pointer in pointers]
            present = [number for number in found if number is not None]
            if present:
                total += sum(present)
                break
    return total


def _number(raw: Mapping[str, Any], pointer: _Pointer) -> int | None:
    value = _at(raw, pointer)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    return None


def _told_cost(raw: Mapping[str, Any], expression: str) -> Decimal | None:
    for alternatives in _terms(expression) if expression else ():
        for pointer, *_ in alternatives:
            value = _at(raw, pointer)
            if isinstance(value, int | float | str) and not isinstance(value, bool):
                try:
                    return Decimal(str(value))
                except InvalidOperation:
                    return None
    return None


def _at(value: Any, pointer: tuple[str, ...]) -> Any:
    for step in pointer:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value
