"""`lorimer approvals`: what is checked when a person answers, faults for programs, and stores that
are not there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Cli, call
from cli.test_terminal import Terminal
from lorimer.cli.asking import call_lines, call_rows, lines_of, summary
from lorimer.cli.terminal import Screen, flat, wrapped
from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState, listed
from lorimer.core.calls import Outcome
from lorimer.core.watch import CallEnded
from wire.answers import Say

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WRITE = Say(calls=(call("write_file", path="notes.md", content="one\n"),))


def asked(cli: Cli, serve: Any, *more: Any) -> tuple[Any, str, str]:
    """A run whose write waits: the provider, the session, the request."""
    at = serve(WRITE, "It waits.", *more)
    result = cli.json("run", "-m", at.model, "--json", "Write notes")
    return at, result["session"], json.loads(result["calls"][0]["result"])["approval"]


def fault(cli: Cli, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the one JSON object of a command that fails."""
    ended = cli.run("approvals", *words, "--json")
    (line,) = ended.stdout.splitlines()
    body = json.loads(line)
    assert set(body) == {"error", "message", "next", "exit_code"}
    assert body["exit_code"] == ended.returncode and body["message"] and body["next"]
    return ended.returncode, body


def state(cli: Cli, request: str) -> str:
    return str(json.loads(cli.run("approvals", "show", request, "--json").stdout)["state"])


def test_faults_are_objects_for_programs(cli: Cli, serve: Any) -> None:
    _, _, request = asked(cli, serve)
    codes = {
        ("approve", "a_nope"): (2, "UnknownApproval"), ("show", "a_nope"): (2, "UnknownApproval"),
        ("reject", "a_nope"): (2, "UnknownApproval"),
        ("approve", request, "--as", "eve"): (8, "WrongPrincipal"),
        ("edit", request, "--arguments", "{}", "--as", "eve"): (8, "WrongPrincipal"),
        ("approve", request, "--digest", "x"): (8, "ApprovalVoid"),
        ("edit", request, "--arguments", "["): (2, "UsageFault"),
        ("edit", request, "--arguments", '{"path": 1}'): (8, "EditUnfit"),
        ("list", "--session", "s_nope"): (2, "SessionNotFound"),
        ("list", "--store", "/no/such/x.db"): (5, "StoreError"),
    }  # fmt: skip
    for words, expected in codes.items():
        code, body = fault(cli, *words)
        assert (code, body["error"]) == expected, words
    assert state(cli, request) == "open"
    assert cli.run("approvals", "approve", request).returncode == 0
    assert fault(cli, "approve", request)[1]["error"] == "AlreadyAnswered"


def test_an_edit_that_does_not_fit_is_refused_and_the_request_stays(cli: Cli, serve: Any) -> None:
    at, session, request = asked(cli, serve, WRITE, "Done.")
    ended = cli.run("approvals", "edit", request, "--arguments", '{"path": 3, "contents": "x"}')
    assert ended.returncode == 8
    for part in (b"do not fit write_file", b"/path", b"/content is missing", b"/contents"):
        assert part in ended.stderr
    assert state(cli, request) == "open"
    good = '{"path": "notes.md", "content": "mine"}'
    assert cli.run("approvals", "edit", request, "--arguments", good).returncode == 0
    cli.json("run", "-m", at.model, "--json", "-s", session, "go on")
    assert (cli.folder / "notes.md").read_text() == "mine"


def test_what_changed_since_the_question_is_not_approved(cli: Cli, serve: Any) -> None:
    at, session, request = asked(cli, serve, WRITE, "It waits.")
    (cli.folder / "notes.md").write_text("somebody else's")
    code, body = fault(cli, "approve", request)
    assert (code, body["error"]) == (8, "ApprovalVoid")
    assert "notes.md was made" in body["message"] and state(cli, request) == "void"
    assert fault(cli, "approve", request)[1]["error"] == "ApprovalVoid"
    result = cli.json("run", "-m", at.model, "--json", "-s", session, "go on")
    told = json.loads(result["calls"][0]["result"])
    assert told["error"] == "needs_approval" and told["approval"] != request


def test_a_changed_file_is_no_reason_not_to_reject(cli: Cli, serve: Any) -> None:
    _, _, request = asked(cli, serve)
    (cli.folder / "notes.md").write_text("somebody else's")
    assert cli.run("approvals", "reject", request).returncode == 0


def test_somebody_who_may_not_answer_cannot_void_it(cli: Cli, serve: Any) -> None:
    _, _, request = asked(cli, serve)
    (cli.folder / "notes.md").write_text("somebody else's")
    assert fault(cli, "approve", request, "--as", "eve")[1]["error"] == "WrongPrincipal"
    assert state(cli, request) == "open"


def test_a_name_cannot_write_lines_of_its_own(cli: Cli, serve: Any) -> None:
    _, _, request = asked(cli, serve)
    ended = cli.run("approvals", "approve", request, "--by", "eve\n\x1b[2Ja_1: rejected")
    assert ended.stdout.count(b"\n") == 1 and b"\x1b" not in ended.stdout
    assert b"eve\\n\\x1b[2Ja_1: rejected" in ended.stdout
    again = cli.run("approvals", "approve", request)
    assert b"eve\\n\\x1b" in again.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("approvals", "list"), ("approvals", "show", "a_1"), ("approvals", "approve", "a_1"),
        ("sessions", "list"), ("sessions", "show", "s_1"), ("sessions", "export", "s_1"),
        ("audit", "verify"), ("audit", "show"), ("audit", "head"), ("policy", "learn"),
        ("cache", "report", "s_1"), ("resume", "s_1"),
    ],
)  # fmt: skip
def test_a_command_that_reads_makes_no_store(cli: Cli, tmp_path: Path, words: Any) -> None:
    typo = tmp_path / "typo" / "x.db"
    ended = cli.run(*words, "--store", str(typo))
    assert ended.returncode == 5 and b"There is no store at" in ended.stderr, ended.stderr
    assert not typo.parent.exists()
    before = sorted(cli.home.rglob("*.db"))
    ended = cli.run(*words)
    assert ended.returncode in (0, 2, 5) and b"Traceback" not in ended.stderr
    assert sorted(cli.home.rglob("*.db")) == before == []


# --- what people read ---


def record(arguments: dict[str, Any], **more: Any) -> ApprovalRecord:
    given: dict[str, Any] = {
        "id": "a_1", "session": "s_1", "root": "s_1", "kind": ApprovalKind.CALL, "call": "c_1",
        "tool": "shell_exec", "principal": "ada", "binding": "b", "digest": "d",
        "state": ApprovalState.OPEN, "asked_at": NOW,
        "request": {"bound": {"arguments": arguments}, "reason": "it deletes x"},
    }  # fmt: skip
    return ApprovalRecord(**{**given, **more})


def test_the_list_shows_the_command_itself() -> None:
    words = "rm -rf " + " ".join(f"build/{n}" for n in range(60))
    rows = call_rows(record({"command": words, "timeout_s": 5}), 80)
    assert rows[0].startswith("  shell_exec: rm -rf build/0 build/1")
    assert len(rows) == 4 and max(map(len, rows)) <= 80
    whole = f"shell_exec: {words} timeout_s=5"
    left = int(rows[-1].split()[1])
    shown = sum(len(row.strip()) + 1 for row in rows[:3])
    assert abs(len(whole) - shown - left) <= 3 and rows[-1].endswith("more characters")
    (short,) = call_rows(record({"command": "ls\npwd"}), 80)
    assert short == "  shell_exec: ls⏎pwd"


def test_the_list_shows_an_edited_call_as_edited() -> None:
    one = record({"command": "ls"}, answer={"approved": True, "edited": {"command": "pwd"}})
    assert call_rows(one, 80) == ["  shell_exec (edited): pwd"]
    assert "pwd" in summary(one)


def test_one_reason_is_said_once() -> None:
    reasons = [{"concern": "destructive", "text": t} for t in ("it deletes x", "it deletes y")]
    one = record(
        {"command": "rm x"},
        request={"reason": "it deletes x", "bound": {"arguments": {"command": "rm x"},
                                                     "effects": {"reasons": reasons * 2}}},
    )  # fmt: skip
    text = "\n".join(lines_of(one, NOW))
    assert text.count("it deletes x") == 1 and text.count("it deletes y") == 1


def test_names_behind_a_pattern_are_shown() -> None:
    files = {
        "/w/d/*": listed(["/w/d/a", "/w/d/b"], 2), "/w/e/": listed(["/w/e/x"], 450, "ab" * 32),
        "/w/f*": listed([], 0), "/w/g?": listed(["/w/g1"], 1),
    }  # fmt: skip
    effects = {"deletes": ["/w/d/*", "/w/e", "/w/f*"]}
    lines = list(call_lines({}, cwd="/w", files=files, effects=effects))
    assert "  deletes: d/a, d/b (2: /w/d/*)" in lines
    assert "  deletes: e/x and 449 more (450: what is in /w/e/)" in lines
    assert "  deletes: nothing (/w/f*)" in lines and "  means: g1 (1: /w/g?)" in lines


@pytest.mark.parametrize("width", [40, 80, 100])
def test_lines_are_broken_between_words_and_nothing_is_lost(width: int) -> None:
    text = "one  and another word of  some length, and-a-hyphen " * 6 + "x" * 250
    rows = wrapped(text, width, "  ", "    ")
    assert max(map(len, rows)) <= width
    assert "".join([rows[0][2:], *(row[4:] for row in rows[1:])]) == text
    words = {w for row in rows for w in row.split() if set(w) != {"x"}}
    assert words <= set(text.split())


def test_flat_text_is_one_line() -> None:
    assert flat("a\nb\tc\x1b") == "a\\nb\\tc\\x1b"


# --- at a terminal ---


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_no_answer_at_the_question_stops_the_run(cli: Cli, serve: Any, key: str) -> None:
    at = serve(WRITE, "never asked")
    terminal = Terminal(cli, "run", "-m", at.model, "Write it")
    shown = terminal.until("Run it?")
    assert "Ctrl-C" in shown
    terminal.type(key)
    terminal.until("Ended: stopped")
    assert terminal.end() == 130
    assert not (cli.folder / "notes.md").exists()
    (one,) = [json.loads(x) for x in cli.run("approvals", "list", "--json").stdout.splitlines()]
    assert one["state"] == "withdrawn" and not one["answer"]
    audit = cli.run("audit", "show").stdout
    assert b"cancelled by the user" in audit
    assert fault(cli, "approve", one["id"])[1]["error"] == "ApprovalVoid"
    assert cli.run("audit", "verify").returncode == 0


def test_the_question_breaks_no_word_at_eighty_columns(cli: Cli, serve: Any) -> None:
    text = "word " * 40 + "another " * 20
    at = serve(Say(calls=(call("write_file", path="notes.md", content=text),)), "Ok.")
    terminal = Terminal(cli, "run", "-m", at.model, "Write it")
    shown = terminal.until("Run it?").replace("\r", "")
    rows = [row for row in shown.split("\n") if row.startswith(("    | ", "    · "))]
    assert rows and max(map(len, rows)) <= 80
    assert {w for row in rows for w in row[6:].split()} == {"word", "another"}
    terminal.type("n\r")
    terminal.until("Ok.")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\n[exit code 2]", "exit code 2, 3 lines"), ("a\nb\n[exit code 0; x]", "3 lines"),
        ("a\nb\n[exit code 137, killed; more]", "exit code 137, killed, 3 lines"),
        ("[exit code 2]\nb", "2 lines"), ("one", "one"),
        ("a\n[exit code 5]\n[hidden from programs: .env]", "exit code 5, 3 lines"),
    ],
)  # fmt: skip
def test_a_command_that_failed_says_so_in_its_line(
    text: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Screen()(CallEnded("c", "shell_exec", Outcome.DONE, "", text, 0.1))
    assert capsys.readouterr().err.rstrip("\n").endswith(f"shell_exec 0.1 s  {shown}")


def test_what_was_typed_before_the_question_stood_there_is_no_answer(cli: Cli, serve: Any) -> None:
    calls = (
        call("write_file", path="a.txt", content="a"),
        call("write_file", path="b.txt", content="b", id="c2"),
    )
    at = serve(Say(calls=calls), "Ok.")
    terminal = Terminal(cli, "run", "-m", at.model, "Write both")
    terminal.type("y\ry\r")  # before anything is shown
    terminal.until("Run it?")
    terminal.type("n\rn\r")  # the second one before its question
    terminal.until("Run it?")
    terminal.type("n\r")
    terminal.until("Ok.")
    assert terminal.end() == 0
    assert not (cli.folder / "a.txt").exists()
    assert not (cli.folder / "b.txt").exists()


def test_an_argument_that_is_not_utf8_ends_at_once(cli: Cli) -> None:
    for words in (
        ("approvals", "show", "a\udcff"),
        ("resume", "a\udcff"),
        ("run", "-C", "x\udcff", "hi"),
    ):
        ended = cli.run(*words)
        assert ended.returncode == 2, ended
        assert b"is not UTF-8" in ended.stderr
        assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("amount", ["-1", "nan", "inf", "a"])
def test_an_amount_that_is_none_is_refused(cli: Cli, amount: str) -> None:
    ended = cli.run("run", f"--max-cost={amount}", "-m", "http://127.0.0.1:9#m", "hi")
    assert ended.returncode == 2, ended
    assert b"is no amount" in ended.stderr
