"""Totals of one run: memory, disk, files, processes. Run once more as a normal user."""

import os
import sys
import threading
from pathlib import Path

import pytest

from lorimer.safety.sandbox import choose, quotas
from lorimer.safety.sandbox.pids import PidsGroup
from lorimer.safety.sandbox.quotas import Quota
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

MIB = 1 << 20
LEVELS = [one.level for one in choose.available() if one.usable]
pytestmark = pytest.mark.anyio


async def run(level: choose.Level, workspace: Path, code: str, **limits: float) -> SandboxResult:
    spec = SandboxSpec(
        workspace,
        writable=True,
        read_only=(Path(sys.prefix), Path(sys.base_prefix)),
        limits=Limits(**{"wall_s": 20, **limits}),  # type: ignore[arg-type]
    )
    return await choose.run([sys.executable, "-I", "-S", "-c", code], spec=spec, level=level)


FILL = """
import time
for n in range(200):
    open(f"f{n}", "wb").write(bytes(1 << 20)); time.sleep(0.01)
time.sleep(30)
"""
DELETED = """
import os, time
f = open("f", "wb", buffering=0); os.unlink("f")
for n in range(200): f.write(bytes(1 << 20)); time.sleep(0.01)
time.sleep(30)
"""
INODES = """
import os, time
os.mkdir("d")
for n in range(5000):
    open(f"d/{n}", "w").close()
    if n % 100 == 0: time.sleep(0.01)
time.sleep(30)
"""
TREE = """
import os, time
for n in range(6):
    if os.fork() == 0:
        held = os.urandom(4096) * 10240
        time.sleep(30)
time.sleep(30)
"""
SHARED = """
import os, time
held = os.urandom(4096) * 20480
for n in range(8):
    if os.fork() == 0:
        time.sleep(1); os._exit(0)
for n in range(8): os.wait()
print("done")
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("code", [FILL, DELETED], ids=["files", "deleted"])
async def test_a_full_disk_is_prevented(tmp_path: Path, level: choose.Level, code: str) -> None:
    result = await run(level, tmp_path, code, disk_bytes=20 * MIB)
    assert result.killed == "disk", result


@pytest.mark.parametrize("level", LEVELS)
async def test_the_number_of_files_is_bounded(tmp_path: Path, level: choose.Level) -> None:
    result = await run(level, tmp_path, INODES, inodes=300)
    assert result.killed == "inodes", result


@pytest.mark.parametrize("level", LEVELS)
async def test_all_processes_together_have_a_limit_of_memory(
    tmp_path: Path, level: choose.Level
) -> None:
    result = await run(level, tmp_path, TREE, tree_memory_bytes=150 * MIB, memory_bytes=512 * MIB)
    assert result.killed == "memory", result


MEMFD = """
import os, time
fd = os.memfd_create("x")
for n in range(200): os.write(fd, bytes(1 << 20))
time.sleep(30)
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_files_in_memory_count_as_memory(tmp_path: Path, level: choose.Level) -> None:
    result = await run(level, tmp_path, MEMFD, tree_memory_bytes=100 * MIB)
    assert result.killed == "memory", result
    assert any("total memory" in one for one in result.watched)


async def test_a_machine_without_memory_ends_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "_memory_is_short", lambda: True)
    assert Quota(Limits()).check() == "memory"


@pytest.mark.parametrize("level", LEVELS)
async def test_pages_that_processes_share_count_once(tmp_path: Path, level: choose.Level) -> None:
    """80 MiB seen by nine processes are 80, not 720."""
    result = await run(level, tmp_path, SHARED, tree_memory_bytes=200 * MIB)
    assert (result.killed, result.stdout.text()) == ("", "done\n"), result


@pytest.mark.parametrize("level", [one for one in LEVELS if one == "os"])
async def test_what_lies_in_temporary_files_counts_as_memory(
    tmp_path: Path, level: choose.Level
) -> None:
    code = "open('/tmp/x', 'wb').write(bytes(200 << 20)); import time; time.sleep(30)"
    result = await run(level, tmp_path, code, tree_memory_bytes=100 * MIB)
    assert result.killed == "memory", result


async def test_what_other_programs_write_is_not_charged(tmp_path: Path) -> None:
    """Much was written on the same disk, nothing of it in the workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    quota = Quota(Limits(disk_bytes=MIB), written=(workspace,))
    (tmp_path / "other").write_bytes(os.urandom(8 * MIB))
    os.sync()
    assert settled(quota) == ""
    (workspace / "mine").write_bytes(os.urandom(8 * MIB))
    os.sync()
    assert settled(quota) == "disk"
    quota.close()


async def test_a_large_file_that_was_there_is_not_charged_for_a_small_change(
    tmp_path: Path,
) -> None:
    (tmp_path / "large").write_bytes(bytes(8 * MIB))
    quota = Quota(Limits(disk_bytes=4 * MIB), written=(tmp_path,))
    with (tmp_path / "large").open("ab") as file:
        file.write(b"x")
    assert settled(quota) == ""
    quota.close()


def settled(quota: Quota) -> str:
    """What it says when every look that it wants has been made."""
    for _ in range(200):
        quota._next = 0.0
        said = quota.check()
        if said:
            return said
        if quota._scan is not None:
            quota._scan.result()
        threading.Event().wait(0.005)
    return ""


def version_2(folder: Path, group: Path) -> None:
    group.mkdir()
    for name in ("pids.max", "memory.max", "memory.swap.max", "memory.oom.group"):
        (group / name).write_text("max\n")
    (group / "memory.events").write_text("low 0\noom 0\noom_kill 0\n")


def test_a_group_of_version_2_limits_memory_too(tmp_path: Path) -> None:
    """The kernel's files are stood in for by plain ones: what is written is what it would get."""
    folder = tmp_path / "group"
    version_2(tmp_path, folder)
    group = PidsGroup(folder)
    group.memory = group._limit_memory(64 * MIB)
    assert group.memory
    assert (folder / "memory.max").read_text() == f"{64 * MIB}\n"
    assert (folder / "memory.swap.max").read_text() == "0\n"
    assert (folder / "memory.oom.group").read_text() == "1\n"
    quota = Quota(Limits(), memory_group=group)
    assert quota.check() == ""
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
    quota._next = 0.0
    assert quota.check() == "memory"


def test_a_group_without_the_memory_controller_says_so(tmp_path: Path) -> None:
    assert not PidsGroup(tmp_path)._limit_memory(MIB)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make cgroups here")
def test_a_group_is_removed_again() -> None:
    group = PidsGroup.create(10, 64 * MIB)
    if group is None:
        pytest.skip("no cgroup can be made here")
    assert group._folder.is_dir()
    group.remove()
    assert not group._folder.exists()
