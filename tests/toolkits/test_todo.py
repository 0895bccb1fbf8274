"""The TODO tools through every station: errors that teach, ids that last, restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.core.messages import Kind
from lorimer.runtime.session import Session
from lorimer.testing import ScriptedModel, call, reply
from lorimer.toolkits import GROUPS, toolset, usual_tools
from lorimer.toolkits.todo import TodoBoard

pytestmark = pytest.mark.anyio


def agent_of(store: str | Path, *script: Any, **options: Any) -> Agent:
    return Agent(
        ScriptedModel(*script, "Done."), toolset(["todo"]), store=store, mode="ask", **options
    )


def told(session: Session) -> list[str]:
    return [
        "".join(part.text for part in result.content if hasattr(part, "text"))
        for entry in session.entries
        if entry.kind is Kind.TOOL_RESULT
        for result in entry.results
    ]


WRITE = call(
    "rewrite_todo_list", items=[{"text": "read", "status": "in_progress"}, {"text": "sum up"}]
)


def test_they_are_a_group_and_usual() -> None:
    assert [t.name for t in toolset(["todo"])] == list(GROUPS["todo"])
    assert set(GROUPS["todo"]) <= {t.name for t in usual_tools()}


async def test_a_list_is_written_and_updated_and_nobody_is_asked() -> None:
    steps = [WRITE, call("update_todo_status", id="t1", status="completed")]
    async with agent_of(":memory:", *steps) as agent, agent.session() as session:
        await session.send("do it")
        assert told(session) == [
            "t1 in_progress: read\nt2 pending: sum up",
            "t1 completed: read\nt2 pending: sum up",
        ]


async def test_the_list_outlasts_a_restart_and_its_numbers_go_on(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    steps = [WRITE, call("rewrite_todo_list", items=[{"text": "sum up"}])]
    async with agent_of(store, *steps) as agent, agent.session() as session:
        await session.send("do it")
        name = session.id
    steps = [
        call("update_todo_status", id="t1", status="completed"),
        call("rewrite_todo_list", items=[{"id": "t2", "text": "sum up"}, {"text": "write"}]),
    ]
    async with agent_of(store, *steps) as agent, agent.session(name) as session:
        await session.send("go on")
        failed, done = told(session)[-2:]
        assert "'t1'" in failed and "t2" in json.loads(failed)["next"]
        assert done == "t2 pending: sum up\nt3 pending: write"


async def test_a_failed_call_changes_nothing_also_after_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    bad = call("rewrite_todo_list", items=[{"text": "x", "id": "t9"}])
    async with agent_of(store, WRITE, bad) as agent, agent.session() as session:
        await session.send("do it")
        name = session.id
    step = call("update_todo_status", id="t2", status="cancelled")
    async with agent_of(store, step) as agent, agent.session(name) as session:
        await session.send("go on")
        assert told(session)[-1] == "t1 in_progress: read\nt2 cancelled: sum up"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (call("update_todo_status", id="t1", status="finished"), "completed"),
        (call("update_todo_status", id="t9", status="completed"), "t1, t2"),
        (call("rewrite_todo_list", items=[{"text": ""}]), "text"),
        (call("rewrite_todo_list", items=[{"text": " \n "}]), "has no text"),
        (call("rewrite_todo_list", items=[{"text": "x" * 301}]), "300"),
        (call("rewrite_todo_list", items=[{"text": str(n)} for n in range(41)]), "40"),
        (call("rewrite_todo_list", items=[{"text": "a", "when": "now"}]), "when"),
    ],
)
async def test_what_cannot_be_is_told_with_what_to_do(step: Any, words: str) -> None:
    async with agent_of(":memory:", WRITE, step) as agent, agent.session() as session:
        await session.send("do it")
        error = json.loads(told(session)[-1])
        assert words in json.dumps(error)
        assert error["next"] and error["outcome"] in ("not_started", "failed_before_effect")
        board = session.dispatcher.around.belongings.get("todo", TodoBoard)
        assert board is not None and [i.id for i in board.todo.items] == ["t1", "t2"]


async def test_two_in_progress_are_noticed() -> None:
    step = call("update_todo_status", id="t2", status="in_progress")
    async with agent_of(":memory:", WRITE, step) as agent, agent.session() as session:
        await session.send("do it")
        assert "Notice: 2 items are in_progress (t1, t2)" in told(session)[-1]


async def test_calls_of_one_turn_count_in_their_order() -> None:
    turn = reply(
        call("rewrite_todo_list", items=[{"text": "a"}, {"text": "b"}]),
        call("update_todo_status", id="t1", status="in_progress"),
        call("update_todo_status", id="t1", status="completed"),
    )
    async with agent_of(":memory:", turn) as agent, agent.session() as session:
        await session.send("do it")
        assert told(session)[-1] == "t1 completed: a\nt2 pending: b"
