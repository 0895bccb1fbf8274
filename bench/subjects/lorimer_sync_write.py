"""lorimer as in `lorimer_agent`, with a sync tool with effects: it runs in a worker process that
can be killed. The CPU time of that process counts."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from lorimer import tool
from subjects import lorimer_agent

DISTRIBUTION = "lorimer"
NOTE = "sync tool with effects, in a worker process; the rest as lorimer"


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def open_subject() -> AbstractAsyncContextManager[Any]:
    return lorimer_agent.open_subject(add)
