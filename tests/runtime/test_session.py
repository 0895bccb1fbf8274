"""Sessions: opening, closing, cancelling, going on; and that a watcher changes nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from harness import acts
from harness import world as w
from lorimer import Agent, tool
from lorimer.core.calls import JournalState, Outcome
from lorimer.core.errors import SessionBusy, StoreError, UsageFault
from lorimer.store import open_store
from lorimer.store.protocol import CorrectCall, Remark
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio


def act_call(world: Path, at: str = "nowhere", what: str = "") -> dict[str, Any]:
    return call("act", world=str(world), at=at, what=what, marked=False, once=False)


def acting(folder: Path, kind: str = "async") -> Any:
    return acts.acting(kind, "none", str(folder))


async def test_one_run_at_a_time(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path, "before", "hang"), "ok", "ok"])
    async with (
        Agent(model, [acting(tmp_path)], store=tmp_path / "store.db") as agent,
        agent.session() as session,
    ):
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        with pytest.raises(SessionBusy):
            await session.send("and this?")
        with pytest.raises(SessionBusy):
            await agent.session(session.id, wait_s=0.0).open()
        w.release(tmp_path)
        assert (await run).ok
        assert (await session.send("and this?")).ok


async def test_cancelled_while_it_is_being_opened_runs_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path), "ok", "ok"])
    async with Agent(model, [acting(tmp_path)], store=tmp_path / "store.db") as agent:
        async with agent.session() as session:
            await session.send("go")
            w.release(tmp_path)
            again = agent.session(session.id, wait_s=None)
            run = asyncio.create_task(again.send("go"))
            await asyncio.sleep(0)  # it has begun, and waits for the lock
            await asyncio.sleep(0)
            cancelled = asyncio.ensure_future(_awaited(again.cancel("not now")))
        result = await run
        await cancelled
        assert result.stop == "cancelled" and len(model.requests) == 2
        await again.close()


async def _awaited(what: Any) -> None:
    await what


async def test_resume_cancelled_while_it_is_being_opened_runs_no_call(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path, "before", "hang"), "ok"])
    act = acts.acting("async", "natural", str(tmp_path))
    async with Agent(model, [act], store=tmp_path / "store.db") as agent:
        session = agent.session()
        dead = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        session._lock.release()  # type: ignore[union-attr]  # as if its process had died
        lock = await agent.store.lock_session(session.id)
        again = agent.session(session.id, wait_s=None)
        run = asyncio.create_task(again.resume())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        again.cancel("not now")
        lock.release()
        assert (await run).stop == "cancelled"
        assert not w.effects(tmp_path)
        await again.close()
        w.release(tmp_path)
        with pytest.raises(StoreError):
            await dead


async def test_an_empty_reason_cancels_too(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path, "before", "hang"), "ok"])
    async with (
        Agent(model, [acting(tmp_path)], store=":memory:") as agent,
        agent.session() as session,
    ):
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        await session.cancel("")
        assert (await run).stop == "cancelled"


async def test_a_closed_session_can_be_opened_and_used_again(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path), "one", act_call(tmp_path), "two"])
    async with Agent(model, [acting(tmp_path, "process")], store=tmp_path / "store.db") as agent:
        session = agent.session()
        assert (await session.send("go")).answer == "one"
        await session.close()
        await session.close()
        assert (await session.send("go")).answer == "two"
        await session.close()
    assert len(w.effects(tmp_path)) == 2


async def test_a_session_of_someone_else_stays_closed(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    async with Agent(ScriptedModel(["ok"]), store=store, principal="ada") as agent:
        ended = await agent.run("go")
    async with Agent(ScriptedModel([]), store=store, principal="bob") as agent:
        for _ in range(2):
            with pytest.raises(UsageFault, match="ada"):
                await agent.session(ended.session, wait_s=0.0).open()


async def test_closing_the_agent_closes_its_sessions_and_stops_what_runs(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    model = ScriptedModel([act_call(tmp_path, "before", "hang")])
    agent = Agent(model, [acting(tmp_path, "process")], store=store)
    session = agent.session()
    run = asyncio.create_task(session.send("go"))
    await w.until(lambda: w.reached(tmp_path, "before"))
    await agent.close()
    assert (await run).stop == "cancelled"
    other = open_store(store)
    (record,) = other.calls(session.id)
    other.close()
    assert record.state is JournalState.FINISHED and record.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("kind", ["async", "process", "thread"])
async def test_a_watcher_that_fails_changes_nothing_of_what_happens(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def watch(event: Any) -> None:
        raise RuntimeError("no more paper")

    model = ScriptedModel([act_call(tmp_path), "ok"])
    async with Agent(model, [acting(tmp_path, kind)], store=":memory:", watch=watch) as agent:
        with caplog.at_level(logging.ERROR):
            result = await agent.run("go")
    assert result.answer == "ok" and result.calls[0].outcome is Outcome.DONE
    assert "no more paper" in caplog.text, "it is said, once"


async def test_what_was_planned_when_a_run_was_cancelled_is_not_left_open(tmp_path: Path) -> None:
    """Cancelled between the answer and its calls: the record says at once that none has started."""
    store = open_store(tmp_path / "store.db")
    model = ScriptedModel([[act_call(tmp_path), act_call(tmp_path)], "ok"])
    async with Agent(model, [acting(tmp_path)], store=store) as agent, agent.session() as session:
        reply_commits: list[asyncio.Task[Any]] = []
        commit = store.commit

        async def cancelling(*changes: Any) -> None:
            if any(type(c).__name__ == "PlanCall" for c in changes) and not reply_commits:
                reply_commits.append(run)
                run.cancel()
            await commit(*changes)

        store.commit = cancelling  # type: ignore[method-assign]
        run = asyncio.create_task(session.send("go"))
        with pytest.raises(asyncio.CancelledError):
            await run
        records = store.calls(session.id)
        assert [r.outcome for r in records] == [Outcome.NOT_STARTED] * 2
        assert (await session.send("go on")).answer == "ok"
    assert not w.effects(tmp_path)
    assert verify(store).faults == ()
    store.close()


# --- the store under it --------------------------------------------------------------------------


def test_a_commit_whose_loop_has_gone_does_not_stop_the_ones_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    gate = threading.Event()
    # Keeps the writer until the loop is gone.
    store._writer._queue.put(((), lambda fault: gate.wait()))
    loop = asyncio.new_event_loop()
    task = loop.create_task(store.commit(Remark("s", "me", "test.first", "")))
    loop.call_soon(loop.stop)
    loop.run_forever()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    gate.set()
    store.commit_now(Remark("s", "me", "test.second", ""))
    assert [line.action for line in store.audit("s")] == ["test.first", "test.second"]
    store.close()


async def test_a_call_that_has_not_ended_cannot_be_corrected(tmp_path: Path) -> None:
    model = ScriptedModel([act_call(tmp_path, "before", "hang"), "ok"])
    async with (
        Agent(model, [acting(tmp_path)], store=tmp_path / "store.db") as agent,
        agent.session() as session,
    ):
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        (record,) = agent.store.calls(session.id)
        change = CorrectCall(session.id, record.id, Outcome.DONE, {}, agent.clock.now())
        with pytest.raises(StoreError, match="has not ended"):
            await agent.store.commit(change)
        w.release(tmp_path)
        await run
        assert not [a for a in agent.store.audit(session.id) if a.action == "call.corrected"]


async def test_a_read_is_never_unknown_even_when_the_harness_fails_over_it() -> None:
    @tool(effects="read", verify=lambda arguments, result, context: result["missing"])
    async def look() -> dict[str, int]:
        """Look."""
        return {}

    async with Agent(ScriptedModel([call("look"), "ok"]), [look], store=":memory:") as agent:
        (end,) = (await agent.run("go")).calls
    assert end.outcome is Outcome.DONE
