"""What happens, for those who watch: the terminal, a console, a test. Never part of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lorimer.core.calls import Outcome


@dataclass(frozen=True, slots=True)
class CallBegan:
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    effects: str


@dataclass(frozen=True, slots=True)
class CallOutput:
    """Output or progress of a running call."""

    call_id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    call_id: str
    tool: str
    outcome: Outcome
    code: str
    text: str
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the person should know: a retry, a tool that would not stop, a late result."""

    message: str


Watcher = Callable[[Any], None]
"""Called with the events above and with the model's own (`lorimer.models.protocol`)."""
