"""Requests beside the conversation, compaction and rebase in a real session, strictly audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, tool
from lorimer.context.view import Span
from lorimer.core.clock import SystemClock
from lorimer.core.errors import InvalidRequest
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.runtime.session import Session
from lorimer.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio


@tool(effects="read")
def look(word: str) -> str:
    """Look `word` up."""
    return f"{word} is known. " * 20


def agent_of(model: ScriptedModel, store: Path, **options: Any) -> Agent:
    return Agent(model, [look], store=store, strict_cache=True, mode="auto", **options)


def summary(first: int, last: int, text: str) -> Entry:
    now = SystemClock().now()
    inside = Entry(Kind.COMPACTION, (TextPart(f"<context_summary>{text}</context_summary>"),), now)
    return Entry(Kind.COMPACTION, (), now, meta={"spans": [Span(first, last, (inside,)).to_json()]})


async def talk(session: Session) -> None:
    await session.send("look a up")
    await session.send("and now?")


SCRIPT = [call("look", word="a"), "It is known.", "Still known."]


async def test_a_compacted_session_goes_on_strictly_audited(tmp_path: Path) -> None:
    model = ScriptedModel([*SCRIPT, "One more.", "And one."])
    async with agent_of(model, tmp_path / "s.db") as agent, agent.session() as session:
        await talk(session)
        before = len(session.entries)
        await session.record(summary(0, 2, "a is known"))
        assert len(session.entries) == before + 1
        await session.send("what is known?")
        await session.send("and then?")
        seen = [e.kind for e in model.requests[-1].entries]
        assert seen[:2] == [Kind.COMPACTION, Kind.ASSISTANT]
        assert b"context_summary" in model.requests[-1].fragments[0]
        assert session.entries[0].text == "look a up"  # what happened is what happened
        lines = [line.action for line in agent.store.audit(session.id)]
        assert lines.count("cache.rebased") == 1
        assert "cache.break" not in lines


@pytest.mark.parametrize("asked_between", [False, True])
async def test_after_a_restart_the_view_is_the_same_bytes(
    tmp_path: Path, asked_between: bool
) -> None:
    model = ScriptedModel([*SCRIPT, "One more."])
    async with agent_of(model, tmp_path / "s.db") as agent, agent.session() as session:
        await talk(session)
        await session.record(summary(0, 2, "a is known"))
        if asked_between:
            await session.send("what is known?")
        fragments, name = list(session.trajectory.fragments), session.id
    again = ScriptedModel(["Later."])
    async with agent_of(again, tmp_path / "s.db") as agent, agent.session(name) as session:
        assert list(session.trajectory.fragments) == fragments
        await session.send("go on")
        assert [*again.requests[0].fragments][: len(fragments)] == fragments


@pytest.mark.parametrize(("first", "last"), [(1, 1), (2, 2), (0, 1), (2, 9), (3, 2), (0, 99)])
async def test_a_compaction_that_splits_a_call_from_its_result_is_refused(
    tmp_path: Path, first: int, last: int
) -> None:
    async with (
        agent_of(ScriptedModel([*SCRIPT, "Fine."]), tmp_path / "s.db") as agent,
        agent.session() as session,
    ):
        await talk(session)
        count, fragments = len(session.entries), list(session.trajectory.fragments)
        with pytest.raises(InvalidRequest, match="compaction cannot be"):
            await session.record(summary(first, last, "x"))
        assert len(session.entries) == count
        assert list(session.trajectory.fragments) == fragments
        assert (await session.send("still there?")).ok


async def test_a_request_beside_rides_the_prefix_and_leaves_no_trace_in_the_trajectory(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([*SCRIPT, "In short: known.", "Yes."])
    async with agent_of(model, tmp_path / "s.db") as agent, agent.session() as session:
        await talk(session)
        count = len(session.entries)
        reply = await session.side_request("Sum up.", purpose="summary")
        assert reply.text == "In short: known."
        before, beside = model.requests[-2], model.requests[-1]
        assert [*beside.fragments][: len(before.fragments)] == [*before.fragments]
        assert beside.prefix.rendered == before.prefix.rendered
        assert len(session.entries) == count
        assert (await session.send("go on")).usage.requests == 2  # it counts into the next run
        assert "request.beside" in [line.action for line in agent.store.audit(session.id)]


async def test_a_call_in_the_answer_of_a_request_beside_is_never_run(tmp_path: Path) -> None:
    model = ScriptedModel([*SCRIPT, call("look", word="b"), "Yes."])
    async with agent_of(model, tmp_path / "s.db") as agent, agent.session() as session:
        await talk(session)
        reply = await session.side_request("Sum up.", purpose="summary")
        assert [c.name for c in reply.calls] == ["look"]
        assert len(agent.store.calls(session.id)) == 1


async def test_a_rebase_takes_up_what_the_agent_is_now(tmp_path: Path) -> None:
    async with (
        agent_of(ScriptedModel(SCRIPT), tmp_path / "s.db", system="old") as agent,
        agent.session() as session,
    ):
        await talk(session)
        name = session.id
    model = ScriptedModel(["Kept.", "New."])
    async with (
        agent_of(model, tmp_path / "s.db", system="new") as agent,
        agent.session(name) as session,
    ):
        await session.send("which system?")
        assert json.loads(model.requests[0].prefix.rendered)["system"] == "old"
        await session.rebase("a new version")
        await session.send("which system?")
        assert json.loads(model.requests[1].prefix.rendered)["system"] == "new"
    third = ScriptedModel(["Still new."])
    async with (
        agent_of(third, tmp_path / "s.db", system="newer") as agent,
        agent.session(name) as session,
    ):
        await session.send("which system?")
        assert json.loads(third.requests[0].prefix.rendered)["system"] == "new"
