"""What a person is asked, and what becomes of the call meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness import world as w
from lorimer import Agent, tool
from lorimer.core.calls import Outcome
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio
acted: list[int] = []


@tool(effects="irreversible")
async def act(n: int) -> str:
    """Act for good."""
    acted.append(n)
    return "acted"


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    acted.clear()


class Person:
    """Answers what it is told to; `None` never comes."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalRequest] = []
        self.gone = 0

    async def ask(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.gone += 1
                raise
        return Approval(answer, by="Ada", reason="" if answer else "not today")


async def run(person: Any, *numbers: int, **around: Any) -> list[Any]:
    model = ScriptedModel([*(call("act", n=n) for n in numbers), "ok"])
    async with (
        Agent(model, [act], store=":memory:", approver=person) as agent,
        agent.session() as session,
    ):
        for name, value in around.items():
            setattr(session.dispatcher.around, name, value)
        return list((await session.send("go")).calls)


async def test_an_approved_call_runs_once_and_says_who_approved() -> None:
    person = Person(True)
    model = ScriptedModel([call("act", n=7), "ok"])
    async with Agent(model, [act], store=":memory:", approver=person) as agent:
        result = await agent.run("go")
        (record,) = agent.store.calls(result.session)
    assert acted == [7] and record.outcome is Outcome.DONE
    assert record.decision["approved_by"] == "Ada"
    assert person.asked[0].facts.arguments == {"n": 7}, "the whole call is shown"


async def test_a_rejected_call_does_not_run() -> None:
    (end,) = await run(Person(False), 1)
    assert (end.code, end.outcome) == ("rejected", Outcome.NOT_STARTED)
    assert "not today" in end.result and not acted


async def test_without_anybody_to_ask_it_does_not_run() -> None:
    (end,) = await run(None, 1)
    assert (end.code, end.outcome) == ("needs_approval", Outcome.NOT_STARTED) and not acted


async def test_an_unanswered_question_ends_and_is_withdrawn() -> None:
    person = Person(None)
    (end,) = await run(person, 1, approval_timeout_s=0.01)
    assert (end.code, end.outcome) == ("approval_timeout", Outcome.NOT_STARTED) and not acted
    assert person.gone == 1, "the question is still on the screen"


async def test_a_question_is_withdrawn_when_the_run_is_cancelled() -> None:
    person = Person(None)
    model = ScriptedModel([call("act", n=1), "ok"])
    async with (
        Agent(model, [act], store=":memory:", approver=person) as agent,
        agent.session() as session,
    ):
        going = asyncio.create_task(session.send("go"))
        await w.until(lambda: person.asked)
        await session.cancel()
        (end,) = (await going).calls
    assert (end.code, end.outcome) == ("cancelled", Outcome.NOT_STARTED) and not acted
    assert person.gone == 1


async def test_an_approver_that_fails_approves_nothing() -> None:
    (end,) = await run(Person(RuntimeError("no terminal")), 1)
    assert (end.code, end.outcome) == ("internal", Outcome.NOT_STARTED) and not acted
    assert "no terminal" in end.result


async def test_after_three_rejections_in_a_row_the_person_is_asked_whether_to_go_on() -> None:
    person = Person(False, False, False, False)
    ends = await run(person, 1, 2, 3, 4)
    assert [e.code for e in ends] == ["rejected"] * 3 + ["breaker_open"]
    assert [r.kind for r in person.asked] == ["call"] * 3 + ["breaker"] and not acted
    assert "3 decisions were rejections" in person.asked[-1].reason


async def test_after_the_breaker_was_closed_the_call_itself_is_asked() -> None:
    person = Person(False, False, False, True, True)
    ends = await run(person, 1, 2, 3, 4)
    assert [e.code for e in ends] == ["rejected"] * 3 + [""]
    assert [r.kind for r in person.asked][-2:] == ["breaker", "call"] and acted == [4]


async def test_an_approval_closes_the_breaker_again() -> None:
    person = Person(False, False, True, False, False, False)
    ends = await run(person, 1, 2, 3, 4, 5, 6)
    assert [e.code for e in ends] == ["rejected", "rejected", "", *["rejected"] * 3]
    assert acted == [3]


async def test_a_rejection_is_no_failure_of_the_tool() -> None:
    ends = await run(Person(False, False, False, True), 1, 2, 3, 4, rejection_limit=99)
    assert [e.code for e in ends] == ["rejected"] * 3 + [""]
    assert "attempt" not in json.loads(ends[0].result)
