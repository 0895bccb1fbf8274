from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Cli, call
from lorimer.store import open_store
from wire.answers import Fail, Say


def test_json_has_answer_calls_usage_and_session(cli: Cli, serve: Any) -> None:
    (cli.folder / "notes.txt").write_text("the code is 4711\n", "utf-8")
    at = serve(Say(calls=(call("read_file", path="notes.txt"),)), "It is 4711.")
    ended = cli.run("run", "--model", at.model, "--mode", "auto", "--json", "Which code?")
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["answer"] == "It is 4711."
    (one,) = result["calls"]
    assert one["name"] == "read_file" and one["arguments"] == {"path": "notes.txt"}
    assert one["outcome"] == "done" and "4711" in one["result"]
    assert result["usage"]["input_tokens"] == 240 and result["usage"]["requests"] == 2
    assert result["session"].startswith("s_")
    assert cli.run("audit", "verify").returncode == 0


def test_without_a_terminal_stdout_holds_the_answer_only(cli: Cli, serve: Any) -> None:
    at = serve("Forty-two, ünïcödé.")
    ended = cli.run("run", "-m", at.model, "How many?")
    assert ended.stdout.decode() == "Forty-two, ünïcödé.\n"


def test_the_question_comes_from_standard_input(cli: Cli, serve: Any) -> None:
    at = serve("Yes.")
    assert cli.run("run", "-m", at.model, stdin="Is it? – ja\n".encode()).returncode == 0
    assert at.server.received[0].json["messages"][1]["content"] == "Is it? – ja\n"


def test_words_and_standard_input_go_together(cli: Cli, serve: Any) -> None:
    at = serve("Fine.")
    assert cli.run("run", "-m", at.model, "Review", "this:", "-", stdin=b"+ a\n").returncode == 0
    assert at.server.received[0].json["messages"][1]["content"] == "Review this:\n\n+ a\n"


def test_a_question_of_a_megabyte_arrives_whole(cli: Cli, serve: Any) -> None:
    at = serve("Read.")
    question = "wörter und mehr " * 65_536
    assert cli.run("run", "-m", at.model, stdin=question.encode()).returncode == 0
    assert at.server.received[0].json["messages"][1]["content"] == question


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        (("run",), b"caf\xe9", 2, "byte 3 is 0xe9"),
        (("run",), b"", 2, "There is no question"),
        (("run", "--model", "qwen2.5-coder-0.6b", "hi"), b"", 2, "qwen2.5-coder-0.5b"),
        (("run", "--model", "anthropic:claude-x", "hi"), b"", 4, "ANTHROPIC_API_KEY"),
        (("run", "--model", "qwen2.5-coder-0.5b", "hi"), b"", 2, "models pull qwen2.5-coder-0.5b"),
        (("run", "hi"), b"", 2, "no key is set and no Ollama is running"),
        (("run", "--mode", "yolo", "hi"), b"", 2, "plan, ask, auto, trusted"),
        (("run", "--tools", "raed_file", "hi"), b"", 2, "read_file"),
        (("run", "--max-cost", "abc", "hi"), b"", 2, "--max-cost 'abc'"),
        (("run", "--folder", "nowhere", "hi"), b"", 2, "nowhere is not a folder"),
        (("chat",), b"", 2, "chat needs a terminal"),
        (("resume",), b"", 2, "There is no session yet"),
        (("sessions", "show", "s_nope"), b"", 2, "No session 's_nope'"),
        (("sessions", "export", "s_nope", "--as", "word"), b"", 2, "no form 'word'"),
        (("tools", "show", "raed_file"), b"", 2, "Did you mean read_file"),
        (("guarantees", "G99"), b"", 2, "no guarantee 'G99'"),
    ],
)
def test_wrong_use_says_what_and_what_to_do(
    cli: Cli, words: tuple[str, ...], stdin: bytes, code: int, said: str
) -> None:
    ended = cli.run(*words, stdin=stdin)
    text = ended.stderr.decode()
    assert ended.returncode == code, text
    assert said in text and "Traceback" not in text and ended.stdout == b""


def test_a_wrong_key_is_named_and_never_shown(cli: Cli, serve: Any) -> None:
    at = serve("unreached")
    ended = cli.run("run", "-m", at.model, "hi", LORIMER_API_KEY="sk-wrong-0123456789")
    assert ended.returncode == 4
    assert b"LORIMER_API_KEY" in ended.stderr and b"sk-wrong" not in ended.stderr + ended.stdout
    assert b"sk-wrong" not in b"".join(p.read_bytes() for p in cli.home.rglob("*") if p.is_file())


def test_with_json_a_fault_is_json_too(cli: Cli) -> None:
    said = cli.json("run", "--json", "-m", "openai:gpt-5", "hi")
    assert said["error"] == "AuthenticationFailed" and said["exit_code"] == 4 and said["next"]


def test_a_failing_provider_is_asked_again_and_that_is_said(cli: Cli, serve: Any) -> None:
    at = serve(Fail(503), "Back again.")
    ended = cli.run("run", "-m", at.model, "hi")
    assert ended.stdout == b"Back again.\n" and b"Attempt 1 of 3 failed" in ended.stderr
    assert b"stamina" not in ended.stderr


def test_in_mode_ask_without_a_terminal_nothing_is_changed(cli: Cli, serve: Any) -> None:
    at = serve(Say(calls=(call("write_file", path="x.txt", content="x"),)), "I may not.")
    result = cli.json("run", "-m", at.model, "--json", "Write x")
    assert result["calls"][0]["code"] == "needs_approval"
    assert result["calls"][0]["outcome"] == "not_started"
    assert list(cli.folder.iterdir()) == []


def test_a_limit_ends_the_run_and_resume_goes_on(cli: Cli, serve: Any) -> None:
    (cli.folder / "a.txt").write_text("a")
    at = serve(Say(calls=(call("read_file", path="a.txt"),)), "It holds a.")
    ended = cli.run("run", "-m", at.model, "--max-steps", "1", "Read a.txt")
    assert ended.returncode == 7 and b"--max-steps" in ended.stderr
    assert cli.run("resume", "-m", at.model).stdout == b"It holds a.\n"


def test_own_tools_from_a_file(cli: Cli, serve: Any) -> None:
    (cli.folder / "shop.py").write_text(
        "from lorimer import tool\n\n@tool\ndef pay(amount: int) -> str:\n    'Pay an amount.'\n"
        "    open('paid.txt', 'a').write(f'{amount}\\n')\n    return 'paid'\n"
    )
    at = serve(Say(calls=(call("pay", amount=7),)), "Paid.")
    result = cli.json(
        "run", "-m", at.model, "--tools", "shop.py", "--mode", "auto", "--json", "Pay 7"
    )
    assert result["calls"][0]["outcome"] == "done"
    assert (cli.folder / "paid.txt").read_text() == "7\n"


def _until(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        os.sched_yield()


SLOW = (
    "import asyncio, os\nfrom lorimer import tool\n\n@tool\nasync def slow() -> str:\n"
    "    'Take long.'\n    open('began', 'w').close()\n    await asyncio.sleep(1000)\n"
    "    return 'never'\n"
)


def test_ctrl_c_ends_the_tool_leaves_a_true_record_and_the_session_goes_on(
    cli: Cli, serve: Any
) -> None:
    (cli.folder / "slow.py").write_text(SLOW)
    at = serve(Say(calls=(call("slow"),)), "I had stopped.")
    options = ("-m", at.model, "--tools", "slow.py", "--mode", "auto")
    running = cli.start("run", *options, "--json", "Go")
    _until(cli.folder / "began")
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    result = json.loads(out)
    assert running.returncode == 130 and result["stop"] == "cancelled"
    assert result["calls"][0]["outcome"] == "unknown" and result["calls"][0]["code"] == "cancelled"
    ended = cli.run("run", *options, "--session", result["session"], "What happened?")
    assert ended.stdout == b"I had stopped.\n", ended.stderr
    assert cli.run("audit", "verify").returncode == 0


def test_two_processes_on_one_session_the_second_is_told(cli: Cli, serve: Any) -> None:
    (cli.folder / "slow.py").write_text(SLOW)
    at = serve(Say(calls=(call("slow"),)), "Resumed.")
    options = ("-m", at.model, "--tools", "slow.py", "--mode", "auto")
    running = cli.start("run", *options, "Go")
    try:
        _until(cli.folder / "began")
        ended = cli.run("resume", *options)
        assert ended.returncode == 6 and str(running.pid).encode() in ended.stderr
    finally:
        running.kill()
        running.communicate()
    resumed = cli.json("resume", *options, "--json")
    assert resumed["answer"] == "Resumed." and resumed["calls"][0]["outcome"] == "unknown"


def test_a_store_from_a_newer_version_is_refused_whole(cli: Cli) -> None:
    open_store(cli.home / "store.db").close()
    with sqlite3.connect(cli.home / "store.db") as db:
        db.execute("PRAGMA user_version=99")
    ended = cli.run("sessions", "list")
    assert ended.returncode == 5 and b"version 99" in ended.stderr


def test_export_has_every_entry_call_and_audit_line(cli: Cli, serve: Any) -> None:
    (cli.folder / "a.txt").write_text("a")
    at = serve(Say(calls=(call("read_file", path="a.txt"),)), "Done.")
    session = cli.json("run", "-m", at.model, "--json", "Read")["session"]
    lines = [
        json.loads(line) for line in cli.run("sessions", "export", session).stdout.splitlines()
    ]
    kinds = [line["type"] for line in lines]
    said = [line["kind"] for line in lines if line["type"] == "entry"]
    assert [k for k in said if k not in ("skills", "status")] == [
        "user", "assistant", "tool_result", "assistant"
    ]  # fmt: skip
    assert kinds[0] == "session" and kinds.count("call") == 1
    assert kinds.count("audit") >= 8
    for form, first in (("openai", "system"), ("anthropic", "user")):
        messages = json.loads(cli.run("sessions", "export", session, "--as", form).stdout)
        assert messages[0]["role"] == first and messages[-1]["role"] == "assistant"
    out = cli.folder / "out.jsonl"
    assert cli.run("sessions", "export", session, "-o", str(out)).returncode == 0
    assert len(out.read_text().splitlines()) == len(lines)


def test_a_call_by_hand_goes_through_all_stations(cli: Cli) -> None:
    (cli.folder / "a.txt").write_text("one\ntwo\n")
    done = cli.run("tools", "call", "read_file", '{"path": "a.txt"}')
    assert done.returncode == 0 and b"two" in done.stdout
    refused = cli.run("tools", "call", "read_file", '{"path": 3}')
    assert refused.returncode == 1 and json.loads(refused.stdout)["error"] == "type"
    assert b"tools call read_file" in cli.run("sessions", "list", "--json").stdout
    assert cli.run("tools", "lint").returncode in (0, 1)


def test_version_needs_no_libraries(cli: Cli) -> None:
    ended = cli.run("--version", PYTHONPROFILEIMPORTTIME="1")
    assert ended.stdout.startswith(b"lorimer ") and b"typer" not in ended.stderr


@pytest.mark.parametrize("text", ["\x1b[2J\x1b[H", "a\rb", "‮evil", "​", "\x07"])
def test_what_a_model_says_cannot_play_with_the_terminal(text: str) -> None:
    from lorimer.cli.terminal import safe

    assert safe(text).replace("\n", "").isprintable()


def test_a_fault_in_the_middle_tells_the_session_and_what_was_done(cli: Cli, serve: Any) -> None:
    at = serve(Say(calls=(call("write_file", path="x.txt", content="x"),)), Fail(401))
    said = cli.json("run", "-m", at.model, "--mode", "auto", "--json", "Write x")
    assert said["error"] == "AuthenticationFailed" and said["session"].startswith("s_")
    assert [c["outcome"] for c in said["calls"]] == ["done"] and said["usage"]["requests"] == 1


def test_what_a_tool_prints_does_not_stand_in_the_json(cli: Cli, serve: Any) -> None:
    (cli.folder / "loud.py").write_text(
        "import os\nfrom lorimer import tool\n\n@tool(effects='read')\ndef look() -> str:\n"
        "    'Look.'\n    print('printed')\n    os.write(1, b'written')\n    return 'seen'\n"
    )
    at = serve(Say(calls=(call("look"),)), "Seen.")
    ended = cli.run("run", "-m", at.model, "--tools", "loud.py", "--json", "Look")
    assert json.loads(ended.stdout)["answer"] == "Seen."
    assert b"printed" in ended.stderr and b"written" in ended.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_terminal_will_do(cli: Cli, serve: Any, encoding: str) -> None:
    at = serve("Schön – 雨.", "Schön – 雨.")
    words = ("run", "-m", at.model, "Wie?")
    ended = cli.run(*words, "--json", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert json.loads(ended.stdout)["answer"] == "Schön – 雨."
    assert cli.run(*words, PYTHONIOENCODING=encoding, PYTHONUTF8="0").returncode == 0
    assert cli.run("sessions", "list", PYTHONIOENCODING=encoding).returncode == 0


def test_a_request_that_was_repeated_is_in_the_result_and_in_the_record(
    cli: Cli, serve: Any
) -> None:
    at = serve(Fail(503), "Back.")
    result = cli.json("run", "-m", at.model, "--json", "hi")
    assert "Attempt 1 of 3 failed" in result["notes"][0] and result["usage"]["requests"] == 2
    assert b"request.repeated" in cli.run("audit", "show").stdout


def test_the_store_is_for_its_owner_only(cli: Cli) -> None:
    cli.home.mkdir()
    open_store(cli.home / "store.db").close()
    assert (cli.home / "store.db").stat().st_mode & 0o077 == 0


def test_a_status_bar_is_there_unless_it_is_switched_off(cli: Cli, serve: Any) -> None:
    at = serve("Yes.", "No.")
    assert cli.run("run", "-m", at.model, "Is it?").returncode == 0
    assert cli.run("run", "-m", at.model, "--no-status", "Is it?").returncode == 0
    with_bar, without = (r.json["messages"] for r in at.server.received)
    assert with_bar[-1]["content"].startswith("<agent_status>")
    assert not any("<agent_status>" in str(m["content"]) for m in without)
