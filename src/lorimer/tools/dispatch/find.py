"""Station 2, find: the tool of that name, from this session's registry and nowhere else."""

from __future__ import annotations

from lorimer.core.calls import Refusal
from lorimer.tools.dispatch.state import CallState, Surroundings

_MOST_NAMES = 30


async def find(state: CallState, around: Surroundings) -> Refusal | None:
    state.tool = around.registry.get(state.name)
    if state.tool is not None:
        return None
    how_to_load = around.unloaded.get(state.name)
    if how_to_load is not None:
        return Refusal(
            "not_loaded",
            f"The tool {state.name!r} exists but is not loaded in this session.",
            next=how_to_load,
            retryable=True,
        )
    shown = state.name if len(state.name) <= 64 else f"{state.name[:64]}…"
    near = around.registry.near(shown)
    if near:
        step = "Use one of: " + ", ".join(near) + "."
    elif not len(around.registry):
        step = "There are no tools here: answer without one."
    else:
        names = [tool.name for tool in around.registry]
        step = "Tools here: " + ", ".join(names[:_MOST_NAMES])
        step += f" and {len(names) - _MOST_NAMES} more." if len(names) > _MOST_NAMES else "."
    return Refusal("unknown_tool", f"There is no tool {shown!r}.", next=step, retryable=True)
