"""G7 for the shell, the interpreter and their background tasks: nothing is left, whoever ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import world as w
from lorimer import Agent
from lorimer.core.calls import Outcome
from lorimer.safety.sandbox import choose
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset

pytestmark = pytest.mark.skipif(
    not choose.available()[0].usable, reason=choose.available()[0].reason
)

# each keeps a process alive that has MARK on its command line
_HOLD = (
    "trap '' TERM INT HUP; "
    "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 3600; done' MARK &);"
    " sh -c 'while :; do sleep 3600; done' MARK & echo up; wait"
)


@pytest.fixture
def mark() -> Iterator[str]:
    mark = f"lorimer-{os.urandom(8).hex()}"
    yield mark
    assert not saying(mark)


def saying(mark: str) -> list[str]:
    """The command lines of processes that name `mark`, this process and zombies left out."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            found.append(f"{name}: {line!r}")
    return found


def _yes(_: object) -> bool:
    return True


def workers_of(parent: int) -> list[Path]:
    """The script workers below a process; each is gone when its folder is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, above, *_ = rest.split()
        if name.endswith("(monty") and int(above) == parent and state != "Z":
            found.append(stat.parent)
    return found


def gone(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def agent(tmp_path: Path, *replies: object) -> Agent:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    model = ScriptedModel([*replies])  # type: ignore[arg-type]
    return Agent(
        model,
        toolset(["shell", "code"]),
        store=tmp_path / "store.db",
        workspace=workspace,
        approver=_yes,
    )


@pytest.mark.anyio
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize("way", ["cancel", "session close", "agent close"])
async def test_nothing_is_left_of_a_shell(
    way: str, background: bool, tmp_path: Path, mark: str
) -> None:
    command = _HOLD.replace("MARK", mark)
    made = agent(tmp_path, call("shell_exec", command=command, background=background), "ended")
    async with made, made.session() as session:
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: len(saying(mark)) >= 2, "the processes")
        if background:
            assert (await run).calls[0].outcome is Outcome.DONE
        match way:
            case "cancel":
                await session.cancel()
                if background:
                    assert saying(mark)
                    await session.close()
            case "session close":
                await session.close()
            case _:
                await made.close()
        await run
        assert not saying(mark)


@pytest.mark.anyio
async def test_a_time_out_leaves_nothing(tmp_path: Path, mark: str) -> None:
    command = _HOLD.replace("MARK", mark)
    made = agent(tmp_path, call("shell_exec", command=command, timeout_s=2), "ended")
    async with made, made.session() as session:
        (end,) = (await session.send("go")).calls
        assert end.code == "timeout" and end.outcome is Outcome.UNKNOWN and "up" in end.result
        assert not saying(mark)


# --- the interpreter and scripts -----------------------------------------------------------------


def _cell(mark: str) -> str:
    """A cell that starts what ignores signals and leaves its session, and then does not end."""
    hold = _HOLD.replace("MARK", mark).replace("wait", "true")
    return f"import os, subprocess\nsubprocess.Popen(['sh', '-c', {hold!r}])\nwhile True: pass"


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["cancel", "session close"])
async def test_nothing_is_left_of_an_interpreter(way: str, tmp_path: Path, mark: str) -> None:
    pytest.importorskip("ipykernel")
    made = agent(tmp_path, call("code_interpreter", code=_cell(mark)), "ended")
    async with made, made.session() as session:
        run = asyncio.create_task(session.send("go"))
        await w.until(lambda: len(saying(mark)) >= 2, "the processes")
        await (session.cancel() if way == "cancel" else session.close())
        (end,) = (await run).calls
        assert end.outcome is Outcome.UNKNOWN
        assert not saying(mark)


_PROGRAM = """
import asyncio, sys
from lorimer import Agent
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset

def _yes(_):
    return True

async def one(folder, name, *calls):
    model = ScriptedModel([*calls])
    tools = toolset(["shell", "code"])
    async with Agent(
        model, tools, store=f"{folder}/{name}.db", workspace=folder, approver=_yes
    ) as agent:
        await agent.run("go")

async def main(folder, command, cell, script):
    await asyncio.gather(
        one(folder, "shell", call("shell_exec", command=command, background=True),
            call("shell_exec", command=command)),
        one(folder, "cell", call("code_interpreter", code=cell)),
        one(folder, "script", call("run_script", script=script)),
    )

asyncio.run(main(*sys.argv[1:]))
"""


def test_nothing_is_left_after_kill_9_of_lorimer(tmp_path: Path, mark: str) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("pydantic_monty")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = "shell_exec(command='touch began')\nwhile True: pass"
    program = [
        sys.executable, "-c", _PROGRAM, str(workspace), _HOLD.replace("MARK", mark), _cell(mark),
        script,
    ]  # fmt: skip
    with subprocess.Popen(program, env=w.environment(mark)) as lorimer:
        looping = "while :; do sleep 3600"
        w.wait_until(lambda: sum(looping in s for s in saying(mark)) >= 7, "shells and cell")
        w.wait_until((workspace / "began").exists, "the script")
        (worker,) = workers_of(lorimer.pid)
        lorimer.send_signal(signal.SIGKILL)
    w.wait_until(lambda: not saying(mark), "the end of every process in a sandbox")
    w.wait_until(lambda: gone(worker), "the end of the script's worker")
