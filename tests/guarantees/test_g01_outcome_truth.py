"""G1: every call ends in exactly one outcome, that outcome is true, and it is on disk before the
model is told; what becomes known later corrects the record."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import acts
from harness import world as w
from lorimer import Agent, Tool, ToolContext, tool
from lorimer.core.calls import JournalState, Outcome
from lorimer.core.messages import Kind
from lorimer.runtime.session import Session
from lorimer.store import open_store
from lorimer.store.protocol import CallRecord
from lorimer.testing import ScriptedModel, call

WITHOUT_EFFECT = (Outcome.NOT_STARTED, Outcome.FAILED_BEFORE_EFFECT)
WITH_EFFECT = (Outcome.DONE, Outcome.FAILED_AFTER_EFFECT)
pytestmark = pytest.mark.anyio


def assert_true(record: CallRecord, happened: bool, *, known: bool, case: object) -> None:
    """The record says what happened; `unknown` only where nobody could know."""
    assert record.state is JournalState.FINISHED, case
    if record.outcome is Outcome.UNKNOWN:
        assert not known, f"{case}: it could be known"
    elif happened:
        assert record.outcome in WITH_EFFECT, f"{case}: it happened, but is {record.outcome}"
    else:
        assert record.outcome in WITHOUT_EFFECT, f"{case}: {record.outcome}, but nothing happened"


def read_again(store: str | Path, session: str) -> list[CallRecord]:
    """The journal as someone else reads it."""
    other = open_store(store)
    try:
        return other.calls(session)
    finally:
        other.close()


class Trial:
    """One call of one tool in a session and a world of its own."""

    def __init__(self, agent: Agent, folder: Path, name: str, **arguments: Any) -> None:
        self.world = folder / name
        self.world.mkdir()
        self.arguments = {"world": str(self.world), **arguments}
        self.model = ScriptedModel([call("act", **self.arguments), "ended", "ended"])
        self.agent = agent
        self.session = Session(agent, None, wait_s=0.0)
        self.session.model = self.model

    @property
    def happened(self) -> bool:
        return bool(w.effects(self.world))

    @property
    def told(self) -> list[Outcome]:
        """What the model was told, result by result."""
        return [r.outcome for entry in self.session.entries for r in entry.results]

    async def go(self, way: str) -> None:
        run = asyncio.create_task(self.session.send("act"))
        if way in ("cancel", "native"):
            await w.until(lambda: w.reached(self.world, self.arguments["at"]) or run.done())
            assert not run.done()
        if way == "cancel":
            await self.session.cancel("the test says so")
            assert (await run).stop == "cancelled"
        elif way == "native":
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        else:
            assert (await run).stop == "answered"

    async def ended(self) -> None:
        """Until nothing of it runs any more."""
        w.release(self.world)
        await w.until(lambda: not self.session._units.left)


# --- exceptions, cancellation, time-out, death of the worker: every kind, every instant ----------

WAYS = ("raise", "leave", "cancel", "native", "timeout", "exit", "segv", "kill")


def ways_of(kind: str) -> list[str]:
    own_process = kind in ("process", "process_child")
    return [way for way in WAYS if own_process or way not in ("exit", "segv", "kill")]


@pytest.mark.parametrize(
    ("kind", "way"), [(kind, way) for kind in acts.KINDS for way in ways_of(kind)]
)
async def test_the_record_says_what_the_world_shows(kind: str, way: str, tmp_path: Path) -> None:
    worlds = tmp_path / "worlds"
    worlds.mkdir()
    stopping = way in ("cancel", "native", "timeout")
    timeout_s = 0.5 if way == "timeout" else 60.0
    for idempotency in ("none", "queryable"):
        act = acts.acting(kind, idempotency, str(worlds), timeout_s=timeout_s)
        async with Agent(ScriptedModel([]), [act], store=tmp_path / "store.db") as agent:
            trials = []
            for at, marked in itertools.product(acts.POINTS, (False, True)):
                what = "hang" if stopping else way
                trial = Trial(
                    agent, worlds, f"{idempotency}-{at}-{marked}",
                    at=at, what=what, marked=marked, once=False,
                )  # fmt: skip
                trials.append(trial)
                await trial.session.open()
                trial.session.dispatcher.around.grace_s = 0.05 if kind == "thread" else 30.0
            await asyncio.gather(*(trial.go(way) for trial in trials))
            for trial in trials:
                await trial.session.close()
                (record,) = read_again(tmp_path / "store.db", trial.session.id)
                at, marked = trial.arguments["at"], trial.arguments["marked"]
                left = is_left(record)
                known = idempotency == "queryable" or (
                    marked and at != "inside" and not (stopping and kind.endswith("child"))
                )  # a program that hangs does so inside its tool's mark
                if way == "timeout" and not w.reached(trial.world, at):
                    known = False  # on a slow machine it may come before the first mark
                case = (kind, way, idempotency, at, marked, record.code)
                assert_true(record, trial.happened, known=known and not left, case=case)
                assert trial.told == [record.outcome], case
            await asyncio.gather(*(trial.ended() for trial in trials))
        if kind != "thread":
            assert not any(
                is_left(r) for t in trials for r in read_again(agent.store.path, t.session.id)
            )


def is_left(record: CallRecord) -> bool:
    return '"still_running": true' in json.dumps(record.result).replace("\\", "")


# --- kill -9 of the agent ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "idempotency"),
    [(kind, "none") for kind in acts.KINDS]
    + [(kind, "queryable") for kind in acts.KINDS]
    + [(kind, how) for kind in ("process", "async") for how in ("natural", "keyed")],
)
@pytest.mark.parametrize("after", ["resume", "send"])
async def test_after_kill_9_of_the_agent_the_record_is_true(
    kind: str, idempotency: str, after: str, tmp_path: Path
) -> None:
    worlds, store, mark = tmp_path / "worlds", tmp_path / "store.db", os.urandom(8).hex()
    worlds.mkdir()
    doomed = subprocess.Popen(  # noqa: ASYNC220 - the loop has nothing else to do
        [sys.executable, "-m", "harness.doomed", str(store), str(worlds), kind, idempotency],
        stdout=subprocess.PIPE, text=True, env=w.environment(mark),
    )  # fmt: skip
    try:
        assert doomed.stdout is not None
        ids = json.loads(doomed.stdout.readline())
        for at in ids:
            point = "before" if at == "second" else at
            w.wait_until(lambda at=at, point=point: w.reached(worlds / at, point), f"{kind} {at}")
    finally:
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
        doomed.stdout.close()
    if kind == "async_child":  # its tool started a program from the loop; nobody is left to end it
        w.kill_marked(mark)
    act = acts.acting(kind, idempotency, str(worlds))
    async with Agent(ScriptedModel([]), [act], store=store) as agent:
        sessions = {at: Session(agent, ids[at], wait_s=60.0) for at in ids}
        for session in sessions.values():
            session.model = ScriptedModel(["ended"])
            await session.open()  # waits until its orphans are gone, too
        assert not w.processes_with(mark)
        for at, session in sessions.items():
            before = len(w.effects(worlds / at))
            w.release(worlds / at)
            await (session.resume() if after == "resume" else session.send("and now?"))
            await session.close()
            first, second = read_again(store, ids[at])
            count, keys = len(w.effects(worlds / at)), w.effects(worlds / at)
            if at == "second":
                assert first.outcome is Outcome.DONE
                assert first.result is not None and '"acted"' in json.dumps(first.result)
                assert keys.count(first.operation_key) == before == 1, "it was run again"
                continue
            mine = keys.count(first.operation_key)
            case = (kind, idempotency, after, at, first.outcome, second.outcome, keys)
            if idempotency == "none" or (after == "send" and idempotency != "queryable"):
                assert first.outcome is Outcome.UNKNOWN, case
                assert mine == before, case
                assert second.outcome is Outcome.NOT_STARTED and count == before, case
            else:
                assert_true(first, mine > 0, known=True, case=case)
                assert mine <= 1 or idempotency == "natural", case
                if after == "resume":
                    assert first.outcome is second.outcome is Outcome.DONE, case
                    assert keys.count(second.operation_key) == 1, case
                else:
                    assert second.outcome is Outcome.NOT_STARTED and count == before, case


# --- on disk before the model is told ------------------------------------------------------------

_READ = """
import json, sys
from lorimer.store import open_store
store = open_store(sys.argv[1])
print(json.dumps([[str(c.state), str(c.outcome)] for c in store.calls(sys.argv[2])]))
store.close()
"""


@pytest.mark.parametrize("what", ["", "raise"])
@pytest.mark.parametrize("kind", ["process", "thread", "async", "generator", "read"])
async def test_the_outcome_is_on_disk_before_the_model_is_told(
    kind: str, what: str, tmp_path: Path
) -> None:
    store, world = tmp_path / "store.db", tmp_path / "world"
    world.mkdir()
    seen: list[list[str]] = []

    def next_reply(request: Any) -> str:
        read = subprocess.run(
            [sys.executable, "-c", _READ, str(store), session.id],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        seen.extend(json.loads(read.stdout))
        told = [str(r.outcome) for e in request.entries for r in e.results]
        assert [outcome for _, outcome in seen] == told
        return "ended"

    arguments: dict[str, Any] = {"world": str(world), "at": "after" if what else "nowhere"}
    if kind == "read":
        act = tool(name="act", effects="read")(acts.look)
        arguments["at"] = "before" if what else "nowhere"
    else:
        act = acts.acting(kind, "none", str(tmp_path))
        arguments |= {"marked": True, "once": False}
    model = ScriptedModel([call("act", what=what, **arguments), next_reply])
    async with Agent(model, [act], store=store) as agent, agent.session() as session:
        assert (await session.send("act")).stop == "answered"
    expected = "done"
    if what:
        expected = "failed_before_effect" if kind == "read" else "failed_after_effect"
    assert seen == [["finished", expected]]


# --- what becomes known later --------------------------------------------------------------------


def left_tools() -> list[Tool]:
    return [
        tool(name="stubborn", timeout_s=60.0)(acts.stubborn_act),
        tool(name="thread", isolation="thread")(acts.sync_act),
        tool(name="read", effects="read")(acts.look),
    ]


def left_call(kind: str, world: Path, what: str) -> dict[str, Any]:
    common = {"world": str(world), "at": "before"}
    match kind:
        case "stubborn":
            return call(kind, what=what, **common)
        case "thread":
            return call(kind, what="hang", marked=False, once=False, **common)
        case _:
            return call(kind, what="hang", **common)


@pytest.mark.parametrize("meanwhile", ["open", "closed", "reopened", "left"])
@pytest.mark.parametrize(
    ("kind", "what"), [("stubborn", ""), ("stubborn", "raise"), ("thread", ""), ("read", "")]
)
async def test_a_call_that_ends_later_corrects_the_record_and_the_model_is_told(
    kind: str, what: str, meanwhile: str, tmp_path: Path
) -> None:
    store, world = tmp_path / "store.db", tmp_path / "world"
    world.mkdir()
    model = ScriptedModel([left_call(kind, world, what), "fine", "fine"])
    async with Agent(model, left_tools(), store=store) as agent:
        session = agent.session()
        await session.open()
        session.dispatcher.around.grace_s = 0.05
        run = asyncio.create_task(session.send("act"))
        await w.until(lambda: w.reached(world, "before"))
        await session.cancel()
        (first,) = (await run).calls
        assert first.outcome is (
            Outcome.FAILED_BEFORE_EFFECT if kind == "read" else Outcome.UNKNOWN
        )
        assert json.loads(first.result)["still_running"] is True
        assert not w.effects(world)
        if meanwhile in ("closed", "reopened", "left"):
            await session.close()
        if meanwhile == "reopened":
            session = agent.session(session.id)
            await session.open()
        w.release(world)
        await w.until(lambda: read_again(store, session.id)[0].late is not None)
        (record,) = read_again(store, session.id)
        assert record.outcome is (Outcome.UNKNOWN if what else Outcome.DONE)
        if kind != "read":
            assert bool(w.effects(world)) is not bool(what)
        if meanwhile in ("closed", "left"):
            session = agent.session(session.id)
        for _ in range(2):
            await session.send("go on")
        notes = [e for e in model.requests[-1].entries if e.meta.get("corrects") == first.id]
        assert [n.kind for n in notes] == [Kind.NOTE], "it is told, and told once"
        assert first.id in notes[0].text and f"outcome {record.outcome}" in notes[0].text
        told = [e.meta.get("corrects") for e in model.requests[1].entries]
        assert first.id in told, "already in the next request"
        await session.close()


async def test_a_read_that_ends_late_but_before_its_turn_does_is_corrected(tmp_path: Path) -> None:
    """Its end is committed with the whole turn: the correction may not come before it."""
    looked, acted = tmp_path / "looked", tmp_path / "acted"
    looked.mkdir()
    acted.mkdir()
    tools = [
        tool(name="read", effects="read", timeout_s=0.05)(acts.look),
        tool(name="act")(acts.async_act),
    ]
    write = call("act", world=str(acted), at="before", what="hang", marked=False, once=False)
    model = ScriptedModel([[left_call("read", looked, ""), write], "fine"])
    async with (
        Agent(model, tools, store=tmp_path / "store.db") as agent,
        agent.session() as session,
    ):
        run = asyncio.create_task(session.send("act"))
        await w.until(lambda: w.reached(acted, "before"))
        w.release(looked)
        await w.until(lambda: not session._units.left)
        w.release(acted)
        result = await run
        assert [c.outcome for c in result.calls] == [Outcome.FAILED_BEFORE_EFFECT, Outcome.DONE]
        read, _ = read_again(tmp_path / "store.db", session.id)
        assert read.outcome is Outcome.DONE and read.late is not None
        assert read.id in [e.meta.get("corrects") for e in model.requests[1].entries]


# --- cancelled at any instant --------------------------------------------------------------------


@pytest.mark.parametrize("way", ["cancel", "native", "twice", "scope"])
async def test_cancelled_at_any_step_the_record_is_true_and_the_session_goes_on(
    way: str, tmp_path: Path
) -> None:
    act = acts.acting("async", "none", str(tmp_path))
    store = tmp_path / "store.db"
    ran_through = 0
    steps = 0
    async with Agent(ScriptedModel([]), [act], store=store) as agent:
        while ran_through < 3:  # from the first step of the loop to the end of the run
            trial = Trial(
                agent, tmp_path, str(steps), at="nowhere", what="", marked=False, once=False
            )
            trial.model.add("fine", "fine")
            scope = anyio.CancelScope()
            run = asyncio.create_task(_within(scope, trial.session))
            for _ in range(steps):
                await asyncio.sleep(0)
            match way:
                case "cancel":
                    await trial.session.cancel()
                case "scope":
                    scope.cancel()
                case _:
                    run.cancel()
                    if way == "twice":
                        await asyncio.sleep(0)
                        run.cancel()
            try:
                result = await run
                ran_through += result is not None and result.stop == "answered"
            except asyncio.CancelledError:
                pass
            await trial.session.open()
            for record in read_again(store, trial.session.id):
                assert_true(record, trial.happened, known=False, case=(way, steps, record))
            await trial.session.send("go on")
            records = read_again(store, trial.session.id)
            assert len(w.effects(trial.world)) <= len(records)
            assert trial.told == [r.outcome for r in records]
            await trial.session.close()
            steps = steps + 1 if steps < 30 else int(steps * 1.1)


async def _within(scope: anyio.CancelScope, session: Session) -> Any:
    with scope:
        return await session.send("act")


async def test_a_cancelled_scope_around_a_session_leaves_it_free(tmp_path: Path) -> None:
    """anyio cancels every await in the scope again: closing must see it through all the same."""
    world = tmp_path / "world"
    world.mkdir()
    act = acts.acting("process", "none", str(tmp_path))
    model = ScriptedModel(
        [call("act", world=str(world), at="before", what="hang", marked=True, once=False), "fine"]
    )
    async with Agent(model, [act], store=tmp_path / "store.db") as agent:
        with anyio.CancelScope() as scope:
            async with agent.session() as session, anyio.create_task_group() as group:
                group.start_soon(session.send, "act")
                await w.until(lambda: w.reached(world, "before"))
                scope.cancel()
        (record,) = read_again(tmp_path / "store.db", session.id)
        assert record.outcome is Outcome.FAILED_BEFORE_EFFECT
        async with agent.session(session.id, wait_s=0.0) as again:
            assert (await again.send("go on")).answer == "fine"


# --- marks are those of the call -----------------------------------------------------------------


async def test_a_mark_of_a_thread_that_an_earlier_call_left_is_not_taken_for_this_call(
    tmp_path: Path,
) -> None:
    async with Agent(
        ScriptedModel(
            [call("plant", world=str(tmp_path)), call("fail", world=str(tmp_path)), "ok"]
        ),
        [tool(plant), tool(fail)],
        store=tmp_path / "store.db",
    ) as agent:
        result = await agent.run("go")
    assert [c.outcome for c in result.calls] == [Outcome.DONE, Outcome.FAILED_BEFORE_EFFECT]


def plant(world: str, context: ToolContext) -> str:
    """Leave a thread behind that marks an effect later."""
    import threading

    def later() -> None:
        w.wait_until(lambda: w.reached(world, "second"))
        with context.effect():
            pass
        w.reach(world, "marked")

    threading.Thread(target=later, daemon=True).start()
    return "planted"


def fail(world: str, context: ToolContext) -> str:
    """Die before any effect."""
    context.will_mark()
    w.reach(world, "second")
    w.wait_until(lambda: w.reached(world, "marked"))
    os._exit(3)


async def test_a_child_that_a_tool_forked_and_let_return_gives_no_result(tmp_path: Path) -> None:
    model = ScriptedModel([call("split"), call("split"), "ok"])
    async with Agent(model, [tool(split)], store=tmp_path / "store.db") as agent:
        result = await agent.run("go")
    assert [c.result for c in result.calls] == ["parent", "parent"]


def split() -> str:
    """Fork, and let both return."""
    child = os.fork()
    if child == 0:
        return "child"
    os.waitpid(child, 0)
    return "parent"
