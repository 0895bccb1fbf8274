"""The store protocol: what lasts, and the changes that may be made to it.

A change is a record (`AppendEntry`, `PlanCall`, …). `commit(*changes)` makes all of them or none,
writes their audit lines in the same transaction, and returns only when they are on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from lorimer.core.approvals import ApprovalRecord, ApprovalState
from lorimer.core.calls import Effects, Idempotency, JournalState, Outcome
from lorimer.core.messages import Entry


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The fixed facts of a session. `prefix` is the rendered prefix for `wire`, byte for byte;
    `meta` holds workspace, mode and whatever the opener wants back."""

    id: str
    created_at: datetime
    principal: str
    model: str
    wire: str
    system: str
    tools: Sequence[Mapping[str, Any]]
    prefix: bytes
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A line of `lorimer sessions list`."""

    id: str
    created_at: datetime
    updated_at: datetime
    principal: str
    model: str
    entries: int
    calls: int
    unfinished_calls: int
    first_words: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A line of the call journal.

    Attributes:
        operation_key: key of the effect; empty until the call is started.
        occurrence: 0 for the first call of this tool with these arguments in the session, 1 for …
        decision: what allowed the call: mode, rule, who approved.
        result: the content the model reads (`ResultPart` as JSON) once finished.
        late: what became known after the call had ended for the model, if anything.
        unit: the process that runs it: pid and start time.
        views: content hash of each file this call has read or written.
    """

    session: str
    id: str
    entry_seq: int
    position: int
    tool: str
    raw: str
    state: JournalState
    planned_at: datetime
    operation_key: str = ""
    occurrence: int = 0
    arguments_digest: str = ""
    value: Any = None
    diffs: Sequence[Mapping[str, Any]] = ()
    effects: Effects | None = None
    idempotency: Idempotency | None = None
    decision: Mapping[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration_s: float | None = None
    outcome: Outcome | None = None
    code: str = ""
    result: Mapping[str, Any] | None = None
    late: Mapping[str, Any] | None = None
    views: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit chain. `digest` is the SHA-256 of the row that `target` names, as this
    line left it; `hash` covers this line and `previous`."""

    n: int
    at: str
    session: str
    actor: str
    action: str
    target: str
    why: str
    digest: str
    previous: str
    hash: str


# --- changes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateSession:
    record: SessionRecord


@dataclass(frozen=True, slots=True)
class AppendEntry:
    """Append `entry` as number `seq`; refused when that number is taken or leaves a gap."""

    session: str
    seq: int
    entry: Entry
    wire: str
    rendering: bytes
    actor: str


@dataclass(frozen=True, slots=True)
class AddRendering:
    """The frozen rendering of an old entry for another wire."""

    session: str
    seq: int
    wire: str
    rendering: bytes


@dataclass(frozen=True, slots=True)
class PlanCall:
    session: str
    id: str
    entry_seq: int
    position: int
    tool: str
    raw: str
    at: datetime


@dataclass(frozen=True, slots=True)
class StartCall:
    """The call is about to run; after this commit its effect may exist."""

    session: str
    id: str
    operation_key: str
    occurrence: int
    arguments_digest: str
    value: Any
    diffs: Sequence[Mapping[str, Any]]
    effects: Effects
    idempotency: Idempotency
    decision: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class FinishCall:
    """How the call ended. Only the first finish of a call is taken."""

    session: str
    id: str
    outcome: Outcome
    code: str
    result: Mapping[str, Any]
    at: datetime
    duration_s: float | None
    views: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True)
class CorrectCall:
    """What became known of a finished call later; the first result stays as it was told."""

    session: str
    id: str
    outcome: Outcome
    late: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Remark:
    """An audit line about something that is no row: a retry, a cancellation, a limit reached."""

    session: str
    actor: str
    action: str
    why: str


@dataclass(frozen=True, slots=True)
class PutBlob:
    """`data` is `None` for a blob that lies in a file of its own."""

    reference: str
    size: int
    media_type: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class OpenApproval:
    """Keep a request, or an opinion that is there already."""

    record: ApprovalRecord


@dataclass(frozen=True, slots=True)
class AnswerApproval:
    """Answer an open request; the first answer is the only one.

    Refused with an `ApprovalError`: unknown, answered or closed, expired, for another `digest` than
    the stored one, or `principal` may not answer (it is not the session's, and `approver` is none
    of its `roles`).

    Attributes:
        by: who it was, as people know them; the principal when it is empty.
        edited: arguments to use instead.
    """

    id: str
    approved: bool
    principal: str
    by: str = ""
    reason: str = ""
    roles: frozenset[str] = frozenset()
    digest: str = ""
    for_session: bool = False
    edited: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpendApproval:
    """Use up an approval, or an open confirmation, for the call `call`; belongs into the commit
    that starts it. Refused with an `ApprovalError` unless it is there to be used."""

    id: str
    session: str
    call: str
    bound: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloseApproval:
    """End a request or an unused approval as `state` (`void`, `expired`, `withdrawn`). Does nothing
    to one that has ended, or to an open one that was answered meanwhile when `only_open`."""

    id: str
    state: ApprovalState
    why: str
    only_open: bool = False


Change = (
    CreateSession
    | AppendEntry
    | AddRendering
    | PlanCall
    | StartCall
    | FinishCall
    | CorrectCall
    | PutBlob
    | Remark
    | OpenApproval
    | AnswerApproval
    | SpendApproval
    | CloseApproval
)


class SessionLock(Protocol):
    """Held while a process runs a session; freed when the process ends, however it ends."""

    def release(self) -> None: ...


class Store(Protocol):
    """What lasts. Reads see everything that was committed, by any process."""

    async def commit(self, *changes: Change) -> None:
        """Make all of `changes` or none; on disk on return.

        Cancellation: the commit is not stopped by it; when this raises `CancelledError` the changes
        are on disk all the same.

        Raises:
            StoreFull, StoreReadOnly, StoreError: and then nothing was changed.
        """
        ...

    def session(self, session: str) -> SessionRecord:
        """Raises `SessionNotFound`."""
        ...

    def sessions(self, *, limit: int = 50) -> list[SessionSummary]: ...

    def entries(self, session: str, wire: str) -> list[tuple[Entry, bytes | None]]:
        """All entries in order, each with its rendering for `wire` (`None`: not rendered yet)."""
        ...

    def rendering(self, session: str, seq: int, wire: str) -> bytes | None:
        """The rendering of one entry for `wire`; `None`: not rendered yet."""
        ...

    def call(self, session: str, call_id: str) -> CallRecord | None: ...

    def calls(self, session: str) -> list[CallRecord]: ...

    def approval(self, approval_id: str) -> ApprovalRecord:
        """Raises `UnknownApproval`, with ids that look like it."""
        ...

    def approvals(
        self,
        session: str | None = None,
        state: ApprovalState | None = None,
        *,
        root: str | None = None,
        binding: str | None = None,
        tool: str | None = None,
        newest: int | None = None,
        brief: bool = False,
    ) -> list[ApprovalRecord]:
        """Those that fit all that is given, oldest first; of many the `newest`. `brief`: without
        what was shown (`request` is empty), which can be long."""
        ...

    def last_spoken(self, session: str) -> datetime | None:
        """When the user last said something in the session."""
        ...

    def audit(self, session: str | None = None) -> Iterator[AuditLine]: ...

    def put_blob(self, data: bytes, media_type: str, *, as_file: bool = False) -> str:
        """Keep `data`; returns `sha256:<hex>`. On disk on return. With `as_file` it can be read at
        `blob_path`, however small it is."""
        ...

    def get_blob(self, reference: str) -> bytes:
        """Raises `StoreError` when it is missing or its content no longer fits its hash."""
        ...

    def blob_path(self, reference: str) -> str | None:
        """The file that holds a large blob; `None` for those inside the database."""
        ...

    def results_folder(self, session: str) -> Path | None:
        """Where what `session` has kept lies as files, for its own tools and no other session's."""
        ...

    def kept_path(self, session: str, reference: str) -> str | None:
        """The file of a large blob in the folder of `session`; put there if need be."""
        ...

    def kept_by(self, session: str, reference: str) -> bool:
        """Whether `session` itself has kept the blob as a file."""
        ...

    async def lock_session(self, session: str, *, wait_s: float | None = 0.0) -> SessionLock:
        """Raises `SessionBusy` when another process has it and does not free it in `wait_s`."""
        ...

    async def lock_resource(self, key: str, *, wait_s: float | None = None) -> SessionLock:
        """One holder of `key` at a time, over all processes. Raises `SessionBusy` like the
        above."""
        ...

    def close(self) -> None: ...
