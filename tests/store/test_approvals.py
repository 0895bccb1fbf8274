"""Approvals in the store: a store of the first version takes them, and rows are read back whole."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState, what_changed
from lorimer.runtime.agent import Agent
from lorimer.store import open_store, rows
from lorimer.store.protocol import CreateSession, OpenApproval, SessionRecord
from lorimer.store.schema import MIGRATIONS
from lorimer.store.verify import verify
from lorimer.testing import ScriptedModel

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def record(session: str = "s", **more: Any) -> ApprovalRecord:
    given = {"state": ApprovalState.OPEN, "asked_at": NOW, **more}
    return ApprovalRecord(
        "a1", session, session, ApprovalKind.CALL, "c", "t", "p", "b", "d", **given
    )


def test_a_store_of_the_first_version_gets_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    with monkeypatch.context() as patched:
        patched.setattr("lorimer.store.sqlite.MIGRATIONS", MIGRATIONS[:1])
        old = open_store(path)
        old.commit_now(CreateSession(SessionRecord("s", NOW, "p", "m", "w", "", [], b"")))
        old.close()
    store = open_store(path)
    store.commit_now(OpenApproval(record()))
    assert store.approval("a1") == record()
    assert verify(store).faults == ()
    store.close()


@given(
    st.text(), st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=4),
    st.sampled_from(ApprovalState), st.none() | st.datetimes(timezones=st.just(UTC)),
)  # fmt: skip
def test_a_row_is_read_back_as_it_was(
    tool: str, request: dict[str, Any], state: ApprovalState, at: datetime | None
) -> None:
    made = record(state=state, request=request, answer=request, closing=request, expires_at=at,
                  answered_at=at, closed_at=at)  # fmt: skip
    assert rows.approval_from(rows.approval_row(made)) == made


@pytest.mark.parametrize(
    ("state", "left_s", "shown"),
    [("open", 1, "open"), ("open", 0, "expired"), ("approved", -1, "expired"), ("spent", -1, "spent"),
     ("rejected", -1, "rejected")],
)  # fmt: skip
def test_the_deadline_ends_what_is_not_used(state: str, left_s: int, shown: str) -> None:
    made = record(state=ApprovalState(state), expires_at=NOW + timedelta(seconds=left_s))
    assert made.state_at(NOW) == shown


def test_of_many_the_newest_and_only_those_that_fit(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.db")
    session = asyncio.run(Agent(ScriptedModel(["hi"]), store=store).run("hello")).session
    from dataclasses import replace

    for n in range(6):
        one = replace(
            record(session, request={"n": n}), id=f"a{n}", tool="even" if n % 2 == 0 else "odd"
        )
        store.commit_now(OpenApproval(one))
    assert [r.id for r in store.approvals(session, newest=2)] == ["a4", "a5"]
    assert [r.id for r in store.approvals(tool="odd")] == ["a1", "a3", "a5"]
    assert store.approvals(state=ApprovalState.SPENT) == [] == store.approvals("another")
    assert all(r.request == {} and r.id for r in store.approvals(session, brief=True))
    store.close()


def test_what_every_call_asks_of_the_store_does_not_read_all_of_it(tmp_path: Path) -> None:
    """Rejections of a lineage, its newest decisions, requests of one binding: each by an index."""
    path = tmp_path / "store.db"
    open_store(path).close()
    db = sqlite3.connect(path)
    for where, index in (
        ("root = ? AND state = ? ORDER BY id DESC LIMIT 9", "approvals_by_state"),
        ("root = ? ORDER BY id DESC LIMIT 9", "approvals_by_root"),
        ("session = ? AND binding = ? ORDER BY id DESC", "approvals_by_session"),
    ):
        values = ("s",) * where.count("?")
        plan = db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM approvals WHERE {where}", values)
        steps = " ".join(row[3] for row in plan)
        assert index in steps and "TEMP B-TREE" not in steps, steps
    db.close()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"files": {"/b.sh": "1"}}, {"files": {"/b.sh": "2"}}, ["/b.sh changed"]),
        ({"files": {"/b.sh": "1"}}, {"files": {}}, ["/b.sh was removed"]),
        ({"files": {"/b.sh": "absent"}}, {"files": {"/b.sh": "1"}}, ["/b.sh was made"]),
        ({"paths": ["read /a"]}, {"paths": ["read /etc/passwd"]}, ["read /a does not lead where it did"]),
        ({"policy": "a"}, {"policy": "b"}, ["the policy changed"]),
        ({"arguments": 1, "sandbox": "os"}, {"arguments": 2, "sandbox": "none"},
         ["the arguments changed", "the sandbox changed"]),
        ({"arguments": 1}, {"arguments": 1}, []),
    ],
)  # fmt: skip
def test_what_changed_is_said(
    before: dict[str, Any], after: dict[str, Any], said: list[str]
) -> None:
    assert what_changed(before, after) == said
