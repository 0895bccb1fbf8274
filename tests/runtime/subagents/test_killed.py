"""A real process that is killed while a sub-agent works, and what is made of it then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, tool
from lorimer.core.messages import Kind
from lorimer.runtime.subagents import SubagentSettings
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import default_tools
from lorimer.tools.subagents import SubagentStatus

from .conftest import ANSWER, Pair, error_of, results, text_of

pytestmark = pytest.mark.anyio

_VICTIM = """
import asyncio, os, signal, sys
from lorimer.core.watch import SubagentEnded
from lorimer import Agent, tool
from lorimer.runtime.subagents import SubagentSettings
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import default_tools

folder, wait = sys.argv[1], sys.argv[2] != "apart"
ended = sys.argv[2] == "ended"
child_at_work = asyncio.Event()

@tool(effects="read")
async def gate() -> str:
    "Wait."
    child_at_work.set()
    if ended:
        return "open"
    if wait:
        print("reached", flush=True)
    await asyncio.Event().wait()
    return "never"

async def then(request):
    await asyncio.wait_for(child_at_work.wait(), 60)
    print("reached", flush=True)
    await asyncio.Event().wait()

def watch(event):
    if ended and isinstance(event, SubagentEnded):
        print("reached", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    answer = '{"answer": "a.txt", "evidence": ["a.txt:1"]}'
    child = ScriptedModel(
        [call("write_file", path="made.txt", content="x\\n"), call("gate"), answer], name="child")
    parent = ScriptedModel(
        [call("spawn_subagent", task="go", agent="general", wait=wait), then], name="parent")
    settings = SubagentSettings(models={"inherit": child}, files=False)
    async with Agent(parent, [*default_tools(), gate], workspace=folder, subagents=settings,
                     watch=watch, store=folder + "/store.db") as agent, agent.session() as session:
        print(session.id, flush=True)
        result = await session.send("go")
        raise SystemExit(f"it came to an end: {result}")

asyncio.run(main())
"""


def killed(folder: Path, *, wait: bool = True, ended: bool = False) -> str:
    """The id of a session whose process was killed while its sub-agent worked; or, when `ended`,
    after that had come to its end and before the call that waited for it had."""
    how = "ended" if ended else "wait" if wait else "apart"
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(folder), how], stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        try:
            session = victim.stdout.readline().strip()
            assert victim.stdout.readline().strip() == "reached"
        finally:
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
    return session


@tool(name="gate", effects="read")
async def open_gate() -> str:
    """Wait no more."""
    return "open"


def again(folder: Path, parent: list[Any], child: list[Any]) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(child, name="child")
    settings = SubagentSettings(models={"inherit": model}, files=False)
    agent = Agent(
        ScriptedModel(parent, name="parent"), [*default_tools(), open_gate], workspace=folder,
        store=folder / "store.db", subagents=settings,
    )  # fmt: skip
    return agent, model


async def test_resume_goes_on_with_the_same_sub_agent(pair: Pair) -> None:
    session_id = killed(pair.folder, wait=True)
    agent, child = again(pair.folder, ["done"], [ANSWER])
    async with agent, agent.session(session_id, wait_s=5.0) as session:
        assert (await session.resume()).answer == "done"
        told = results(session)[0]
        assert text_of(told).startswith(ANSWER) and "same key" in text_of(told)
        children = session.subagents.children()  # type: ignore[union-attr]
        assert [one.status for one in children] == [SubagentStatus.DONE]
        writes = [c for c in agent.store.calls(children[0].id) if c.tool == "write_file"]
        assert len(writes) == 1, "what it had written before is not written again"
    assert len(child.requests) == 1 and len(child.requests[0].entries) == 5


async def test_a_new_message_settles_the_call_with_how_to_find_out(pair: Pair) -> None:
    session_id = killed(pair.folder, wait=True)
    look = [call("list_agents"), "I see."]
    agent, child = again(pair.folder, look, [])
    async with agent, agent.session(session_id, wait_s=5.0) as session:
        await session.send("What happened?")
        error = error_of(results(session)[0])
        assert error["outcome"] == "unknown" and "is interrupted" in error["message"]
        assert "get_subagent_status" in error["message"]
        assert "interrupted" in text_of(results(session, "list_agents")[0])
    assert not child.requests, "nothing of it was run again"


@pytest.mark.parametrize("how", ["resume", "send"])
async def test_an_answer_that_was_there_is_taken_from_the_record(pair: Pair, how: str) -> None:
    session_id = killed(pair.folder, ended=True)
    agent, child = again(pair.folder, ["done"], [])
    async with agent, agent.session(session_id, wait_s=5.0) as session:
        result = await (session.resume() if how == "resume" else session.send("And?"))
        assert result.answer == "done"
        assert text_of(results(session)[0]).startswith(ANSWER)
        assert not results(session)[0].is_error
    assert not child.requests


async def test_an_interrupted_one_goes_on_when_it_is_told_to(pair: Pair) -> None:
    session_id = killed(pair.folder, wait=True)
    agent, child = again(pair.folder, [], [ANSWER])
    async with agent, agent.session(session_id, wait_s=5.0) as session:
        known = session.subagents.children()[0].id  # type: ignore[union-attr]
        agent.model.add(  # type: ignore[attr-defined]
            call("send_message_to_subagent", subagent=known, message="go on"), "done"
        )
        assert (await session.send("Let it go on.")).ok
        told = results(session, "send_message_to_subagent")[0]
        assert text_of(told).startswith(ANSWER)
    assert child.requests[0].entries[-1].text.endswith("go on")


async def test_one_that_nobody_waited_for_goes_on_when_the_parent_does(pair: Pair) -> None:
    session_id = killed(pair.folder, wait=False)
    agent, child = again(pair.folder, [call("gate"), "done", "heard"], [ANSWER])
    async with agent, agent.session(session_id, wait_s=5.0) as session:
        assert (await session.resume()).answer == "done"
        await session.subagents.settled()  # type: ignore[union-attr]
        await session.send("And?")
        told = [e for e in session.entries if e.kind is Kind.EVENT]
        assert len(told) == 1 and ANSWER in told[0].text
        assert len(session.subagents.children()) == 1  # type: ignore[union-attr]
    assert len(child.requests) == 1
