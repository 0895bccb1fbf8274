"""A sandboxed program that outlasts the call that started it, and what it is given."""

import os
from pathlib import Path

import anyio
import pytest

from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.session import LiveSandbox
from lorimer.safety.sandbox.spec import Limits, SandboxSpec

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
LONG = Limits(wall_s=600)


async def test_it_runs_on_until_it_is_ended() -> None:
    came = anyio.Event()
    said: list[bytes] = []

    def output(_: str, piece: bytes) -> None:
        said.append(piece)
        came.set()

    live = await LiveSandbox.start(
        ["sh", "-c", "echo up; sleep 600"], spec=SandboxSpec(limits=LONG), on_output=output
    )
    await came.wait()
    assert live.running and said == [b"up\n"]
    assert not await live.wait(0.01)
    ended: list[bool] = []
    live.when_ended(lambda: ended.append(True))
    await live.end()
    assert not live.running and live.result is None
    await live.end()
    await anyio.lowlevel.checkpoint()
    assert ended == [True]


async def test_its_own_end_is_told() -> None:
    live = await LiveSandbox.start(["sh", "-c", "exit 3"], spec=SandboxSpec(limits=LONG))
    assert await live.wait(30)
    assert live.result is not None and live.result.exit_code == 3
    called: list[bool] = []
    live.when_ended(lambda: called.append(True))
    assert called == [True]


async def test_a_start_that_fails_is_kept_as_its_fault(tmp_path: Path) -> None:
    live = await LiveSandbox.start(["true"], spec=SandboxSpec(workspace=tmp_path / "no"))
    assert await live.wait(30)
    assert live.result is None and "is not a folder" in str(live.fault)


async def test_a_cancelled_wait_leaves_it_running_and_a_cancelled_end_ends_it() -> None:
    live = await LiveSandbox.start(["sleep", "600"], spec=SandboxSpec(limits=LONG))
    with anyio.move_on_after(0.05):
        await live.wait()
    assert live.running
    with anyio.CancelScope() as scope:
        scope.cancel()
        await live.end()
    assert not live.running


async def test_further_folders_are_shown_where_they_are_wanted(tmp_path: Path) -> None:
    own = tmp_path / "own tmp – ü"
    own.mkdir()
    spec = SandboxSpec(folders={"/tmp": own, "/kept/x": own})
    command = "echo one > /tmp/a; cat /kept/x/a; ls /tmp; echo no > /kept/y"
    result = await choose.run(["sh", "-c", command], spec=spec)
    assert result.stdout.text() == "one\na\n"
    assert "Read-only" in result.stderr.text() or "cannot create" in result.stderr.text()
    assert (own / "a").read_text() == "one\n"


async def test_an_own_tmp_on_a_full_disk_s_file_system_is_not_a_file_system_of_ours(
    tmp_path: Path,
) -> None:
    """The number of files on the host's disk is not that of the sandbox."""
    spec = SandboxSpec(folders={"/tmp": tmp_path}, limits=Limits(inodes=50))
    result = await choose.run(["sh", "-c", "sleep 0.5; echo lives"], spec=spec)
    assert result.stdout.text() == "lives\n" and not result.killed


@pytest.mark.parametrize("level", ["os", "none"])
async def test_descriptors_are_handed_on_under_their_numbers(level: choose.Level) -> None:
    fd = os.memfd_create("handed")
    try:
        os.write(fd, b"in")
        spec = SandboxSpec(pass_fds=(fd,))
        command = f"cat /dev/fd/{fd}; echo out >> /proc/self/fd/{fd}"
        result = await choose.run(["sh", "-c", command], spec=spec, level=level)
        assert result.stdout.text() == "in"
        assert os.pread(fd, 100, 0) == b"inout\n"
    finally:
        os.close(fd)
