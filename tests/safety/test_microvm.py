# ruff: noqa: ASYNC240 - tests look at the disk
"""Providers of machines: finding them, and whether they keep to the interface.

The provider of these tests is a real one on a small scale: its machines are sandboxes of the level
`os` with folders of their own.
"""

import importlib.metadata
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import choose, conformance, microvm, os_level
from lorimer.safety.sandbox.microvm import CommandResult, FileInfo, MachineSpec
from lorimer.safety.sandbox.spec import Limits, OnOutput, SandboxSpec

pytestmark = pytest.mark.anyio
OS = choose.available()[0]
needs_os = pytest.mark.skipif(not OS.usable, reason=OS.reason)


class Machine:
    def __init__(self, id: str, folder: Path, spec: MachineSpec) -> None:
        self.id, self._folder, self._spec = id, folder, spec
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        (folder / "var").mkdir(exist_ok=True)

    def _alive(self) -> None:
        if not self._folder.exists():
            raise SandboxUnavailable(f"There is no machine {self.id} any more.")

    async def run(
        self, argv: Sequence[str], *, cwd: str | None = None,
        environment: Mapping[str, str] | None = None, stdin: bytes | None = None,
        timeout_s: float = 60.0, on_output: OnOutput | None = None,
    ) -> CommandResult:  # fmt: skip
        self._alive()
        spec = SandboxSpec(
            environment={**self._spec.environment, **(environment or {})},
            folders={"/tmp": self._folder / "tmp", "/var/tmp": self._folder / "var"},
            limits=Limits(wall_s=timeout_s),
        )
        inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd or "/tmp", *argv]
        done = await os_level.run(inside, spec=spec, stdin=stdin, on_output=on_output)
        out = [stream.head + stream.tail for stream in (done.stdout, done.stderr)]
        return CommandResult(done.exit_code, out[0], out[1], done.killed)

    def _path(self, path: str) -> Path:
        self._alive()
        for inside, folder in (("/var/tmp/", "var"), ("/tmp/", "tmp")):
            if path.startswith(inside):
                return self._folder / folder / path.removeprefix(inside)
        raise FileNotFoundError(path)

    async def read_file(self, path: str) -> bytes:
        return self._path(path).read_bytes()

    async def write_file(self, path: str, content: bytes) -> None:
        self._path(path).parent.mkdir(parents=True, exist_ok=True)
        self._path(path).write_bytes(content)

    async def list_files(self, folder: str) -> list[FileInfo]:
        return [FileInfo(f"{folder}/{p.name}", p.is_dir()) for p in self._path(folder).iterdir()]

    async def extend(self, lifetime_s: float) -> None:
        self._alive()

    async def kill(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class Provider:
    machine: type[Machine] = Machine

    def __init__(self, base: Path) -> None:
        self.base = Path(base)

    async def create(self, spec: MachineSpec) -> Machine:
        name = os.urandom(6).hex()
        return self.machine(name, self.base / name, spec)

    async def connect(self, machine_id: str) -> Machine:
        if not (self.base / machine_id).exists():
            raise SandboxUnavailable(f"There is no machine {machine_id}.")
        return self.machine(machine_id, self.base / machine_id, MachineSpec())

    async def close(self) -> None:
        return None


@needs_os
async def test_a_good_provider_has_no_faults(tmp_path: Path) -> None:
    assert await conformance.check(Provider(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


class SwallowsErrors(Machine):
    async def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        done = await super().run(argv, **options)
        return CommandResult(0 if done.exit_code else done.exit_code, done.stdout, b"", done.killed)


class JoinsArguments(Machine):
    async def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        return await super().run(["/bin/sh", "-c", " ".join(argv)], **options)


class Immortal(Machine):
    async def kill(self) -> None:
        return None


class Shared(Machine):
    def _path(self, path: str) -> Path:
        self._alive()
        return self._folder.parent.parent / "shared" / path.lstrip("/")


class Forgets(Machine):
    async def read_file(self, path: str) -> bytes:
        return b""


@needs_os
@pytest.mark.parametrize(
    ("machine", "fault"),
    [
        (SwallowsErrors, "streams and exit code"),
        (JoinsArguments, "arguments are not parsed by a shell"),
        (Immortal, "a killed machine still runs commands"),
        (Shared, "one sees the other's files"),
        (Forgets, "a missing file is told"),
    ],
)
async def test_each_fault_of_a_provider_is_found(
    tmp_path: Path, machine: type[Machine], fault: str
) -> None:
    provider = Provider(tmp_path / "machines")
    provider.machine = machine
    found = await conformance.check(provider)
    assert any(fault in one for one in found), found


def register(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    made = [importlib.metadata.EntryPoint(n, v, microvm.GROUP) for n, v in points]

    def entry_points(**wanted: str) -> list[importlib.metadata.EntryPoint]:
        return [p for p in made if all(getattr(p, k) == v for k, v in wanted.items())]

    monkeypatch.setattr(microvm, "entry_points", entry_points)


def test_a_provider_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, ("small", f"{__name__}:Provider"))
    assert microvm.providers() == ("small",)
    assert isinstance(microvm.provider("small", base=tmp_path), Provider)


@pytest.mark.parametrize(
    ("points", "name", "why"),
    [
        ([], "acme", "no provider of machines called 'acme' .registered: none"),
        ([("x", "a:B")], "acme", "registered: x"),
        ([("x", "no_such_module:B")], "x", "could not be loaded"),
        ([("x", "json:JSONDecoder")], "x", "lacks methods"),
        ([("x", "a:B"), ("x", "c:D")], "x", "more than once"),
    ],
)
def test_a_provider_that_cannot_be_had_is_told(
    monkeypatch: pytest.MonkeyPatch, points: list[tuple[str, str]], name: str, why: str
) -> None:
    register(monkeypatch, *points)
    with pytest.raises(SandboxUnavailable, match=why):
        microvm.provider(name)
