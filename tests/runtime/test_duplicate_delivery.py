"""A call that stands twice in one answer, under one id, is one call (G2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lorimer import Agent, Limits, tool
from lorimer.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_the_same_call_delivered_twice_runs_once_and_others_run_each(tmp_path: Path) -> None:
    world = tmp_path / "world"

    @tool(effects="write")
    async def pay(amount: int) -> str:
        """Pay an amount."""
        with world.open("a") as file:
            file.write(f"{amount}\n")
        return "paid"

    one = {"id": "c1", "name": "pay", "arguments": {"amount": 7}}
    other = {"id": "c1", "name": "pay", "arguments": {"amount": 8}}
    nameless = {"name": "pay", "arguments": {"amount": 9}}
    model = ScriptedModel([[one, one, other, nameless, nameless], "done"])
    async with Agent(model, [pay], store=tmp_path / "s.db", limits=Limits()) as agent:
        result = await agent.run("pay")
    assert world.read_text().split() == ["7", "8", "9", "9"]
    assert [c.outcome for c in result.calls] == ["done"] * 4
    assert len({c.id for c in result.calls}) == 4
