"""The auditor and llama.cpp's own counters agree, on the smallest real model."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, Settings, tool
from lorimer.context.auditor import CacheBreak
from lorimer.models.local import open_local

pytestmark = pytest.mark.local_model


@tool(effects="read")
def find_order(what: str) -> str:
    """Find an order by what is in it."""
    return f"no order with {what}"


def test_a_session_is_read_from_the_cache_and_a_break_is_not(smollm: Path, own_home: Path) -> None:
    told: list[Any] = []

    async def work() -> list[Any]:
        settings = Settings(tool_choice="none", max_output_tokens=12)
        async with aclosing(open_local(str(smollm))) as model:
            agent = Agent(
                model, [find_order], system="Answer in one short sentence. " * 12,
                store=":memory:", settings=settings, watch=told.append, strict_cache=True,
            )  # fmt: skip
            async with agent, agent.session() as session:
                for word in ("tea", "salt", "wool", "rope"):
                    await session.send(f"What is {word}?")
                found = [e.meta for e in session.entries if "cache" in e.meta]
                fragments = session.trajectory.fragments
                fragments[0] = fragments[0].replace(b"tea", b"ink")
                with pytest.raises(CacheBreak, match=r"message 0 \(user\)"):
                    await session.send("What is glue?")
                session.expect_break("the test goes on")
                await session.send("What is glass?")
                return [*found, session.entries[-1].meta]

    metas = asyncio.run(work())
    for before, now in itertools.pairwise(metas[:4]):
        sent = before["usage"]["input_tokens"]
        assert now["cache"]["expected"] == sent
        assert now["cache"]["cached"] >= 0.98 * sent
    broken, last = metas[4], metas[3]
    assert broken["cache"]["break"]["cause"] == "message_rewritten"
    assert broken["cache"]["cached"] < 0.98 * last["usage"]["input_tokens"]
    assert abs(broken["cache"]["cached"] - broken["cache"]["expected"]) < 40
