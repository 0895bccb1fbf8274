"""Order and concurrency of the calls of one turn, resources, limits, retries."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness import world as w
from lorimer import Agent, ToolContext, ToolError, tool
from lorimer.core.calls import Outcome
from lorimer.testing import ScriptedModel, call
from lorimer.tools.tool import Limit

pytestmark = pytest.mark.anyio


class Stage:
    """Tools that say when they run, and wait to be let go."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.began: list[str] = []
        self.ended: list[str] = []
        self.most = 0
        self.gates: dict[str, asyncio.Event] = {}

    async def _play(self, name: str) -> str:
        self.began.append(name)
        self.running.append(name)
        self.most = max(self.most, len(self.running))
        try:
            if name in self.gates:
                await self.gates[name].wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.running.remove(name)
        self.ended.append(name)
        return name

    def tools(self) -> list[Any]:
        @tool(effects="read")
        async def look(name: str) -> str:
            """Look."""
            return await self._play(name)

        @tool
        async def act(name: str, fail: bool = False) -> str:
            """Act."""
            done = await self._play(name)
            if fail:
                raise ToolError("it failed", outcome=Outcome.FAILED_BEFORE_EFFECT)
            return done

        return [look, act]

    def gate(self, *names: str) -> None:
        for name in names:
            self.gates[name] = asyncio.Event()


def look(name: str) -> dict[str, Any]:
    return call("look", name=name)


def act(name: str, **more: Any) -> dict[str, Any]:
    return call("act", name=name, **more)


async def test_reads_run_together_and_a_write_waits_for_all_before_it() -> None:
    stage = Stage()
    stage.gate("r1", "r2", "w1", "r3")
    model = ScriptedModel([[look("r1"), look("r2"), act("w1"), look("r3"), act("w2")], "ok"])
    async with Agent(model, stage.tools(), store=":memory:") as agent, agent.session() as session:
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: sorted(stage.running) == ["r1", "r2"])
        stage.gates["r2"].set()
        await w.until(lambda: stage.running == ["r1"])
        assert "w1" not in stage.began
        stage.gates["r1"].set()
        await w.until(lambda: stage.running == ["w1"])
        assert stage.began[2:] == ["w1"]
        stage.gates["w1"].set()
        await w.until(lambda: stage.running == ["r3"])
        stage.gates["r3"].set()
        result = await run
    assert stage.began[2:] == ["w1", "r3", "w2"]
    assert [c.result for c in result.calls] == ["r1", "r2", "w1", "r3", "w2"], "in call order"


async def test_a_failed_write_skips_the_later_writes_and_no_read() -> None:
    stage = Stage()
    calls = [act("w1"), act("w2", fail=True), look("r"), act("w3"), act("w4")]
    model = ScriptedModel([calls, act("w3"), "ok"])
    async with Agent(model, stage.tools(), store=":memory:") as agent:
        result = await agent.run("go")
    assert stage.began == ["w1", "w2", "r", "w3"], "w3 runs in the next turn only"
    assert [(c.code, c.outcome) for c in result.calls] == [
        ("", Outcome.DONE),
        ("tool_error", Outcome.FAILED_BEFORE_EFFECT),
        ("", Outcome.DONE),
        ("skipped", Outcome.NOT_STARTED),
        ("skipped", Outcome.NOT_STARTED),
        ("", Outcome.DONE),
    ]
    assert "act failed" in json.loads(result.calls[3].result)["message"]


async def test_a_thousand_reads_are_all_answered_and_never_more_than_the_limit_run() -> None:
    stage = Stage()
    names = [f"r{n}" for n in range(1000)]
    model = ScriptedModel([[look(name) for name in names], "ok"])
    async with Agent(model, stage.tools(), store=":memory:") as agent, agent.session() as session:
        result = await session.send("go")
        limit = session.dispatcher.around.concurrency
    assert stage.most == limit
    assert [c.result for c in result.calls] == names
    (results,) = [e for e in session.entries if e.results]
    assert [r.call_id for r in results.results] == [c.id for c in result.calls]


async def test_a_thousand_reads_in_threads_are_bounded_too() -> None:
    running: Counter[str] = Counter()
    most = 0

    @tool(effects="read")
    def peek(n: int) -> int:
        """Peek."""
        nonlocal most
        running["now"] += 1
        most = max(most, running["now"])
        running["now"] -= 1
        return n

    model = ScriptedModel([[call("peek", n=n) for n in range(1000)], "ok"])
    async with Agent(model, [peek], store=":memory:") as agent, agent.session() as session:
        result = await session.send("go")
        assert most <= session.dispatcher.around.concurrency
    assert [c.result for c in result.calls] == [str(n) for n in range(1000)]


async def test_what_waits_for_its_turn_when_the_run_is_cancelled_never_starts() -> None:
    stage = Stage()
    names = [f"r{n}" for n in range(20)]
    stage.gate(*names)
    model = ScriptedModel([[*(look(n) for n in names), act("w1"), act("w2")]])
    async with Agent(model, stage.tools(), store=":memory:") as agent, agent.session() as session:
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: len(stage.running) == session.dispatcher.around.concurrency)
        await session.cancel("enough")
        result = await run
    assert len(stage.began) == session.dispatcher.around.concurrency and not stage.ended
    outcomes = Counter((c.name, c.outcome) for c in result.calls)
    assert outcomes == {
        ("look", Outcome.FAILED_BEFORE_EFFECT): 8,
        ("look", Outcome.NOT_STARTED): 12,
        ("act", Outcome.NOT_STARTED): 2,
    }
    assert "enough" in json.loads(result.calls[-1].result)["message"]


# --- resources -----------------------------------------------------------------------------------


def locking(stage: Stage, **options: Any) -> Any:
    @tool(name="act", resources=lambda arguments: arguments["keys"], **options)
    async def act_on(name: str, keys: list[str]) -> str:
        """Act on something."""
        return await stage._play(name)

    return act_on


def act_on(name: str, *keys: str) -> dict[str, Any]:
    return call("act", name=name, keys=list(keys))


async def test_calls_that_share_a_resource_run_one_after_another_between_sessions_and_agents(
    tmp_path: Path,
) -> None:
    stage = Stage()
    stage.gate("a", "b", "c")
    store = tmp_path / "store.db"
    async with (
        Agent(ScriptedModel([act_on("a", "y", "x"), "ok"]), [locking(stage)], store=store) as one,
        Agent(ScriptedModel([act_on("b", "x", "y"), "ok"]), [locking(stage)], store=store) as two,
        Agent(ScriptedModel([act_on("c", "z"), "ok"]), [locking(stage)], store=store) as three,
    ):
        first = asyncio.create_task(one.run("go"))
        await w.until(lambda: stage.running == ["a"])
        second = asyncio.create_task(two.run("go"))
        third = asyncio.create_task(three.run("go"))
        await w.until(lambda: stage.running == ["a", "c"])
        stage.gates["a"].set()
        await w.until(lambda: stage.running == ["c", "b"])
        stage.gates["b"].set()
        stage.gates["c"].set()
        assert all(end.ok for end in await asyncio.gather(first, second, third))


_HOLD = """
import asyncio, sys
from lorimer.store import open_store
async def main():
    lock = await open_store(sys.argv[1]).lock_resource("x")
    print("held", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_resource_that_another_process_holds_is_waited_for_until_that_is_killed(
    tmp_path: Path,
) -> None:
    stage, store = Stage(), tmp_path / "store.db"
    model = ScriptedModel([act_on("a", "x"), act_on("a", "x"), "ok"])
    async with Agent(model, [locking(stage)], store=store) as agent, agent.session() as session:
        holder = subprocess.Popen(  # noqa: ASYNC220 - the loop has nothing else to do
            [sys.executable, "-c", _HOLD, str(store)],
            stdout=subprocess.PIPE, env=w.environment(),
        )  # fmt: skip
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: [c.state for c in agent.store.calls(session.id)] == ["planned"])
        await session.cancel()
        (waited,) = (await run).calls
        assert waited.outcome is Outcome.NOT_STARTED and not stage.began
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: len(agent.store.calls(session.id)) == 2)
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert (await run).calls[0].outcome is Outcome.DONE


async def test_a_resource_that_stays_taken_is_a_refusal_and_nothing_ran(tmp_path: Path) -> None:
    stage = Stage()
    model = ScriptedModel([act_on("a", "x"), "ok"])
    async with Agent(model, [locking(stage, timeout_s=0.05)], store=tmp_path / "store.db") as agent:
        lock = await agent.store.lock_resource("x")
        (refused,) = (await agent.run("go")).calls
        lock.release()
    assert (refused.code, refused.outcome) == ("timeout", Outcome.NOT_STARTED)
    assert not stage.began


async def test_hundreds_of_resources_of_one_call_are_all_taken_and_freed(tmp_path: Path) -> None:
    keys = [f"k{n:03}" for n in range(150)]

    @tool(name="act", resources=lambda arguments: keys)
    def act_in_worker() -> str:
        """Act."""
        return "acted"

    store = tmp_path / "store.db"
    async with (
        Agent(
            ScriptedModel([call("act"), call("act"), "ok"]), [act_in_worker], store=store
        ) as agent,
        agent.session() as session,
    ):
        assert [c.result for c in (await session.send("go")).calls] == ["acted", "acted"]
        for key in keys:
            (await agent.store.lock_resource(key, wait_s=0.0)).release()


async def test_a_function_that_would_not_stop_keeps_its_resource_until_it_ends(
    tmp_path: Path,
) -> None:
    @tool(isolation="thread", resources=lambda arguments: ["x"])
    def act(world: str) -> str:
        """Act."""
        w.reach(world, "before")
        w.hang(world)
        return "acted"

    store = tmp_path / "store.db"
    async with Agent(
        ScriptedModel([call("act", world=str(tmp_path))]), [act], store=store
    ) as agent:
        session = agent.session()
        await session.open()
        session.dispatcher.around.grace_s = 0.01
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        await session.cancel()
        assert (await run).calls[0].outcome is Outcome.UNKNOWN
        with pytest.raises(Exception, match="in use"):
            await agent.store.lock_resource("x", wait_s=0.0)
        w.release(tmp_path)
        lock = await agent.store.lock_resource("x", wait_s=60.0)
        lock.release()
        await w.until(lambda: not session._units.left)


# --- limits and retries --------------------------------------------------------------------------


async def test_limits_count_started_calls_also_over_a_restart(tmp_path: Path) -> None:
    @tool(limits=[Limit(3), Limit(1, counter="to")])
    async def send(to: str, bad: int = 0) -> str:
        """Send."""
        return to

    calls = [call("send", to="a"), call("send", to="a"), call("send", to="b", bad="no")]
    more = [call("send", to="a"), call("send", to="b"), call("send", to="c"), call("send", to="d")]
    model = ScriptedModel([*calls, "ok", *more, "ok"])
    async with Agent(model, [send], store=tmp_path / "store.db") as agent:
        async with agent.session() as session:
            before = await session.send("go")
        async with agent.session(session.id) as session:
            after = await session.send("go on")
    assert [c.code for c in before.calls] == ["", "limit", "type"]
    assert [c.code for c in after.calls] == ["limit", "", "", "limit"]
    assert "1/1" in before.calls[1].result and "3/3" in after.calls[3].result


async def test_reads_that_start_together_do_not_pass_a_limit_together() -> None:
    async def slow_check(arguments: Any, context: ToolContext) -> None:
        await asyncio.sleep(0)

    @tool(effects="read", limits=[Limit(3)], checks=[slow_check])
    async def look(n: int) -> int:
        """Look."""
        return n

    model = ScriptedModel([[call("look", n=n) for n in range(8)], "ok"])
    async with Agent(model, [look], store=":memory:") as agent:
        result = await agent.run("go")
    assert [c.code for c in result.calls].count("limit") == 5


@pytest.mark.parametrize("idempotency", ["natural", "keyed", "queryable"])
async def test_a_call_that_had_started_is_not_refused_by_its_own_count(
    idempotency: str, tmp_path: Path
) -> None:
    """The last one that a limit allows is interrupted, and gone on with in another process."""
    from lorimer.tools.tool import NOT_FOUND

    gate = asyncio.Event()
    began: list[str] = []

    @tool(
        idempotency=idempotency, limits=[Limit(1)],
        find_outcome=(lambda key, context: NOT_FOUND) if idempotency == "queryable" else None,
    )  # fmt: skip
    async def send(to: str) -> str:
        """Send."""
        began.append(to)
        if len(began) == 1:
            await gate.wait()
        return "sent"

    store = tmp_path / "store.db"
    model = ScriptedModel([call("send", to="a"), "ok"])
    async with Agent(model, [send], store=store) as agent:
        session = agent.session()
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: began)
        session._lock.release()  # type: ignore[union-attr]  # as if its process had died
        async with agent.session(session.id) as again:
            (resumed,) = (await again.resume()).calls
        assert resumed.outcome is Outcome.DONE and began == ["a", "a"]
        gate.set()
        with pytest.raises(Exception, match="already ended"):
            await run


async def test_failures_say_which_attempt_it_was_and_then_the_tool_rests() -> None:
    @tool
    async def act(n: int) -> str:
        """Act."""
        raise ToolError("no", outcome=Outcome.FAILED_BEFORE_EFFECT)

    model = ScriptedModel([*(call("act", n=n) for n in range(4)), "ok", call("act", n=9), "ok"])
    async with Agent(model, [act], store=":memory:") as agent, agent.session() as session:
        first = await session.send("go")
        second = await session.send("again")
    errors = [json.loads(c.result) for c in first.calls]
    assert [e.get("attempt") for e in errors] == ["1/3", "2/3", "3/3", None]
    assert [e["error"] for e in errors] == ["tool_error"] * 3 + ["limit"]
    assert [e["retryable"] for e in errors] == [True, True, False, False]
    assert json.loads(second.calls[0].result)["attempt"] == "1/3", "a new run starts anew"
