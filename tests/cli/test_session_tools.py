"""A session is gone on with by the tools it was begun with, wherever they came from."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import COMMAND, Cli, call
from lorimer.cli.session_tools import kept
from wire.answers import Say

PAY = """
import pathlib, threading
from lorimer import tool

HERE = pathlib.Path(FOLDER)

@tool(isolation="thread", sinks=[])
def pay(amount: int) -> str:
    "Pay an amount."
    if not (HERE / "began").exists():
        (HERE / "began").touch()
        threading.Event().wait()
    with open(HERE / "paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return "paid"
"""


def begun(cli: Cli, model: str) -> str:
    """The id of a session that was killed while `pay` ran."""
    (cli.folder / "pt.py").write_text(PAY.replace("FOLDER", repr(str(cli.folder))))
    running = cli.start("run", "-m", model, "--tools", "pt.py,read_file", "--mode", "auto", "Pay 7")
    deadline = time.monotonic() + 60
    while not (cli.folder / "began").exists():
        assert time.monotonic() < deadline and running.poll() is None
        os.sched_yield()
    running.kill()
    running.communicate()
    found = re.search(r'"(s_[0-9a-z]+)"', cli.run("sessions", "list", "--json").stdout.decode())
    assert found is not None
    return found[1]


def elsewhere(cli: Cli, *words: str) -> subprocess.CompletedProcess[bytes]:
    """A command in another folder: what is kept must not depend on this one."""
    (cli.folder / "below").mkdir(exist_ok=True)
    return subprocess.run(
        [*COMMAND, *words], cwd=cli.folder / "below", env=cli.environ, capture_output=True,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


@pytest.fixture
def at(serve: Any) -> Any:
    return serve(
        Say(calls=(call("pay", amount=7),)), Say(calls=(call("pay", id="c2", amount=8),)), "Paid."
    )


def test_resume_after_a_kill_needs_no_tools_again(cli: Cli, at: Any) -> None:
    session = begun(cli, at.model)
    ended = elsewhere(cli, "resume", session, "-m", at.model)
    assert ended.returncode == 0 and ended.stdout == b"Paid.\n", ended
    assert (cli.folder / "paid.txt").read_text() == "8\n"
    said = " ".join(ended.stderr.decode().split())
    assert f"those the session was begun with, from {cli.folder / 'pt.py'},read_file" in said


def test_run_in_a_session_has_its_tools_too(cli: Cli, at: Any) -> None:
    session = begun(cli, at.model)
    ended = elsewhere(
        cli, "run", "-m", at.model, "--session", session, "--mode", "auto", "-C", str(cli.folder),
        "Go on",
    )  # fmt: skip
    assert ended.returncode == 0 and ended.stdout == b"Paid.\n", ended
    assert (cli.folder / "paid.txt").read_text() == "8\n"


def test_a_file_that_is_gone_is_named_and_how_to_say_where_it_is(cli: Cli, at: Any) -> None:
    session = begun(cli, at.model)
    (cli.folder / "new place").mkdir()
    (cli.folder / "pt.py").rename(cli.folder / "new place" / "pt.py")
    for words in (("resume", session), ("run", "--session", session, "Go on")):
        ended = cli.run(*words, "-m", at.model)
        assert ended.returncode == 2, ended
        said = ended.stderr.decode()
        assert f"came from {cli.folder / 'pt.py'}, which is not there" in said and "pay" in said
        assert "--tools NEW-PLACE/pt.py,read_file" in said.replace("'", "")
    step = said.partition("--tools ")[2].strip()
    given = shlex.split(step)[0].replace("NEW-PLACE", str(cli.folder / "new place"))
    ended = cli.run("resume", session, "-m", at.model, "--tools", given)
    assert ended.stdout == b"Paid.\n", ended


def test_a_tool_that_is_no_longer_in_its_file_is_said(cli: Cli, at: Any) -> None:
    session = begun(cli, at.model)
    (cli.folder / "pt.py").write_text(
        "from lorimer import tool\n\n@tool\ndef give() -> str:\n    'Give.'\n"
    )
    ended = cli.run("resume", session, "-m", at.model)
    assert ended.returncode == 2 and b"has no pay any more" in ended.stderr, ended
    (cli.folder / "pt.py").write_text("1 +")
    ended = cli.run("resume", session, "-m", at.model)
    assert ended.returncode == 2 and b"cannot be had" in ended.stderr, ended


def test_other_tools_than_its_own_are_said_to_be_unknown_to_its_model(cli: Cli, at: Any) -> None:
    session = begun(cli, at.model)
    ended = cli.run("resume", session, "-m", at.model, "--tools", "read_file,find_file")
    assert b"calls of them fail: pay" in ended.stderr, ended
    assert b"does not know find_file" in b" ".join(ended.stderr.split())


def test_files_are_kept_by_their_whole_path(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert kept("a.py, files,mod:name") == {"tools": f"{tmp_path}/a.py,files,mod:name"}
    assert kept(f"{tmp_path}/b.py") == {"tools": f"{tmp_path}/b.py"}
    assert kept(None) == {}
