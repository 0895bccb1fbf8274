"""Records to rows and back: the one place that knows how a record lies in the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState
from lorimer.core.calls import Effects, Idempotency, JournalState, Outcome
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.clock import from_rfc3339, to_rfc3339
from lorimer.store.protocol import CallRecord, FinishCall, SessionRecord, StartCall

CALL_COLUMNS = (
    "session, id, entry_seq, position, tool, raw, state, planned_at, started_at, finished_at, "
    "operation_key, started, finished, late, outcome"
)
APPROVAL_COLUMNS = (
    "id, session, root, kind, call, tool, principal, binding, digest, state, asked_at, expires_at, "
    "request, answered_at, answer, closed_at, closing"
)
_escape = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_text(value: Any) -> str:
    """Canonical JSON text. Half surrogate pairs, which UTF-8 cannot hold, stay as escapes."""
    try:
        return canonical_json(value).decode("utf-8")
    except UnicodeEncodeError:
        return _escape.encode(value)


def storable(text: str) -> str:
    """`text` with half surrogate pairs, which no UTF-8 text can hold, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def row_digest(values: Sequence[Any]) -> str:
    """SHA-256 over the columns of a row, written as a Python list in ASCII: one call, the same in
    every Python (unlike `repr`, which follows the Unicode tables), and no two rows are alike."""
    plain = [v if v.__class__ in _AS_STORED else str(v) for v in values]
    return digest(ascii(plain).encode("ascii"))


_AS_STORED = frozenset({str, int, bytes, type(None)})


def session_row(record: SessionRecord) -> tuple[Any, ...]:
    return (
        record.id,
        to_rfc3339(record.created_at),
        record.principal,
        record.model,
        record.wire,
        record.system,
        to_text(list(record.tools)),
        record.prefix,
        to_text(dict(record.meta)),
    )


def session_from(row: Sequence[Any]) -> SessionRecord:
    return SessionRecord(
        row[0], from_rfc3339(row[1]), row[2], row[3], row[4], row[5],
        json.loads(row[6]), row[7], json.loads(row[8]),
    )  # fmt: skip


def started_text(change: StartCall) -> str:
    return to_text(
        {
            "occurrence": change.occurrence,
            "arguments_digest": change.arguments_digest,
            "value": change.value,
            "diffs": list(change.diffs),
            "effects": str(change.effects),
            "idempotency": str(change.idempotency),
            "decision": dict(change.decision),
        }
    )


def finished_text(change: FinishCall) -> str:
    return to_text(
        {
            "code": change.code,
            "result": change.result,
            "duration_s": change.duration_s,
            "views": dict(change.views),
        }
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_rfc3339(text)


def call_from(row: Sequence[Any]) -> CallRecord:
    started: Mapping[str, Any] = json.loads(row[11]) if row[11] else {}
    finished: Mapping[str, Any] = json.loads(row[12]) if row[12] else {}
    return CallRecord(
        session=row[0],
        id=row[1],
        entry_seq=row[2],
        position=row[3],
        tool=row[4],
        raw=row[5],
        state=JournalState(row[6]),
        planned_at=from_rfc3339(row[7]),
        started_at=_moment(row[8]),
        finished_at=_moment(row[9]),
        operation_key=row[10] or "",
        occurrence=started.get("occurrence", 0),
        arguments_digest=started.get("arguments_digest", ""),
        value=started.get("value"),
        diffs=started.get("diffs", ()),
        effects=Effects(started["effects"]) if started else None,
        idempotency=Idempotency(started["idempotency"]) if started else None,
        decision=started.get("decision", {}),
        duration_s=finished.get("duration_s"),
        outcome=None if row[14] is None else Outcome(row[14]),
        code=finished.get("code", ""),
        result=finished.get("result"),
        late=json.loads(row[13]) if row[13] else None,
        views=finished.get("views", {}),
    )


def _text_or_none(value: Mapping[str, Any]) -> str | None:
    return to_text(dict(value)) if value else None


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else to_rfc3339(moment)


def approval_row(record: ApprovalRecord) -> tuple[Any, ...]:
    return (
        record.id, record.session, record.root, str(record.kind), record.call,
        storable(record.tool), record.principal, record.binding, record.digest, str(record.state),
        to_rfc3339(record.asked_at), _stamp(record.expires_at), to_text(dict(record.request)),
        _stamp(record.answered_at), _text_or_none(record.answer), _stamp(record.closed_at),
        _text_or_none(record.closing),
    )  # fmt: skip


def approval_from(row: Sequence[Any]) -> ApprovalRecord:
    return ApprovalRecord(
        id=row[0], session=row[1], root=row[2], kind=ApprovalKind(row[3]), call=row[4],
        tool=row[5], principal=row[6], binding=row[7], digest=row[8], state=ApprovalState(row[9]),
        asked_at=from_rfc3339(row[10]), expires_at=_moment(row[11]), request=json.loads(row[12]),
        answered_at=_moment(row[13]), answer=json.loads(row[14]) if row[14] else {},
        closed_at=_moment(row[15]), closing=json.loads(row[16]) if row[16] else {},
    )  # fmt: skip
