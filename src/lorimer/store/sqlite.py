"""The store on one SQLite file (WAL), for one machine and any number of processes.

One thread writes: commits that wait at the same moment share one transaction and one fsync
(`synchronous=FULL`), and each caller is answered after it. Readers have connections of their own.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from lorimer.core.approvals import ApprovalRecord, ApprovalState
from lorimer.core.clock import Clock, SystemClock, from_rfc3339
from lorimer.core.errors import (
    SessionNotFound,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from lorimer.core.messages import Entry
from lorimer.store import approvals as stored_approvals
from lorimer.store import rows
from lorimer.store.anchor import Anchor
from lorimer.store.blobs import Blobs
from lorimer.store.faults import BUSY_S, damaged, translate
from lorimer.store.locks import FileLock, lock_file
from lorimer.store.protocol import (
    AuditLine,
    CallRecord,
    Change,
    SessionRecord,
    SessionSummary,
)
from lorimer.store.schema import APPLICATION_ID, MIGRATIONS
from lorimer.store.writer import Settle, Writer


class SqliteStore:
    """A store in `path` (blobs, locks and the audit head lie beside it); `:memory:` for one that
    does not last.

    Raises:
        StoreTooNew, StoreReadOnly, StoreCorrupt, StoreError: when it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.path = str(path)
        self.memory = self.path == ":memory:"
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        self._anchor = Anchor(None if self.memory else self.path)
        if self.memory:
            self.folder: Path | None = None
            self._uri = f"file:lorimer-{id(self)}-{os.getpid()}?mode=memory&cache=shared"
        else:
            folder = Path(self.path).absolute().parent
            self.folder = folder
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as fault:
                raise StoreReadOnly(
                    f"The folder {folder} cannot be made: {fault.strerror}.",
                    next="Choose another with LORIMER_HOME or --store.",
                ) from fault
            self._uri = Path(self.path).absolute().as_uri()
            with suppress(OSError):  # a conversation is for its owner only; what fails, SQLite says
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self._keep = self._connect()
        try:
            self._prepare(self._keep)
        except sqlite3.Error as fault:
            self._keep.close()
            raise translate(fault, self.path) from fault
        except (IndexError, UnicodeDecodeError) as fault:  # rows without columns, names of no text
            self._keep.close()
            raise damaged(fault, self.path) from fault
        except OSError as fault:
            self._keep.close()
            kind = StoreFull if fault.errno in (errno.ENOSPC, errno.EDQUOT) else StoreReadOnly
            raise kind(
                f"The folder of the store {self.path} cannot be written: {fault.strerror}.",
                next="Make room and check its permissions, or set LORIMER_HOME.",
            ) from fault
        except BaseException:
            self._keep.close()
            raise
        self.blobs = Blobs(self)
        self._writer = Writer(self._connect(), self.path, self.clock, self._anchor)

    # --- opening ---

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"The store {self.path} is closed.")
        try:
            connection = sqlite3.connect(
                self._uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA synchronous=FULL")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as fault:
            raise translate(fault, self.path) from fault
        except UnicodeDecodeError as fault:  # in the message of a fault, of all things
            raise damaged(fault, self.path) from fault
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        # the tables first: another process that makes them commits the owner with them
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        if tables and owner != APPLICATION_ID:
            raise StoreCorrupt(
                f"{self.path} is an SQLite file, but not a lorimer store.",
                next="Choose another path for the store.",
            )
        if version > len(MIGRATIONS):
            raise StoreTooNew(
                f"The store {self.path} has version {version}; this lorimer reads up to "
                f"{len(MIGRATIONS)}.",
                next="Use the newer lorimer that wrote it, or another store.",
            )
        if not self.memory:
            self._to_wal(connection)
        if version < len(MIGRATIONS):
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self._anchor.make()
            for number in range(version, len(MIGRATIONS)):
                for statement in MIGRATIONS[number].split(";\n"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number + 1}")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute("COMMIT")

    @staticmethod
    def _to_wal(connection: sqlite3.Connection) -> None:
        """SQLite does not wait for other processes while it changes the mode; so we do."""
        until = time.monotonic() + BUSY_S
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as fault:
                busy = fault.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            if self.memory:  # a shared cache locks tables, and does not wait for them
                connection.execute("PRAGMA read_uncommitted=ON")
            self._local.connection = connection
            self._readers.append(connection)
        return connection

    def _select(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._reader().execute(sql, values).fetchall()
        except sqlite3.Error as fault:
            raise translate(fault, self.path) from fault
        except UnicodeDecodeError as fault:
            raise damaged(fault, self.path) from fault

    # --- writing ---

    async def commit(self, *changes: Change) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle(fault: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, done, fault)

        self._submit(changes, settle)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            # The writer has it already: wait for the disk, then let the cancellation go on. A
            # commit that failed is told as that, or the caller would take it for one on disk.
            while not done.done():
                try:
                    await asyncio.wait((done,))
                except asyncio.CancelledError:
                    continue
            done.result()
            raise

    def commit_now(self, *changes: Change) -> None:
        """`commit` for code without an event loop."""
        ready = threading.Event()
        box: list[BaseException | None] = []

        def settle(fault: BaseException | None) -> None:
            box.append(fault)
            ready.set()

        self._submit(changes, settle)
        ready.wait()
        if box[0] is not None:
            raise box[0]

    def _submit(self, changes: tuple[Change, ...], settle: Settle) -> None:
        if self._closed:
            raise StoreError(f"The store {self.path} is closed.")
        self._writer.submit(changes, settle)

    def read_head(self) -> tuple[int, str] | None:
        """Number and hash of the last audit line, from the file beside the database."""
        return self._anchor.read()

    # --- reading ---

    def session(self, session: str) -> SessionRecord:
        found = self._select(
            "SELECT id, created_at, principal, model, wire, system, tools, prefix, meta "
            "FROM sessions WHERE id = ?",
            (session,),
        )
        if not found:
            raise SessionNotFound(
                f"No session {session!r} in {self.path}.",
                next="`lorimer sessions list` shows those that exist.",
            )
        return rows.session_from(found[0])

    def sessions(self, *, limit: int = 50) -> list[SessionSummary]:
        found = self._select(
            "SELECT s.id, s.created_at, s.principal, s.model, "
            "(SELECT count(*) FROM entries e WHERE e.session = s.id), "
            "(SELECT count(*) FROM calls c WHERE c.session = s.id), "
            "(SELECT count(*) FROM calls c WHERE c.session = s.id AND c.state <> 'finished'), "
            "(SELECT record FROM entries e WHERE e.session = s.id AND kind = 'user' ORDER BY "
            "seq LIMIT 1), "
            "(SELECT at FROM audit a WHERE a.session = s.id ORDER BY n DESC LIMIT 1) "
            "FROM sessions s ORDER BY s.id DESC LIMIT ?",
            (limit,),
        )
        out = []
        for row in found:
            words = Entry.from_json(json.loads(row[7]), 0).text if row[7] else ""
            out.append(
                SessionSummary(
                    row[0],
                    from_rfc3339(row[1]),
                    from_rfc3339(row[8]),
                    row[2],
                    row[3],
                    row[4],
                    row[5],
                    row[6],
                    " ".join(words[:400].split()),
                )
            )
        return out

    def entries(self, session: str, wire: str) -> list[tuple[Entry, bytes | None]]:
        found = self._select(
            "SELECT e.seq, e.record, r.bytes FROM entries e LEFT JOIN renderings r "
            "ON r.session = e.session AND r.seq = e.seq AND r.wire = ? "
            "WHERE e.session = ? ORDER BY e.seq",
            (wire, session),
        )
        return [(Entry.from_json(json.loads(record), seq), data) for seq, record, data in found]

    def rendering(self, session: str, seq: int, wire: str) -> bytes | None:
        found = self._select(
            "SELECT bytes FROM renderings WHERE session = ? AND seq = ? AND wire = ?",
            (session, seq, wire),
        )
        return bytes(found[0][0]) if found else None

    def call(self, session: str, call_id: str) -> CallRecord | None:
        found = self._select(
            f"SELECT {rows.CALL_COLUMNS} FROM calls WHERE session = ? AND id = ?",
            (session, call_id),
        )
        return rows.call_from(found[0]) if found else None

    def calls(self, session: str) -> list[CallRecord]:
        found = self._select(
            f"SELECT {rows.CALL_COLUMNS} FROM calls WHERE session = ? ORDER BY entry_seq, position",
            (session,),
        )
        return [rows.call_from(row) for row in found]

    def approval(self, approval_id: str) -> ApprovalRecord:
        return stored_approvals.one(self._select, approval_id)

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
        wanted = {
            "session": session, "state": state, "root": root, "binding": binding, "tool": tool
        }  # fmt: skip
        return stored_approvals.some(self._select, wanted, newest, brief=brief)

    def last_spoken(self, session: str) -> datetime | None:
        found = self._select(
            "SELECT record FROM entries WHERE session = ? AND kind = 'user' "
            "ORDER BY seq DESC LIMIT 1",
            (session,),
        )
        return from_rfc3339(json.loads(found[0][0])["at"]) if found else None

    def audit(self, session: str | None = None) -> Iterator[AuditLine]:
        where = "" if session is None else " WHERE session = ?"
        values = () if session is None else (session,)
        try:
            for row in self._reader().execute(
                "SELECT n, at, session, actor, action, target, why, digest, previous, hash "
                f"FROM audit{where} ORDER BY n",
                values,
            ):
                yield AuditLine(*row)
        except sqlite3.Error as fault:
            raise translate(fault, self.path) from fault

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside, in this thread, is of one moment, whatever others write."""
        connection = self._reader()
        if self.memory:  # one process only, and a long read would hold up its writer
            yield
            return
        connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def raw(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a fixed query, for the audit of the whole store."""
        yield from self._reader().execute(sql)

    # --- blobs, locks, end ---

    def put_blob(self, data: bytes, media_type: str, *, as_file: bool = False) -> str:
        return self.blobs.put(data, media_type, as_file=as_file)

    def get_blob(self, reference: str) -> bytes:
        return self.blobs.get(reference)

    def blob_path(self, reference: str) -> str | None:
        return self.blobs.path(reference)

    def results_folder(self, session: str) -> Path | None:
        return self.blobs.results(session)

    def kept_path(self, session: str, reference: str) -> str | None:
        return self.blobs.keep_for(session, reference)

    def kept_by(self, session: str, reference: str) -> bool:
        return self.blobs.kept_by(session, reference)

    async def lock_session(self, session: str, *, wait_s: float | None = 0.0) -> FileLock:
        return await lock_file(self.folder, "session", session, wait_s=wait_s)

    async def lock_resource(self, key: str, *, wait_s: float | None = None) -> FileLock:
        """One holder of `key` at a time, over all processes on this store."""
        return await lock_file(self.folder, "resource", key, wait_s=wait_s)

    def close(self) -> None:
        """Write what waits, then close. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        for connection in [*self._readers, self._keep]:
            connection.close()


def _settle(done: asyncio.Future[None], fault: BaseException | None) -> None:
    if done.done():
        return
    if fault is None:
        done.set_result(None)
    else:
        done.set_exception(fault)
