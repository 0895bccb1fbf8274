"""lorimer as in `lorimer_agent`, with a sync tool that only reads: it runs in a thread."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from lorimer import tool
from subjects import lorimer_agent

DISTRIBUTION = "lorimer"
NOTE = "sync tool without effects, in a thread; the rest as lorimer"


@tool(effects="read")
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def open_subject() -> AbstractAsyncContextManager[Any]:
    return lorimer_agent.open_subject(add)
