"""The registry: the allow-list of a session's tools. A name outside it never runs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lorimer.core.errors import ToolDefinitionError
from lorimer.core.specs import ToolSpec
from lorimer.tools.tool import Tool


def near(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Up to `most` of the `known` names that look like `name`, nearest first."""
    folded = {k.lower().replace("-", "_"): k for k in known}
    found = difflib.get_close_matches(name.lower().replace("-", "_"), folded, n=most, cutoff=0.6)
    return [folded[f] for f in found]


class Registry:
    """Tools by name; ordered by name, so that the tool list is the same bytes every time."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            self.add(one)

    def add(self, one: Tool | Callable[..., Any]) -> Tool:
        """Add a tool, or a plain typed function as one.

        Raises:
            ToolDefinitionError: when the name is taken or the tool cannot be made.
        """
        made = one if isinstance(one, Tool) else Tool.from_function(one)
        if made.name in self._tools:
            raise ToolDefinitionError(
                f"Two tools are named {made.name!r}.", next="Rename one with tool(name=…)."
            )
        self._tools[made.name] = made
        return made

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def near(self, name: str) -> list[str]:
        return near(name, self._tools)

    def specs(self) -> Sequence[ToolSpec]:
        return tuple(tool.spec for tool in self)

    def __iter__(self) -> Iterator[Tool]:
        return iter(sorted(self._tools.values(), key=lambda t: t.name))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
