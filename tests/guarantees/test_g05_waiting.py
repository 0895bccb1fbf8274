"""G5: waiting for an answer: how long, for which of several equal calls, and how it is stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness import world as w
from harness.approving import Person, approve, calls_of, error_of, pay, ran
from lorimer import Agent
from lorimer.core.approvals import ApprovalState
from lorimer.core.decisions import ApprovalRequest
from lorimer.core.errors import Cancelled
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, call, reply


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    ran.clear()


PAY = call("pay", to="bo", amount=1)


@pytest.mark.anyio
async def test_nobody_waits_longer_than_the_request_lives() -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([PAY, "ok"]), [pay], store=store, approval_timeout_s=0.05,
                  approval_wait_s=3_600)  # fmt: skip
    result = await agent.run("go")  # an hour would be noticed
    assert calls_of(result) == ["approval_timeout"] and not ran
    assert "within 0.05 s" in error_of(result)["message"]
    (record,) = store.approvals()
    assert record.state is ApprovalState.EXPIRED
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [None, 500.0])
async def test_siblings_in_the_store_live_equally_long(timeout: float | None) -> None:
    store = open_store(":memory:")
    calls = [call("pay", to=to, amount=1) for to in ("bo", "cy", "di")]
    agent = Agent(ScriptedModel([reply("", *calls), "ok"]), [pay], store=store,
                  approval_timeout_s=timeout)  # fmt: skip
    await agent.run("go")
    lives = {(r.expires_at - r.asked_at).total_seconds() for r in store.approvals() if r.expires_at}
    assert len(store.approvals()) == 3 and lives == {timeout or 86_400.0}
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("order", [(1, 0), (0, 1), (1,), (2, 0, 1)])
async def test_whichever_of_equal_calls_is_approved_nothing_is_lost(order: tuple[int, ...]) -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([reply("", PAY, PAY, PAY), "ok"]), [pay], store=store,
                  approval_wait_s=60)  # fmt: skip
    going = asyncio.create_task(agent.run("pay them"))
    await w.until(lambda: len(store.approvals()) == 3, "three requests")
    ids = [r.id for r in store.approvals()]
    for done, at in enumerate(order, 1):
        await approve(store, ids[at])
        await w.until(lambda done=done: len(ran) == done, "one effect for each approval")
    used = {i for i in ids if store.approval(i).state is ApprovalState.SPENT}
    assert used == {ids[at] for at in order}
    for one in ids:
        if store.approval(one).state is ApprovalState.OPEN:
            await approve(store, one)
    result = await going
    assert calls_of(result) == ["done"] * 3 and len(ran) == 3
    assert {r.state for r in store.approvals()} == {ApprovalState.SPENT}
    store.close()


@pytest.mark.anyio
async def test_an_equal_call_that_is_rejected_does_not_take_the_other_with_it() -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([reply("", PAY, PAY), "ok"]), [pay], store=store,
                  approval_wait_s=60)  # fmt: skip
    going = asyncio.create_task(agent.run("pay them"))
    await w.until(lambda: len(store.approvals()) == 2, "two requests")
    first, second = store.approvals()
    await approve(store, second.id, False)
    await approve(store, first.id)
    assert calls_of(await going) == ["done", "rejected"] and ran == ["bo 1"]
    store.close()


@pytest.mark.anyio
async def test_after_the_run_an_approval_of_the_second_serves_the_first() -> None:
    store = open_store(":memory:")
    turn = reply("", PAY, PAY)
    agent = Agent(ScriptedModel([turn, "They wait.", PAY, "Paid."]), [pay], store=store)
    async with agent.session() as session:
        first = await session.send("pay them")
        await approve(store, error_of(first, 1)["approval"])
        second = await session.send("go on")
    assert calls_of(second) == ["done"] and ran == ["bo 1"]
    store.close()


@pytest.mark.anyio
async def test_an_approved_call_behind_one_that_waits_says_that_it_is_kept() -> None:
    store = open_store(":memory:")
    turn = reply("", call("pay", to="cy", amount=1), PAY)
    agent = Agent(ScriptedModel([turn, "They wait.", turn, "One waits.", PAY, "Paid."]), [pay],
                  store=store)  # fmt: skip
    async with agent.session() as session:
        first = await session.send("pay them")
        kept = error_of(first, 1)["approval"]
        await approve(store, kept)
        second = await session.send("go on")
        assert calls_of(second) == ["needs_approval", "skipped"]
        assert (
            kept in error_of(second, 1)["message"] and "is kept" in error_of(second, 1)["message"]
        )
        third = await session.send("only bo")
    assert calls_of(third) == ["done"] and ran == ["bo 1"]
    store.close()


class Leaving:
    """Whoever is asked presses Ctrl-C."""

    async def ask(self, request: ApprovalRequest) -> Any:
        raise Cancelled("cancelled by the user")


@pytest.mark.anyio
async def test_no_answer_stops_the_run_and_is_no_rejection() -> None:
    store = open_store(":memory:")
    agent = Agent(ScriptedModel([reply("", PAY, PAY), "never asked"]), [pay], store=store,
                  approver=Leaving())  # fmt: skip
    async with agent.session() as session:
        result = await session.send("pay")
        session_id = session.id
    assert result.stop == "cancelled" and calls_of(result) == ["cancelled"] * 2 and not ran
    assert {r.state for r in store.approvals()} == {ApprovalState.WITHDRAWN}
    assert any("cancel" in line.action for line in store.audit(session_id))
    again = Agent(ScriptedModel([PAY, "Paid."]), [pay], store=store, approver=Person(True))
    async with again.session(session_id) as session:
        assert calls_of(await session.send("once more")) == ["done"]
    store.close()


@pytest.mark.anyio
async def test_an_edit_that_the_policy_refuses_is_asked_again() -> None:
    from lorimer.core.decisions import Approval, Decision, Verdict

    class NotForEve:
        mode = "auto"

        def decide(self, facts: Any) -> Decision:
            eve = facts.arguments["to"] == "eve"
            return Decision(Verdict.DENY if eve else Verdict.ASK, "rule", "eve gets nothing")

    person = Person(Approval(True, "Ada", edited={"to": "eve", "amount": 1}), True)
    agent = Agent(ScriptedModel([PAY, "ok"]), [pay], store=":memory:", policy=NotForEve(),
                  approver=person)  # fmt: skip
    result = await agent.run("go")
    assert calls_of(result) == ["done"] and ran == ["bo 1"]
    assert "eve gets nothing" in person.asked[1].news
