"""`lorimer tools call`: one call by hand, and how it goes on in a session."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from typing import Any

import pytest

from cli.conftest import COMMAND, Cli

TOOLS = """
from lorimer import tool

@tool(effects="write", isolation="thread", sinks=[])
def put(note: str) -> str:
    "Put a note."
    with open("notes.txt", "a") as file:
        file.write(note + "\\n")
    return "put"

@tool(effects="read", isolation="thread")
def shout() -> str:
    "Loud."
    return "a\\x1b[2Jb\\x07c\\nd"
"""


def session_of(ended: subprocess.CompletedProcess[bytes]) -> str:
    line = next(x for x in ended.stderr.decode().splitlines() if x.startswith("session s_"))
    id = line.removeprefix("session ").partition(":")[0]
    assert line == f"session {id}: go on in it with --session {id}"
    return id


@pytest.fixture
def own(cli: Cli) -> Cli:
    (cli.folder / "own tools.py").write_text(TOOLS)
    return cli


def test_the_steps_that_are_told_work(own: Cli) -> None:
    asked = own.run("tools", "call", "put", '{"note": "it\'s"}', "--tools", "own tools.py")
    assert asked.returncode == 1
    body = json.loads(asked.stdout)
    assert body["error"] == "needs_approval" and not (own.folder / "notes.txt").exists()
    steps = body["next"].splitlines()
    assert [step.partition(": ")[0] for step in steps] == ["Approve it", "Then call it again"]
    for step in steps:  # exactly as they are written, in a shell
        words = step.partition(": ")[2]
        assert words.startswith("lorimer ")
        script = f"{' '.join(_quoted(COMMAND))} {words.removeprefix('lorimer ')}"
        ended = subprocess.run(
            script, shell=True, cwd=own.folder, env=own.environ, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert ended.returncode == 0, ended
    assert (own.folder / "notes.txt").read_text() == "it's\n"
    assert session_of(asked) in steps[1]
    assert own.run("audit", "verify").returncode == 0


def _quoted(words: list[str]) -> list[str]:
    import shlex

    return [shlex.quote(word) for word in words]


def test_json_has_the_session_and_the_steps(own: Cli) -> None:
    words = ("tools", "call", "put", '{"note": "x"}', "--tools", "own tools.py", "--json")
    body = own.json(*words)
    assert body["code"] == "needs_approval" and body["session"] in body["then"]
    approved = own.run("approvals", "approve", json.loads(body["result"])["approval"])
    assert approved.returncode == 0, approved
    again = own.json(*words, "--session", body["session"])
    assert again["outcome"] == "done" and again["session"] == body["session"]
    assert "then" not in again
    once = own.json(*words, "--session", body["session"])
    assert once["code"] == "needs_approval", "an approval is for one call"


def test_a_session_keeps_its_folder_mode_and_tools(own: Cli) -> None:
    first = own.run(
        "tools", "call", "put", '{"note": "1"}', "--tools", "own tools.py", "--mode", "auto"
    )
    (own.folder / "below").mkdir()
    second = subprocess.run(
        [*COMMAND, "tools", "call", "put", '{"note": "2"}', "--session", session_of(first)],
        cwd=own.folder / "below", env=own.environ, capture_output=True, check=False,
    )  # fmt: skip
    assert second.returncode == 0 and session_of(second) == session_of(first), second
    shown = own.run("sessions", "show", session_of(first)).stdout.decode()
    assert shown.count("lorimer tools call put") == 2 and "mode auto" in shown


def test_the_shell_is_where_it_was(cli: Cli) -> None:
    made = cli.run(
        "tools", "call", "shell_exec", '{"command": "mkdir d; cd d; export A=one"}', "--mode",
        "trusted",
    )  # fmt: skip
    if b"no_sandbox" in made.stdout:
        pytest.skip("no sandbox here")
    seen = cli.run(
        "tools", "call", "shell_exec", '{"command": "basename \\"$PWD\\"; echo $A"}', "--session",
        session_of(made),
    )  # fmt: skip
    assert seen.stdout.startswith(b"d\none\n"), seen
    other = cli.run("tools", "call", "shell_exec", '{"command": "echo -$A-"}', "--mode", "trusted")
    assert other.stdout.startswith(b"--\n"), other


def test_what_runs_in_the_background_ends_and_that_is_said(cli: Cli) -> None:
    ended = cli.run(
        "tools", "call", "shell_exec", '{"command": "sleep 987", "background": true}', "--mode",
        "trusted",
    )  # fmt: skip
    if b"no_sandbox" in ended.stdout:
        pytest.skip("no sandbox here")
    assert ended.returncode == 0 and b"has ended with this command" in ended.stderr
    plain = cli.run("tools", "call", "shell_exec", '{"command": "true"}', "--mode", "trusted")
    assert b"has ended with" not in plain.stderr


def test_a_call_waits_for_its_approval(own: Cli) -> None:
    waiting = own.start(
        "tools", "call", "put", '{"note": "x"}', "--tools", "own tools.py", "--approval-wait", "90"
    )
    deadline = time.monotonic() + 60
    found = None
    while found is None:
        assert time.monotonic() < deadline and waiting.poll() is None
        text = own.run("approvals", "list", "--json").stdout.decode()
        found = re.search(r'"(a_[0-9a-z]+)"', text)
    assert own.run("approvals", "approve", found[1]).returncode == 0
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0 and out == b"put\n", err


def test_a_session_that_is_not_there_is_said(cli: Cli) -> None:
    ended = cli.run("tools", "call", "read_file", '{"path": "a"}', "--session", "s_none")
    assert ended.returncode != 0 and b"s_none" in ended.stderr and not ended.stdout


# --- a result and the terminal -------------------------------------------------------------------


def test_into_a_pipe_a_result_goes_as_it_is(own: Cli) -> None:
    ended = own.run("tools", "call", "shout", "--tools", "own tools.py")
    assert ended.stdout == b"a\x1b[2Jb\x07c\nd\n"
    assert b"\x1b" not in ended.stderr
    told = b" ".join(own.run("tools", "call", "--help").stdout.split())
    assert b"byte for byte" in told and b"control characters are written out" in told


def test_on_a_terminal_a_result_cannot_play_with_it(own: Cli) -> None:
    main, far = pty.openpty()
    running = subprocess.Popen(
        [*COMMAND, "tools", "call", "shout", "--tools", "own tools.py"], stdin=subprocess.DEVNULL,
        stdout=far, stderr=subprocess.DEVNULL, cwd=own.folder, env=own.environ,
    )  # fmt: skip
    os.close(far)
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # how the far end of a terminal says that it is closed
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    assert running.wait(timeout=60) == 0
    assert seen.replace(b"\r\n", b"\n") == b"a\\x1b[2Jb\\x07c\nd\n"


def test_show_says_what_decisions_rest_on(own: Cli) -> None:
    (own.folder / "own tools.py").write_text(
        "from lorimer import tool\n\n@tool\ndef send(to: str, file: str) -> str:\n    'Send.'\n"
        "    return 'sent'\n\n@tool(sinks=['to'], path_arguments=[], trust='external')\n"
        "def fetch(to: str) -> str:\n    'Fetch.'\n    return 'x'\n"
    )
    shown = own.run("tools", "show", "send", "--tools", "own tools.py").stdout.decode()
    assert "decides where something goes: to  (not declared: guessed by name)" in shown
    assert "paths: file  (not declared: guessed by name)" in shown
    said = own.run("tools", "show", "fetch", "--tools", "own tools.py").stdout.decode()
    assert "decides where something goes: to\n" in said and "paths: none\n" in said
    body: Any = own.json("tools", "show", "send", "--tools", "own tools.py", "--json")
    assert body["sinks"] == ["to"] and body["guessed"]["path_arguments"] == ["file"]
