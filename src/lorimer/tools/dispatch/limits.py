"""The limits of a tool: how many calls a session may start, and how many it has started."""

from __future__ import annotations

from typing import Any

from lorimer.core.calls import Refusal
from lorimer.tools.dispatch.state import Surroundings, limit_key
from lorimer.tools.tool import Tool


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def over_limit(tool: Tool, value: Any, around: Surroundings) -> Refusal | None:
    """The refusal of one call more than a limit of `tool` allows."""
    for limit in tool.limits:
        key = None if limit.counter is None else str(value.get(limit.counter))
        used = around.counts[limit_key(tool.name, limit.counter, key)]
        if used >= limit.count:
            what = "" if limit.counter is None else f" with {limit.counter} = {key!r}"
            return Refusal(
                "limit",
                f"{tool.name} may be called {_times(limit.count)} in a session{what}; "
                f"{used}/{limit.count} are used.",
                next="Go on without it, or ask the user.",
            )
    return None


def count(around: Surroundings, tool: Tool, value: Any) -> None:
    """Count a started call against the limits of its tool."""
    for limit in tool.limits:
        argument = None if limit.counter is None else str(value.get(limit.counter))
        around.counts[limit_key(tool.name, limit.counter, argument)] += 1
