# ruff: noqa: ASYNC110, ASYNC221, ASYNC230, ASYNC240 - tests look at the disk, and wait for it
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer import Agent
from lorimer.core.calls import Outcome
from lorimer.safety.sandbox import choose
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset
from lorimer.toolkits.execution.shell import shell_cwd
from lorimer.toolkits.execution.shell_exec import make_shell_tools
from lorimer.tools.belongings import Belongings
from lorimer.tools.tool import EffectMark, ToolContext, ToolError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
TOOLS = {tool.name: tool for tool in make_shell_tools()}
SILENT = "[exit code 0; nothing was printed]"


class Hand:
    """Calls the shell tools as one session would, each call with a context of its own."""

    def __init__(self, make: Callable[..., ToolContext], workspace: Path, scratch: Path) -> None:
        self._make, self._workspace, self._scratch = make, workspace, scratch
        self.belongings = Belongings()
        self.last = self.context()

    def context(self) -> ToolContext:
        self.last = self._make(self._workspace, self._scratch)
        self.last.belongings = self.belongings
        return self.last

    async def __call__(self, command: str, **more: Any) -> str:
        tool = TOOLS["shell_exec"].function
        return str(await tool(command=command, context=self.context(), **more))

    async def output(self, id: str, **more: Any) -> str:
        return str(await TOOLS["shell_output"].function(id=id, context=self.context(), **more))

    async def stop(self, id: str) -> str:
        return str(await TOOLS["shell_stop"].function(id=id, context=self.context()))

    async def restart(self) -> None:
        """As when lorimer ends and is started again with the same session."""
        await self.belongings.close()
        self.belongings = Belongings()


@pytest.fixture
async def sh(
    make_context: Callable[..., ToolContext], workspace: Path, tmp_path: Path
) -> AsyncIterator[Hand]:
    scratch = tmp_path / "store – ü" / "blobs"
    scratch.mkdir(parents=True)
    hand = Hand(make_context, workspace, scratch)
    yield hand
    await hand.belongings.close()


# --- one command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo ü", "ü"),
        ("true", SILENT),
        ("false", "[exit code 1]"),
        ("echo one; echo two >&2; echo three", "one\ntwo\nthree"),
        ("printf 'no end'", "no end"),
        ("printf 'caf\\xe9\\n'", "caf\\xe9"),
        ("exit 7", "[exit code 7]"),
        ("kill -KILL $$", "[exit code 137 (SIGKILL)]\n[the shell ended before"),
        ("echo 'quo\"te' \"it's\" \\\\ $((6*7))", "quo\"te it's \\ 42"),
        ("cat <<'X'\na  b\tc\nX", "a  b\tc"),
        ("# only a comment", SILENT),
        ("no-such-program", "bash: line 1: no-such-program: command not found\n[exit code 127]"),
        ("echo 1\necho $((1/0))", "1\nbash: line 2: 1/0: division by 0"),
        ("echo $# $0", "0 bash"),
        ("set -a; x=1; set +a; env | grep -c lorimer_", "0\n[exit code 1]"),
        ("echo 1\r", "1\r"),
        ("set -o pipefail; false | true", "[exit code 1]"),
    ],
)  # fmt: skip
async def test_what_a_command_says(sh: Hand, command: str, said: str) -> None:
    assert (await sh(command)).startswith(said)


async def test_the_order_of_both_streams_is_the_order_of_writing(sh: Hand) -> None:
    said = await sh("for n in 1 2 3 4 5 6; do echo out$n; echo err$n >&2; done")
    assert said == "\n".join(f"{kind}{n}" for n in range(1, 7) for kind in ("out", "err"))


async def test_a_syntax_error_names_its_line(sh: Hand) -> None:
    said = await sh("echo first\nif then\n")
    assert said.startswith("first\n") and "line 2: syntax error" in said
    assert said.endswith(("[exit code 2]", "[exit code 1]"))


@pytest.mark.parametrize("command", ["cat", "read x || echo ended", "python3 -i", "sh", "less"])
async def test_programs_that_wait_for_input_end(sh: Hand, command: str) -> None:
    await sh(command, timeout_s=20)


async def test_the_command_is_run_byte_for_byte(sh: Hand, workspace: Path) -> None:
    odd = "‘curly’ “quotes” \u00a0 é e\u0301 \\n $HOME `x` \t\x01\x7f 𝒳"
    await sh(f"cat > 'out file' <<'END'\n{odd}\nEND")
    assert (workspace / "out file").read_text() == odd + "\n"


async def test_a_long_command_is_run_whole(sh: Hand) -> None:
    long = "x" * 300_000
    assert await sh(f"v={long}; echo ${{#v}}") == "300000"


@pytest.mark.parametrize(("command", "why"), [("echo a\0b", "NUL"), ("echo \ud800", "surrogate")])
async def test_what_no_shell_can_take_is_refused(sh: Hand, command: str, why: str) -> None:
    with pytest.raises(ToolError, match=why) as caught:
        await sh(command)
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT


async def test_output_comes_while_it_runs(sh: Hand) -> None:
    seen: list[str] = []
    context = sh.context()
    context.on_output = seen.append
    await TOOLS["shell_exec"].function(command="echo one; echo two >&2", context=context)
    assert "".join(seen) == "one\ntwo\n"
    assert context.mark is EffectMark.COMPLETE


async def test_there_is_no_network_and_no_secret(sh: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "topsecret")
    said = await sh("env; cat /proc/1/environ; (echo > /dev/tcp/192.0.2.1/80) 2>&1")
    assert "topsecret" not in said and "unreachable" in said


async def test_git_and_the_running_python_can_be_used(
    sh: Hand, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is needed")
    settings = tmp_path / "settings"
    settings.write_text(
        '[user]\n\tname = "Ünal \\"U\\" O"\n\temail = u@example.org\n[core]\n\tpager = x\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    said = await sh("touch new; git status --short; python -c 'import pydantic; print(\"py\")'")
    assert said == "?? new\npy"
    await sh("git add new; git commit -qm one")
    said = await sh("git log --format='%an <%ae>'; git config core.pager")
    assert said == 'Ünal "U" O <u@example.org>\n[exit code 1]'


# --- what lasts ----------------------------------------------------------------------------------


async def test_folder_variables_functions_and_options_last(sh: Hand) -> None:
    await sh(
        "mkdir -p 'a b/ü'; cd 'a b/ü'; export X='two\nlines \" $y'; plain=5; list=(1 'b c'); "
        'declare -A map=([k]=v); f() { echo "f:$1"; }; set -o pipefail; shopt -s extglob; '
        "umask 077"
    )
    said = await sh(
        'pwd; printf "%s|" "$X" "$plain" "${list[1]}" "${map[k]}"; f x; env | grep -c ^plain=; '
        "set -o | grep pipefail; shopt extglob; umask"
    )
    lines = said.splitlines()
    assert lines[0].endswith("/a b/ü")
    assert 'two\nlines " $y|5|b c|v|f:x\n0\n' in said
    assert re.search(r"pipefail\s+on\nextglob\s+on\n0077", said)
    assert said.endswith("[folder: a b/ü]")


async def test_they_last_over_a_restart(sh: Hand) -> None:
    await sh("mkdir sub; cd sub; x=1; f() { echo kept; }; echo t > /tmp/t")
    await sh.restart()
    assert await sh('f; echo $x; cat /tmp/t; basename "$PWD"') == "kept\n1\nt\nsub\n[folder: sub]"


async def test_the_private_folder_is_for_its_owner_only(sh: Hand, tmp_path: Path) -> None:
    await sh("secret=1; echo x > /tmp/x")
    (folder,) = (tmp_path / "store – ü" / "shells").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "state").stat().st_mode & 0o777 == 0o600
    assert b"secret" in (folder / "state").read_bytes()


async def test_a_session_without_a_disk_leaves_nothing_behind(
    make_context: Callable[..., ToolContext], workspace: Path, monkeypatch: Any, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    context = make_context(workspace, None)
    await TOOLS["shell_exec"].function(command="x=1; echo > /tmp/y", context=context)
    assert list(temporary.glob("lorimer-shell-*"))
    again = make_context(workspace, None)
    again.belongings = context.belongings
    assert await TOOLS["shell_exec"].function(command="echo $x", context=again) == "1"
    await context.belongings.close()
    assert not list(temporary.glob("lorimer-shell-*"))


async def test_an_exit_in_the_middle_keeps_what_came_before(sh: Hand) -> None:
    assert "[exit code 3]" in await sh("a=1; f() { exit 3; }; f; a=2")
    assert await sh("echo $a") == "1"


async def test_a_shell_that_replaced_itself_says_that_nothing_was_kept(sh: Hand) -> None:
    await sh("a=1")
    said = await sh("a=2; exec echo gone")
    assert said.startswith("gone\n[the shell ended before it could be kept")
    assert await sh("echo $a") == "1"


async def test_a_folder_outside_the_workspace_does_not_last(sh: Hand) -> None:
    said = await sh("cd /tmp")
    assert "[it ended in /tmp, outside the workspace" in said
    assert (await sh("pwd")).endswith("工作")


async def test_a_folder_that_vanished_is_told(sh: Hand, workspace: Path) -> None:
    await sh("mkdir sub; cd sub")
    (workspace / "sub").rmdir()
    said = await sh("pwd")
    assert said.splitlines()[0].endswith("工作")
    assert "the shell's folder sub is gone: this ran in the workspace" in said


async def test_a_folder_that_became_a_link_to_elsewhere_is_not_used(
    sh: Hand, workspace: Path, tmp_path: Path
) -> None:
    await sh("mkdir sub; cd sub")
    (workspace / "sub").rmdir()
    (workspace / "sub").symlink_to(tmp_path)
    assert "is gone" in await sh("pwd")
    assert shell_cwd(sh.context()) == str(workspace)


async def test_decisions_see_where_the_shell_is(sh: Hand, workspace: Path) -> None:
    assert TOOLS["shell_exec"].cwd_of is shell_cwd
    assert shell_cwd(sh.context()) == str(workspace)
    await sh("mkdir -p a/b; cd a/b")
    assert shell_cwd(sh.context()) == str(workspace / "a/b")
    await sh.restart()
    assert shell_cwd(sh.context()) == str(workspace / "a/b")


async def test_a_program_cannot_write_what_the_shell_keeps(sh: Hand) -> None:
    """It is given no descriptor for it, and no file."""
    await sh("x=1")
    code = (
        "import os\nfor n in os.listdir('/proc/self/fd'):\n"
        "    try: os.pwrite(int(n), b'x=evil\\0' * 9, 0)\n    except OSError: pass\n"
    )
    await sh(f"python3 - <<'END'\n{code}\nEND")
    assert await sh("echo $x") == "1"


async def test_a_state_file_that_was_tampered_with_is_not_followed(
    sh: Hand, tmp_path: Path
) -> None:
    await sh("x=1")
    await sh.restart()
    (folder,) = (tmp_path / "store – ü" / "shells").iterdir()
    (folder / "state").unlink()
    (tmp_path / "other").write_bytes(b'{"cwd": "../..", "size": 0}\n')
    (folder / "state").symlink_to(tmp_path / "other")
    assert (await sh("pwd; echo [$x]")).endswith("工作\n[]")
    await sh.restart()
    (folder / "state").unlink()
    (folder / "state").write_bytes(b'{"cwd": "../..", "size": 0}\n')
    assert "is gone: this ran in the workspace" in await sh("pwd")


async def test_two_calls_at_once_run_one_after_another(sh: Hand, workspace: Path) -> None:
    said: list[str] = []

    async def one(command: str) -> None:
        said.append(await sh(command))

    async with anyio.create_task_group() as group:
        group.start_soon(one, "n=1; echo began > mark; while [ ! -e go ]; do sleep 0.01; done; n=2")
        while not (workspace / "mark").exists():
            await anyio.sleep(0.005)
        group.start_soon(one, "echo n=$n")
        await anyio.sleep(0.05)
        assert said == []
        (workspace / "go").touch()
    assert said == [SILENT, "n=2"]


# --- limits --------------------------------------------------------------------------------------


async def test_a_time_out_tells_what_was_printed_and_keeps_the_state_of_before(sh: Hand) -> None:
    await sh("x=1; mkdir sub")
    with pytest.raises(ToolError, match="took longer than 1 s") as caught:
        await sh("x=2; cd sub; echo began; echo oops >&2; sleep 600", timeout_s=1)
    assert caught.value.code == "timeout" and caught.value.outcome is Outcome.UNKNOWN
    assert caught.value.details["printed"] == "began\noops"
    assert sh.last.mark is not EffectMark.NOT_BEGUN
    assert await sh('echo $x; basename "$PWD" | grep -c sub') == "1\n0\n[exit code 1]"


async def test_what_a_python_program_printed_before_a_time_out_is_not_lost(sh: Hand) -> None:
    with pytest.raises(ToolError) as caught:
        await sh("python3 -c 'print(\"here\"); import time; time.sleep(600)'", timeout_s=2)
    assert caught.value.details["printed"] == "here"


async def test_a_flood_is_capped_while_it_is_read_and_stored_whole(sh: Hand) -> None:
    said = await sh("seq 1 13000000", timeout_s=120)  # some 107 MB
    assert len(said) < 12_000
    assert said.startswith("1\n2\n") and said.endswith("\n13000000")
    where = re.search(r"\[([\d,]+) bytes left out here, whole output in (.+)\]", said)
    assert where is not None and int(where[1].replace(",", "")) > 100_000_000
    with open(where[2], "rb") as file:
        file.seek(-9, os.SEEK_END)
        assert file.read() == b"13000000\n"


async def test_binary_output_is_visible(sh: Hand) -> None:
    said = await sh("head -c 3000 /bin/bash")
    assert "ELF" in said and "\\x" in said


async def test_what_it_left_running_ends_with_it_and_is_told(sh: Hand) -> None:
    said = await sh("sleep 600 & echo started")
    assert said.startswith("started\n[1 job that it left running with & ended with it")


async def test_a_daemon_holding_the_output_does_not_hold_up_the_call(sh: Hand) -> None:
    with anyio.fail_after(20):
        assert "now" in await sh("(setsid sleep 600 &) ; echo now", timeout_s=60)


async def test_a_protected_name_is_told_and_renamed(sh: Hand, workspace: Path) -> None:
    with pytest.raises(ToolError, match="no tool may make") as caught:
        await sh("echo '{}' > .mcp.json; sleep 600")
    (renamed,) = caught.value.details["renamed, because no tool may write it"]
    assert renamed.startswith(".mcp.json (now quarantined-")
    assert not (workspace / ".mcp.json").exists()


async def test_cancelling_kills_and_keeps_the_state_of_before(sh: Hand, workspace: Path) -> None:
    await sh("x=1")
    async with anyio.create_task_group() as group:
        group.start_soon(sh, "x=2; while :; do echo x >> beat; done")
        while not (workspace / "beat").exists():
            await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    size = (workspace / "beat").stat().st_size
    with anyio.move_on_after(0.2):
        while (workspace / "beat").stat().st_size == size:
            await anyio.sleep(0.01)
    assert (workspace / "beat").stat().st_size == size
    assert sh.last.mark is EffectMark.BEGUN
    assert await sh("echo $x") == "1"


# --- the background ------------------------------------------------------------------------------


async def test_a_background_task_is_looked_at_and_stopped(sh: Hand) -> None:
    await sh("x=kept")
    said = await sh("echo $x; echo ready; sleep 600", background=True)
    assert said.startswith("[t1 was started; shell_output(id='t1')")
    assert (await sh.output("t1", wait_s=30, until="ready")).startswith("kept\nready\n[t1 has been")
    assert "nothing new was printed" in await sh.output("t1")
    assert "[background: t1 has been running" in await sh("true")
    assert re.search(r"\[t1 was stopped after [\d.]+ s", await sh.stop("t1"))
    assert "background" not in await sh("true")
    assert "t1 was stopped" in await sh.output("t1")


async def test_a_background_task_that_ended_gives_its_exit_code(sh: Hand) -> None:
    await sh("echo out; echo err >&2; exit 5", background=True)
    said = await sh.output("t1", wait_s=30)
    assert re.fullmatch(r"out\nerr\n\[t1 ended with exit code 5 after [\d.]+ s\]", said)


async def test_it_does_not_touch_the_shell_s_own_state(sh: Hand) -> None:
    await sh("cd /; x=other", background=True)
    await sh.output("t1", wait_s=30)
    assert (await sh("echo [$x]; pwd")).startswith("[]\n")


async def test_much_output_of_a_task_is_shown_in_part_and_stored_whole(sh: Hand) -> None:
    await sh("seq 1 100000", background=True)
    said = await sh.output("t1", wait_s=30)
    where = re.search(r"\[[\d,]+ bytes left out here, whole output in (.+)\]", said)
    assert where is not None and len(said) < 12_000
    assert Path(where[1]).read_text().endswith("\n100000\n")


async def test_an_unknown_task_says_which_there_are(sh: Hand) -> None:
    with pytest.raises(ToolError, match="there are: none"):
        await sh.output("t9")
    await sh("sleep 600", background=True)
    with pytest.raises(ToolError, match="there are: t1"):
        await sh.stop("t9")


async def test_numbers_of_tasks_are_not_used_again_after_a_restart(sh: Hand) -> None:
    await sh("sleep 600", background=True)
    await sh.restart()
    with pytest.raises(ToolError, match="Tasks end when the session is closed"):
        await sh.output("t1")
    assert "[t2 was started" in await sh("true", background=True)


async def test_more_tasks_than_may_be_are_refused(sh: Hand) -> None:
    for _ in range(8):
        await sh("sleep 600", background=True)
    with pytest.raises(ToolError, match="8 background tasks are running") as caught:
        await sh("sleep 600", background=True)
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT


async def test_closing_the_session_ends_its_tasks(sh: Hand, workspace: Path) -> None:
    await sh("(setsid sh -c 'while :; do echo x >> beat; done' &); sleep 600", background=True)
    while not (workspace / "beat").exists():
        await anyio.sleep(0.005)
    await sh.belongings.close()
    size = (workspace / "beat").stat().st_size
    with anyio.move_on_after(0.2):
        while (workspace / "beat").stat().st_size == size:
            await anyio.sleep(0.01)
    assert (workspace / "beat").stat().st_size == size


# --- without a sandbox ---------------------------------------------------------------------------


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = shutil.which

    def which(name: str, *rest: Any, **more: Any) -> str | None:
        return None if name == "bwrap" else found(name, *rest, **more)

    unusable = choose.Availability("os", usable=False, reason="no bubblewrap", next="Install it.")
    monkeypatch.setattr(choose, "available", lambda **_: (unusable,))
    monkeypatch.setattr(shutil, "which", which)


@pytest.mark.usefixtures("no_bwrap")
async def test_without_a_sandbox_it_is_refused_with_the_reason(sh: Hand, workspace: Path) -> None:
    with pytest.raises(ToolError, match="no bubblewrap") as caught:
        await sh("echo > x")
    assert caught.value.code == "no_sandbox" and not caught.value.retryable
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT
    assert list(workspace.iterdir()) == []


@pytest.mark.usefixtures("no_bwrap")
async def test_without_a_sandbox_it_runs_where_that_is_allowed_and_says_so(sh: Hand) -> None:
    (tool, *_) = make_shell_tools(allow_unsandboxed=True)
    said = await tool.function(command="x=3; echo hi; cd /", context=sh.context())
    assert said.startswith("hi\n") and "note: this ran WITHOUT a sandbox" in said
    said = await tool.function(command="echo $x; echo $TMPDIR", context=sh.context())
    assert said.startswith("3\n") and "shells" in said


async def test_the_weaker_sandbox_is_used_only_where_that_is_allowed_and_says_so(
    sh: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {one.level: one for one in choose.available()}
    if not here["landlock"].usable:
        pytest.skip(here["landlock"].reason)
    unusable = choose.Availability("os", usable=False, reason="no bubblewrap", next="Install it.")
    monkeypatch.setattr(choose, "available", lambda **_: (unusable, here["landlock"]))
    with pytest.raises(ToolError, match="no bubblewrap"):
        await sh("true")
    (tool, *_) = make_shell_tools(allow_fallback=True)
    said = await tool.function(
        command='x=1; mkdir d; cd d; echo kept > "$TMPDIR/f"; echo no > /etc/no',
        context=sh.context(),
    )
    assert "denied" in said.lower() and "weaker sandbox `landlock`" in said
    said = await tool.function(command='echo $x; cat "$TMPDIR/f"; pwd', context=sh.context())
    assert said.startswith("1\nkept\n") and "/d\n" in said


# --- through the dispatcher ----------------------------------------------------------------------


async def test_the_policy_is_asked_with_the_folder_that_the_shell_is_in(
    workspace: Path, tmp_path: Path
) -> None:
    seen: list[tuple[str, str]] = []

    def approve(request: Any) -> bool:
        seen.append((request.facts.cwd, request.facts.roots[0]))
        return True

    commands = ("mkdir -p a/b; cd a/b", "rm -rf x", "cd ..; rm -rf x", "rm -rf x")
    replies = [call("shell_exec", command=command) for command in commands]
    agent = Agent(
        ScriptedModel([*replies, "ended"]), toolset(["shell"]), store=tmp_path / "store.db",
        workspace=workspace, mode="ask", approver=approve,
    )  # fmt: skip
    async with agent:
        result = await agent.run("go")
    assert [c.outcome for c in result.calls] == [Outcome.DONE] * 4
    top = str(workspace)
    assert [cwd for cwd, _ in seen] == [top, f"{top}/a/b", f"{top}/a/b", f"{top}/a"]
    assert {root for _, root in seen} == {top}


async def test_writes_of_one_turn_run_in_order(workspace: Path) -> None:
    turn = [
        {"name": "shell_exec", "arguments": {"command": command}}
        for command in ("x=1; sleep 0.2", "x=$((x + 1))", "echo x=$x")
    ]
    agent = Agent(
        ScriptedModel([turn, "ended"]), toolset(["shell"]), store=":memory:",
        workspace=workspace, approver=lambda _: True,
    )  # fmt: skip
    async with agent:
        result = await agent.run("go")
    assert result.calls[-1].result == "x=2"
