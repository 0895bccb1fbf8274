"""The container's command line, and everything around it with a stand-in for `podman`.

Not run with a real engine here.
"""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import choose, container
from lorimer.safety.sandbox.spec import Limits, SandboxSpec

pytestmark = pytest.mark.anyio
IMAGE = "example.org/tools@sha256:1234"


def line(spec: SandboxSpec, program: str = "podman", **options: object) -> list[str]:
    return container.command(
        ["/bin/true"], spec=spec, image=IMAGE, program=program, name="n", id_file="/i", **options
    )  # type: ignore[arg-type]


def after(command: list[str], option: str) -> list[str]:
    return [command[n + 1] for n, one in enumerate(command[:-1]) if one == option]


@pytest.mark.parametrize("program", ["podman", "docker", "/usr/bin/podman"])
def test_the_container_can_do_little(tmp_path: Path, program: str) -> None:
    limits = Limits(processes=33, tree_memory_bytes=1 << 28, cpu_s=7, file_bytes=99, open_files=55)
    command = line(SandboxSpec(tmp_path, limits=limits), program)
    assert command[:2] == [program, "run"]
    assert after(command, "--network") == ["none"]
    assert after(command, "--cap-drop") == ["ALL"]
    assert after(command, "--security-opt") == ["no-new-privileges"]
    assert after(command, "--pull") == ["never"]
    assert after(command, "--pids-limit") == ["33"]
    assert after(command, "--memory") == after(command, "--memory-swap") == [str(1 << 28)]
    assert set(after(command, "--ulimit")) == {"cpu=7:7", "fsize=99:99", "nofile=55:55",
                                               "core=0:0"}  # fmt: skip
    assert {"--read-only", "--rm", "--init"} <= set(command)
    assert not {"--privileged", "--cap-add", "--device", "--volume", "-v"} & set(command)
    assert command[-2:] == [IMAGE, "/bin/true"]
    assert all("nosuid,nodev" in one and "size=" in one for one in after(command, "--tmpfs"))


def test_the_workspace_is_mounted_as_the_spec_says(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    reading = after(line(SandboxSpec(tmp_path, read_only=(shown,))), "--mount")
    assert reading == [
        f"type=bind,source={shown},target={shown},readonly",
        f"type=bind,source={tmp_path},target={tmp_path},readonly",
    ]
    writing = after(line(SandboxSpec(tmp_path, writable=True)), "--mount")
    assert writing == [f"type=bind,source={tmp_path},target={tmp_path}"]
    assert after(line(SandboxSpec(tmp_path)), "--workdir") == [str(tmp_path)]


def test_a_folder_of_its_own_stands_in_for_a_temporary_one(tmp_path: Path) -> None:
    command = line(SandboxSpec(folders={"/tmp": tmp_path}))
    assert after(command, "--mount") == [f"type=bind,source={tmp_path},target=/tmp"]
    assert not any(one.startswith("/tmp:") for one in after(command, "--tmpfs"))


def test_values_of_the_environment_are_not_on_the_command_line(tmp_path: Path) -> None:
    command = line(SandboxSpec(tmp_path, environment={"TOKEN": "topsecret"}))
    assert "TOKEN" in after(command, "--env")
    assert not any("topsecret" in one for one in command)
    for name in ("PATH", "HOME", "DOCKER_HOST", "", "A=B"):
        with pytest.raises(SandboxUnavailable, match="environment name"):
            line(SandboxSpec(tmp_path, environment={name: "x"}))


@pytest.mark.parametrize("name", ["a,readonly=false", 'a"b', "a\nb"])
def test_paths_that_would_be_read_as_options_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SandboxUnavailable, match="cannot mount"):
        line(SandboxSpec(tmp_path, read_only=(tmp_path / name,)))


def test_a_normal_user_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    monkeypatch.setattr(os, "getegid", lambda: 99)
    command = line(SandboxSpec(tmp_path))
    assert after(command, "--user") == ["1234:99"]
    assert after(command, "--userns") == ["keep-id:uid=1234,gid=99"]
    assert after(line(SandboxSpec(tmp_path), "docker"), "--userns") == []


def test_root_runs_as_nobody_or_as_the_owner_of_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert after(line(SandboxSpec(tmp_path)), "--user") == ["65534:65534"]
    owner = tmp_path.stat()
    command = line(SandboxSpec(tmp_path, writable=True))
    assert after(command, "--user") == [f"{owner.st_uid}:{owner.st_gid}"]


FAKE = f"""#!{sys.executable} -IS
import json, os, subprocess, sys
record = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record")
with open(record, "a") as file:
    file.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\\n")
if sys.argv[1] == "run" and "no image" in sys.argv[-1]:
    print("Error: no image", file=sys.stderr); sys.exit(125)
if sys.argv[1] == "run":
    open(sys.argv[sys.argv.index("--cidfile") + 1], "w").close()
    at = sys.argv.index({IMAGE!r})
    os.chdir(sys.argv[sys.argv.index("--workdir") + 1])
    name = sys.argv[sys.argv.index("--name") + 1]
    inner = subprocess.Popen(sys.argv[at + 1:], start_new_session=True)
    with open(record + "-" + name, "w") as file: file.write(str(inner.pid))
    sys.exit(inner.wait() % 256)
if sys.argv[1] == "rm":
    with open(record + "-" + sys.argv[3]) as file: os.killpg(int(file.read()), 9)
if sys.argv[1] == "info" and os.path.exists(record + "-broken"):
    print("cannot reach the service", file=sys.stderr); sys.exit(1)
"""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `podman` that runs the program on this machine, and a record of how it was called."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "podman").write_text(FAKE)
    (programs / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SOME_API_KEY", "topsecret")
    return programs / "record"


def calls(record: Path) -> list[tuple[list[str], dict[str, str]]]:
    return [tuple(json.loads(one)) for one in record.read_text().splitlines()]  # type: ignore[misc]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("")
    return folder


async def test_a_run_with_a_stand_in(record: Path, workspace: Path) -> None:
    spec = SandboxSpec(workspace, writable=True, environment={"GIVEN": "yes"})
    result = await choose.run(
        ["/bin/sh", "-c", "echo out; echo err >&2; cat; echo x > made; exit 3"],
        spec=spec, level="container", image=IMAGE, stdin=b"in",
    )  # fmt: skip
    assert (result.exit_code, result.level) == (3, "container")
    assert (result.stdout.text(), result.stderr.text()) == ("out\nin", "err\n")
    assert (workspace / "made").read_text() == "x\n"
    [(arguments, environment)] = calls(record)
    assert environment["GIVEN"] == "yes" and "SOME_API_KEY" not in environment
    assert "--interactive" in arguments
    mounts = after(arguments, "--mount")
    git = f"{workspace}/.git"
    assert mounts.index(f"type=bind,source={git},target={git}") < mounts.index(
        f"type=bind,source={git}/hooks,target={git}/hooks,readonly"
    )
    assert f"type=bind,source={git}/config,target={git}/config,readonly" in mounts


async def test_a_time_out_removes_the_container(record: Path, workspace: Path) -> None:
    spec = SandboxSpec(workspace, limits=Limits(wall_s=1.0))
    result = await container.run(
        ["/bin/sh", "-c", "echo began; trap '' TERM; sleep 60; sleep 60"], spec=spec, image=IMAGE
    )
    assert result.timed_out and result.stdout.text() == "began\n"
    (run, _), (end, _) = calls(record)
    assert end == ["rm", "--force", after(run, "--name")[0]]


async def test_cancelling_removes_the_container(record: Path, workspace: Path) -> None:
    began = anyio.Event()

    async def work() -> None:
        await container.run(
            ["/bin/sh", "-c", "echo began; sleep 60"],
            spec=SandboxSpec(workspace), image=IMAGE, on_output=lambda *_: began.set(),
        )  # fmt: skip

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await began.wait()
        group.cancel_scope.cancel()
    assert [arguments[0] for arguments, _ in calls(record)] == ["run", "rm"]


async def test_a_protected_name_that_appears_ends_it(record: Path, workspace: Path) -> None:
    result = await container.run(
        ["/bin/sh", "-c", "echo x > .mcp.json; sleep 60"],
        spec=SandboxSpec(workspace, writable=True), image=IMAGE,
    )  # fmt: skip
    assert result.killed == "protected" and ".mcp.json" in result.quarantined[0]
    assert not (workspace / ".mcp.json").exists()


async def test_what_cannot_be_had_is_refused(
    record: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = SandboxSpec(workspace)
    with pytest.raises(SandboxUnavailable, match="No container image"):
        await container.run(["/bin/true"], spec=spec, image=None)
    with pytest.raises(SandboxUnavailable, match="unix sockets"):
        await container.run(["/x"], spec=SandboxSpec(workspace, unix_sockets=True), image=IMAGE)
    with pytest.raises(SandboxUnavailable, match="could not start a container: Error: no image"):
        await container.run(["no image"], spec=spec, image=IMAGE)
    claims = ["/bin/sh", "-c", "echo Error: nothing was run >&2; exit 125"]
    assert (await container.run(claims, spec=spec, image=IMAGE)).exit_code == 125
    assert not record.with_name("record-broken").exists()
    assert container.usable()
    record.with_name("record-broken").touch()
    with pytest.raises(SandboxUnavailable, match="cannot reach the service"):
        container.usable()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="Neither"):
        container.usable()
