"""Pull a model: fetch, check, put in place. Also verify, remove and list.

A file under a model's final name is always whole and has been hashed. Pulling may be stopped at any
time and goes on where it was; two pulls of one model take turns.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lorimer.models.local.catalogue import (
    MODELS,
    CatalogueModel,
    find,
    is_present,
    model_path,
    models_folder,
)
from lorimer.models.local.errors import (
    BadArchive,
    CorruptModelFile,
    ModelNotPulled,
    NotEnoughDisk,
    PullFailed,
    SourceUnreachable,
    WrongHash,
)
from lorimer.models.local.growing import GrowingFile, sha256_of
from lorimer.models.local.sources import FETCHERS, Report

MARGIN_BYTES = 64 << 20
"""Left free on the disk beside the model: a full disk breaks other things."""


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _silent(what: str, done: int) -> None:
    return


def pull(
    model: CatalogueModel | str,
    *,
    folder: Path | None = None,
    report: Report = _silent,
    free_bytes: Callable[[Path], int] = _free_bytes,
) -> Path:
    """Fetch `model` unless it is there already, and return the path of its file.

    Stopping it (Ctrl-C, kill) leaves nothing under the final name and loses no finished part.

    Args:
        folder: where model files lie; `<home>/models` by default.
        report: called with words and the bytes that are there so far.
        free_bytes: free space of the disk of a folder, in bytes.

    Raises:
        NotEnoughDisk: before anything is fetched, or when the disk fills up.
        WrongHash: no source gave the right bytes; expected and got are in the message.
        PullFailed: no source could be reached; each one's reason is in the message.
    """
    model = find(model)
    folder = folder or models_folder()
    final = model_path(model, folder)
    work = folder / ".partial" / model.name
    work.mkdir(parents=True, exist_ok=True)
    with _turn(work, lambda: report("waiting: another pull of this model is running", 0)):
        if is_present(model, folder):
            return final
        _fetch(model, work, final, report, free_bytes)
        for name, _ in FETCHERS:
            shutil.rmtree(work / name, ignore_errors=True)
    return final


def _fetch(
    model: CatalogueModel,
    work: Path,
    final: Path,
    report: Report,
    free_bytes: Callable[[Path], int],
) -> None:
    reasons: list[PullFailed] = []
    for name, fetch in FETCHERS:
        with GrowingFile(work / name, f"{name}:{model.sha256}") as growing:
            try:
                if growing.length < model.size_bytes:
                    _check_disk(model, work, growing.length, free_bytes(work))
                    fetch(model, growing, report)
                _check_hash(model, growing)
                growing.move_to(final)
                return
            except (SourceUnreachable, WrongHash, BadArchive) as fault:
                report(f"{fault.message}", growing.length)
                reasons.append(fault)
    worst = next((fault for fault in reasons if isinstance(fault, WrongHash)), reasons[-1])
    raise type(worst)(
        f"{model.name} could not be pulled. " + " ".join(fault.message for fault in reasons),
        next=worst.next or "Pull again later; what was fetched is kept.",
    )


def _check_hash(model: CatalogueModel, growing: GrowingFile) -> None:
    got = growing.hash.hexdigest()
    if got != model.sha256:
        growing.discard()
        raise WrongHash(
            f"The file for {model.name} has the wrong SHA-256 and was removed: "
            f"expected {model.sha256}, got {got}.",
            next="Pull again; if it stays so, the source offers another file: do not use it.",
        )


def _check_disk(model: CatalogueModel, work: Path, have: int, free: int) -> None:
    need = model.size_bytes - have + model.archives.part_bytes + MARGIN_BYTES
    if free < need:
        raise NotEnoughDisk(
            f"{model.name} needs {_mb(need)} more on the disk of {work.parent.parent}, "
            f"{_mb(free)} are free.",
            next="Free some space, or set LORIMER_HOME to a folder on another disk.",
        )


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


@contextmanager
def _turn(work: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the model's lock; the system frees it when the process ends, however it ends."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a re-hash found; `got` is empty when the file is absent."""

    name: str
    path: Path
    expected: str
    got: str

    @property
    def ok(self) -> bool:
        return self.got == self.expected


def verify(
    model: CatalogueModel,
    *,
    folder: Path | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> Verdict:
    """Hash the file of `model` again. The file is left as it is, whatever comes out."""
    path = model_path(model, folder)
    got = sha256_of(path, on_bytes) if path.is_file() else ""
    return Verdict(model.name, path, model.sha256, got)


def ensure_checked(model: CatalogueModel, *, folder: Path | None = None) -> None:
    """Hash the file of `model` unless that was done since it last changed; takes seconds.

    Raises:
        CorruptModelFile: when its content is not that of the model.
    """
    path = model_path(model, folder)
    facts = path.stat()
    stamp = path.with_name(path.name + ".checked")
    now = f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ino} {model.sha256}\n"
    with suppress(OSError, UnicodeDecodeError):
        if stamp.read_text("ascii") == now:
            return
    got = sha256_of(path)
    if got != model.sha256:
        raise CorruptModelFile(
            f"The file of {model.name} is not what it should be: its SHA-256 is {got}, expected "
            f"{model.sha256}.",
            next=f"Run: lorimer models remove {model.name}, then lorimer models pull {model.name}",
        )
    with suppress(OSError):
        stamp.write_text(now, "ascii")


def remove(model: CatalogueModel, *, folder: Path | None = None) -> int:
    """Remove the file of `model` and what a stopped pull left; returns the bytes freed.

    Raises:
        ModelNotPulled: there is nothing to remove.
    """
    folder = folder or models_folder()
    path, work = model_path(model, folder), folder / ".partial" / model.name
    freed = sum(item.stat().st_size for item in (path, *work.glob("*/*")) if item.is_file())
    if freed == 0:
        raise ModelNotPulled(f"{model.name} is not on this machine; nothing was removed.")
    path.unlink(missing_ok=True)
    path.with_name(path.name + ".checked").unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)
    return freed


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `lorimer models list`. `source` is where it would come from, or came from."""

    name: str
    title: str
    size_bytes: int
    present: bool
    path: Path
    source: str


def listing(*, folder: Path | None = None) -> list[Row]:
    """All known models, then every other GGUF file in the models folder."""
    folder = folder or models_folder()
    rows = [
        Row(m.name, m.title, m.size_bytes, is_present(m, folder), model_path(m, folder),
            f"hub {m.hub.split('/resolve')[0]}, else PyPI {m.archives.package.format(part=1)}"
            + (f" … {m.archives.parts}" if m.archives.parts > 1 else ""))
        for m in MODELS.values()
    ]  # fmt: skip
    known = {row.path.name for row in rows}
    others = sorted(folder.glob("*.gguf")) if folder.is_dir() else []
    rows += [
        Row(str(path), "a file of your own", path.stat().st_size, True, path, "yours")
        for path in others
        if path.name not in known
    ]
    return rows
