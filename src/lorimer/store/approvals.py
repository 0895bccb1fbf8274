"""Approvals as rows: kept, answered once, used once.

What must not happen twice is decided by the row itself, inside the transaction of whoever comes
first: `UPDATE … WHERE state = 'open'`.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState
from lorimer.core.clock import to_rfc3339
from lorimer.core.errors import (
    AlreadyAnswered,
    ApprovalExpired,
    ApprovalSpent,
    ApprovalVoid,
    UnknownApproval,
    WrongPrincipal,
)
from lorimer.store import rows
from lorimer.store.protocol import (
    AnswerApproval,
    CloseApproval,
    OpenApproval,
    SpendApproval,
)

APPROVER = "approver"
"""The role of a principal who may answer for the sessions of others."""

Line = tuple[str, str, str, str, str, str]
"""An audit line without its number: session, actor, action, target, why, digest of the row."""
Select = Callable[[str, tuple[Any, ...]], list[Any]]
_SELECT = f"SELECT {rows.APPROVAL_COLUMNS} FROM approvals"


def apply_approval(
    db: sqlite3.Connection,
    change: OpenApproval | AnswerApproval | SpendApproval | CloseApproval,
    now: datetime,
) -> Line | None:
    """Make the change on `db`, inside a transaction; its audit line, `None` when nothing changed.

    Raises:
        ApprovalError: and then nothing was changed.
    """
    match change:
        case OpenApproval(record):
            row = rows.approval_row(record)
            db.execute(f"INSERT INTO approvals VALUES ({','.join('?' * len(row))})", row)
            actor = record.by or "lorimer"
            why = f"{record.tool}: {record.reason or record.request.get('reason', '')}"
            action = "opened" if record.state is ApprovalState.OPEN else str(record.state)
            return _line(record, actor, f"{record.kind} {action}; {why}", row, "opened")
        case AnswerApproval():
            return _answer(db, change, now)
        case SpendApproval():
            return _spend(db, change, now)
        case CloseApproval():
            return _close(db, change, now)


def _line(record: ApprovalRecord, actor: str, why: str, row: tuple[Any, ...], action: str) -> Line:
    return (
        record.session, actor, f"approval.{action}", record.id, why, rows.row_digest(row),
    )  # fmt: skip


def _write(
    db: sqlite3.Connection, before: ApprovalRecord, after: ApprovalRecord
) -> tuple[Any, ...]:
    row = rows.approval_row(after)
    columns = rows.APPROVAL_COLUMNS.split(", ")
    settings = ", ".join(f"{name} = ?" for name in columns[1:])
    db.execute(
        f"UPDATE approvals SET {settings} WHERE id = ? AND state = ?",
        (*row[1:], before.id, str(before.state)),
    )
    return row


def _found(db: sqlite3.Connection, approval_id: str) -> ApprovalRecord:
    return one(lambda sql, values: db.execute(sql, values).fetchall(), approval_id)


def check_answer(before: ApprovalRecord, change: AnswerApproval, now: datetime) -> None:
    """Whether the request may be answered so, as it stands.

    Raises:
        ApprovalError: when not.
    """
    if change.principal != before.principal and APPROVER not in change.roles:
        raise WrongPrincipal(
            f"{change.principal!r} may not answer {change.id}: the session belongs to "
            f"{before.principal!r}.",
            next=f"Answer as {before.principal!r}, or as somebody with the role {APPROVER!r}.",
        )
    if before.state is not ApprovalState.OPEN or before.kind is ApprovalKind.CONFIRMATION:
        if before.state is ApprovalState.EXPIRED:
            raise ApprovalExpired(ended(before), next="Let the agent ask again.")
        if before.state in (ApprovalState.VOID, ApprovalState.WITHDRAWN):
            raise ApprovalVoid(ended(before), next="Let the agent ask again.")
        raise AlreadyAnswered(ended(before), next="The first answer counts; nothing was changed.")
    if before.state_at(now) is ApprovalState.EXPIRED:
        assert before.expires_at is not None
        raise ApprovalExpired(
            f"The request {change.id} expired at {to_rfc3339(before.expires_at)}: the answer "
            "comes too late, and counts as no.",
            next="Let the agent ask again.",
        )
    if change.digest and change.digest != before.digest:
        raise ApprovalVoid(
            f"The answer is for another call than {change.id} shows.",
            next=f"Look at it again: lorimer approvals show {change.id}",
        )


def _answer(db: sqlite3.Connection, change: AnswerApproval, now: datetime) -> Line:
    before = _found(db, change.id)
    check_answer(before, change, now)
    by = change.by or change.principal
    answer: dict[str, Any] = {
        "by": by, "principal": change.principal, "reason": change.reason,
        "approved": change.approved,
    }  # fmt: skip
    if change.for_session:
        answer["for_session"] = True
    if change.edited is not None:
        answer["edited"] = dict(change.edited)
    if change.facts:
        answer["facts"] = dict(change.facts)
    state = ApprovalState.APPROVED if change.approved else ApprovalState.REJECTED
    row = _write(db, before, replace(before, state=state, answered_at=now, answer=answer))
    why = f"{state}" + (f": {change.reason}" if change.reason else "")
    return _line(before, by, why, row, "answered")


def _spend(db: sqlite3.Connection, change: SpendApproval, now: datetime) -> Line:
    before = _found(db, change.id)
    if before.session != change.session:
        raise ApprovalVoid(f"The approval {change.id} was given in another session.")
    usable = (
        ApprovalState.OPEN if before.kind is ApprovalKind.CONFIRMATION else ApprovalState.APPROVED
    )
    if before.state is not usable:
        raise ApprovalSpent(ended(before), next="Ask again; nothing was run.")
    if before.state_at(now) is ApprovalState.EXPIRED:
        assert before.expires_at is not None
        raise ApprovalExpired(
            f"The approval {change.id} expired at {to_rfc3339(before.expires_at)} before it was "
            "used.",
            next="Ask again; nothing was run.",
        )
    closing: dict[str, Any] = {"call": change.call}
    if change.bound:
        closing["bound"] = dict(change.bound)
    after = replace(before, state=ApprovalState.SPENT, closed_at=now, closing=closing)
    row = _write(db, before, after)
    return _line(before, "lorimer", f"used by call {change.call}", row, "spent")


def _close(db: sqlite3.Connection, change: CloseApproval, now: datetime) -> Line | None:
    before = _found(db, change.id)
    live = (ApprovalState.OPEN,) if change.only_open else (
        ApprovalState.OPEN, ApprovalState.APPROVED
    )  # fmt: skip
    if before.state not in live:
        return None
    after = replace(before, state=change.state, closed_at=now, closing={"why": change.why})
    row = _write(db, before, after)
    return _line(before, "lorimer", f"{change.state}: {change.why}", row, "closed")


def ended(record: ApprovalRecord) -> str:
    """In words, how `record` ended."""
    if record.kind is ApprovalKind.CONFIRMATION and record.state is ApprovalState.OPEN:
        return f"{record.id} is a confirmation of the model's own call: nobody is asked."
    at = record.closed_at or record.answered_at
    when = "" if at is None else f" at {to_rfc3339(at)}"
    match record.state:
        case ApprovalState.SPENT:
            used = record.closing.get("call", "")
            by = f"approved by {_plain(record.by)} and " if record.by else ""
            return f"The approval {record.id} was {by}used already, by call {used}{when}."
        case ApprovalState.APPROVED | ApprovalState.REJECTED:
            return f"The request {record.id} was already answered: {record.state} by " + (
                f"{_plain(record.by)}{when}."
            )
        case ApprovalState.OPEN:
            return f"The request {record.id} is not answered yet."
        case _:
            why = record.closing.get("why", "")
            return f"The request {record.id} is {record.state}{when}" + (
                f": {why}." if why else "."
            )


def _plain(name: str) -> str:
    """A name on one line, whatever is in it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


# --- reading -------------------------------------------------------------------------------------


def one(select: Select, approval_id: str) -> ApprovalRecord:
    """Raises `UnknownApproval`."""
    found = select(f"{_SELECT} WHERE id = ?", (approval_id,))
    if found:
        return rows.approval_from(found[0])
    known = [row[0] for row in select("SELECT id FROM approvals ORDER BY id DESC LIMIT 500", ())]
    near = difflib.get_close_matches(approval_id, known, n=3, cutoff=0.6)
    near += [k for k in known if k.endswith(approval_id) and len(approval_id) > 3][:3]
    hint = f"Did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
    raise UnknownApproval(
        f"No approval request {approval_id!r}.",
        next=f"{hint}`lorimer approvals list` shows those that exist.",
    )


def some(
    select: Select, wanted: Mapping[str, Any], newest: int | None, *, brief: bool = False
) -> list[ApprovalRecord]:
    """The records whose columns have the `wanted` values (`None`: any), oldest first."""
    given = {name: str(value) for name, value in wanted.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in given)
    columns = _SELECT.replace("request", "'{}'") if brief else _SELECT
    sql = f"{columns}{f' WHERE {where}' if where else ''} ORDER BY id DESC"
    values: tuple[Any, ...] = tuple(given.values())
    if newest is not None:
        sql, values = f"{sql} LIMIT ?", (*values, newest)
    return [rows.approval_from(row) for row in reversed(select(sql, values))]
