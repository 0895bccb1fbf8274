"""Blobs: content by its hash. Small ones lie in the database, large ones in files beside it."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lorimer.core.canonical import digest
from lorimer.core.errors import StoreError, StoreFull, StoreReadOnly
from lorimer.store.protocol import PutBlob

if TYPE_CHECKING:
    from lorimer.store.sqlite import SqliteStore

INLINE_BYTES = 64 * 1024
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")


class Blobs:
    """The blobs of one store. A blob is never changed; the same content is kept once."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def put(self, data: bytes, media_type: str, *, as_file: bool = False) -> str:
        """Keep `data`; its reference `sha256:<hex>`. With `as_file` a small blob lies in a file
        too."""
        reference = "sha256:" + digest(data)
        small = len(data) <= INLINE_BYTES and not as_file
        inline = small or self._store.folder is None
        if not inline:
            self._write_file(self._file(reference), data)
        self._store.commit_now(PutBlob(reference, len(data), media_type, data if inline else None))
        return reference

    def get(self, reference: str) -> bytes:
        found = self._store._select("SELECT data FROM blobs WHERE hash = ?", (reference,))
        if not found:
            raise StoreError(f"No blob {reference} in {self._store.path}.")
        data: bytes | None = found[0][0]
        if data is None:
            try:
                data = self._file(reference).read_bytes()
            except OSError as fault:
                raise StoreError(
                    f"Blob {reference} is gone from disk: {fault.strerror}."
                ) from fault
        if "sha256:" + digest(data) != reference:
            raise StoreError(
                f"Blob {reference} was changed on disk.", next="Run `lorimer audit verify`."
            )
        return data

    def results(self, session: str) -> Path | None:
        """The folder of what `session` itself has kept; it need not be there. No other session's
        tools may look into it."""
        if self._store.folder is None:
            return None
        name = session
        if not _SAFE.fullmatch(name):
            name = digest(name.encode())[:32]
        return self._store.folder / "results" / name

    def keep_for(self, session: str, reference: str) -> str | None:
        """The file of `reference` in the folder of `session`, put there if need be."""
        where, folder = self.path(reference), self.results(session)
        if where is None or folder is None:
            return where
        file = self._file(reference)
        target = folder / file.parent.name / file.name
        if not target.exists():
            try:
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                _link(file, target)
            except OSError as fault:
                raise StoreReadOnly(
                    f"A result cannot be kept in {target.parent}: {fault.strerror}."
                ) from fault
        return str(target)

    def kept_by(self, session: str, reference: str) -> bool:
        """Whether `session` itself has kept `reference` as a file."""
        folder = self.results(session)
        if folder is None:
            return True  # a store in memory has one process, and no files
        try:
            file = self._file(reference)
        except StoreError:
            return False
        return (folder / file.parent.name / file.name).exists()

    def path(self, reference: str) -> str | None:
        if self._store.folder is None:
            return None
        file = self._file(reference)
        return str(file) if file.exists() else None

    def _file(self, reference: str) -> Path:
        name = reference.removeprefix("sha256:")
        if (
            self._store.folder is None
            or len(name) != 64
            or not all(c in "0123456789abcdef" for c in name)
        ):
            raise StoreError(f"{reference!r} names no blob file.")
        return self._store.folder / "blobs" / name[:2] / name[2:]

    @staticmethod
    def _write_file(file: Path, data: bytes) -> None:
        if file.exists() and file.stat().st_size == len(data):
            return
        temporary = ""
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=".new-")
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, file)
            folder = os.open(file.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as fault:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            if fault.errno in (28, 122):  # ENOSPC, EDQUOT
                raise StoreFull(
                    f"No space is left for a blob of {len(data)} bytes in {file.parent}."
                ) from fault
            raise StoreReadOnly(
                f"A blob cannot be written to {file.parent}: {fault.strerror}."
            ) from fault


def _link(file: Path, target: Path) -> None:
    """`file` under another name; a copy where the file system has no links."""
    with suppress(FileExistsError):
        try:
            os.link(file, target)
        except FileExistsError:
            raise
        except OSError:
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
            with os.fdopen(descriptor, "wb") as out:
                out.write(file.read_bytes())
            os.replace(temporary, target)
