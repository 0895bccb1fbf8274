"""The writer: one thread that applies changes. Commits that wait at the same moment share one
transaction and one fsync; each caller is answered after it."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lorimer.core.clock import Clock
from lorimer.core.errors import StoreError
from lorimer.store.anchor import Anchor
from lorimer.store.faults import translate
from lorimer.store.protocol import Change
from lorimer.store.transaction import Transaction

_MOST = 64
Settle = Callable[[BaseException | None], None]
"""Called by the writer's thread when a commit is on disk (`None`) or has failed."""


class Writer:
    """Owns `connection` until it is closed."""

    def __init__(
        self, connection: sqlite3.Connection, path: str, clock: Clock, anchor: Anchor
    ) -> None:
        self._path = path
        self._clock = clock
        self._anchor = anchor
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._dead: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(connection,), name="lorimer-store", daemon=True
        )
        self._thread.start()

    def submit(self, changes: tuple[Change, ...], settle: Settle) -> None:
        """Hand over changes that are made together; `settle` is always called, once."""
        self._queue.put((changes, settle))
        if self._dead is not None:  # nobody takes from the queue any more
            self._refuse_rest()

    def close(self) -> None:
        """Write what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self, connection: sqlite3.Connection) -> None:
        try:
            self._until_closed(connection)
        except BaseException as fault:
            self._dead = fault
            self._refuse_rest()
            raise

    def _refuse_rest(self) -> None:
        """Tell everyone who waits that the writer has ended."""
        error = StoreError(
            f"The store {self._path} cannot write any more: {self._dead!r}.",
            next="Open it again; what was not committed is not on disk.",
        )
        with suppress(queue.Empty):
            while True:
                waiting = self._queue.get_nowait()
                if waiting is not None:
                    _tell(waiting[1], error)

    def _until_closed(self, connection: sqlite3.Connection) -> None:
        transaction = Transaction(connection, self._clock)
        while True:
            first = self._queue.get()
            if first is None:
                break
            group = [first]
            stop = False
            while len(group) < _MOST:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    stop = True
                    break
                group.append(more)
            self._group(connection, transaction, group)
            if stop:
                break
        connection.close()

    def _group(
        self, connection: sqlite3.Connection, transaction: Transaction, group: list[Any]
    ) -> None:
        try:
            self._attempt(connection, transaction, [changes for changes, _ in group])
        except Exception as fault:  # noqa: BLE001 - handed to the callers below
            if len(group) > 1:
                for one in group:
                    self._group(connection, transaction, [one])
                return
            error: BaseException = (
                translate(fault, self._path) if isinstance(fault, sqlite3.Error) else fault
            )
            _tell(group[0][1], error)
            return
        except BaseException as fault:
            for _, settle in group:
                _tell(settle, StoreError(f"The store {self._path} failed: {fault!r}."))
            raise
        self._anchor.move(transaction)
        for _, settle in group:
            _tell(settle, None)

    @staticmethod
    def _attempt(
        connection: sqlite3.Connection, transaction: Transaction, batches: list[Any]
    ) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            transaction.begin()
            for changes in batches:
                for change in changes:
                    transaction.apply(change)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _tell(settle: Settle, fault: BaseException | None) -> None:
    with suppress(RuntimeError):  # its event loop has closed: nobody waits there any more
        settle(fault)
