"""Confirmation in two phases: shown first, then done once with the token for exactly that."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.paying import codes, error
from lorimer import Agent, ToolContext, tool
from lorimer.core.approvals import ApprovalKind, ApprovalState
from lorimer.core.errors import AlreadyAnswered, ToolDefinitionError
from lorimer.store import open_store
from lorimer.store.protocol import AnswerApproval
from lorimer.store.verify import verify
from lorimer.testing import ManualClock, ScriptedModel, call, reply

pytestmark = pytest.mark.anyio
closed: list[str] = []


def picture(arguments: Mapping[str, Any], context: ToolContext) -> str:
    return f"account {arguments['account']} would be closed for good"


@tool(effects="irreversible", confirm=True, preview=picture, path_arguments=["letter"])
async def close_account(account: str, letter: str = "letter.txt") -> str:
    """Close an account."""
    closed.append(account)
    return "closed"


@pytest.fixture(autouse=True)
def nothing_yet(tmp_path: Path) -> None:
    closed.clear()
    (tmp_path / "letter.txt").write_text("Dear")


class Scripted:
    """An agent in mode trusted whose next calls are written as they come."""

    def __init__(self, store: Any, workspace: Path, **options: Any) -> None:
        self.model = ScriptedModel([])
        options = {"mode": "trusted", **options}
        self.agent = Agent(self.model, [close_account], store=store, workspace=workspace, **options)
        self.session = self.agent.session()

    async def call(self, **arguments: Any) -> Any:
        self.model.add(call("close_account", **arguments), "ok")
        return await self.session.send("go")


async def test_the_first_call_shows_and_the_second_does_it_once(store: Any, tmp_path: Path) -> None:
    one = Scripted(store, tmp_path)
    first = await one.call(account="a1")
    told = error(first)
    assert told["error"] == "confirm_first" and told["outcome"] == "not_started" and not closed
    assert told["would_happen"]["preview"] == "account a1 would be closed for good"
    assert told["would_happen"]["arguments"] == {"account": "a1"}
    token = told["confirmation_token"]
    second = await one.call(account="a1", confirmation_token=token)
    assert codes(second) == ["done"] and closed == ["a1"]
    journal = store.calls(one.session.id)[-1]
    assert journal.value == {"account": "a1"}, "the token is no argument of the function"
    third = await one.call(account="a1", confirmation_token=token)
    assert codes(third) == ["confirm_first"] and "used already" in error(third)["message"]
    assert error(third)["confirmation_token"] != token and closed == ["a1"]
    states = [r.state for r in store.approvals()]
    assert states == [ApprovalState.SPENT, ApprovalState.OPEN]
    assert verify(store).faults == ()
    await one.session.close()


def test_the_model_is_told_of_the_token() -> None:
    assert "confirmation_token" in close_account.spec.input_schema["properties"]
    assert "two calls" in close_account.spec.description
    with pytest.raises(ToolDefinitionError, match="confirmation_token"):

        @tool(confirm=True)
        async def odd(confirmation_token: str) -> str:
            """Odd."""
            return ""


@pytest.mark.parametrize(
    "case", ["made up", "cut", "other account", "other letter", "changed letter", "expired",
             "another session", "another principal", "an approval"],
)  # fmt: skip
async def test_with_any_other_token_it_is_the_first_call_again(tmp_path: Path, case: str) -> None:
    clock = ManualClock()
    store = open_store(":memory:", clock=clock)
    one = Scripted(store, tmp_path, clock=clock)
    token = error(await one.call(account="a1"))["confirmation_token"]
    arguments = {"account": "a1", "confirmation_token": token}
    match case:
        case "made up":
            arguments["confirmation_token"] = "yes"
        case "cut":
            arguments["confirmation_token"] = token[:-1]
        case "other account":
            arguments["account"] = "a2"
        case "other letter":
            arguments["letter"] = "b.txt"
        case "changed letter":
            (tmp_path / "letter.txt").write_text("Sir")
            arguments["letter"] = "letter.txt"
        case "expired":
            clock.advance(601)
        case "another session":
            one = Scripted(store, tmp_path, clock=clock)
        case "another principal":
            one = Scripted(store, tmp_path, clock=clock, principal="eve")
        case "an approval":
            arguments["confirmation_token"] = token.partition(".")[0]
    result = await one.call(**arguments)
    assert codes(result) == ["confirm_first"] and not closed
    told = error(result)
    assert told["message"].startswith("The confirmation token was not accepted: ")
    assert told["confirmation_token"] not in (token, arguments["confirmation_token"])
    store.close()


async def test_a_file_that_changed_since_the_first_call_takes_it_back(
    store: Any, tmp_path: Path
) -> None:
    one = Scripted(store, tmp_path)
    given = {"account": "a1", "letter": "letter.txt"}
    token = error(await one.call(**given))["confirmation_token"]
    (tmp_path / "letter.txt").write_text("Sir")
    result = await one.call(**given, confirmation_token=token)
    assert codes(result) == ["confirm_first"] and "letter.txt changed" in error(result)["message"]
    await one.session.close()


async def test_the_token_outlasts_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    one = Scripted(store, tmp_path)
    token = error(await one.call(account="a1"))["confirmation_token"]
    await one.session.close()
    store.close()
    store = open_store(tmp_path / "store.db")
    model = ScriptedModel([call("close_account", account="a1", confirmation_token=token), "ok"])
    agent = Agent(model, [close_account], store=store, workspace=tmp_path, mode="trusted")
    async with agent.session(one.session.id) as session:
        assert codes(await session.send("yes")) == ["done"]
    assert closed == ["a1"]
    store.close()


async def test_one_token_in_two_calls_of_a_turn_is_good_for_one(store: Any, tmp_path: Path) -> None:
    one = Scripted(store, tmp_path)
    token = error(await one.call(account="a1"))["confirmation_token"]
    again = call("close_account", account="a1", confirmation_token=token)
    one.model.add(reply("", again, again), "ok")
    result = await one.session.send("go")
    assert sorted(codes(result)) == ["confirm_first", "done"] and closed == ["a1"]
    await one.session.close()


async def test_two_that_race_for_a_token_start_one_call(store: Any, tmp_path: Path) -> None:
    """Both have looked at the token before either starts: the commit decides."""
    one = Scripted(store, tmp_path)
    token = error(await one.call(account="a1"))["confirmation_token"]
    commit, waiting = store.commit, asyncio.Event()
    held: list[int] = []

    async def together(*changes: Any) -> None:
        if any(type(c).__name__ == "SpendApproval" for c in changes):
            held.append(1)
            if len(held) == 2:
                waiting.set()
            await waiting.wait()
        await commit(*changes)

    store.commit = together
    around = one.session.dispatcher.around
    from lorimer.core.calls import ToolCall
    from lorimer.store.protocol import PlanCall
    from lorimer.tools.dispatch.dispatcher import Dispatcher

    raw = f'{{"account": "a1", "confirmation_token": "{token}"}}'
    await commit(*(PlanCall(one.session.id, f"r{n}", 99, n, "close_account", raw, store.clock.now())
                   for n in (0, 1)))  # fmt: skip
    around.claims = {}

    class Forgetful(dict[str, str]):
        def __setitem__(self, key: str, value: str) -> None: ...

    around.claims = Forgetful()
    made = [Dispatcher(around).run([ToolCall(f"r{n}", "close_account", raw)]) for n in (0, 1)]
    ended = [states[0] for states in await asyncio.gather(*made)]
    assert sorted(s.code for s in ended) == ["", "approval_spent"] and closed == ["a1"]
    store.commit = commit
    await one.session.close()


async def test_a_person_is_asked_in_the_second_phase_where_the_policy_asks(
    store: Any, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def person(request: Any) -> bool:
        asked.append(request.preview)
        return True

    one = Scripted(store, tmp_path, mode="auto", approver=person)
    first = await one.call(account="a1")
    assert codes(first) == ["confirm_first"] and not asked
    second = await one.call(account="a1", confirmation_token=error(first)["confirmation_token"])
    assert codes(second) == ["done"] and asked == ["account a1 would be closed for good"]
    kinds = {r.kind: r.state for r in store.approvals()}
    assert kinds == {ApprovalKind.CONFIRMATION: ApprovalState.SPENT, ApprovalKind.CALL: ApprovalState.SPENT}  # fmt: skip
    await one.session.close()


async def test_nobody_answers_a_confirmation_in_the_models_place(
    store: Any, tmp_path: Path
) -> None:
    one = Scripted(store, tmp_path)
    await one.call(account="a1")
    (record,) = store.approvals()
    with pytest.raises(AlreadyAnswered, match="nobody is asked"):
        await store.commit(AnswerApproval(record.id, True, "user"))
    await one.session.close()
