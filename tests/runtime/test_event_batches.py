"""Events of a session: posted at any time, told in one marked batch before the next request."""

from __future__ import annotations

import asyncio
import os
import pty
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, tool
from lorimer.cli.typed_ahead import END, next_messages, typed_ahead
from lorimer.context.events import MOST_EVENTS, Context, Event
from lorimer.core.errors import SessionBusy, StoreError, UsageFault
from lorimer.core.messages import Kind
from lorimer.core.trust import Trust
from lorimer.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio


@tool(effects="read")
async def look() -> str:
    """Look.

    Use when: asked.
    """
    return "seen"


def kinds(session: Any) -> list[str]:
    return [str(entry.kind) for entry in session.entries]


async def test_several_messages_are_one_marked_batch() -> None:
    model = ScriptedModel(["ok", "ok"])
    async with Agent(model, store=":memory:") as agent, agent.session() as session:
        result = await session.send_batch(["First.", "Second."])
        assert result.answer == "ok" and kinds(session) == ["event", "assistant"]
        text = session.entries[0].text
        assert "[Unprocessed event 1/2]" in text and "2 events: 2 user.input" in text
        assert session.conversation.user_words == ["First.", "Second."]
        assert not session.conversation.tainted_by
        await session.send_batch(["Only one."])  # that is an ordinary message
        assert kinds(session)[2:] == ["user", "assistant"]
        assert b"Only one." in session.trajectory.fragments[2]


@pytest.mark.parametrize("messages", [[], ["a", ""], ["a", "  "], ["a", 7], "ab"])
async def test_what_is_no_batch_is_refused(messages: Any) -> None:
    async with Agent(ScriptedModel(["ok"]), store=":memory:") as agent, agent.session() as session:
        with pytest.raises(UsageFault):
            await session.send_batch(messages)
        assert not session.entries


async def test_events_come_in_before_the_next_request_in_one_entry() -> None:
    opened: list[Any] = []

    @tool(effects="read")
    async def wait() -> str:
        """Wait.

        Use when: asked.
        """
        (session,) = opened
        session.post(Event("build", "webhook", "failed", Context("build.ended")))
        session.post(Event("timer-1", "timer", "due", Context("timer.trigger"), Trust.TRUSTED))
        return "done"

    model = ScriptedModel([call("wait"), "I saw it."])
    async with Agent(model, [wait], store=":memory:") as agent, agent.session() as session:
        opened.append(session)
        await session.send("go")
        assert kinds(session) == ["user", "assistant", "tool_result", "event", "assistant"]
        entry = session.entries[3]
        assert "2 events: 1 build.ended, 1 timer.trigger" in entry.text
        assert [e["source"] for e in entry.meta["events"]] == ["build", "timer-1"]
        assert all(e["at"] for e in entry.meta["events"])
        assert session.conversation.tainted_by == ("webhook: build",)
        assert session.conversation.user_words == ["go"]
        assert session.mailbox.waiting == 0


async def test_events_wait_for_the_next_run_and_resume_answers_them(tmp_path: Path) -> None:
    model = ScriptedModel(["hello", "noted"])
    async with Agent(model, store=tmp_path / "s.db") as agent:
        async with agent.session() as session:
            await session.send("hi")
            assert (await session.resume()).answer == "hello"
            session.post(Event("ann@example.org", "email", "News."))
            assert session.mailbox.waiting == 1 and kinds(session) == ["user", "assistant"]
            assert (await session.resume()).answer == "noted"
            assert kinds(session) == ["user", "assistant", "event", "assistant"]
        async with agent.session(session.id) as again:  # taint lasts as long as the entries
            assert again.conversation.tainted_by == ("email: ann@example.org",)
            assert again.conversation.user_words == ["hi"]


async def test_more_than_a_batch_holds_comes_with_the_next_request() -> None:
    model = ScriptedModel([call("look"), "ok"])
    async with Agent(model, [look], store=":memory:") as agent, agent.session() as session:
        for n in range(MOST_EVENTS + 3):
            session.post(Event("x", "webhook", f"event {n}"))
        await session.send("go")
        batches = [e for e in session.entries if e.kind is Kind.EVENT]
        assert [len(e.meta["events"]) for e in batches] == [MOST_EVENTS, 3]


async def test_a_batch_that_cannot_be_recorded_still_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Agent(ScriptedModel(["ok"]), store=":memory:") as agent, agent.session() as session:
        session.post(Event("x", "webhook", "one"))
        session.post(Event("x", "webhook", "two"))

        async def full(*changes: Any) -> None:
            raise StoreError("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(agent.store, "commit", full)
            with pytest.raises(StoreError):
                await session.mailbox.before_request()
        assert session.mailbox.waiting == 2 and not session.entries
        await session.mailbox.before_request()
        assert [e["content"] for e in session.entries[0].meta["events"]] == ["one", "two"]


async def test_events_of_other_threads() -> None:
    async with Agent(ScriptedModel(["ok"]), store=":memory:") as agent, agent.session() as session:
        threads = [
            threading.Thread(target=session.post, args=(Event("t", "webhook", str(n)),))
            for n in range(20)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        await session.send("go")
        (batch,) = [e for e in session.entries if e.kind is Kind.EVENT]
        assert sorted(int(e["content"]) for e in batch.meta["events"]) == list(range(20))


async def test_a_batch_is_refused_while_a_run_goes_on() -> None:
    entered = asyncio.Event()
    leave = asyncio.Event()

    @tool(effects="read")
    async def hold() -> str:
        """Hold.

        Use when: asked.
        """
        entered.set()
        await leave.wait()
        return "ok"

    model = ScriptedModel([call("hold"), "ok"])
    async with Agent(model, [hold], store=":memory:") as agent, agent.session() as session:
        run = asyncio.create_task(session.send("go"))
        await entered.wait()
        with pytest.raises(SessionBusy):
            await session.send_batch(["a", "b"])
        assert session.mailbox.waiting == 0  # nothing of it is kept for later
        leave.set()
        assert (await run).ok


# --- lines that were typed while the model worked ---


def test_whole_lines_that_were_typed_are_taken_and_the_rest_stays() -> None:
    leader, follower = pty.openpty()
    try:
        assert typed_ahead(follower) == []
        os.write(leader, "first ü\n\n  second \nhalf".encode())
        while not (lines := typed_ahead(follower)):
            pass
        while "second" not in lines:
            lines += typed_ahead(follower)
        assert lines == ["first ü", "second"]
        os.write(leader, b" done\n")
        while not (lines := typed_ahead(follower)):
            pass
        assert lines == ["half done"]
        os.write(leader, b"\x04")
        while not (lines := typed_ahead(follower)):
            pass
        assert lines == [END]
    finally:
        os.close(leader)
        os.close(follower)
    assert typed_ahead(follower) == []


def test_commands_are_taken_one_by_one() -> None:
    waiting = deque(["a", "b /c", "/tools", "/x/y", "c", "/exit"])
    taken = []
    while waiting:
        taken.append(next_messages(waiting))
    assert taken == [["a", "b /c"], ["/tools"], ["/x/y", "c"], ["/exit"]]
