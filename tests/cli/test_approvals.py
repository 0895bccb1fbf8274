"""`lorimer approvals`: the requests of a real run, answered from other processes; and the question
at the terminal."""

# ruff: noqa: E501 - tables of cases read better in few lines

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Cli, call
from lorimer.cli.asking import TerminalApprover, ago
from lorimer.cli.terminal import Screen
from lorimer.core.calls import Effects
from lorimer.core.decisions import Approval, ApprovalRequest, CallFacts
from lorimer.core.effects import Access, CallEffects, PathTouch
from wire.answers import Say

WRITE = Say(calls=(call("write_file", path="notes.md", content="one\n2 – zwei\n"),))


def lines(cli: Cli, *words: str) -> list[dict[str, Any]]:
    ended = cli.run("approvals", "list", "--json", *words)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def asked(cli: Cli, serve: Any, *more: Any) -> tuple[Any, str, str]:
    """A run whose write waits for an approval: the provider, the session, the request."""
    at = serve(WRITE, "It waits.", *more)
    result = cli.json("run", "-m", at.model, "--json", "Write notes")
    told = json.loads(result["calls"][0]["result"])
    assert told["error"] == "needs_approval"
    return at, result["session"], told["approval"]


def test_asked_answered_and_gone_on_with(cli: Cli, serve: Any) -> None:
    at, session, request = asked(
        cli, serve, Say(calls=(call("write_file", path="notes.md", content="one\n2 – zwei\n"),)), "Done."
    )  # fmt: skip
    assert not (cli.folder / "notes.md").exists()
    (one,) = lines(cli)
    assert (one["id"], one["state"], one["session"]) == (request, "open", session)
    ended = cli.run("approvals", "approve", request, "--by", "Ada", "--reason", "fine")
    assert ended.returncode == 0 and b"approved by Ada" in ended.stdout
    result = cli.json("run", "-m", at.model, "--json", "-s", session, "approved, go on")
    assert result["calls"][0]["outcome"] == "done"
    assert (cli.folder / "notes.md").read_text("utf-8") == "one\n2 – zwei\n"
    (one,) = lines(cli, "--session", session)
    assert one["state"] == "spent" and one["answer"]["reason"] == "fine"
    assert cli.run("audit", "verify").returncode == 0
    exported = [json.loads(x) for x in cli.run("sessions", "export", session).stdout.splitlines()]
    (kept,) = [x for x in exported if x["type"] == "approval"]
    assert kept["id"] == request and kept["answer"]["by"] == "Ada"
    again = cli.run("approvals", "approve", request)
    assert again.returncode == 8 and b"used already" in again.stderr


def test_show_shows_the_whole_call_with_its_diff(cli: Cli, serve: Any) -> None:
    _, session, request = asked(cli, serve)
    text = cli.run("approvals", "show", request).stdout.decode()
    for part in (request, session, "write_file", "+2 – zwei", "notes.md", "absent", "expires", "digest"):  # fmt: skip
        assert part in text
    assert f"lorimer approvals approve {request}" in text
    said = json.loads(cli.run("approvals", "show", request[-8:], "--json").stdout)
    assert said["id"] == request and said["request"]["bound"]["arguments"]["path"] == "notes.md"


def test_the_table_fits_eighty_columns(cli: Cli, serve: Any) -> None:
    asked(cli, serve)
    text = cli.run("approvals", "list").stdout.decode()
    assert "open" in text and "24 h" in text and "write_file" in text
    assert max(map(len, text.splitlines())) <= 80


def test_reject_with_a_reason(cli: Cli, serve: Any) -> None:
    at, session, request = asked(cli, serve, WRITE, "I may not.")
    ended = cli.run("approvals", "reject", request[-6:], "--reason", "not on a Friday", "--json")
    assert json.loads(ended.stdout)["state"] == "rejected"
    second = cli.run("approvals", "approve", request)
    assert second.returncode == 8 and b"already answered: rejected by" in second.stderr
    result = cli.json("resume", "-m", at.model, "--json", session)
    assert result["stop"] == "answered" and not (cli.folder / "notes.md").exists()


def test_edit_runs_the_edited_call(cli: Cli, serve: Any) -> None:
    at, session, request = asked(cli, serve, WRITE, "Done.")
    body = json.dumps({"path": "notes.md", "content": "mine\n"})
    ended = cli.run("approvals", "edit", request, "--arguments", "-", stdin=body.encode())
    assert ended.returncode == 0, ended.stderr
    result = cli.json("run", "-m", at.model, "--json", "-s", session, "go on")
    assert (cli.folder / "notes.md").read_text() == "mine\n"
    assert "changed the arguments" in result["calls"][0]["result"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "a_nope"), 2, "No approval request 'a_nope'"),
        (("approve", "REQUEST~"), 2, "Did you mean"),
        (("approve", "REQUEST", "--as", "mallory"), 8, "may not answer"),
        (("approve", "REQUEST", "--digest", "abc"), 8, "for another call"),
        (("edit", "REQUEST", "--arguments", "{path"), 2, "--arguments"),
        (("edit", "REQUEST", "--arguments", "[1]"), 2, "not an object"),
        (("edit", "REQUEST", "--arguments", '{"a": 1, "a": 2}'), 2, "stands twice"),
        (("list", "--session", "s_nope"), 2, "No session 's_nope'"),
    ],
)
def test_wrong_use_says_what_and_changes_nothing(
    cli: Cli, serve: Any, words: tuple[str, ...], code: int, said: str
) -> None:
    _, _, request = asked(cli, serve)
    ended = cli.run("approvals", *(w.replace("REQUEST", request) for w in words))
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr.decode() and b"Traceback" not in ended.stderr
    assert lines(cli)[0]["state"] == "open"


def test_nothing_waits(cli: Cli) -> None:
    assert b"Nothing waits" in cli.run("approvals", "list").stdout


def test_a_run_waits_for_the_answer_from_elsewhere(cli: Cli, serve: Any) -> None:
    at = serve(WRITE, "Done.")
    process = cli.start("run", "-m", at.model, "--approval-wait", "120", "Write notes")
    request = _wait_for_request(cli.home)
    assert cli.run("approvals", "approve", request).returncode == 0
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out == b"Done.\n" and (cli.folder / "notes.md").exists()
    assert f"lorimer approvals show {request}".encode() in err


def _wait_for_request(home: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)
        for path in home.rglob("*.db"):
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                try:
                    found = db.execute("SELECT id FROM approvals").fetchall()
                except sqlite3.OperationalError:
                    continue
                if found:
                    return str(found[0][0])
    raise AssertionError("the run asked nobody")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (99, "99 s"), (100, "2 min"), (7200, "2 h"), (500_000, "6 d")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert ago(seconds) == text


# --- the question at the terminal ------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[Any]:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input

    with create_pipe_input() as typed, create_app_session(input=typed):
        yield typed


def request(**more: Any) -> ApprovalRequest:
    path = PathTouch("a.txt", "/here/a.txt", Access.WRITE, True)
    facts = CallFacts(
        "shell", Effects.WRITE, "execution", {"command": "x" * 300 + "\x1b[2J"}, (), "p", "s", "/here",
        touches=CallEffects(Effects.IRREVERSIBLE, (path,)),
    )  # fmt: skip
    given = {
        "id": "a_1",
        "preview": "-old\n+new",
        "files": {"/here/b.sh": "sha256:1"},
        "news": "new host: h",
    }
    return ApprovalRequest("c1", facts, "it asks", **{**given, **more})


def ask(terminal: Any, keys: str, shown: ApprovalRequest) -> Approval:
    terminal.send_text(keys)
    return asyncio.run(TerminalApprover(Screen()).ask(shown))


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("y\r", (True, "", False)), ("\r\r  \ryes\r", (True, "", False)), ("n\r", (False, "", False)),
        ("not this one\r", (False, "not this one", False)), ("s\r", (True, "", True)),
    ],
)  # fmt: skip
def test_the_person_answers(terminal: Any, keys: str, answer: tuple[bool, str, bool]) -> None:
    given = ask(terminal, keys, request(remember_rule="[[policy.rule]]"))
    assert (given.approved, given.reason, given.for_session) == answer


def test_without_a_rule_there_is_nothing_for_the_session(terminal: Any) -> None:
    given = ask(terminal, "s\r", request())
    assert (given.approved, given.for_session) == (False, False)


def test_the_person_edits(terminal: Any) -> None:
    shown = request()
    given = ask(terminal, 'e\r\x01\x0b{"command": "ls"}\r', shown)
    assert given.approved and given.edited == {"command": "ls"}


def test_a_question_that_is_answered_elsewhere_goes_away(terminal: Any) -> None:
    async def withdrawn() -> bool:
        asking = asyncio.create_task(TerminalApprover(Screen()).ask(request()))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return asking.cancelled()

    assert asyncio.run(withdrawn())


def test_nothing_of_the_question_is_cut_and_nothing_moves_the_cursor(
    terminal: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(terminal, "n\r", request(remember_rule="[[policy.rule]]\ntool = 'shell'"))
    text = capsys.readouterr().err
    assert "x" * 300 + "\\x1b[2J" in text.replace("\n    · ", "")
    for part in (
        "write /here/a.txt", "/here/b.sh sha256:1", "-old", "+new", "new host: h",
        "tool = 'shell'", "a_1", "irreversible",
    ):  # fmt: skip
        assert part in text


def test_somebody_else_who_can_write_the_store_answers_as_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lorimer import Agent, tool
    from lorimer.cli import approvals
    from lorimer.core.errors import WrongPrincipal
    from lorimer.store import open_store
    from lorimer.testing import ScriptedModel
    from lorimer.testing import call as scripted_call

    @tool(effects="irreversible")
    async def pay(to: str) -> str:
        """Pay somebody."""
        return "paid"

    path = tmp_path / "store.db"
    store = open_store(path)
    agent = Agent(
        ScriptedModel([scripted_call("pay", to="bo"), "x"]), [pay], store=store, principal="ada"
    )
    asyncio.run(agent.run("go"))
    (waiting,) = store.approvals()
    monkeypatch.setattr("os.getuid", lambda: 4242)
    monkeypatch.setattr("getpass.getuser", lambda: "mallory")
    with pytest.raises(WrongPrincipal, match="'mallory' may not answer"):
        approvals.approve(waiting.id, store=path)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    approvals.approve(waiting.id, store=path)
    assert store.approval(waiting.id).by == "ada"
    store.close()
