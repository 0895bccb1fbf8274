"""What the model is told about a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `input_schema` is JSON Schema 2020-12; `examples` are real
    argument objects."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    examples: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description,
                "input_schema": self.input_schema, "examples": list(self.examples)}  # fmt: skip

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> ToolSpec:
        return ToolSpec(
            record["name"], record["description"], record["input_schema"],
            tuple(record["examples"]),
        )  # fmt: skip
