"""The last words of a sub-agent: the one JSON value that fits the schema of its task, or why
not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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
    a word of it: places by the names that the schema has, numbers, and kinds of faults."""

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
        self._names = frozenset(_names_in(schema))
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
        except _NoNumber as fault:
            return Answer(fault=f"It is not JSON: {fault}.", where=f"it was not JSON ({fault})")
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
            place = ""
            if isinstance(fault, json.JSONDecodeError):
                place = f" (line {fault.lineno}, column {fault.colno})"
            return Answer(fault=f"It is not JSON: {fault}.", where=f"it was not JSON{place}")
        faults = problems(self.schema, self._validator, value)
        if not faults:
            return Answer(value, notes=notes)
        words = [in_words(code, problem) for code, problem in faults[:_SHOWN]]
        places = [self._place(code, problem.path) for code, problem in faults[:_SHOWN]]
        more = f"; and {len(faults) - _SHOWN} more faults" if len(faults) > _SHOWN else ""
        return Answer(
            fault=f"It does not fit the schema: {'; '.join(words)}{more}.",
            where=f"it did not fit the schema: {'; '.join(dict.fromkeys(places))}{more}",
        )

    def _place(self, code: str, path: str) -> str:
        """One fault, without a word that is not in the schema."""
        steps = path.split("/")[1:]
        known = [
            step if (step.isdecimal() and len(step) < 7) or step in self._names else _UNKNOWN
            for step in steps
        ]
        if code == "extra":
            inside = f" in /{'/'.join(known[:-1])}" if known[:-1] else ""
            return f"it held a key that the schema does not allow{inside}"
        where = f"/{'/'.join(known)}" if known else "the whole"
        return f"{where} {_KINDS.get(code, _KINDS['value'])}"


_UNKNOWN = "…"
_KINDS = {
    "missing": "was missing",
    "type": "was of another type",
    "value": "had a value that does not fit",
}


class _NoNumber(ValueError):
    """One of the three words that Python reads as a number and JSON does not have."""


def _no_constant(name: str) -> Any:
    raise _NoNumber(f"{name} is no JSON number")


def _names_in(schema: Any) -> Iterator[str]:
    """The names of properties that a schema has, as steps of a JSON pointer."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            for key in ("properties", "dependentRequired", "dependentSchemas"):
                found = node.get(key)
                yield from map(_step, found) if isinstance(found, Mapping) else ()
            required = node.get("required")
            if isinstance(required, list):
                yield from (_step(name) for name in required if isinstance(name, str))
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
