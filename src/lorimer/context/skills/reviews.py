"""Which skills a person has reviewed, by the content of the whole folder.

The record is `skills.json` in lorimer's home folder. A skill counts as reviewed when every file of
it is as it was when somebody looked at it; where it lies makes no difference.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorimer.context.skills.files import whole_digest
from lorimer.core.clock import Clock, to_rfc3339
from lorimer.core.errors import LorimerError

FILE = "skills.json"
_KEPT = 20
"""Reviews that are kept of one name, the newest."""


class ReviewFault(LorimerError):
    """The record of reviews cannot be used, or a skill cannot be pinned."""


@dataclass(frozen=True, slots=True)
class Review:
    """What somebody looked at: file → digest; when (RFC 3339), who, and where it lay."""

    files: Mapping[str, str]
    at: str
    by: str
    folder: str

    @property
    def digest(self) -> str:
        return whole_digest(self.files)


class Reviews:
    """The record.

    Args:
        home: lorimer's home folder; made when something is written.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / FILE
        self._read_at: object = None
        self._record: dict[str, list[Review]] = {}

    def of(self, name: str) -> list[Review]:
        """The reviews of skills of this name, the oldest first.

        Raises:
            ReviewFault: when the record cannot be read.
        """
        try:
            found = os.stat(self.path)
            stamp: object = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            stamp = None
        if stamp is None or stamp != self._read_at:
            self._record, self._read_at = self._read(), stamp
        return self._record.get(name, [])

    def pin(
        self, name: str, files: Mapping[str, str], *, folder: Path, by: str, clock: Clock
    ) -> Review:
        """Record that these contents were reviewed.

        Raises:
            ReviewFault: when it cannot be written; nothing was changed then.
        """
        review = Review(dict(files), to_rfc3339(clock.now()), by, _text(str(folder)))
        with self._changing() as record:
            others = [one for one in record.get(name, []) if one.digest != review.digest]
            record[name] = [*others, review][-_KEPT:]
        self._read_at = None
        return review

    def forget(self, name: str) -> bool:
        """Forget all reviews of this name; whether there were some."""
        with self._changing() as record:
            gone = record.pop(name, None)
        self._read_at = None
        return bool(gone)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, list[Review]]]:
        """The record, changed by one process at a time; written as a whole or not at all."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise self._unusable("written", fault) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = self._read()
            yield record
            try:
                _replace(self.path, _to_json(record))
            except OSError as fault:
                raise self._unusable("written", fault) from None
        finally:
            os.close(lock)

    def _read(self) -> dict[str, list[Review]]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as fault:
            raise self._unusable("read", fault) from None
        try:
            return {
                name: [
                    Review({str(k): str(v) for k, v in one["files"].items()}, one["at"], one["by"],
                           one["folder"])
                    for one in reviews
                ]
                for name, reviews in json.loads(raw)["skills"].items()
            }  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
            raise ReviewFault(
                f"{self.path} is not a record of reviewed skills: {fault}.",
                next="Remove that file; the skills then have to be reviewed again.",
            ) from None

    def _unusable(self, how: str, fault: OSError) -> ReviewFault:
        return ReviewFault(
            f"{self.path} cannot be {how}: {fault.strerror or fault}.",
            next="Set LORIMER_HOME to a folder that you own.",
        )


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """File → `added`, `changed` or `removed`."""
    out = {name: "added" for name in now if name not in before}
    out |= {name: "removed" for name in before if name not in now}
    out |= {name: "changed" for name in now if name in before and before[name] != now[name]}
    return dict(sorted(out.items()))


def _to_json(record: Mapping[str, list[Review]]) -> dict[str, Any]:
    return {
        "version": 1,
        "skills": {
            name: [
                {"files": dict(one.files), "digest": one.digest, "at": one.at, "by": one.by,
                 "folder": one.folder}
                for one in reviews
            ]
            for name, reviews in record.items()
        },
    }  # fmt: skip


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _replace(path: Path, record: Mapping[str, Any]) -> None:
    """Write beside the place, flush to the disk, and put it there in one step."""
    written = json.dumps(record, ensure_ascii=True, indent=1, sort_keys=True).encode()
    descriptor, beside = tempfile.mkstemp(prefix=".skills-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise
