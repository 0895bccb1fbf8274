"""Changes to rows, each with its audit line, inside one SQLite transaction."""

from __future__ import annotations

import sqlite3
from typing import Any

from lorimer.core.calls import JournalState
from lorimer.core.clock import Clock, to_rfc3339
from lorimer.core.errors import StoreError
from lorimer.store import rows
from lorimer.store.approvals import apply_approval
from lorimer.store.protocol import (
    AddRendering,
    AnswerApproval,
    AppendEntry,
    Change,
    CloseApproval,
    CorrectCall,
    CreateSession,
    FinishCall,
    OpenApproval,
    PlanCall,
    PutBlob,
    Remark,
    SpendApproval,
    StartCall,
)

GENESIS = "0" * 64
_FIELDS = (
    "entry_seq, position, tool, raw, state, planned_at, started_at, finished_at, operation_key, "
    "started, finished, late, outcome"
)


def line_hash(values: tuple[Any, ...]) -> str:
    """Hash of an audit line over its fields n … previous."""
    return rows.row_digest(values)


def head_text(n: int, hashed: str) -> str:
    """Number and hash of an audit line, at a fixed width."""
    return f"{n:020d} {hashed}\n"


class Transaction:
    """Applies changes on `connection`, which is inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._db = connection
        self._clock = clock
        self._n, self._hash = self._base = (0, GENESIS)

    @property
    def n(self) -> int:
        """Number of the newest audit line."""
        return self._n

    @property
    def head(self) -> str:
        """The newest audit line, as it stands in the head file."""
        return head_text(self._n, self._hash)

    def knows(self, n: int, hashed: str) -> bool:
        """Whether line `n` of the chain has the hash `hashed`."""
        if (n, hashed) in (self._base, (0, GENESIS)):
            return True
        row = self._db.execute("SELECT hash FROM audit WHERE n = ?", (n,)).fetchone()
        return row is not None and row[0] == hashed

    def begin(self) -> None:
        """Take up the chain where the last commit, of any process, left it."""
        row = self._db.execute("SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1").fetchone()
        self._n, self._hash = self._base = row if row else (0, GENESIS)

    def apply(self, change: Change) -> None:
        match change:
            case StartCall():
                self._start(change)
            case FinishCall():
                self._finish(change)
            case AppendEntry():
                self._append(change)
            case PlanCall():
                self._plan(change)
            case CreateSession(record):
                row = rows.session_row(record)
                self._db.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?)", row)
                self._audit(
                    record.id,
                    record.principal,
                    "session.created",
                    record.id,
                    "",
                    rows.row_digest(row),
                )
            case AddRendering(session, seq, wire, rendering):
                row = (session, seq, wire, rendering)
                self._db.execute("INSERT INTO renderings VALUES (?,?,?,?)", row)
                self._audit(
                    session, "lorimer", "entry.rendered", f"{seq}:{wire}", "", rows.row_digest(row)
                )
            case CorrectCall():
                self._correct(change)
            case OpenApproval() | AnswerApproval() | SpendApproval() | CloseApproval():
                line = apply_approval(self._db, change, self._clock.now())
                if line is not None:
                    self._audit(*line)
            case Remark(session, actor, action, why):
                self._audit(session, actor, action, "", why, "")
            case PutBlob(reference, size, media_type, data):
                added = self._db.execute(
                    "INSERT INTO blobs VALUES (?,?,?,?) ON CONFLICT DO NOTHING RETURNING hash",
                    (reference, size, media_type, data),
                ).fetchone()
                if added is not None:
                    row = (reference, size, media_type)
                    self._audit("", "lorimer", "blob.stored", reference, "", rows.row_digest(row))

    def _append(self, change: AppendEntry) -> None:
        session, seq = change.session, change.seq
        last = self._db.execute(
            "SELECT max(seq) FROM entries WHERE session = ?", (session,)
        ).fetchone()[0]
        expected = 0 if last is None else last + 1
        if seq != expected:
            raise StoreError(
                f"Session {session} stands at entry {expected}, not {seq}: another process has "
                "written to it.",
                next="Open the session again.",
            )
        record = rows.to_text(change.entry.to_json())
        self._db.execute(
            "INSERT INTO entries VALUES (?,?,?,?)", (session, seq, str(change.entry.kind), record)
        )
        self._db.execute(
            "INSERT INTO renderings VALUES (?,?,?,?)", (session, seq, change.wire, change.rendering)
        )
        row = (session, seq, str(change.entry.kind), record, change.wire, change.rendering)
        self._audit(
            session,
            change.actor,
            "entry.appended",
            f"{seq}:{change.wire}",
            "",
            rows.row_digest(row),
        )

    def _plan(self, change: PlanCall) -> None:
        row = self._db.execute(
            "INSERT INTO calls (session, id, entry_seq, position, tool, raw, state, planned_at) "
            f"VALUES (?,?,?,?,?,?,?,?) RETURNING {_FIELDS}",
            (change.session, change.id, change.entry_seq, change.position, change.tool,
             rows.storable(change.raw), "planned", to_rfc3339(change.at)),
        ).fetchone()  # fmt: skip
        self._audit_call(change.session, change.id, row, "model", "call.planned", change.tool)

    def _start(self, change: StartCall) -> None:
        row = self._db.execute(
            "UPDATE calls SET state = 'started', started_at = ?, operation_key = ?, started = ? "
            f"WHERE session = ? AND id = ? AND state <> 'finished' RETURNING {_FIELDS}",
            (to_rfc3339(change.at), change.operation_key, rows.started_text(change),
             change.session, change.id),
        ).fetchone()  # fmt: skip
        if row is None:
            raise StoreError(f"Call {change.id} of session {change.session} has already ended.")
        self._audit_call(
            change.session, change.id, row, "lorimer", "call.started", _why(change.decision)
        )

    def _finish(self, change: FinishCall) -> None:
        row = self._db.execute(
            "UPDATE calls SET state = 'finished', finished_at = ?, finished = ?, outcome = ? "
            f"WHERE session = ? AND id = ? AND state <> 'finished' RETURNING {_FIELDS}",
            (to_rfc3339(change.at), rows.finished_text(change), str(change.outcome),
             change.session, change.id),
        ).fetchone()  # fmt: skip
        if row is None:
            raise StoreError(f"Call {change.id} of session {change.session} has already ended.")
        why = f"{change.outcome}" + (f" {change.code}" if change.code else "")
        if change.why:
            why += f": {change.why}"
        self._audit_call(change.session, change.id, row, "lorimer", "call.finished", why)

    def _correct(self, change: CorrectCall) -> None:
        late = rows.to_text(
            {**change.late, "at": to_rfc3339(change.at), "outcome": str(change.outcome)}
        )
        row = self._db.execute(
            "UPDATE calls SET late = ?, outcome = ? WHERE session = ? AND id = ? AND state = ? "
            f"RETURNING {_FIELDS}",
            (late, str(change.outcome), change.session, change.id, str(JournalState.FINISHED)),
        ).fetchone()
        if row is None:
            raise StoreError(
                f"Call {change.id} of session {change.session} has not ended: nothing to correct."
            )
        self._audit_call(
            change.session, change.id, row, "lorimer", "call.corrected", str(change.outcome)
        )

    def _audit_call(
        self, session: str, call_id: str, row: Any, actor: str, action: str, why: str
    ) -> None:
        self._audit(session, actor, action, call_id, why, rows.row_digest((session, call_id, *row)))

    def _audit(
        self, session: str, actor: str, action: str, target: str, why: str, row_hash: str
    ) -> None:
        at = to_rfc3339(self._clock.now())
        values = (
            self._n + 1,
            at,
            session,
            actor,
            action,
            target,
            rows.storable(why),
            row_hash,
            self._hash,
        )
        hashed = line_hash(values)
        self._db.execute("INSERT INTO audit VALUES (?,?,?,?,?,?,?,?,?,?)", (*values, hashed))
        self._n, self._hash = self._n + 1, hashed


def _why(decision: Any) -> str:
    return str(decision.get("reason", "")) if decision else ""
