"""What in a prompt would break a prompt cache: findings, each with what to do.

Rules, not a model. A finding is a value that stood in the text when it was read; what only speaks
of such values, or shows one as an example, is none. `values.py` reads texts, `shape.py` looks at
order (of parts, of tools, of keys) and at what is said twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.context.prefix import shape, values
from lorimer.context.prefix.finding import Finding
from lorimer.context.prefix.parts import PromptPart, Stability


@dataclass(frozen=True, slots=True)
class Known:
    """What is known to be of one user, machine or session: a text that holds it is found.

    Attributes:
        user, host, home: names and folder of this machine; empty for those that say nothing.
        values: other words, each with what it is (`the id of this session`).
    """

    user: str = ""
    host: str = ""
    home: str = ""
    values: Mapping[str, str] | None = None

    def words(self) -> dict[str, str]:
        found = {
            self.user: "the name of the user of this machine",
            self.host: "this machine's name",
            self.home: "a home folder",
        }
        found |= self.values or {}
        return {word: what for word, what in found.items() if len(word) > 3}


def lint(
    parts: Iterable[PromptPart],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    known: Known | None = None,
    written: str = "",
    template: bool = False,
) -> list[Finding]:
    """Everything in a prefix that would break a cache, in the order of the text.

    Args:
        parts: in the order in which they are sent.
        tools: the records of the tools, in the order in which they are sent.
        known: values of this machine and session.
        template: the text is one that a program fills in later; then its open places count.
        written: the JSON of the tools as it was written, when it is there.
    """
    given = list(parts)
    words = (known or Known()).words()
    found: list[Finding] = []
    for part in given:
        own = words if part.stability is not Stability.SESSION else {}
        found += values.read(part.name, part.text, own, template=template)
    found += shape.order_of_parts(given)
    found += shape.said_twice(given)
    for tool in tools:
        name = shape.tool_name(tool)
        found += values.read(f"tool {name}", _texts(tool), words)
    found += shape.order_of_tools(tools)
    found += shape.order_of_keys(tools, written)
    return found


def _texts(value: Any) -> str:
    """Every text in a tool's record, one a line; without property names and examples."""
    lines: list[str] = []

    def walk(one: Any, key: str) -> None:
        if isinstance(one, Mapping):
            for name, inner in one.items():
                if name not in ("examples", "input_examples", "example", "pattern"):
                    walk(inner, str(name))
        elif isinstance(one, list | tuple):
            for inner in one:
                walk(inner, key)
        elif isinstance(one, str):
            lines.append(one)
        elif one is not None and not isinstance(one, bool) and key in ("default", "const"):
            lines.append(f"{key}: {json.dumps(one)}")

    walk(value, "")
    return "\n".join(lines)
