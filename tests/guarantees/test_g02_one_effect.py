"""G2: one call makes one effect, whatever kills the process at whatever instant.

`LORIMER_G2_KILLS` is how many kills are made (60 by default, 1,000 for the full proof); with
`LORIMER_G2_SEED` a run is repeated as far as the machine allows.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from harness import acts, g2_agent
from harness import world as w
from lorimer import Agent, tool
from lorimer.core.calls import Outcome
from lorimer.core.errors import SessionBusy
from lorimer.runtime.session import Session
from lorimer.store import open_store
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call

KILLS = int(os.environ.get("LORIMER_G2_KILLS", "60"))
LANES = 2
MOST_KILLS_A_RUN = 6


class Zygote:
    """A process that forks the processes to kill."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from harness.g2_agent import serve; serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=w.environment(mark),
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def fork(self, *order: str) -> int:
        self._in.write(" ".join(order) + "\n")
        self._in.flush()
        return int(self._out.readline())

    def wait_end(self) -> None:
        assert self._out.readline() == "ended\n"

    def close(self) -> None:
        self._in.close()
        self._process.wait()
        self._out.close()


class Run:
    """One run of 20 effects, killed now and then, until it has ended."""

    def __init__(self, zygote: Zygote, folder: Path, random: random.Random, usual_s: float) -> None:
        self.world, self.store = folder / "world", folder / "store.db"
        self.world.mkdir(parents=True)
        self._zygote, self._random, self._usual_s = zygote, random, usual_s
        self.kills = 0
        self.uncertain: set[str] = set()
        self.where: Counter[str] = Counter()

    @property
    def session(self) -> str | None:
        for file in self.world.glob("session-*"):
            return file.name.removeprefix("session-")
        return None

    @property
    def ended(self) -> bool:
        return (self.world / "answer").exists()

    def go(self, most_kills: int) -> None:
        lives = 0
        while not self.ended:
            lives += 1
            assert lives < 50, "the run does not come to an end"
            session = self.session
            order = ["START"] if session is None else ["RESUME"]
            pid = self._zygote.fork(
                *order, str(self.store), str(self.world), *filter(None, [session])
            )
            if self.kills < most_kills:
                self._kill(pid)
            self._zygote.wait_end()
            fault = self.world / "fault"
            assert not fault.exists(), fault.read_text()
            self._look()

    def _kill(self, pid: int) -> None:
        if self._random.random() < 0.5:
            end = time.monotonic() + self._random.uniform(0, self._usual_s)
            while time.monotonic() < end and not self.ended:
                time.sleep(0.0005)
        else:  # just after one more call has started
            wanted = self._count("started", "finished") + self._random.randint(1, 8)
            while self._count("started", "finished") < wanted and not self.ended and _alive(pid):
                time.sleep(0.0003)
            time.sleep(self._random.uniform(0, 0.008))
        if not self.ended and _alive(pid):
            os.kill(pid, signal.SIGKILL)
            self.kills += 1

    def _rows(self, sql: str) -> list[tuple[str, ...]]:
        if not self.store.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as db:
                return db.execute(sql).fetchall()
        except sqlite3.OperationalError:  # no tables yet
            return []

    def _count(self, *states: str) -> int:
        return sum(row[0] in states for row in self._rows("SELECT state FROM calls"))

    def _look(self) -> None:
        """What the dead process left: the calls that nobody can know of."""
        rows = self._rows("SELECT id, tool, state FROM calls")
        if not self.ended:
            self.where[max((r[2] for r in rows), key=_STATES.index, default="nothing")] += 1
        self.uncertain |= {r[0] for r in rows if r[2] == "started" and r[1].endswith("_none")}

    def check(self) -> Counter[str]:
        """Compare the record with the world."""
        assert self.session is not None
        store = open_store(self.store)
        try:
            records = store.calls(self.session)
            entries = [e for e, _ in store.entries(self.session, "scripted")]
            assert verify(store).faults == ()
        finally:
            store.close()
        told = {r.call_id: r.outcome for e in entries for r in e.results}
        assert told == {r.id: r.outcome for r in records}, "the model was told something else"
        happened = g2_agent.counts(self.world)
        tally: Counter[str] = Counter()
        for number in range(g2_agent.EFFECTS):
            settled = [
                r for r in records
                if json.loads(r.raw)["number"] == number and r.outcome is not Outcome.NOT_STARTED
            ]  # fmt: skip
            assert len(settled) == 1, f"{number}: {settled}"
            (record,) = settled
            times = sum(happened.get(number, []))
            tally["doubled"] += times > 1
            if record.outcome is Outcome.UNKNOWN:
                assert record.tool.endswith("_none"), record
                tally["unknown"] += 1
                tally["unknown, had happened"] += times == 1
            else:
                assert record.outcome is Outcome.DONE, record
                tally["lost"] += times == 0
        named = {r.id for r in records if r.outcome is Outcome.UNKNOWN}
        assert named == self.uncertain, "every uncertain effect is named, and no other"
        return tally


_STATES = ("planned", "finished", "started")


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def test_kill_9_at_any_point_loses_and_doubles_nothing(tmp_path: Path) -> None:
    mark = os.urandom(8).hex()
    seed = int(os.environ.get("LORIMER_G2_SEED") or random.randrange(1 << 32))
    tally: Counter[str] = Counter()
    where: Counter[str] = Counter()
    faults: list[BaseException] = []
    begun = time.monotonic()
    usual_s = 0.0

    def lane(number: int) -> None:
        nonlocal usual_s
        source = random.Random(seed + number)
        zygote = Zygote(mark)
        try:
            while tally["kills"] < KILLS and not faults:
                run = Run(zygote, tmp_path / f"{number}-{tally['runs']}", source, usual_s)
                tally["runs"] += 1
                start = time.monotonic()
                run.go(MOST_KILLS_A_RUN if usual_s else 0)
                usual_s = usual_s or time.monotonic() - start
                tally.update(run.check())
                tally["kills"] += run.kills
                where.update(run.where)
        except BaseException as fault:  # noqa: BLE001 - raised below
            fault.add_note(f"seed {seed}, lane {number}")
            faults.append(fault)
        finally:
            zygote.close()

    lanes = [threading.Thread(target=lane, args=(n,)) for n in range(LANES)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    if faults:
        raise faults[0]
    report = {
        **tally,
        "time_s": round(time.monotonic() - begun, 1),
        "seed": seed,
        "newest call": where,
    }
    print("\nG2:", json.dumps(report))
    assert tally["kills"] >= KILLS
    assert tally["lost"] == tally["doubled"] == 0, report
    assert not w.processes_with(mark)


def test_two_processes_that_go_on_at_once_make_one_effect_of_each_call(tmp_path: Path) -> None:
    """The second waits for the first, then finds nothing left to do."""
    mark = os.urandom(8).hex()
    first, second = Zygote(mark), Zygote(mark)
    try:
        run = Run(first, tmp_path, random.Random(7), 0.0)
        pid = first.fork("START", str(run.store), str(run.world))
        w.wait_until(lambda: run._count("finished") >= 5)
        os.kill(pid, signal.SIGKILL)
        first.wait_end()
        run._look()
        assert run.session is not None
        for zygote in (first, second):
            zygote.fork("RESUME", str(run.store), str(run.world), run.session)
        for zygote in (first, second):
            zygote.wait_end()
        fault = run.world / "fault"
        assert not fault.exists(), fault.read_text()
        tally = run.check()
        assert tally["lost"] == tally["doubled"] == 0
    finally:
        first.close()
        second.close()


@pytest.mark.anyio
async def test_nobody_takes_a_session_while_its_process_or_an_orphan_of_it_lives(
    tmp_path: Path,
) -> None:
    worlds, store, mark = tmp_path / "worlds", tmp_path / "store.db", os.urandom(8).hex()
    worlds.mkdir()
    doomed = subprocess.Popen(  # noqa: ASYNC220 - the loop has nothing else to do
        [sys.executable, "-m", "harness.doomed", str(store), str(worlds), "process", "none"],
        stdout=subprocess.PIPE, text=True, env=w.environment(mark),
    )  # fmt: skip
    assert doomed.stdout is not None
    ids = json.loads(doomed.stdout.readline())
    w.wait_until(lambda: all(w.reached(worlds / at, at) for at in acts.POINTS))
    w.wait_until(lambda: w.reached(worlds / "second", "before"))
    act = acts.acting("process", "none", str(worlds))
    async with Agent(ScriptedModel([]), [act], store=store) as agent:
        with pytest.raises(SessionBusy, match=str(doomed.pid)):
            await agent.session(ids["before"], wait_s=0.0).open()
        keepers = [p for p in w.processes_with(mark) if _parent(p) == doomed.pid]
        assert len(keepers) == 4
        try:
            for keeper in keepers:
                os.kill(keeper, signal.SIGSTOP)  # the orphans of these stay
            doomed.kill()
            doomed.wait()
            doomed.stdout.close()
            assert w.processes_with(mark)
            with pytest.raises(SessionBusy):
                await agent.session(ids["before"], wait_s=0.0).open()
            with pytest.raises(SessionBusy):
                await agent.store.lock_resource(str(worlds / "before"), wait_s=0.0)
        finally:
            for keeper in keepers:
                os.kill(keeper, signal.SIGCONT)
        sessions = [agent.session(one, wait_s=60.0) for one in ids.values()]
        for session in sessions:
            await session.open()
        assert not w.processes_with(mark)
        (await agent.store.lock_resource(str(worlds / "before"), wait_s=0.0)).release()
        for session in sessions:
            await session.close()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


@pytest.mark.anyio
async def test_going_on_with_a_run_that_has_ended_gives_its_answer_and_does_nothing(
    tmp_path: Path,
) -> None:
    act = acts.acting("async", "none", str(tmp_path))
    arguments = {"world": str(tmp_path), "at": "", "what": "", "marked": False, "once": False}
    model = ScriptedModel([call("act", **arguments), "the answer"])
    async with Agent(model, [act], store=tmp_path / "store.db") as agent:
        async with agent.session() as session:
            await session.send("act")
        for _ in range(2):
            async with agent.session(session.id) as again:
                result = await again.resume()
                assert result.answer == "the answer" and result.calls == ()
    assert len(w.effects(tmp_path)) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["async", "process", "thread"])
async def test_the_same_call_on_purpose_is_another_effect_also_after_a_restart(
    kind: str, tmp_path: Path
) -> None:
    act = acts.acting(kind, "keyed", str(tmp_path))
    again = call("act", world=str(tmp_path), at="", what="", marked=False, once=True)
    model = ScriptedModel([[again, again], again, "ended", again, "ended"])
    async with Agent(model, [act], store=tmp_path / "store.db") as agent:
        async with agent.session() as session:
            await session.send("act")
        async with agent.session(session.id) as session:
            await session.send("act")
        records = agent.store.calls(session.id)
    assert [r.occurrence for r in records] == [0, 1, 2, 3]
    assert w.effects(tmp_path) == [r.operation_key for r in records]
    assert len(set(w.effects(tmp_path))) == 4


@pytest.mark.anyio
async def test_a_call_that_never_started_takes_no_occurrence(tmp_path: Path) -> None:
    """Else the next one after a restart would have the key of an effect that has happened."""
    act = tool(
        name="act", idempotency="keyed", resources=lambda arguments: ["it"], timeout_s=0.1
    )(acts.async_act)  # fmt: skip
    again = call("act", world=str(tmp_path), at="", what="", marked=False, once=True)
    model = ScriptedModel([again, "busy", again, "ended", again, "ended"])
    async with Agent(model, [act], store=tmp_path / "store.db") as agent:
        session = Session(agent, None, wait_s=0.0)
        lock = await agent.store.lock_resource("it")
        (refused,) = (await session.send("act")).calls
        assert refused.outcome is Outcome.NOT_STARTED
        lock.release()
        assert (await session.send("act")).calls[0].outcome is Outcome.DONE
        await session.close()
        async with agent.session(session.id) as session:
            assert (await session.send("act")).calls[0].outcome is Outcome.DONE
    assert len(set(w.effects(tmp_path))) == 2
