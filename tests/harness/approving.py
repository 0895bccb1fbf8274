"""Tools that need approvals, people who give them, and processes that wait for them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from harness import world as w
from lorimer import tool
from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.store import open_store
from lorimer.store.protocol import AnswerApproval, OpenApproval

CLI = [sys.executable, "-c", "from lorimer.cli.main import main; main()"]
ran: list[str] = []


@tool(effects="irreversible", path_arguments=["script"])
async def deploy(script: str, note: str = "") -> str:
    """Run a script on the far side."""
    ran.append(f"{script} {note}".strip())
    return "deployed"


@tool(effects="irreversible")
async def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    ran.append(f"{to} {amount}")
    return "paid"


def calls_of(result: Any) -> list[str]:
    return [c.code or str(c.outcome) for c in result.calls]


def error_of(result: Any, at: int = -1) -> dict[str, Any]:
    return json.loads(result.calls[at].result)  # type: ignore[no-any-return]


async def approve(store: Any, approval_id: str, approved: bool = True, **more: Any) -> None:
    record = store.approval(approval_id)
    await store.commit(
        AnswerApproval(
            approval_id, approved, **{"principal": record.principal, "by": "Ada", **more}
        )
    )


class Person:
    """Answers with what `answers` gives for each request."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalRequest] = []
        self.gone = 0

    async def ask(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(request)
        if answer is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.gone += 1
                raise
        return answer if isinstance(answer, Approval) else Approval(bool(answer), by="Ada")


def start(store: Path, folder: Path, what: str, die: str = "no") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness.g5_agent", str(store), str(folder), what, die],
        cwd=Path(__file__).parents[1], stderr=subprocess.PIPE,
    )  # fmt: skip


def answering(store: Path, approval_id: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*CLI, "approvals", "approve", approval_id, "--store", str(store)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[bytes], *codes: int) -> None:
    _, said = process.communicate(timeout=120)
    assert process.returncode in (codes or (0,)), said.decode()


async def asked(path: Path, count: int = 1) -> ApprovalRecord:
    """The request that stands open in the store at `path`, once there are `count`."""
    found: list[str] = []

    def there() -> bool:
        if path.exists():
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                try:
                    rows = db.execute("SELECT id FROM approvals WHERE state = 'open'").fetchall()
                except sqlite3.OperationalError:
                    return False
                found[:] = [row[0] for row in rows]
        return len(found) >= count

    await w.until(there, "the request")
    store = open_store(path)
    try:
        return store.approval(found[0])
    finally:
        store.close()


def request_in(store: Any, session: str, **more: Any) -> ApprovalRecord:
    from lorimer.core.ids import new_id

    now = store.clock.now()
    record = ApprovalRecord(
        new_id("a", store.clock), session, session, ApprovalKind.CALL, "c1", "pay", "ada", "b", "d",
        ApprovalState.OPEN, now, **{"expires_at": now + timedelta(hours=1), **more},
    )  # fmt: skip
    store.commit_now(OpenApproval(record))
    return record


def answer(store: Any, approval_id: str, **more: Any) -> None:
    store.commit_now(AnswerApproval(approval_id, **{"approved": True, "principal": "ada", **more}))


def rows_of(path: Path, sql: str) -> list[Any]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        try:
            return db.execute(sql).fetchall()
        except sqlite3.OperationalError:  # no tables yet
            return []
