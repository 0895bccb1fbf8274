"""Ambiguity, and what the parse station does with it."""

from __future__ import annotations

import json

import pytest

from lorimer.runtime.agent import Agent
from lorimer.store import open_store
from lorimer.testing import ScriptedModel
from lorimer.tools.dispatch import parse
from lorimer.tools.function import tool

pytestmark = pytest.mark.anyio


async def test_two_readings_are_never_chosen_from(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    @tool(effects="write")
    async def take(n: int) -> str:
        """Take."""
        ran.append(n)
        return "ok"

    monkeypatch.setattr(
        parse, "readings", lambda raw, read: [({"n": 1}, "one way"), ({"n": 2}, "another")]
    )
    store = open_store(":memory:")
    model = ScriptedModel([{"name": "take", "arguments": "{n: ?}"}, "done"])
    result = await Agent(model, [take], store=store, allow_repair=True).run("go")
    store.close()
    error = json.loads(result.calls[0].result)
    assert (
        ran == []
        and error["error"] == "ambiguous"
        and "2 ways" in error["message"]
        and error["next"]
    )
