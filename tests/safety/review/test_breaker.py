"""The breaker: three rejections in a row or ten of the last fifty decisions; kept by the store."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.paying import codes, error, note, pay, ran
from lorimer import Agent
from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState
from lorimer.core.breaker import BreakerRule, why_open
from lorimer.core.decisions import Approval, ApprovalRequest, CallFacts, Decision, Opinion, Verdict
from lorimer.store import open_store
from lorimer.store.protocol import AnswerApproval
from lorimer.testing import ScriptedModel, call, reply

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)


def history(text: str) -> list[ApprovalRecord]:
    """`y` approved, `n` rejected, `?` no verdict, `o` still open, `e` expired, `g` go on."""
    out = []
    for at, letter in enumerate(text):
        kind = {"?": ApprovalKind.SIDECAR, "g": ApprovalKind.BREAKER}.get(letter, ApprovalKind.CALL)
        state = {
            "y": ApprovalState.SPENT, "n": ApprovalState.REJECTED, "?": ApprovalState.NO_VERDICT,
            "o": ApprovalState.OPEN, "e": ApprovalState.EXPIRED, "g": ApprovalState.APPROVED,
        }[letter]  # fmt: skip
        answer = {"y": {"approved": True}, "n": {"approved": False}, "g": {"approved": True}}
        out.append(
            ApprovalRecord(
                f"a{at:03}", "s", "s", kind, "c", "t", "p", "", "", state,
                START + timedelta(seconds=at), answer=answer.get(letter, {}),
            )
        )  # fmt: skip
    return out


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("", False), ("nn", False), ("nnn", True), ("nny", False), ("nnyn", False), ("nn?", True),
        ("nnon", True), ("nnen", True), ("eeee", False), ("nnng", False), ("nnngnn", False),
        ("nnngnnn", True), ("yn" * 9, False), ("yn" * 9 + "y", False), ("yn" * 10, True),
        ("nny" * 4 + "nn", True), ("n" + "y" * 50 + "nnyny" * 2, False), ("ny" * 9 + "y" * 40 + "n", False),
        ("ny" * 10 + "g" + "ny" * 9, False), ("ny" * 10 + "g" + "ny" * 10, True),
    ],
)  # fmt: skip
def test_when_it_opens(text: str, is_open: bool) -> None:
    assert bool(why_open(history(text), BreakerRule())) is is_open


def no(request: ApprovalRequest) -> Approval:
    return Approval(False, "Ada", "no")


PAYS = [call("pay", to=f"person {n}", amount=n) for n in range(9)]


async def test_headless_the_run_stops_and_says_why_also_after_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")

    class Denying:
        async def judge(self, facts: CallFacts, decision: Decision) -> Opinion:
            return Opinion(Verdict.DENY, "Sid", "no")

    agent = Agent(ScriptedModel(PAYS), [pay], store=store, sidecar=Denying())
    async with agent.session() as session:
        result = await session.send("pay")
    assert result.stop == "breaker" and codes(result) == ["rejected"] * 3 + ["breaker_open"]
    (waiting,) = store.approvals(state=ApprovalState.OPEN)
    assert waiting.kind is ApprovalKind.BREAKER and waiting.id in error(result)["message"]
    store.close()

    store = open_store(tmp_path / "store.db")
    again = Agent(ScriptedModel([PAYS[4], "x"]), [pay], store=store, approver=None)
    async with again.session(session.id) as session:
        result = await session.send("and now?")
    assert (result.stop, codes(result)) == ("breaker", ["breaker_open"])
    assert store.approvals(state=ApprovalState.OPEN) == [waiting], "one question is enough"
    await store.commit(AnswerApproval(waiting.id, True, "user", by="Ada"))
    third = Agent(ScriptedModel([PAYS[4], "x"]), [pay], store=store)
    async with third.session(session.id) as session:
        result = await session.send("go on")
    assert (result.stop, codes(result)) == ("answered", ["needs_approval"]) and not ran
    store.close()


async def test_it_counts_what_was_rejected_before_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    agent = Agent(ScriptedModel([*PAYS[:2], "x"]), [pay], store=store, approver=no)
    async with agent.session() as session:
        await session.send("pay")
    store.close()
    store = open_store(tmp_path / "store.db")
    kinds: list[str] = []

    def person(request: ApprovalRequest) -> bool:
        kinds.append(request.kind)
        return False

    again = Agent(ScriptedModel([*PAYS[3:8], "x"]), [pay], store=store, approver=person)
    async with again.session(session.id) as session:
        result = await session.send("pay more")
    assert kinds == ["call", "breaker"] and result.stop == "breaker"
    store.close()


async def test_calls_beside_each_other_ask_once_whether_to_go_on(store: Any) -> None:
    from lorimer import tool

    class Asking:
        mode = "auto"

        def decide(self, facts: CallFacts) -> Decision:
            return Decision(Verdict.ASK, "rule", "private")

    @tool(effects="read")
    async def peek(n: int) -> str:
        """Look at something private."""
        return str(n)

    kinds: list[str] = []

    async def person(request: ApprovalRequest) -> Approval:
        kinds.append(request.kind)
        return Approval(len(kinds) > 3, "Ada")

    three = [call("peek", n=n) for n in range(3)]
    beside = reply("", *(call("peek", n=n) for n in range(3, 7)))
    agent = Agent(
        ScriptedModel([*three, beside, "x"]), [peek], store=store, policy=Asking(), approver=person
    )
    result = await agent.run("look")
    assert codes(result) == ["rejected"] * 3 + ["done"] * 4
    assert kinds.count("breaker") == 1 and kinds.count("call") == 7


async def test_sub_agents_count_for_their_whole_lineage(store: Any) -> None:
    agent = Agent(ScriptedModel([PAYS[0], "x"]), [pay], store=store, approver=no)
    async with agent.session() as parent:
        await parent.send("pay")
    for n in (1, 2):
        child = Agent(
            ScriptedModel([PAYS[n], "x"]), [pay], store=store, approver=no, parent=parent.id
        )
        await child.run("pay")
    last = Agent(ScriptedModel([PAYS[3], "x"]), [pay], store=store, parent=parent.id)
    assert (await last.run("pay")).stop == "breaker"
    other = Agent(ScriptedModel([PAYS[3], "x"]), [pay], store=store)
    assert (await other.run("pay")).stop == "answered"


async def test_what_needs_nobody_goes_on_while_it_is_open(store: Any) -> None:
    script = [*PAYS[:3], call("note", text="n"), "x"]
    agent = Agent(ScriptedModel(script), [pay, note], store=store, approver=no)
    result = await agent.run("pay")
    assert codes(result) == ["rejected"] * 3 + ["done"] and result.stop == "answered"


async def test_a_sidecar_that_is_down_opens_it(store: Any) -> None:
    class Down:
        async def judge(self, facts: CallFacts, decision: Decision) -> Opinion:
            raise OSError("down")

    asked: list[str] = []

    def person(request: ApprovalRequest) -> bool:
        asked.append(request.kind)
        return request.kind == "call"

    script = [call("pay", to=f"person {n}", amount=n) for n in range(12)]
    agent = Agent(ScriptedModel(script), [pay], store=store, sidecar=Down(), approver=person)
    result = await agent.run("pay")
    assert result.stop == "breaker" and len(ran) == 10
    assert asked == ["call"] * 10 + ["breaker"], "ten of the last twenty came to no verdict"
