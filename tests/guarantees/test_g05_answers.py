"""G5: the first answer wins, from anywhere; late, wrong and second answers are told so; calls of
one turn do not lose each other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import world as w
from harness.approving import (
    CLI,
    Person,
    answer,
    approve,
    calls_of,
    deploy,
    error_of,
    pay,
    ran,
    request_in,
)
from lorimer import Agent, tool
from lorimer.core.approvals import ApprovalState
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.core.errors import (
    AlreadyAnswered,
    ApprovalError,
    ApprovalExpired,
    ApprovalVoid,
    UnknownApproval,
    WrongPrincipal,
)
from lorimer.core.watch import Warned
from lorimer.store import open_store
from lorimer.store.protocol import CloseApproval, SpendApproval
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel, call, reply


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    ran.clear()


# --- first answer wins ---------------------------------------------------------------------------


def test_two_processes_that_answer_at_once_one_wins(tmp_path: Path, kept: Any) -> None:
    store, session, _ = kept
    program = (
        "import sys\n"
        "from lorimer.store import open_store\n"
        "from lorimer.store.protocol import AnswerApproval\n"
        "from lorimer.core.errors import AlreadyAnswered\n"
        "from lorimer.testing import ManualClock\n"
        "store = open_store(sys.argv[1], clock=ManualClock())\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        yes = sys.argv[2] == 'yes'\n"
        "        store.commit_now(AnswerApproval(line.strip(), yes, 'ada', by=sys.argv[2]))\n"
        "        print('won', flush=True)\n"
        "    except AlreadyAnswered as fault:\n"
        "        print(f'lost: {fault.message}', flush=True)\n"
    )
    racers = {
        name: subprocess.Popen(
            [sys.executable, "-c", program, store.path, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("yes", "no")
    }  # fmt: skip
    for racer in racers.values():
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    for _ in range(40):
        record = request_in(store, session)
        for racer in racers.values():
            assert racer.stdin is not None
            racer.stdin.write(record.id + "\n")
            racer.stdin.flush()
        said = {n: r.stdout.readline().strip() for n, r in racers.items() if r.stdout is not None}
        assert sorted(s.partition(":")[0] for s in said.values()) == ["lost", "won"]
        (winner,) = [n for n, s in said.items() if s == "won"]
        now = store.approval(record.id)
        assert now.by == winner and now.answer["approved"] is (winner == "yes")
        (lost,) = [s for s in said.values() if s != "won"]
        assert f"by {winner}" in lost
    for racer in racers.values():
        assert racer.stdin is not None and racer.stdout is not None
        racer.stdin.close()
        assert racer.wait() == 0
        racer.stdout.close()
    assert verify(store).faults == ()


def test_a_second_answer_is_told_who_was_first(kept: Any) -> None:
    store, session, _ = kept
    record = request_in(store, session)
    answer(store, record.id, by="Ada")
    with pytest.raises(AlreadyAnswered, match=r"approved by Ada at 2026-01-01T"):
        answer(store, record.id, approved=False, by="Bo")
    assert store.approval(record.id).by == "Ada"


def test_an_answer_after_the_deadline_counts_as_no(kept: Any) -> None:
    store, session, clock = kept
    record = request_in(store, session)
    clock.advance(3600)
    with pytest.raises(ApprovalExpired, match="too late"):
        answer(store, record.id)
    assert store.approval(record.id).state_at(clock.now()) is ApprovalState.EXPIRED


def test_an_approval_that_is_not_used_in_time_is_gone(kept: Any) -> None:
    store, session, clock = kept
    record = request_in(store, session)
    answer(store, record.id)
    clock.advance(3600)
    with pytest.raises(ApprovalExpired, match="before it was used"):
        store.commit_now(SpendApproval(record.id, session, "c1"))


@pytest.mark.parametrize("principal", ["mallory", "", "Ada", "ada "])
def test_only_the_sessions_principal_may_answer(kept: Any, principal: str) -> None:
    store, session, _ = kept
    record = request_in(store, session)
    with pytest.raises(WrongPrincipal, match="belongs to 'ada'"):
        answer(store, record.id, principal=principal)
    assert store.approval(record.id).state is ApprovalState.OPEN
    answer(store, record.id, principal="boss", roles=frozenset({"approver"}))
    assert store.approval(record.id).by == "boss"


def test_an_answer_to_another_digest_is_none(kept: Any) -> None:
    store, session, _ = kept
    record = request_in(store, session)
    with pytest.raises(ApprovalVoid):
        answer(store, record.id, digest="e")
    answer(store, record.id, digest="d")


def test_an_unknown_id_is_told_the_nearest(kept: Any) -> None:
    store, session, _ = kept
    record = request_in(store, session)
    with pytest.raises(UnknownApproval) as caught:
        answer(store, record.id[:-1] + "~")
    assert record.id in caught.value.next


@pytest.mark.parametrize("state", ["void", "withdrawn", "expired"])
def test_what_was_closed_takes_no_answer(kept: Any, state: str) -> None:
    store, session, _ = kept
    record = request_in(store, session)
    store.commit_now(CloseApproval(record.id, ApprovalState(state), "because"))
    with pytest.raises(ApprovalError, match=f"{state}.*because"):
        answer(store, record.id)


# --- from another process, while somebody is asked here ------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("approved", [True, False])
async def test_answered_elsewhere_the_question_here_goes_away(
    folder: Path, tmp_path: Path, approved: bool
) -> None:
    store = open_store(tmp_path / "store.db")
    person, said = Person(None), list[Any]()
    model = ScriptedModel([call("deploy", script="build.sh"), "ok"])
    agent = Agent(model, [deploy], store=store, workspace=folder, approver=person)
    going = asyncio.create_task(agent.run("go", watch=said.append))
    await w.until(lambda: person.asked, "the question")
    word = "approve" if approved else "reject"
    ended = await asyncio.create_subprocess_exec(
        *CLI, "approvals", word, person.asked[0].id, "--by", "Bo", "--store", store.path,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert await ended.wait() == 0
    result = await going
    assert calls_of(result) == ["done" if approved else "rejected"]
    assert person.gone == 1 and ran == (["build.sh"] if approved else [])
    words = [e.message for e in said if isinstance(e, Warned)]
    assert f"Answered elsewhere: {word}{'d' if approved else 'ed'} by Bo." in words
    store.close()


@pytest.mark.anyio
async def test_the_answer_here_comes_second(folder: Path) -> None:
    """The person here says yes when somebody elsewhere has said no."""
    store = open_store(":memory:")

    def late(request: ApprovalRequest) -> bool:
        answer(store, request.id, principal="user", approved=False, by="Bo", reason="not today")
        return True

    model = ScriptedModel([call("pay", to="bo", amount=1), "ok"])
    agent = Agent(model, [pay], store=store, approver=Person(late))
    result = await agent.run("go")
    assert calls_of(result) == ["rejected"] and "Bo" in error_of(result)["message"]
    assert not ran
    store.close()


@pytest.mark.anyio
async def test_nobody_answers_no_it_is(folder: Path) -> None:
    store = open_store(":memory:")
    person = Person(None)
    model = ScriptedModel([call("pay", to="bo", amount=1), "ok"])
    agent = Agent(model, [pay], store=store, approver=person, approval_timeout_s=0.05)
    result = await agent.run("go")
    assert calls_of(result) == ["approval_timeout"] and not ran and person.gone == 1
    (record,) = store.approvals()
    assert record.state is ApprovalState.EXPIRED
    with pytest.raises(ApprovalExpired, match="expired"):
        answer(store, record.id, principal="user")
    store.close()


# --- siblings ------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_each_of_several_calls_has_a_request_of_its_own(folder: Path) -> None:
    store = open_store(":memory:")
    calls = [call("pay", to=to, amount=1) for to in ("bo", "cy", "bo")]
    model = ScriptedModel([reply("", *calls), "They wait.", reply("", *calls), "Paid."])
    agent = Agent(model, [pay], store=store)
    async with agent.session() as session:
        first = await session.send("pay them")
        ids = [error_of(first, at)["approval"] for at in range(3)]
        assert len(set(ids)) == 3 and calls_of(first) == ["needs_approval"] * 3
        for one in ids:
            await approve(store, one)
        second = await session.send("approved")
    assert calls_of(second) == ["done"] * 3 and ran == ["bo 1", "cy 1", "bo 1"]
    assert {r.state for r in store.approvals()} == {ApprovalState.SPENT}
    store.close()


@pytest.mark.anyio
async def test_all_of_a_turn_can_be_answered_in_any_order(folder: Path) -> None:
    """While the first waits, the others can be seen and answered, too; they run in their order."""
    store = open_store(":memory:")
    calls = [call("pay", to=to, amount=1) for to in ("bo", "cy", "bo", "di")]
    agent = Agent(ScriptedModel([reply("", *calls), "ok"]), [pay], store=store, approval_wait_s=60)
    going = asyncio.create_task(agent.run("pay them"))
    await w.until(lambda: len(store.approvals()) == 4, "four requests")
    requests = store.approvals(state=ApprovalState.OPEN)
    assert [r.request["bound"]["arguments"]["to"] for r in requests] == ["bo", "cy", "bo", "di"]
    assert len({r.call for r in requests}) == 4
    for one in reversed(requests):
        await approve(store, one.id)
    result = await going
    assert calls_of(result) == ["done"] * 4 and ran == ["bo 1", "cy 1", "bo 1", "di 1"]
    assert {r.state for r in store.approvals()} == {ApprovalState.SPENT}
    assert len(store.approvals()) == 4
    store.close()


@pytest.mark.anyio
async def test_an_earlier_call_that_changes_a_later_one_has_it_asked_anew(folder: Path) -> None:
    @tool(effects="write", path_arguments=["script"])
    async def rewrite(script: str) -> str:
        """Rewrite a script."""
        (folder / script).write_text("other")
        return "rewritten"

    from lorimer.core.decisions import Decision, Verdict

    class Asking:
        mode = "auto"

        def decide(self, facts: Any) -> Decision:
            return Decision(Verdict.ASK, "rule", "all is asked")

    store = open_store(":memory:")
    calls = [call("rewrite", script="build.sh"), call("deploy", script="build.sh")]
    agent = Agent(ScriptedModel([reply("", *calls), "ok"]), [rewrite, deploy], store=store,
                  workspace=folder, policy=Asking(), approval_wait_s=60)  # fmt: skip
    going = asyncio.create_task(agent.run("go"))
    await w.until(lambda: len(store.approvals()) == 2, "two requests")
    for one in store.approvals():
        await approve(store, one.id)
    await w.until(lambda: len(store.approvals()) == 3, "the question about what it is now")
    last = store.approvals()[-1]
    assert "build.sh changed" in last.request["news"] and not ran
    await approve(store, last.id)
    assert calls_of(await going) == ["done", "done"] and ran == ["build.sh"]
    states = [r.state for r in store.approvals()]
    assert states == [ApprovalState.SPENT, ApprovalState.VOID, ApprovalState.SPENT]
    store.close()


@pytest.mark.anyio
async def test_a_call_that_needs_nobody_does_not_overtake_one_that_waits(folder: Path) -> None:
    @tool(effects="write")
    async def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return "noted"

    model = ScriptedModel(
        [reply("", call("pay", to="bo", amount=1), call("note", text="paid")), "ok"]
    )
    result = await Agent(model, [pay, note], store=":memory:").run("go")
    assert calls_of(result) == ["needs_approval", "skipped"] and not ran


@pytest.mark.anyio
async def test_siblings_that_are_asked_at_once_do_not_lose_each_other(folder: Path) -> None:
    """Reads that must be asked are asked beside each other; each gets its own answer."""
    from lorimer.core.decisions import Decision, Verdict

    class Asking:
        mode = "auto"

        def decide(self, facts: Any) -> Decision:
            return Decision(Verdict.ASK, "rule", "secret")

    @tool(effects="read")
    async def look(n: int) -> str:
        """Look."""
        ran.append(str(n))
        return str(n)

    waiting: dict[int, asyncio.Future[bool]] = {}

    class Together:
        async def ask(self, request: ApprovalRequest) -> Approval:
            n = request.facts.arguments["n"]
            waiting[n] = asyncio.get_running_loop().create_future()
            return Approval(await waiting[n], by=f"person {n}")

    model = ScriptedModel([reply("", *(call("look", n=n) for n in range(4))), "ok"])
    store = open_store(":memory:")
    agent = Agent(model, [look], store=store, policy=Asking(), approver=Together())
    going = asyncio.create_task(agent.run("go"))
    await w.until(lambda: len(waiting) == 4, "four questions")
    for n in (2, 0, 3, 1):
        waiting[n].set_result(n != 3)
    result = await going
    assert calls_of(result) == ["done", "done", "done", "rejected"]
    assert sorted(ran) == ["0", "1", "2"]
    by = {r.request["bound"]["arguments"]["n"]: r.by for r in store.approvals()}
    assert by == {n: f"person {n}" for n in range(4)}
    store.close()


def test_the_owner_of_the_store_only_is_read(tmp_path: Path, kept: Any) -> None:
    """The store is for its owner: whoever cannot read it cannot answer."""
    store, _, _ = kept
    assert os.stat(store.path).st_mode & 0o077 == 0


@pytest.mark.anyio
@pytest.mark.parametrize("round", range(12))
async def test_whoever_wins_a_race_between_here_and_elsewhere_is_obeyed(
    tmp_path: Path, round: int
) -> None:
    store, elsewhere = open_store(tmp_path / "store.db"), open_store(tmp_path / "store.db")
    rng = random.Random(round)

    async def race(request: ApprovalRequest) -> Approval:
        def other() -> None:
            with contextlib.suppress(AlreadyAnswered):
                answer(elsewhere, request.id, principal="user", approved=False, by="Bo")

        thread = asyncio.create_task(asyncio.to_thread(other))
        if rng.random() < 0.5:
            await asyncio.sleep(rng.uniform(0, 0.004))
        racing.append(thread)
        return Approval(True, by="Ada")

    class Racer:
        ask = staticmethod(race)

    racing: list[asyncio.Task[None]] = []
    model = ScriptedModel([call("pay", to="bo", amount=1), "ok"])
    result = await Agent(model, [pay], store=store, approver=Racer()).run("go")
    await asyncio.gather(*racing)
    (record,) = store.approvals()
    if record.by == "Ada":
        assert calls_of(result) == ["done"] and ran == ["bo 1"]
        assert record.state is ApprovalState.SPENT
    else:
        assert calls_of(result) == ["rejected"] and not ran
        assert record.state is ApprovalState.REJECTED
    elsewhere.close()
    store.close()
