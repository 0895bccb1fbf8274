"""`lorimer audit verify`: is the store what its audit chain says it is? (G13)

Found: a changed, missing, added or re-ordered audit line; a row of a session, entry, call,
approval or blob that differs from its last audit line, or has none; a lost row; a chain that is
shorter than the head file says. Not found: a change by someone who rewrites the whole chain *and*
the head file; keep a copy of the head (`lorimer audit head`) elsewhere against that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from lorimer.core.canonical import digest
from lorimer.core.errors import StoreError
from lorimer.store import rows
from lorimer.store.sqlite import SqliteStore
from lorimer.store.transaction import GENESIS, head_text, line_hash

_CALL_FIELDS = (
    "session, id, entry_seq, position, tool, raw, state, planned_at, started_at, finished_at, "
    "operation_key, started, finished, late, outcome"
)


@dataclass(frozen=True, slots=True)
class Report:
    """What was checked and what is wrong; `faults` is empty when all is well."""

    lines: int
    rows: int
    head: str
    faults: tuple[str, ...]


def verify(store: SqliteStore, *, expected_head: str | None = None) -> Report:
    """Check everything, as it stands at one moment; others may write. `expected_head` is a
    hash that must stand in the chain."""
    anchor = store.read_head()  # before the chain: it never leads
    try:
        with store.snapshot():
            return _verify(store, anchor, expected_head)
    except (sqlite3.Error, StoreError) as fault:
        return Report(0, 0, GENESIS, (f"the database cannot be read: {fault}",))


def _verify(
    store: SqliteStore, anchor: tuple[int, str] | None, expected_head: str | None
) -> Report:
    faults: list[str] = []
    last: dict[tuple[str, str, str], tuple[int, str]] = {}
    previous, count = GENESIS, 0
    hashes = {GENESIS: 0}
    try:
        for row in store.raw("PRAGMA integrity_check"):
            if row[0] != "ok":
                faults.append(f"database: {row[0]}")
        for row in store.raw(
            "SELECT n, at, session, actor, action, target, why, digest, previous, hash "
            "FROM audit ORDER BY n"
        ):
            n = row[0]
            count += 1
            if n != count:
                faults.append(f"audit line {count} is missing (the next one is {n})")
                count = n
            if row[8] != previous:
                faults.append(f"audit line {n} does not follow line {n - 1}")
            if line_hash(tuple(row[:9])) != row[9]:
                faults.append(f"audit line {n} was changed")
            previous = row[9]
            hashes[row[9]] = n
            kind = row[4].partition(".")[0]
            if row[7]:
                target = row[5]
                last[(kind, row[2], target)] = (n, row[7])
        checked = _rows(store, last, faults)
    except (sqlite3.Error, StoreError, ValueError, TypeError, LookupError, AttributeError) as fault:
        # Damaged pages give values of any type: whatever stops the reading is a finding.
        return Report(count, 0, previous, (*faults, f"the database cannot be read: {fault}"))
    for (kind, session, target), (n, _) in last.items():
        faults.append(f"{kind} {target} of {session or 'the store'} is gone (audit line {n})")
    if not store.memory:
        faults += _anchor_faults(store, anchor, hashes, count, previous)
    if expected_head is not None and expected_head not in hashes:
        faults.append(f"the expected head {expected_head} is not in the chain")
    return Report(count, checked, previous, tuple(faults))


def _anchor_faults(
    store: SqliteStore,
    anchor: tuple[int, str] | None,
    hashes: Mapping[str, int],
    count: int,
    previous: str,
) -> list[str]:
    file = f"{store.path}.head"
    if anchor is None:
        line = head_text(count, previous).strip()
        return [
            f"the head file {file} is missing or damaged; put it back, or, to take the chain as it "
            f"is now, write this line into it: {line}"
        ]
    if anchor[1] not in hashes and anchor[0] <= count:
        line = head_text(count, previous).strip()
        return [
            f"the audit chain has lost lines, or the head file {file} is that of an older store: "
            f"it stands at line {anchor[0]}, and line {anchor[0]} of this store (which ends at "
            f"{count}) has another hash. If the store was deleted or replaced and only the head "
            f"file stayed, write this line into it: {line}. If not, lines up to {anchor[0]} were "
            "cut off and others written after"
        ]
    if anchor[1] not in hashes:
        return [
            f"the audit chain has lost lines: the head file stands at line {anchor[0]}, "
            f"the chain ends at {count} (or the head file {file} belongs to another, longer store)"
        ]
    if hashes[anchor[1]] != anchor[0]:
        return [f"the head file {file} was changed: line {anchor[0]} has another hash"]
    return []


def _rows(
    store: SqliteStore, last: dict[tuple[str, str, str], tuple[int, str]], faults: list[str]
) -> int:
    checked = 0

    def check(kind: str, session: str, target: str, row_hash: str) -> None:
        nonlocal checked
        checked += 1
        known = last.pop((kind, session, target), None)
        name = f"{kind} {target} of {session}" if session else f"{kind} {target}"
        if known is None:
            faults.append(f"{name} has no audit line")
        elif known[1] != row_hash:
            faults.append(f"{name} was changed after audit line {known[0]}")

    for row in store.raw("SELECT * FROM sessions"):
        check("session", row[0], row[0], rows.row_digest(row))
    records = {(r[0], r[1]): r for r in store.raw("SELECT session, seq, kind, record FROM entries")}
    first = set()
    for session, seq, wire, data in store.raw("SELECT session, seq, wire, bytes FROM renderings"):
        target = f"{seq}:{wire}"
        whole = records.get((session, seq))
        known = last.get(("entry", session, target))
        appended = None if whole is None else rows.row_digest((*whole, wire, data))
        if whole is None:
            faults.append(f"rendering {target} of {session} belongs to no entry")
        if known is not None and known[1] == appended:
            first.add((session, seq))
            check("entry", session, target, appended)
        elif known is not None and known[1] == rows.row_digest((session, seq, wire, data)):
            check("entry", session, target, known[1])
        else:
            check("entry", session, target, "")
            first.add((session, seq))
    for key in records:
        if key not in first:
            faults.append(f"entry {key[1]} of {key[0]} has no audit line")
    for row in store.raw(f"SELECT {_CALL_FIELDS} FROM calls"):
        check("call", row[0], row[1], rows.row_digest(row))
    for row in store.raw(f"SELECT {rows.APPROVAL_COLUMNS} FROM approvals"):
        check("approval", row[1], row[0], rows.row_digest(row))
    for reference, size, media_type, data in store.raw(
        "SELECT hash, size, media_type, data FROM blobs"
    ):
        check("blob", "", reference, rows.row_digest((reference, size, media_type)))
        try:
            content = data if data is not None else store.get_blob(reference)
            if "sha256:" + digest(content) != reference or len(content) != size:
                faults.append(f"blob {reference} was changed")
        except StoreError as fault:
            faults.append(str(fault))
    return checked
