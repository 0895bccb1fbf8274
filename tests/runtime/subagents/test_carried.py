"""What goes down to a sub-agent with everything else: secrets, a compacted conversation, an audit
that holds, entries beside the conversation."""

from __future__ import annotations

from typing import Any

import pytest

from lorimer import tool
from lorimer.context.view import Span
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.models.protocol import Request
from lorimer.safety.secrets import MemoryVault
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call
from lorimer.tools.subagents import SubagentStatus

from .conftest import ANSWER, Pair, answer, error_of, results, spawn, text_of

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-0815"


@tool(effects="read")
async def log_in(token: str) -> str:
    """Log in."""
    assert token == VALUE
    return f"in with {token}"


@tool(effects="read")
async def other(token: str) -> str:
    """Something else."""
    return f"got {token}"


async def test_a_secret_goes_to_the_tools_that_may_have_it_and_comes_back_nowhere(
    pair: Pair,
) -> None:
    pair.child.add(
        call("log_in", token="secret:github"), call("other", token="secret:github"),
        answer(f"the token is {VALUE}"),
    )  # fmt: skip
    vault = MemoryVault({"github": VALUE}, tools=["log_in"])
    script = [spawn(agent="general"), "ok"]
    agent = pair.agent(script, tools=[log_in, other], secrets=vault, mode="trusted")
    async with agent, agent.session() as session:
        await session.send("go")
        told = text_of(results(session)[0])
        assert VALUE not in told and "[secret:github]" in told
        first, second = (r.entries[-1].results[0] for r in pair.child.requests[1:])
        assert "[secret:github]" in text_of(first) and VALUE not in text_of(first)
        assert "secret:github" in error_of(second)["message"]
    assert "github" in pair.child.requests[0].prefix.system, "it is told which there are"


async def test_a_secret_is_taken_out_of_the_event_of_one_that_nobody_waits_for(
    pair: Pair,
) -> None:
    pair.child.add(call("log_in", token="secret:github"), answer(f"it is {VALUE}"))
    vault = MemoryVault({"github": VALUE}, tools=["log_in"])
    script = [spawn(agent="general", wait=False), "ok", "heard"]
    agent = pair.agent(script, tools=[log_in], secrets=vault, mode="trusted")
    async with agent, agent.session() as session:
        await session.send("go")
        await session.subagents.settled()  # type: ignore[union-attr]
        await session.send("and?")
        event = next(e for e in session.entries if e.kind is Kind.EVENT)
        assert VALUE not in str(event.to_json()) and "[secret:github]" in event.text


async def test_entries_beside_the_conversation_do_not_hide_an_end(pair: Pair) -> None:
    pair.child.add(ANSWER)
    async with pair.agent([spawn(), "ok"]) as agent, agent.session() as session:
        await session.send("go")
        host = session.subagents
        assert host is not None
        child = host.children()[0].id
        host._ends.clear()  # as after a restart
        async with agent.session(child) as own:
            now = agent.clock.now()
            await own.record(Entry(Kind.ARCHIVE, (), now, meta={"note": {}}))
        assert host.status(child).status is SubagentStatus.DONE


async def test_a_compacted_conversation_is_inherited_as_it_is_sent(pair: Pair) -> None:
    one = ScriptedModel([], name="both")
    fork = spawn(agent="general", handover="inherit")
    one.add("first", "second", fork, ANSWER, "done")
    agent = pair.agent([], settings={"models": {}}, strict_cache=True)
    agent.model = one
    async with agent, agent.session() as session:
        await session.send("a long story")
        await session.send("another one")
        now = agent.clock.now()
        short = Entry(Kind.USER, (TextPart("<context_summary>short</context_summary>"),), now, 0)
        spans = [Span(0, 2, (short,)).to_json()]
        await session.record(Entry(Kind.COMPACTION, (), now, meta={"spans": spans}))
        assert (await session.send("go")).ok
        kept = agent.store.entries(session.subagents.children()[0].id, "scripted")  # type: ignore[union-attr]
        assert [e.kind for e, _ in kept].count(Kind.COMPACTION) == 1
    before, child = one.requests[2], one.requests[3]
    assert list(child.fragments)[: len(before.fragments)] == list(before.fragments)
    assert "a long story" not in str([e.text for e in child.entries])


async def test_the_record_of_a_family_holds_its_audit(pair: Pair) -> None:
    def deep(request: Request) -> Any:
        return spawn("deeper", agent="explore")

    pair.child.add(deep, ANSWER, ANSWER)
    async with pair.agent([spawn(agent="general"), "ok"]) as agent, agent.session() as session:
        await session.send("go")
        assert not verify(agent.store).faults
