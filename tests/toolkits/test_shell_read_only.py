"""A command that was taken to only read cannot write, and starts nothing that a repository names:
also when it was a mistake to take it so. Run once more as a normal user."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lorimer import Agent
from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts
from lorimer.core.effects import CallEffects
from lorimer.core.messages import ResultPart, TextPart
from lorimer.safety.sandbox import choose
from lorimer.testing import ScriptedModel
from lorimer.toolkits.execution.shell_exec import make_shell_tools

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not choose.available()[0].usable, reason=choose.available()[0].reason),
]
NOTE = "[the workspace was read-only for this command, because it was taken to only read"


class Says:
    """An analysis that says the same of everything."""

    def __init__(self, level: Effects) -> None:
        self._level = level

    def assess(self, facts: CallFacts) -> CallEffects:
        return CallEffects(self._level)


async def results(
    folder: Path, *commands: str, level: Effects = Effects.READ, background: bool = False
) -> list[str]:
    """What the commands said in one session, each allowed, taken to be of this level."""
    calls = [
        {"calls": [{"name": "shell_exec", "arguments": {"command": c, "background": background}}]}
        for c in commands
    ]
    agent = Agent(
        ScriptedModel([*calls, "ok"]), make_shell_tools(), mode="auto", workspace=folder,
        approver=lambda _: True, store=folder.parent / "s.db",
        assessor=Says(level),
    )  # fmt: skip
    async with agent, agent.session() as session:
        await session.send("go")
        found = [p for e in session.entries for p in e.parts if isinstance(p, ResultPart)]
    return ["".join(p.text for p in one.content if isinstance(p, TextPart)) for one in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "wörk space"
    made.mkdir()
    (made / "kept.txt").write_text("one\ntwo\n")
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.is_symlink()
    }


@pytest.mark.parametrize(
    "command",
    [
        "echo x > new.txt",
        "echo x >> kept.txt",
        "rm kept.txt",
        "mv kept.txt moved.txt",
        "mkdir new",
        "ln -s /etc/passwd new",
        "chmod 000 kept.txt",
        "touch -d 2001-01-01 kept.txt",
        "truncate -s 0 kept.txt",
        "sed -i s/one/two/ kept.txt",
        'python3 -c \'open("kept.txt", "w").write("x")\'',
        "git init -q .",
    ],
)
async def test_what_was_taken_to_read_cannot_write(folder: Path, command: str) -> None:
    before, mode = contents(folder), (folder / "kept.txt").stat()
    (said,) = await results(folder, command)
    assert contents(folder) == before, said
    after = (folder / "kept.txt").stat()
    assert (after.st_mode, after.st_mtime_ns) == (mode.st_mode, mode.st_mtime_ns)
    assert "[exit code " in said
    assert NOTE in said, said


async def test_in_the_background_neither(folder: Path) -> None:
    before = contents(folder)
    await results(folder, "echo x > new.txt; rm -f kept.txt", background=True)
    assert contents(folder) == before


async def test_the_same_command_taken_to_write_does(folder: Path) -> None:
    said = await results(folder, "echo x > new.txt; sed -i s/one/1/ kept.txt", level=Effects.WRITE)
    assert (folder / "new.txt").read_text() == "x\n", said
    assert (folder / "kept.txt").read_text() == "1\ntwo\n"


async def test_the_shell_remembers_and_has_its_tmp_all_the_same(folder: Path) -> None:
    (folder / "sub").mkdir()
    said = await results(folder, "cd sub; X=kept; echo note > /tmp/n", 'pwd; echo "$X"; cat /tmp/n')
    assert "[folder: sub]" in said[0], said
    assert said[1].startswith(f"{folder}/sub\nkept\nnote"), said


async def test_a_failure_of_another_kind_gets_no_note(folder: Path) -> None:
    (said,) = await results(folder, "cat missing")
    assert "No such file" in said
    assert NOTE not in said


# --- git -----------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.hooksPath=/dev/null"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def repository(folder: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("first line\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "start")
    (folder / "a.txt").write_text("other line\n")
    return folder


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("git status --short", " M a.txt"),
        ("git status", "modified:   a.txt"),
        ("git log --oneline --stat", "start"),
        ("git diff", "-first line\n+other line"),
        ("git diff HEAD --stat", "a.txt | 2 +-"),
        ("git show HEAD:a.txt", "first line"),
        ("git branch -a", "* "),
        ("git blame a.txt", "other line"),
        ("git grep -n line", "a.txt:1:other line"),
        ("git ls-files", "kept.txt"),
        ("grep -rn two .", "kept.txt:2:two"),
        ("find . -name '*.txt' | sort", "./a.txt\n./kept.txt"),
        ("wc -l kept.txt", "2 kept.txt"),
        ("ls -la && du -sh . && stat a.txt", "a.txt"),
    ],
)
async def test_ordinary_readers_work(repository: Path, command: str, said: str) -> None:
    before = contents(repository)
    (text,) = await results(repository, command)
    assert said in text, text
    assert "[exit code" not in text
    assert contents(repository) == before


RUN = '"touch /tmp/ran; cat"'
FALSE = '"touch /tmp/ran; false"'
HOSTILE = {
    "fsmonitor": f"[core]\nfsmonitor = {FALSE}",
    "external diff": f"[diff]\nexternal = {RUN}",
    "textconv": f'[diff "Odd.Näme"]\ntextconv = {RUN}',
    "command of a driver": f'[diff "Odd.Näme"]\ncommand = {RUN}',
    "clean": f'[filter "f"]\nclean = {RUN}\nrequired = true',
    "process": f'[filter "f"]\nprocess = {FALSE}',
    "included": "[include]\npath = ../more.cfg",
    "included on a condition": '[includeIf "gitdir:**"]\npath = ../more.cfg',
    "in one line": f"[core]fsmonitor={FALSE} # [x]",
    "continued": '[core]\nfsmonitor = "touch \\\n/tmp/ran; false"',
}
READS = (
    "git status; git diff; git log -p; git show HEAD; git blame a.txt; git grep third; "
    "git diff --ext-diff HEAD; git log -p --ext-diff --textconv; git stash list; git branch; "
    "git cat-file --textconv HEAD:a.txt; git cat-file --filters HEAD:a.txt; git status --short"
)


@pytest.fixture(params=HOSTILE)
def hostile(repository: Path, request: pytest.FixtureRequest) -> Path:
    (repository / ".gitattributes").write_text("a.txt diff=Odd.Näme filter=f\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "more")
    (repository / "a.txt").write_text("third line\n")
    (repository / "more.cfg").write_text(f'[diff "Odd.Näme"]\ntextconv = {RUN}\n')
    with open(repository / ".git" / "config", "a", encoding="utf-8") as file:
        file.write(HOSTILE[request.param] + "\n")
    return repository


async def test_a_repository_starts_nothing_in_a_command_that_reads(hostile: Path) -> None:
    said, found = await results(hostile, READS, "test -e /tmp/ran && echo ran; true")
    assert found == "[exit code 0; nothing was printed]"
    assert "+third line" in said, said
    assert "-other line" in said


async def test_the_same_repository_does_start_it_otherwise(hostile: Path) -> None:
    """Or the test above would show nothing."""
    said, found = await results(
        hostile, READS, "test -e /tmp/ran && echo ran; true", level=Effects.WRITE
    )
    assert found == "ran", said


async def test_hooks_and_aliases_are_not_run_either(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch /tmp/ran\n")
    hook.chmod(0o755)
    git(repository, "config", "alias.status", "!touch /tmp/ran")
    git(repository, "config", "pager.log", "touch /tmp/ran; cat")
    command = "git status; git -p log; git update-index --refresh; ls /tmp/ran"
    (said,) = await results(repository, command)
    assert "start" in said
    assert "cannot access '/tmp/ran'" in said
