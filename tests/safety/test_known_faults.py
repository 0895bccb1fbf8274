# ruff: noqa: ASYNC110, ASYNC240 - tests look at the disk, and wait for it
"""The ten known faults of naive sandboxes, one test (or more) each, by the numbers of the design.

1 kernel settings as root · 2 fork bombs of root · 3 keys in /proc/1/environ · 4 protected names by
renaming · 5 killing bubblewrap alone · 6 sockets, clone3 and io_uring · 7 Landlock alone ·
8 totals · 9 links left for tools · 10 one policy for all hands. Run once more as a normal user.
"""

import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.errors import LorimerError
from lorimer.safety import openat2, protected
from lorimer.safety.paths import Roots
from lorimer.safety.sandbox import choose, os_level, seccomp
from lorimer.safety.sandbox.pids import PidsGroup
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

OS, LANDLOCK = choose.available()[:2]
needs_os = pytest.mark.skipif(not OS.usable, reason=OS.reason)
needs_landlock = pytest.mark.skipif(not LANDLOCK.usable, reason=LANDLOCK.reason)
LEVELS = [pytest.param("os", marks=needs_os), pytest.param("landlock", marks=needs_landlock)]
PYTHON = (Path(sys.prefix), Path(sys.base_prefix))
Run = Callable[..., Awaitable[SandboxResult]]
pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def run(workspace: Path) -> Run:
    async def sandboxed(
        command: str, level: choose.Level = "os", *, python: bool = False, **limits: Any
    ) -> SandboxResult:
        spec = SandboxSpec(
            workspace,
            writable=True,
            read_only=PYTHON,
            limits=Limits(**{"wall_s": 20, **limits}),
        )
        argv = [sys.executable, "-I", "-S", "-c"] if python else ["/bin/sh", "-c"]
        return await choose.run([*argv, command], spec=spec, level=level)

    return sandboxed


# 1

SETTINGS = """
import os
tried = 0
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        tried += 1
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            print("OPEN", os.path.join(folder, name))
        except OSError: pass
for place in ("/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"):
    try: os.close(os.open(place, os.O_WRONLY)); print("OPEN", place)
    except OSError: pass
print("tried", tried)
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_1_no_kernel_setting_can_be_opened_for_writing(
    run: Run, level: choose.Level
) -> None:
    """Not one of /proc/sys; opened only, never written."""
    result = await run(SETTINGS, level, python=True)
    assert "OPEN" not in result.stdout.text(), result.stdout.text()
    if level == "os":
        assert int(result.stdout.text().split()[-1]) > 100


# 2

FORKS = """
import os, time
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            time.sleep(30); os._exit(0)
        made += 1
except OSError: pass
print("made", made, flush=True)
time.sleep(1)
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_2_the_number_of_processes_binds_every_user(
    run: Run, level: choose.Level
) -> None:
    result = await run(FORKS, level, python=True, processes=30)
    assert result.killed == "processes" or int(result.stdout.text().split()[-1]) <= 30


@needs_os
async def test_fault_2_without_a_cgroup_root_is_counted_and_killed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PidsGroup, "create", staticmethod(lambda *_: None))
    result = await run(FORKS, python=True, processes=30)
    if os.geteuid() == 0:
        assert result.killed == "processes"
        assert any("number of processes" in gap for gap in result.not_enforced)
    else:
        assert int(result.stdout.text().split()[-1]) <= 30


# 3


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_3_no_environment_inside_shows_our_keys(
    run: Run, monkeypatch: pytest.MonkeyPatch, level: choose.Level
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "topsecret-4711")
    code = (
        "import glob, os\nfor p in ['/proc/1/environ', *glob.glob('/proc/*/environ')]:\n"
        "    try: print(open(p, 'rb').read())\n    except OSError: pass\nprint(os.environ)"
    )
    result = await run(code, level, python=True)
    assert result.exit_code == 0
    assert "topsecret" not in result.stdout.text() + result.stderr.text()


# 4

NAMES = [n for n in protected.AT_ROOT if "/" not in n]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "attack",
    [
        "mv .git g; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "mv .git/hooks h; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "cp -r .git copy; echo x > copy/hooks/pre-commit; rm -rf .git; mv copy .git",
        "ln -s .git g; echo x > g/hooks/pre-commit",
    ],
)
async def test_fault_4_hooks_are_not_reached_by_renaming(
    run: Run, workspace: Path, level: choose.Level, attack: str
) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    await run(attack, level)
    assert list((workspace / ".git" / "hooks").iterdir()) == []
    assert (workspace / ".git" / "config").read_text() == "[core]\n"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NAMES)
async def test_fault_4_names_that_do_not_exist_yet_cannot_be_made(
    run: Run, workspace: Path, level: choose.Level, name: str
) -> None:
    result = await run(f"mkdir made; echo x > made/x; mv made {name}", level)
    assert not (workspace / name).exists() and result.quarantined


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [n for n in NAMES if n != ".git"])
async def test_fault_4_names_that_exist_stay_as_they_are(
    run: Run, workspace: Path, level: choose.Level, name: str
) -> None:
    (workspace / name).write_text("before")
    await run(f"echo x > {name}; rm -f {name}; mv {name} y; echo x > z; mv z {name}", level)
    assert (workspace / name).read_text() == "before"


# 5


@needs_os
async def test_fault_5_the_tree_ends_also_when_bubblewrap_alone_is_killed(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer: list[int] = []
    start = os_level._Launch.start

    async def noted(self: Any, limits: Limits) -> list[str]:
        outer.append(self._process.pid)
        return await start(self, limits)

    monkeypatch.setattr(os_level._Launch, "start", noted)
    command = (
        "trap '' TERM HUP; setsid sh -c \"trap '' TERM HUP; while :; do echo x > beat; done\" & "
        "wait; sleep 60"
    )

    async def kill_it() -> None:
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        os.kill(outer[0], signal.SIGKILL)

    async with anyio.create_task_group() as group:
        group.start_soon(kill_it)
        with anyio.fail_after(15):
            await run(command)
    assert not await beats(workspace / "beat")


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_5_a_time_out_ends_the_whole_tree(
    run: Run, workspace: Path, level: choose.Level
) -> None:
    command = (
        "trap '' TERM INT HUP; for n in 1 2 3; do setsid sh -c "
        "\"trap '' TERM INT HUP; while :; do echo x > beat; done\" & done; wait"
    )
    result = await run(command, level, wall_s=0.7)
    assert result.timed_out and result.quiescent_s < 3
    assert not await beats(workspace / "beat")


async def beats(file: Path) -> bool:
    """Whether it is made again within 0.3 s; a test of absence must give it some time."""
    file.unlink(missing_ok=True)
    with anyio.move_on_after(0.3):
        while not file.exists():
            await anyio.sleep(0.01)
        return True
    return False


# 6

CALLS = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for family in (40, 16, 17, 38, 1):
    try:
        socket.socket(family, socket.SOCK_RAW if family in (16, 17) else socket.SOCK_STREAM)
        print("OPEN", family)
    except OSError as fault:
        print(family, errno.errorcode[fault.errno])
for number in (435, 425, 426, 427):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0, 0)
    print(number, errno.errorcode[ctypes.get_errno()])
import threading
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
"""


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_6_socket_families_clone3_and_io_uring(run: Run, level: choose.Level) -> None:
    """clone3 must not be there at all, or programs do not fall back to clone."""
    result = await run(CALLS, level, python=True)
    lines = result.stdout.text().splitlines()
    assert lines[:5] == [f"{n} EAFNOSUPPORT" for n in (40, 16, 17, 38, 1)]
    assert lines[5:9] == [f"{n} ENOSYS" for n in (435, 425, 426, 427)]
    assert lines[9] == "thread"


# 7

ALONE = """
import ctypes, socket
def attempt(name, work):
    try:
        work(); print("OPEN", name)
    except OSError:
        print("closed", name)
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0 and ctypes.get_errno() in (1, 38):
        raise OSError(ctypes.get_errno(), "refused")
attempt("udp", lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {port})))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("{unix}"))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt("io_uring", lambda: call(425, 1, 0))
attempt("user namespace", lambda: call({unshare}, 0x10000000))
"""


@needs_landlock
@pytest.mark.parametrize("filtered", [True, False])
async def test_fault_7_what_landlock_alone_leaves_open_the_filter_closes(
    run: Run,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    filtered: bool,
) -> None:
    """With a filter that allows everything, the same attempts get through: it is needed."""
    if not filtered:
        everything = bytes.fromhex("060000000000ff7f")  # BPF_RET, SECCOMP_RET_ALLOW
        monkeypatch.setattr(seccomp, "build", lambda **_: everything)
    monkeypatch.chdir(tmp_path)
    with (
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind("s")
        unix.listen()
        code = ALONE.format(
            port=udp.getsockname()[1],
            unix=tmp_path / "s",
            unshare=272 if os.uname().machine == "x86_64" else 97,
        )
        result = await run(code, "landlock", python=True)
    lines = result.stdout.text().splitlines()
    assert len(lines) == 5, result
    if filtered:
        assert all(line.startswith("closed") for line in lines), lines
    else:
        assert {"OPEN udp", "OPEN unix", "OPEN netlink"} <= set(lines)


@needs_landlock
async def test_fault_7_a_daemon_does_not_survive_landlock(run: Run, workspace: Path) -> None:
    command = (
        "setsid sh -c 'setsid sh -c \"while :; do echo x > beat; done\" & ' > /dev/null 2>&1 & "
        "while [ ! -e beat ]; do :; done"
    )
    result = await run(command, "landlock")
    assert result.exit_code == 0
    assert not await beats(workspace / "beat")


# 8


@pytest.mark.parametrize("level", LEVELS)
async def test_fault_8_many_files_are_bounded_as_well_as_large_ones(
    run: Run, level: choose.Level
) -> None:
    mib = 1 << 20
    command = "n=0; while :; do head -c 1048576 /dev/zero > f$n; n=$((n+1)); done"
    result = await run(command, level, file_bytes=2 * mib, disk_bytes=24 * mib)
    assert result.killed == "disk"
    command = "mkdir d; n=0; while :; do : > d/$n; n=$((n+1)); done"
    result = await run(command, level, inodes=300)
    assert result.killed == "inodes"
    result = await run("yes", level, output_bytes=4 * mib)
    assert result.killed == "output"


# 9


@pytest.mark.parametrize("use_openat2", [True, False])
@pytest.mark.parametrize("level", LEVELS)
async def test_fault_9_tools_outside_do_not_follow_links_made_inside(
    run: Run, workspace: Path, tmp_path: Path, level: choose.Level, use_openat2: bool
) -> None:
    if use_openat2 and not openat2.is_available():
        pytest.skip("this kernel has no openat2")
    (tmp_path / "secret").write_text("topsecret")
    result = await run(
        f"ln -s {tmp_path}/secret file; ln -s {tmp_path} folder; ln -s /proc/self/root magic; "
        "ln -s ../secret up",
        level,
    )
    assert result.exit_code == 0
    roots = Roots(workspace, use_openat2=use_openat2)
    for path in ("file", "folder/secret", f"magic{tmp_path}/secret", "up"):
        with pytest.raises(LorimerError):
            roots.open_file(path).close()
        with pytest.raises(LorimerError):
            roots.slot(path).close()
    assert (tmp_path / "secret").read_text() == "topsecret"


# 10


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".git/config", ".mcp.json", ".envrc",
                                  "lorimer.toml", ".lorimer/x", ".vscode/tasks.json", ".bashrc",
                                  "../outside", "/etc/x"])  # fmt: skip
async def test_fault_10_what_the_shell_may_not_write_the_file_tools_may_not_either(
    run: Run, workspace: Path, level: choose.Level, path: str
) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("")
    where = workspace / path
    before = where.read_bytes() if where.exists() else None
    await run(f"mkdir -p '{Path(path).parent}'; echo x > '{path}'", level)
    assert (where.read_bytes() if where.exists() else None) == before
    with pytest.raises(LorimerError):
        Roots(workspace).slot(path).close()


def test_the_faults_are_all_here() -> None:
    names = {n.split("_")[2] for n in globals() if n.startswith("test_fault_")}
    assert names == {str(n) for n in range(1, 11)}
