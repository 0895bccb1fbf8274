"""The last words of a sub-agent: the one JSON value that fits the schema of its task, or why
not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lorimer.core.errors import ToolDefinitionError
from lorimer.tools.dispatch.shape import in_words
from lorimer.tools.schema import compile_schema, problems

_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read. `fault` is for the sub-agent and may quote it; `where` names the same without
    a word of it."""

    value: Any = None
    fault: str = ""
    where: str = ""
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.fault


class OutputForm:
    """The form that an answer must have.

    Raises:
        ToolDefinitionError: when the schema is none, with what is wrong in it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping):
            raise ToolDefinitionError(f"output_schema is {schema!r}, no JSON Schema.")
        self.schema = schema
        self._validator = compile_schema("spawn_subagent", schema, what="output schema")

    def read(self, text: str) -> Answer:
        """The value in `text`: all of it, or its one fenced block."""
        found = text.strip()
        notes: tuple[str, ...] = ()
        blocks = _FENCE.findall(found)
        if len(blocks) == 1:
            if _FENCE.sub("", found).strip():
                notes = ("words around the JSON of its answer were left out",)
            found = blocks[0].strip()
        try:
            value = json.loads(found, parse_constant=_no_constant)
        except (ValueError, RecursionError) as fault:
            if not found:
                return Answer(fault="It is empty.", where="it was empty")
            if len(blocks) > 1:
                return Answer(
                    fault=f"It holds {len(blocks)} code blocks; write one JSON value only.",
                    where=f"it held {len(blocks)} code blocks",
                )
            if found[0] not in '{["':
                return Answer(
                    fault="It is prose, not JSON. Write the JSON value alone.",
                    where="it was prose, not JSON",
                )
            return Answer(fault=f"It is not JSON: {fault}.", where=f"it was not JSON ({fault})")
        faults = problems(self.schema, self._validator, value)
        if not faults:
            return Answer(value, notes=notes)
        words = [in_words(code, problem) for code, problem in faults[:_SHOWN]]
        places = [
            f"{problem.path or 'the whole'}: expected {problem.expected}"
            for _, problem in faults[:_SHOWN]
        ]
        more = f"; and {len(faults) - _SHOWN} more faults" if len(faults) > _SHOWN else ""
        return Answer(
            fault=f"It does not fit the schema: {'; '.join(words)}{more}.",
            where=f"it did not fit the schema at {'; '.join(places)}{more}",
        )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
