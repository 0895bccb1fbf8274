"""Fixtures of the tests of approvals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.approving import ran
from lorimer import Agent
from lorimer.store import open_store
from lorimer.testing import ManualClock, ScriptedModel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a script in it, and a world to act on."""
    ran.clear()
    work = tmp_path / "work"
    (work / "world").mkdir(parents=True)
    (work / "build.sh").write_text("echo one\n")
    return work


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Any, str, ManualClock]]:
    """A store with one session of ada's."""
    clock = ManualClock()
    store = open_store(tmp_path / "store.db", clock=clock)

    async def begin() -> str:
        agent = Agent(ScriptedModel(["hello"]), store=store, clock=clock, principal="ada")
        return (await agent.run("hi")).session

    yield store, asyncio.run(begin()), clock
    store.close()
