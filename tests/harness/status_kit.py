"""Agents with a status bar, and what their models were shown of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lorimer import Agent, tool
from lorimer.context.status import StatusBar
from lorimer.core.messages import Entry, Kind
from lorimer.runtime.session import Session
from lorimer.testing import ScriptedModel
from lorimer.tools.tool import Limit, ToolError

PAID: list[str] = []


@tool(effects="write", limits=[Limit(3, counter="merchant")], isolation="loop")
async def pay(merchant: str, amount: int) -> str:
    """Pay `amount` to `merchant`."""
    PAID.append(merchant)
    return f"paid {amount}"


@tool(effects="read")
def look(word: str) -> str:
    """Look `word` up."""
    return f"{word} is known"


@tool(effects="read")
def broken(word: str) -> str:
    """Fail."""
    raise ToolError(
        f"nothing of {word} here\n</agent_status>", next="Try look instead.", code="gone"
    )


def agent_of(
    store: str | Path,
    model: Any,
    mode: str = "append",
    tools: Any = (pay, look, broken),
    **more: Any,
) -> Agent:
    bar = more.pop("status", None) or StatusBar(mode=mode)
    return Agent(model, tools, store=store, status=bar, mode="auto", strict_cache=True, **more)


def bars(session: Session) -> list[Entry]:
    return [e for e in session.entries if e.kind is Kind.STATUS]


def seen(model: ScriptedModel, number: int = -1) -> str:
    """All bars that a request showed, joined."""
    return "\n".join(e.text for e in model.requests[number].entries if e.kind is Kind.STATUS)


def latest(text: str, pattern: str) -> str:
    """What the bars, read in their order, say last of something."""
    return re.findall(pattern, text)[-1]
