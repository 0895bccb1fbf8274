"""With `--json` every error is one JSON object on stdout, whichever command it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from cli.conftest import Cli

FAULTS: dict[str, list[str]] = {
    "run": ["hi", "--max-cost", "x"],
    "resume": ["nosuch"],
    "compact": ["nosuch"],
    "guarantees": ["G99"],
    "sessions list": ["--store", "gone.db"],
    "tools list": ["too", "much"],
    "tools show": ["nosuch"],
    "tools lint": ["too", "much"],
    "tools call": ["nosuch", "{}"],
    "skills list": ["-C", "gone"],
    "skills show": ["nosuch"],
    "skills new": ["Bad"],
    "skills validate": ["--below", "--nosuch"],
    "skills review": ["nosuch"],
    "agents list": ["-C", "gone"],
    "agents show": ["nosuch"],
    "agents validate": ["gone"],
    "models reasoning": ["too", "much"],
    "models list": ["too", "much"],
    "models verify": ["nosuch"],
    "prompt diff": ["nosuch"],
    "prompt lint": ["-C", "gone"],
    "prompt show": ["nosuch"],
    "cache report": ["nosuch"],
    "policy check": ["gone.toml"],
    "policy explain": ["nosuch("],
    "policy learn": ["--store", "gone.db"],
    "audit verify": ["--store", "gone.db"],
    "audit show": ["--store", "gone.db"],
    "approvals list": ["--store", "gone.db"],
    "approvals show": ["nosuch"],
    "approvals approve": ["nosuch"],
    "approvals reject": ["nosuch"],
    "approvals edit": ["nosuch", "--arguments", "{}"],
    "secrets list": ["too", "much"],
    "trust folder": ["gone"],
    "trust list": ["too", "much"],
    "trust forget": ["too", "much"],
    "sandbox levels": ["too", "much"],
    "sandbox check": ["nosuch"],
}
"""For each command with `--json`, words that it cannot do."""
MORE = [
    ["run"], ["run", "hi", "--max-steps", "0"], ["run", "hi", "--max-time", "x"], ["resume"],
    ["compact"], ["cache", "report"], ["skills"], ["skills", "show"], ["skills", "nosuch"],
    ["nosuch"], ["chat", "--max-steps", "0"], ["run", "hi", "-m", "nosuch:x"],
    ["run", "hi", "-C", "gone"], ["run", "hi", "--mode", "nosuch"],
]  # fmt: skip


def _with_json(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_json(inner, (*path, name))
    if any("--json" in one.opts for one in command.params):
        yield " ".join(path)


def fault_of(cli: Cli, words: list[str]) -> dict[str, Any]:
    ended = cli.run(*words, "--json", stdin=b"")
    assert ended.stdout.count(b"\n") == 1, ended
    body: dict[str, Any] = json.loads(ended.stdout)
    assert body["error"] and body["message"] and isinstance(body["next"], str)
    assert body["exit_code"] == ended.returncode != 0
    assert b"Traceback" not in ended.stderr
    return body


def test_every_command_with_json_is_asked_for_an_error() -> None:
    from lorimer.cli.app import app

    assert sorted(_with_json(typer.main.get_command(app))) == sorted(FAULTS)


@pytest.mark.parametrize("command", FAULTS)
def test_a_fault_is_one_object(cli: Cli, command: str) -> None:
    fault_of(cli, [*command.split(), *FAULTS[command]])


@pytest.mark.parametrize("command", FAULTS)
def test_an_option_that_does_not_exist_is_one_object(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from lorimer.cli.app import run_app

    monkeypatch.setattr("sys.argv", ["lorimer", *command.split(), "--nosuch", "--json"])
    assert run_app() == 2
    body = json.loads(capfd.readouterr().out)
    assert "--nosuch" in body["message"]
    assert body["next"] == f"`lorimer {command} --help` shows how it is used."


@pytest.mark.parametrize("words", MORE, ids=" ".join)
def test_wrong_use_is_one_object(cli: Cli, words: list[str]) -> None:
    fault_of(cli, words)


def test_bytes_that_are_no_text_are_one_object(cli: Cli) -> None:
    assert "UTF-8" in fault_of(cli, ["skills", "show", "a\udcff"])["message"]


def test_after_two_hyphens_it_is_a_word_and_errors_are_for_people(cli: Cli) -> None:
    ended = cli.run("tools", "show", "--", "--json")
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert b"There is no tool" in ended.stderr
