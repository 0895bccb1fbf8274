# ruff: noqa: ASYNC110, ASYNC240 - tests look at the disk
"""The level `landlock`, its rules and its protected names. Run once more as a normal user."""

import errno
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import choose, landlock
from lorimer.safety.sandbox.putback import PutBack
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

HERE = choose.available()[1]
real = pytest.mark.skipif(not HERE.usable, reason=HERE.reason)
Run = Callable[..., Awaitable[SandboxResult]]
PYTHON = (Path(sys.prefix), Path(sys.base_prefix))
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK = 1, 2, 4, 8, 1 << 6, 1 << 11
pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    folder.mkdir()
    return folder


@pytest.fixture
def run(workspace: Path) -> Run:
    async def confined(command: str, *, python: bool = False, **options: Any) -> SandboxResult:
        limits = Limits(**{"wall_s": 20, **options.pop("limits", {})})
        spec = SandboxSpec(
            workspace, **{"writable": True, "read_only": PYTHON, **options}, limits=limits
        )
        argv = [sys.executable, "-I", "-c"] if python else ["/bin/sh", "-c"]
        return await landlock.run([*argv, command], spec=spec)

    return confined


# the rules, as data


def rights(rules: landlock.Ruleset, path: str) -> int:
    return max((given for place, given in rules.rules if place == path), default=0)


@pytest.mark.parametrize("version", [3, 4, 5, 6, 7, 12])
def test_everything_that_the_kernel_knows_is_handled(version: int, tmp_path: Path) -> None:
    rules = landlock.ruleset(SandboxSpec(tmp_path), version, [])
    assert rules.fs == ((1 << 16) - 1 if version >= 5 else (1 << 15) - 1)
    assert rules.net == (3 if version >= 4 else 0)
    assert rules.scope == (3 if version >= 6 else 0)


def test_rights_are_given_where_the_spec_says(tmp_path: Path) -> None:
    shown, own = tmp_path / "shown", tmp_path / "own"
    spec = SandboxSpec(tmp_path / "ws", writable=True, read_only=(shown,))
    rules = landlock.ruleset(spec, 7, [own])
    writable = rights(rules, str(tmp_path / "ws"))
    assert writable & WRITE_FILE and writable & EXECUTE
    assert not writable & (MAKE_CHAR | MAKE_BLOCK)
    assert rights(rules, str(shown)) == EXECUTE | READ_FILE | READ_DIR
    assert rights(rules, str(own)) & WRITE_FILE
    assert rights(rules, "/usr") == EXECUTE | READ_FILE | READ_DIR
    for place in ("/", "/etc", "/proc", "/dev", "/home", "/root", "/tmp", "/var", "/run"):
        assert rights(rules, place) == 0
    only = landlock.ruleset(SandboxSpec(tmp_path / "ws"), 7, [])
    assert not rights(only, str(tmp_path / "ws")) & WRITE_FILE


def test_the_confinement_is_what_the_launcher_reads(tmp_path: Path) -> None:
    rules = landlock.ruleset(SandboxSpec(tmp_path), 7, [])
    fields = rules.confinement(b"\x06\0").split(b"\0")
    assert [int(f) for f in fields[:3]] == [rules.fs, rules.net, rules.scope]
    assert fields[3] == b"0600"
    pairs = zip(fields[4::2], fields[5::2], strict=True)
    assert [(os.fsdecode(path), int(given)) for given, path in pairs] == list(rules.rules)


@pytest.mark.parametrize("folder", ["/", "/etc", "/home"])
def test_system_folders_are_no_workspace(folder: str) -> None:
    with pytest.raises(SandboxUnavailable, match=folder):
        landlock.ruleset(SandboxSpec(Path(folder), writable=True), 7, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_kernel_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: version)
    with pytest.raises(SandboxUnavailable, match="version 3 is needed"):
        landlock.usable()


@real
async def test_an_older_kernel_says_that_signals_stay_open(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    result = await run("true")
    assert any("signals to other processes" in gap for gap in result.not_enforced)


# which level is taken


@real
async def test_a_missing_bubblewrap_is_refused_unless_the_fallback_is_allowed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    choose.available(again=True)
    try:
        spec = SandboxSpec(workspace)
        with pytest.raises(SandboxUnavailable, match="bubblewrap"):
            await choose.run(["/bin/true"], spec=spec, level="os")
        result = await choose.run(["/bin/true"], spec=spec, level="os", allow_fallback=True)
        assert (result.level, result.exit_code) == ("landlock", 0)
    finally:
        monkeypatch.undo()
        choose.available(again=True)


@real
async def test_the_fallback_is_not_taken_where_bubblewrap_works(workspace: Path) -> None:
    if not choose.available()[0].usable:
        pytest.skip("bubblewrap does not work here")
    spec = SandboxSpec(workspace)
    result = await choose.run(["/bin/true"], spec=spec, level="os", allow_fallback=True)
    assert result.level == "os"


@real
async def test_what_it_cannot_give_is_refused(workspace: Path, tmp_path: Path) -> None:
    for spec, why in (
        (SandboxSpec(workspace, unix_sockets=True), "unix sockets"),
        (SandboxSpec(workspace, folders={"/tmp": tmp_path}), "another path"),
        (SandboxSpec(tmp_path / "nowhere"), "nowhere"),
    ):
        with pytest.raises(SandboxUnavailable, match=why):
            await landlock.run(["/bin/true"], spec=spec)
    with pytest.raises(SandboxUnavailable, match="no-such-program"):
        await landlock.run(["/no-such-program"], spec=SandboxSpec(workspace))


# running


@real
async def test_output_input_exit_code_and_signal_come_back(run: Run, workspace: Path) -> None:
    result = await run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout.text(), result.stderr.text()) == (3, "out\n", "err\n")
    assert (await run("kill -SEGV $$")).signal == signal.SIGSEGV
    content = os.urandom(1 << 18)
    spec = SandboxSpec(workspace, limits=Limits(kept_bytes=4 << 20))
    result = await landlock.run(["/bin/cat"], spec=spec, stdin=content)
    assert result.stdout.head + result.stdout.tail == content


@real
async def test_a_program_cannot_claim_that_it_was_never_run(run: Run) -> None:
    """What it says and how it ends is its own; only the launcher can say that nothing was run."""
    for code in (126, 127):
        result = await run(f"echo 'could not confine the program: x' >&2; exit {code}")
        assert result.exit_code == code
    result = await run("for fd in 3 4 5 6 7 8 9; do echo failed >&$fd; done; exit 127")
    assert result.exit_code == 127


@real
async def test_the_workspace_is_as_the_spec_says(run: Run, workspace: Path) -> None:
    assert (await run("echo x > new && mkdir d && mv new d/ && ln -s d l")).exit_code == 0
    assert (workspace / "d" / "new").read_text() == "x\n"
    result = await run("echo y > other; rm -f d/new; echo y >> d/new", writable=False)
    assert "ermission denied" in result.stderr.text()
    assert (workspace / "d" / "new").read_text() == "x\n"
    assert not (workspace / "other").exists()


@real
async def test_home_and_temporary_files_are_its_own_and_go_with_it(
    run: Run, tmp_path: Path
) -> None:
    result = await run(
        'echo x > "$HOME/x" && echo y > "$TMPDIR/y" && mkdir -m 0 "$TMPDIR/closed" '
        '&& echo "$HOME" && ls -A "$HOME"'
    )
    home, *names = result.stdout.text().splitlines()
    assert names == ["x"] and not Path(home).exists() and not Path(home).parent.exists()


@real
async def test_ordinary_programs_work(run: Run) -> None:
    code = """
import threading, subprocess, tempfile, json, zlib
t = threading.Thread(target=print, args=("thread",), kwargs={"flush": True}); t.start(); t.join()
print(subprocess.run(["sh", "-c", "echo child"], capture_output=True, text=True).stdout)
with tempfile.NamedTemporaryFile() as f: print(f.name)
"""
    result = await run(code, python=True)
    assert result.exit_code == 0, result.stderr.text()
    assert "thread" in result.stdout.text() and "child" in result.stdout.text()
    assert (await run("cat /proc/cpuinfo > /dev/null; echo a | sort | tr a b")).exit_code == 0


@real
async def test_cancelling_kills_the_tree_before_it_returns(workspace: Path) -> None:
    began = anyio.Event()
    command = "trap '' TERM; setsid sh -c 'while true; do echo x > beat; done' & echo x; wait; wait"

    async def work() -> None:
        spec = SandboxSpec(workspace, writable=True)
        await landlock.run(["/bin/sh", "-c", command], spec=spec, on_output=lambda *_: began.set())

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await began.wait()
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    (workspace / "beat").unlink()
    with anyio.move_on_after(0.3):
        while not (workspace / "beat").exists():
            await anyio.sleep(0.01)
        pytest.fail("it still runs")


@real
async def test_a_program_cannot_end_the_one_that_ends_it(run: Run) -> None:
    result = await run("kill -9 $PPID; kill -9 -1; echo still here")
    assert "still here" in result.stdout.text() or result.signal == signal.SIGKILL
    assert result.killed == ""


@real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
async def test_root_keeps_no_capabilities_and_no_way_to_kernel_settings(run: Run) -> None:
    code = """
import ctypes, os
held = (ctypes.c_uint32 * 6)()
ctypes.CDLL(None).capget((ctypes.c_uint32 * 2)(0x20080522, 0), held)
print(os.getuid(), any(held))
for place in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/etc/shadow", "/dev/kmsg"):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try: print("OPEN", place, os.open(place, flags))
        except OSError: pass
"""
    result = await run(code, python=True)
    assert result.stdout.text() == "0 False\n", result


# protected names


@pytest.fixture
def repository(workspace: Path) -> Path:
    for git in (workspace / ".git", workspace / "sub" / ".git"):
        (git / "hooks").mkdir(parents=True)
        (git / "config").write_text("[core]\n")
        (git / "config").chmod(0o640)
        (git / "hooks" / "kept").write_text("kept")
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "link").symlink_to("nowhere")
    (workspace / ".mcp.json").write_text("{}")
    return workspace


@real
@pytest.mark.parametrize(
    "attack",
    [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "rm .git/config",
        "rm -rf .git/hooks; echo x > .git/hooks",
        "rm .git/hooks/kept; ln -s /etc/passwd .git/hooks/kept",
        "mv .git other; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "mv .git other",
        "mv sub moved; mkdir -p sub/.git/hooks",
        "mkdir -m 0 w; mv .vscode v; mv w .vscode",
        "mv sub moved; mkdir -m 0 sub",
        "mv .git other; mkdir -m 0 .git",
        "mv .git/hooks .git/h2; mkdir .git/hooks; echo x > .git/hooks/pre-commit",
        "ln .git/config c; echo x > c",
        "echo x > .mcp.json; mv .mcp.json m",
        "rm .vscode/link; echo x > .vscode/tasks.json",
        "rm -rf .vscode; ln -s sub .vscode",
        "rm .mcp.json; mkdir .mcp.json; echo x > .mcp.json/x",
    ],
)
async def test_protected_files_are_put_back(run: Run, repository: Path, attack: str) -> None:
    result = await run(attack)
    assert result.quarantined and result.killed == "protected"
    assert (repository / ".git" / "config").read_text() == "[core]\n"
    assert (repository / ".git" / "config").stat().st_mode & 0o777 == 0o640
    assert [p.name for p in (repository / ".git" / "hooks").iterdir()] == ["kept"]
    assert (repository / ".git" / "hooks" / "kept").read_text() == "kept"
    assert not (repository / ".git" / "hooks" / "kept").is_symlink()
    assert (repository / "sub" / ".git" / "config").read_text() == "[core]\n"
    assert [p.name for p in (repository / ".vscode").iterdir()] == ["link"]
    assert not (repository / ".vscode").is_symlink()
    assert (repository / ".vscode" / "link").readlink() == Path("nowhere")
    assert (repository / ".mcp.json").read_text() == "{}"


@real
@pytest.mark.parametrize("what", ["sub", "sub/.git", ".git", ".vscode"])
async def test_putting_back_follows_no_link_that_the_program_made(
    run: Run, repository: Path, tmp_path: Path, what: str
) -> None:
    """The program points a folder at one outside; what is put back must not land there."""
    outside = tmp_path / "outside"
    for folder in (outside / ".git" / "hooks", outside / "hooks"):
        folder.mkdir(parents=True)
    for file in (outside / ".git" / "config", outside / "config", outside / "link"):
        file.write_text("theirs")
    before = sorted((p, p.is_file() and p.read_text()) for p in outside.rglob("*"))
    result = await run(f"mv '{what}' moved; ln -s '{outside}' '{what}'")
    assert result.killed == "protected"
    assert sorted((p, p.is_file() and p.read_text()) for p in outside.rglob("*")) == before
    assert not (repository / what).is_symlink()
    assert (repository / "sub" / ".git" / "config").read_text() == "[core]\n"


@real
async def test_what_a_protected_link_names_is_protected(run: Run, workspace: Path) -> None:
    (workspace / "settings").mkdir()
    (workspace / "settings" / "tasks.json").write_text("{}")
    (workspace / ".vscode").symlink_to("settings")
    result = await run("echo x > settings/tasks.json")
    assert result.killed == "protected"
    assert (workspace / "settings" / "tasks.json").read_text() == "{}"


@real
@pytest.mark.parametrize("name", [".git", ".mcp.json", "lorimer.toml", ".bashrc", ".lorimer"])
async def test_protected_names_that_appear_are_stopped_and_renamed(
    run: Run, workspace: Path, name: str
) -> None:
    result = await run(f"mkdir -p w/hooks; mv w {name}; sleep 30")
    assert not (workspace / name).exists()
    assert result.killed == "protected" and name in result.quarantined[0]
    assert any(p.name.startswith("quarantined-") for p in workspace.iterdir())


@real
async def test_ordinary_work_in_a_repository_is_left_alone(run: Run, repository: Path) -> None:
    result = await run("echo x > .git/index; mkdir -p .git/objects/ab; echo y > file; rm file")
    assert (result.exit_code, result.killed, result.quarantined) == (0, "", ())


def test_too_much_under_protected_names_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    for number in range(2100):
        (folder / str(number)).touch()
    with pytest.raises(SandboxUnavailable, match="too much under protected names"):
        PutBack.over(tmp_path)


def test_the_error_of_a_refused_removal_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").mkdir(mode=0)
    landlock.remove(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    assert errno.ENOTEMPTY
