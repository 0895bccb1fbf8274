# ruff: noqa: ASYNC110, ASYNC221, ASYNC240 - tests look at the disk, and wait for it
"""The sandbox, tried from inside. Run once more as a normal user by `test_as_normal_user`."""

import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import choose, none, os_level
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
PYTHON = (Path(sys.prefix), Path(sys.base_prefix))
Run = Callable[..., Awaitable[SandboxResult]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    folder.mkdir()
    (folder / "data.txt").write_text("data")
    return folder


@pytest.fixture
def run(workspace: Path, tmp_path: Path) -> Run:
    async def sandboxed(command: str, *, python: bool = False, **options: Any) -> SandboxResult:
        limits = Limits(**{"wall_s": 20, **options.pop("limits", {})})
        spec = SandboxSpec(
            workspace, **{"writable": True, "read_only": PYTHON, **options}, limits=limits
        )
        argv = [sys.executable, "-I", "-c"] if python else ["/bin/sh", "-c"]
        return await os_level.run([*argv, command], spec=spec)

    return sandboxed


def said(result: SandboxResult) -> str:
    return result.stdout.text() + result.stderr.text()


async def test_output_and_exit_code_come_back(run: Run) -> None:
    result = await run("echo out; echo err >&2; cat data.txt; exit 3")
    assert (result.exit_code, result.killed) == (3, "")
    assert result.stdout.text() == "out\ndata"
    assert result.stderr.text() == "err\n"
    assert result.level == "os"


async def test_a_signal_is_told(run: Run) -> None:
    result = await run("kill -SEGV $$")
    assert (result.exit_code, result.signal) == (139, signal.SIGSEGV)


async def test_a_writable_workspace_keeps_what_is_written(run: Run, workspace: Path) -> None:
    result = await run("echo new > new.txt && mkdir d && mv data.txt d/")
    assert result.exit_code == 0
    assert (workspace / "new.txt").read_text() == "new\n"
    assert (workspace / "d" / "data.txt").exists()


async def test_a_read_only_workspace_stays_as_it_is(run: Run, workspace: Path) -> None:
    result = await run("echo new > new.txt; rm -f data.txt; echo x >> data.txt", writable=False)
    assert "Read-only file system" in said(result)
    assert [p.name for p in workspace.iterdir()] == ["data.txt"]


async def test_nothing_outside_can_be_written(run: Run, tmp_path: Path) -> None:
    for place in ("/x", "/usr/x", "/etc/x", "/bin/x", "/lib/x", "/dev/x", "/home/x", "/var/x",
                  f"{sys.prefix}/x", "/proc/sysrq-trigger", "/etc/passwd"):  # fmt: skip
        result = await run(f"echo h > '{place}' && echo WRITTEN")  # h: SysRq's harmless letter
        assert "WRITTEN" not in said(result), place
    await run(f"echo x > '{tmp_path}/x'")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["kernel/core_pattern", "kernel/hostname", "vm/swappiness"])
async def test_kernel_settings_cannot_be_written(run: Run, name: str) -> None:
    place = f"/proc/sys/{name}"  # written with its own value, in case it can
    result = await run(
        f"test -e {place} && value=$(cat {place}) && echo $value > {place} && echo DONE"
    )
    assert "DONE" not in said(result)
    assert "Read-only" in said(result) or "ermission denied" in said(result)


async def test_other_files_of_this_machine_are_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("topsecret")
    result = await run(f"cat '{tmp_path}/secret'; ls /root /home /etc/shadow /var/log /run /sys")
    assert "topsecret" not in said(result)
    assert "secret" not in (await run(f"ls '{tmp_path}'")).stdout.text()
    assert (await run("cat /etc/passwd")).stdout.text().count("\n") == 1


async def test_our_environment_cannot_be_seen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "topsecret")
    result = await run(
        "cat /proc/*/environ; env; cat /proc/*/cmdline", environment={"GIVEN": "yes"}
    )
    assert "topsecret" not in said(result)
    assert "GIVEN=yes" in said(result)


async def test_other_processes_cannot_be_seen(run: Run) -> None:
    result = await run("ls -d /proc/[0-9]* | wc -l")
    assert int(result.stdout.text()) < 10


async def test_links_out_of_the_workspace_lead_nowhere(run: Run, workspace: Path) -> None:
    (workspace.parent / "secret").write_text("topsecret")
    (workspace / "link").symlink_to(workspace.parent / "secret")
    assert "topsecret" not in said(await run("cat link"))


async def test_a_magic_link_leads_nowhere(run: Run, workspace: Path) -> None:
    (workspace.parent / "secret").write_text("topsecret")
    where = workspace.parent
    result = await run(f"cat '/proc/1/root{where}/secret' '/proc/self/root{where}/secret'")
    assert "topsecret" not in said(result)


NETWORK = """
import errno, socket
def attempt(name, work):
    try:
        work()
        print("OPEN", name)
    except OSError as fault:
        print(name, errno.errorcode.get(fault.errno, fault))
def tcp():
    s = socket.socket(); s.settimeout(2); s.connect(("{host}", {port}))
def udp():
    s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b"x", ("192.0.2.1", 9))
attempt("tcp", tcp)
attempt("udp", udp)
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("{unix}"))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0{abstract}"))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1)))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
print("pair ok")
"""


@pytest.mark.parametrize("unix_sockets", [False, True])
async def test_there_is_no_network(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch, unix_sockets: bool
) -> None:
    monkeypatch.chdir(workspace.parent)
    abstract = f"lorimer-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as hidden,
    ):
        unix.bind("s")
        unix.listen()
        hidden.bind(f"\0{abstract}")
        hidden.listen()
        code = NETWORK.format(host="127.0.0.1", port=tcp.getsockname()[1],
                              unix=workspace.parent / "s", abstract=abstract)  # fmt: skip
        result = await run(code, python=True, unix_sockets=unix_sockets)
    assert "OPEN" not in said(result), said(result)
    assert "pair ok" in said(result)
    assert result.exit_code == 0


async def test_loopback_inside_works(run: Run) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); s.accept()[0].send(b'hi'); print(c.recv(9))"
    )
    assert "b'hi'" in said(await run(code, python=True))


async def test_privileges_cannot_be_gained(run: Run) -> None:
    result = await run(
        "grep -E '^(Cap(Eff|Prm|Bnd|Inh|Amb)|NoNewPrivs|Seccomp):' /proc/self/status"
    )
    fields = dict(line.split(":\t") for line in result.stdout.text().splitlines())
    assert {int(v, 16) for k, v in fields.items() if k.startswith("Cap")} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    result = await run("unshare -U true || unshare -r true; mount -t tmpfs x /tmp; chroot / true")
    assert result.exit_code != 0
    assert "ermi" in said(result) or "not permitted" in said(result)


CALLS = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    "x86_64": (425, 250, 101, 272, 321, 323, 435), "aarch64": (425, 219, 117, 97, 280, 282, 435)
}
for number in numbers[platform.machine()]:
    ctypes.set_errno(0)
    got = libc.syscall(number, 0, 0, 0, 0, 0)
    print(number, got, errno.errorcode.get(ctypes.get_errno()))
    assert got == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)
"""


async def test_dangerous_calls_are_blocked(run: Run) -> None:
    result = await run(CALLS, python=True)
    assert result.exit_code == 0, said(result)


async def test_threads_and_processes_still_work(run: Run) -> None:
    code = """
import threading, multiprocessing, subprocess, tempfile
def double(x): return 2 * x
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(double, [1, 2]))
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)
with tempfile.NamedTemporaryFile() as f: print(f.name)
"""
    result = await run(code, python=True)
    assert result.exit_code == 0, said(result)
    assert "[2, 4]" in said(result)


async def test_time_out_kills_a_tree_that_ignores_sigterm(run: Run, workspace: Path) -> None:
    result = await run(
        "trap '' TERM INT HUP; (trap '' TERM; setsid sh -c "
        "'while true; do date +%N > beat; done' &) ; echo began; while true; do :; done",
        limits={"wall_s": 0.6},
    )
    assert (result.killed, result.timed_out, result.exit_code) == ("timeout", True, None)
    assert result.stdout.text() == "began\n"
    assert result.quiescent_s < 2
    assert result.duration_s < 5
    before = (workspace / "beat").stat().st_mtime_ns
    assert not await beats(workspace / "beat", before)


async def beats(file: Path, before: int) -> bool:
    """Whether `file` is still written within 0.3 s; a test of absence must give it some time."""
    with anyio.move_on_after(0.3):
        while file.stat().st_mtime_ns == before:
            await anyio.sleep(0.01)
        return True
    return False


@pytest.mark.parametrize("level", ["os", "none"])
async def test_a_daemon_does_not_survive(workspace: Path, level: choose.Level) -> None:
    command = "setsid sh -c 'while true; do date +%N > beat; done' > /dev/null 2>&1 & sleep 0.2"
    spec = SandboxSpec(workspace, writable=True)
    result = await choose.run(["/bin/sh", "-c", command], spec=spec, level=level)
    assert result.exit_code == 0
    assert not await beats(workspace / "beat", (workspace / "beat").stat().st_mtime_ns)


@pytest.mark.parametrize("level", ["os", "none"])
async def test_cancelling_kills_the_tree_before_it_returns(
    workspace: Path, level: choose.Level
) -> None:
    began = anyio.Event()
    command = (
        "trap '' TERM; setsid sh -c 'while true; do date +%N > beat; done' & echo x; wait; wait"
    )

    def note(_: str, piece: bytes) -> None:
        began.set()

    async def work() -> None:
        spec = SandboxSpec(workspace, writable=True)
        await choose.run(["/bin/sh", "-c", command], spec=spec, level=level, on_output=note)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await began.wait()
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    assert not await beats(workspace / "beat", (workspace / "beat").stat().st_mtime_ns)


async def test_cancelling_at_any_moment_leaves_nothing(workspace: Path) -> None:
    for delay in range(20):
        with anyio.move_on_after(delay * 0.0014):
            spec = SandboxSpec(workspace, writable=True)
            await os_level.run(["/bin/sh", "-c", "sleep 5; touch late"], spec=spec)
    assert processes_that_name(workspace) == []


def processes_that_name(path: Path) -> list[str]:
    """Also those that have lost their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(path) in line and b"pytest" not in line.split(b"\0")[:4]:
                found.append(line.decode("utf-8", "replace"))
    return found


async def test_descriptors_are_closed(run: Run) -> None:
    await run("true")
    before = sorted(os.listdir("/proc/self/fd"))
    await run("echo x")
    await run("sleep 9", limits={"wall_s": 0.1})
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert (await run("ls /proc/self/fd")).stdout.text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("level", ["os", "none"])
async def test_a_flood_of_output_is_capped(
    workspace: Path, tmp_path: Path, level: choose.Level
) -> None:
    spec = SandboxSpec(
        workspace,
        limits=Limits(kept_bytes=1 << 16, output_bytes=8 << 20, wall_s=60),
        spool=tmp_path,
        spool_name="flood",
    )
    result = await choose.run(["/bin/sh", "-c", "yes 0123456789"], spec=spec, level=level)
    assert result.killed == "output"
    assert 8 << 20 < result.stdout.total < 128 << 20
    assert len(result.stdout.head) + len(result.stdout.tail) <= 1 << 16
    stored = tmp_path / "flood.stdout"
    assert result.stdout.stored == stored
    assert stored.stat().st_size == result.stdout.total
    assert stored.read_bytes().startswith(result.stdout.head)
    assert stored.read_bytes().endswith(result.stdout.tail)
    assert f"{result.stdout.missing:,} bytes left out here" in result.stdout.text()


async def test_output_within_the_cap_is_whole(run: Run) -> None:
    result = await run("seq 1 20000", limits={"kept_bytes": 1 << 18})
    assert result.stdout.text() == "".join(f"{n}\n" for n in range(1, 20001))
    assert result.stdout.missing == 0


async def test_a_fork_bomb_is_bounded(run: Run) -> None:
    code = """
import os, time
count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        count += 1
except OSError as fault:
    print("stopped", count, fault.strerror)
"""
    result = await run(code, python=True, limits={"processes": 60})
    assert result.killed == "processes" or "stopped" in said(result), said(result)
    if "stopped" in said(result):
        assert int(said(result).split()[1]) <= 60


async def test_a_memory_bomb_is_bounded(run: Run) -> None:
    code = "x = bytearray(3 << 30)"
    result = await run(code, python=True, limits={"memory_bytes": 1 << 30})
    assert "MemoryError" in said(result)


async def test_cpu_time_is_bounded(run: Run) -> None:
    result = await run("while :; do :; done", limits={"cpu_s": 1})
    assert result.exit_code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


async def test_a_file_is_bounded(run: Run, workspace: Path) -> None:
    result = await run("head -c 5000000 /dev/zero > big", limits={"file_bytes": 1 << 20})
    assert result.exit_code != 0
    assert (workspace / "big").stat().st_size <= 1 << 20


async def test_temporary_space_is_bounded(run: Run) -> None:
    for place in ("/tmp", "/home/user", "/dev/shm"):
        result = await run(f"head -c 5000000 /dev/zero > {place}/x", limits={"tmp_bytes": 1 << 20})
        assert "No space left" in said(result), place


async def test_standard_input_is_given_whole(run: Run, workspace: Path) -> None:
    content = os.urandom(1 << 20)
    spec = SandboxSpec(workspace, limits=Limits(kept_bytes=4 << 20))
    result = await os_level.run(["/bin/cat"], spec=spec, stdin=content)
    assert result.stdout.head + result.stdout.tail == content
    result = await os_level.run(["/bin/true"], spec=spec, stdin=content)
    assert result.exit_code == 0


HOOK = "#!/bin/sh\necho pwned\n"


@pytest.fixture
def repository(workspace: Path) -> Path:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    (workspace / "sub" / ".git" / "hooks").mkdir(parents=True)
    (workspace / "sub" / ".git" / "config").write_text("[core]\n")
    (workspace / ".vscode").mkdir()
    return workspace


@pytest.mark.parametrize(
    "attack",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "echo x > .git/c && mv .git/c .git/config",
        "mv .git other && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mv .git/hooks .git/h2 && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "rm -rf .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "ln -s .git/hooks h; echo x > h/pre-commit",
        "ln .git/config c && echo x > c",
        "echo x > sub/.git/hooks/pre-commit",
        "mv sub/.git sub/g; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit",
        "echo x > .vscode/tasks.json",
        "mv .vscode v; mkdir .vscode; echo x > .vscode/tasks.json",
    ],
)
async def test_protected_files_stay_as_they_are(run: Run, repository: Path, attack: str) -> None:
    await run(attack)
    for folder in (repository, repository / "sub"):
        assert (folder / ".git" / "config").read_text() == "[core]\n"
        assert list((folder / ".git" / "hooks").iterdir()) == []
    assert list((repository / ".vscode").iterdir()) == []


@pytest.mark.parametrize("name", [".git", ".mcp.json", ".vscode", "lorimer.toml", ".bashrc",
                                  ".lorimer", ".envrc"])  # fmt: skip
@pytest.mark.parametrize("lingers", [False, True])
async def test_protected_names_that_appear_are_stopped_and_renamed(
    run: Run, workspace: Path, name: str, lingers: bool
) -> None:
    result = await run(f"mkdir -p w/hooks; mv w {name}{'; sleep 30' if lingers else ''}")
    assert not (workspace / name).exists()
    assert result.killed == "protected"
    assert name in result.quarantined[0]
    assert any(p.name.startswith("quarantined-") for p in workspace.iterdir())


async def test_git_still_works_in_a_repository(run: Run, workspace: Path) -> None:
    await run("true")
    os.system(f"git -C '{workspace}' init -q")
    result = await run(
        "git -c user.name=x -c user.email=x@example.org add data.txt && "
        "git -c user.name=x -c user.email=x@example.org commit -q -m x && git log --oneline"
    )
    assert result.exit_code == 0, said(result)


async def test_a_program_that_is_missing_is_told(run: Run, workspace: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-program"):
        await os_level.run(["/no-such-program"], spec=SandboxSpec(workspace))


async def test_a_missing_workspace_is_told(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="nowhere"):
        await os_level.run(["/bin/true"], spec=SandboxSpec(tmp_path / "nowhere"))


@pytest.mark.parametrize("folder", ["/", "/etc", "/home"])
async def test_system_folders_are_no_workspace(folder: str) -> None:
    with pytest.raises(SandboxUnavailable, match=folder):
        await os_level.run(["/bin/true"], spec=SandboxSpec(Path(folder)))


async def test_missing_bubblewrap_is_told_with_what_to_do(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        await os_level.run(["/bin/true"], spec=SandboxSpec(workspace))


async def test_a_bubblewrap_that_does_not_work_here_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="uid map: Permission denied"):
        await os_level.run(["/bin/true"], spec=SandboxSpec(workspace))


async def test_the_level_none_sets_limits_and_gives_a_small_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "topsecret")
    spec = SandboxSpec(workspace, limits=Limits(open_files=77))
    result = await none.run(["/bin/sh", "-c", "ulimit -n; env; pwd"], spec=spec)
    assert result.stdout.text().startswith("77\n")
    assert "topsecret" not in said(result)
    assert str(workspace) in said(result)
    assert result.level == "none" and result.not_enforced


async def test_the_level_none_times_out_and_tells(workspace: Path) -> None:
    spec = SandboxSpec(workspace, limits=Limits(wall_s=0.3))
    started = time.monotonic()
    result = await none.run(["/bin/sh", "-c", "trap '' TERM; sleep 60; sleep 60"], spec=spec)
    assert result.timed_out and time.monotonic() - started < 10


def test_errors_of_the_probe_are_kept_until_asked_again() -> None:
    assert choose.available() is not None
    assert choose.available()[0] == choose.available()[0]
    assert errno.ENOSYS
