"""G7: what is stopped is dead, with everything it started; how long that took is in the result; and
what cannot be stopped is reported as still running."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import acts, g7_agent, undying
from harness import world as w
from lorimer import Agent, Limits, tool
from lorimer.core.calls import Outcome
from lorimer.core.watch import Warned
from lorimer.testing import ScriptedModel, call

_NOBODY = "65534"
USERS = ("ourselves", "a normal user") if os.geteuid() == 0 else ("ourselves",)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user may write."""
    made = Path(tempfile.mkdtemp(prefix="lorimer-g7-"))
    (made / "worlds").mkdir()
    made.chmod(0o777)
    (made / "worlds").chmod(0o777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    mark = os.urandom(8).hex()
    monkeypatch.setenv(w.MARK, mark)
    yield mark
    left = w.processes_with(mark)
    w.kill_marked(mark)
    assert not left


def start(folder: Path, way: str, user: str, mark: str) -> subprocess.Popen[str]:
    prefix: list[str] = []
    if user == "a normal user":
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is needed to become a normal user")
        prefix = [
            "setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups",
            # it may read everything, so that it finds its Python wherever that is; no more
            "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
            "--bounding-set=-all,+dac_read_search",
        ]  # fmt: skip
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "harness.g7_agent", str(folder / "store.db"),
         str(folder / "worlds"), way],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=w.environment(mark),
    )  # fmt: skip


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("way", g7_agent.WAYS)
def test_nothing_is_left_of_what_was_stopped(way: str, user: str, folder: Path, mark: str) -> None:
    with start(folder, way, user, mark) as agent:
        output, _ = agent.communicate()
    assert agent.returncode == 0, output
    report = json.loads(output)
    assert report["survivors"] == []
    assert set(report["calls"]) == set(undying.NAMES)
    by_time = way in ("timeout", "deadline")  # may come before a tool has begun, on a slow machine
    assert all(end["reached"] or by_time for end in report["calls"].values())
    stop = {"native": "native", "timeout": "answered", "deadline": "max_time"}.get(way, "cancelled")
    for name, end in report["calls"].items():
        assert end["stop"] == stop, name
        assert end["error"] == ("timeout" if way == "timeout" else "cancelled"), name
        assert end["outcome"] == "unknown" or not end["reached"], name
        assert end["stopped_in_s"] >= 0 and "still_running" not in end, name


@pytest.mark.parametrize("user", USERS)
def test_nothing_is_left_after_kill_9_of_the_agent(user: str, folder: Path, mark: str) -> None:
    with start(folder, "wait", user, mark) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == "waiting\n"
        assert len(w.processes_with(mark)) > len(undying.NAMES)
        agent.send_signal(signal.SIGKILL)
    w.wait_until(lambda: not w.processes_with(mark), "the end of every process")


# --- the worker's own death, and what a call left behind -----------------------------------------


@pytest.mark.anyio
async def test_a_worker_that_kills_its_own_group_leaves_nothing(tmp_path: Path, mark: str) -> None:
    model = ScriptedModel([call("leaves_and_dies", world=str(tmp_path)), "ended"])
    async with (
        Agent(model, [tool(undying.leaves_and_dies)], store=":memory:") as agent,
        agent.session() as session,
    ):
        (end,) = (await session.send("go")).calls
        assert end.code == "crashed" and end.outcome is Outcome.UNKNOWN
        assert "SIGKILL" in end.result
        assert not w.processes_with(mark)


@pytest.mark.anyio
async def test_a_worker_that_dies_at_the_moment_the_session_closes_leaves_nothing(
    tmp_path: Path, mark: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The keeper's word on its end is never read: that may not keep it from its work."""
    model = ScriptedModel([call("leaves_and_returns", world=str(tmp_path)), "ended"])
    async with Agent(model, [tool(undying.leaves_and_returns)], store=":memory:") as agent:
        async with agent.session() as session:
            await session.send("go")
            (keeper,) = [p for p in w.processes_with(mark) if _parent(p) == os.getpid()]
            (worker,) = [p for p in w.processes_with(mark) if _is_worker(p, keeper)]
            os.kill(worker, signal.SIGKILL)
            w.wait_until(lambda: not _children(keeper), "the keeper's work")
        assert not w.processes_with(mark)
    assert "Traceback" not in capfd.readouterr().err


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def _children(keeper: int) -> str:
    return Path(f"/proc/{keeper}/task/{keeper}/children").read_text().strip()


def _is_worker(pid: int, keeper: int) -> bool:
    """The first child of the keeper; what the tool left behind came to it later."""
    return str(pid) == _children(keeper).split()[0]


@pytest.mark.anyio
async def test_what_a_finished_call_left_behind_ends_with_the_session(
    tmp_path: Path, mark: str
) -> None:
    model = ScriptedModel([call("leaves_and_returns", world=str(tmp_path)), "ended"])
    async with Agent(model, [tool(undying.leaves_and_returns)], store=":memory:") as agent:
        async with agent.session() as session:
            (end,) = (await session.send("go")).calls
            assert end.outcome is Outcome.DONE
            assert w.processes_with(mark)
        assert not w.processes_with(mark)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_keeper_that_was_stopped_does_not_save_its_tree(tmp_path: Path, mark: str) -> None:
    model = ScriptedModel([call("stops_keeper", world=str(tmp_path))])
    async with (
        Agent(model, [tool(stops_keeper)], store=":memory:") as agent,
        agent.session() as session,
    ):
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        await session.cancel()
        (end,) = (await run).calls
        assert not w.processes_with(mark)
        assert json.loads(end.result)["stopped_in_s"] > 0


def stops_keeper(world: str) -> None:
    """Stop the process that would end us, with a child that is not ours any more."""
    if os.fork() == 0:
        os.setsid()
        undying._forked(undying._for_ever)
        undying._for_ever()
    os.kill(os.getppid(), signal.SIGSTOP)
    w.reach(world, "before")
    undying._for_ever()


# --- what cannot be stopped ----------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["cancel", "timeout", "max_time"])
@pytest.mark.parametrize("kind", ["thread", "read", "stubborn"])
async def test_what_cannot_be_stopped_is_reported_as_still_running(
    kind: str, way: str, tmp_path: Path
) -> None:
    timeout_s = 0.3 if way == "timeout" else 600.0
    seen: list[Any] = []
    tools = [
        tool(name="thread", isolation="thread", timeout_s=timeout_s)(acts.sync_act),
        tool(name="read", effects="read", timeout_s=timeout_s)(acts.look),
        tool(name="stubborn", timeout_s=timeout_s)(acts.stubborn_act),
    ]
    arguments: dict[str, Any] = {"world": str(tmp_path), "at": "before", "what": "hang"}
    if kind == "thread":
        arguments |= {"marked": True, "once": False}
    model = ScriptedModel([call(kind, **arguments), "ended"])
    limits = Limits(max_time_s=0.3 if way == "max_time" else None)
    async with (
        Agent(model, tools, store=":memory:", watch=seen.append, limits=limits) as agent,
        agent.session() as session,
    ):
        session.dispatcher.around.grace_s = 0.05
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: w.reached(tmp_path, "before"))
        if way == "cancel":
            await session.cancel()
        (end,) = (await run).calls
        error = json.loads(end.result)
        assert error["still_running"] is True and "stopped_in_s" not in error
        assert "still running" in error["message"]
        assert any(isinstance(e, Warned) and "still running" in e.message for e in seen)
        assert session._units.left == 1
        assert end.outcome is (Outcome.FAILED_BEFORE_EFFECT if kind == "read" else Outcome.UNKNOWN)
        w.release(tmp_path)
        await w.until(lambda: not session._units.left)
