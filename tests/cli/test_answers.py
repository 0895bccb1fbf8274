"""Answers in the terminal: filled as they come, checked at the end; lines that were typed ahead."""

from __future__ import annotations

from typing import Any

from cli.conftest import Cli, call
from cli.test_terminal import PROMPT, Terminal
from wire.answers import Say

TOOLS = '''
import asyncio, os
from lorimer import tool

@tool(effects="read")
def get_order(order_id: int) -> dict:
    """Look up one order.

    Use when: asked.

    Args:
        order_id: e.g. 1042.
    """
    return {"order_id": order_id, "total": 1234.5, "status": "processing"}

@tool(effects="read")
async def wait_for(path: str) -> str:
    """Wait until a file is there.

    Use when: asked.

    Args:
        path: its name.
    """
    while not os.path.exists(path):
        await asyncio.sleep(0.01)
    return "there"
'''
WRONG = "Order 1042 is shipped and costs 1243.50."


def order(cli: Cli, serve: Any, *answers: Any) -> Any:
    (cli.folder / "own.py").write_text(TOOLS, "utf-8")
    return serve(Say(calls=(call("get_order", order_id=1042),)), *answers)


def test_flags_are_one_line_each_on_standard_error_and_block_nothing(cli: Cli, serve: Any) -> None:
    at = order(cli, serve, WRONG)
    ended = cli.run("run", "-m", at.model, "-t", "own.py", "Is order 1042 shipped?")
    assert ended.returncode == 0 and ended.stdout.decode() == WRONG + "\n"
    lines = [line for line in ended.stderr.decode().splitlines() if line.startswith("! check")]
    assert lines == [
        "! check 'shipped': The result says processing of 1042. Nearest: processing.",
        "! check '1243.50': No result says this, nor does the user. Nearest: 1234.5 (get_order "
        "/total).",
    ]


def test_json_has_the_flags(cli: Cli, serve: Any) -> None:
    at = order(cli, serve, WRONG)
    body = cli.json("run", "-m", at.model, "-t", "own.py", "--json", "Is order 1042 shipped?")
    assert [(f["kind"], f["text"], f["span"]) for f in body["flags"]] == [
        ("status", "shipped", [14, 21]), ("number", "1243.50", [32, 39]),
    ]  # fmt: skip
    assert "answer_raw" not in body


def test_the_check_can_be_switched_off(cli: Cli, serve: Any) -> None:
    at = order(cli, serve, WRONG)
    ended = cli.run("run", "-m", at.model, "-t", "own.py", "--no-check-answers", "Is it shipped?")
    assert b"! check" not in ended.stderr and ended.returncode == 0


def test_a_person_reads_the_filled_answer_as_it_comes(cli: Cli, serve: Any) -> None:
    at = order(cli, serve, "It costs {{get_order.total|money}}, {{get_order.x}}.")
    terminal = Terminal(cli, "run", "-m", at.model, "-t", "own.py", "--fill-answers", "Total?")
    terminal.until("It costs 1,234.50, {{get_order.x}}.")
    terminal.until("Not filled: the result of get_order has no field 'x'.")
    assert terminal.end() == 0
    sent = at.server.received[0].json["messages"][0]["content"]
    assert "{{tool_name.field}}" in sent


def test_json_has_what_the_model_wrote_beside_the_filled_answer(cli: Cli, serve: Any) -> None:
    at = order(cli, serve, "It costs {{get_order.total}}.")
    body = cli.json("run", "-m", at.model, "-t", "own.py", "--json", "--fill-answers", "Total?")
    assert body["answer"] == "It costs 1234.5." and body["flags"] == []
    assert body["answer_raw"] == "It costs {{get_order.total}}."


def test_lines_typed_while_the_model_works_are_one_marked_batch(cli: Cli, serve: Any) -> None:
    (cli.folder / "own.py").write_text(TOOLS, "utf-8")
    at = serve(Say(calls=(call("wait_for", path="go"),)), "First.", "Both.")
    terminal = Terminal(cli, "chat", "-m", at.model, "-t", "own.py")
    terminal.until(PROMPT)
    terminal.type("one\r")
    terminal.until("wait_for")
    terminal.type("two\rthree\r")
    terminal.until("three")
    (cli.folder / "go").touch()
    terminal.until("First.")
    terminal.until("Typed meanwhile, taken now: 2 of 2.")
    terminal.until("Both.")
    terminal.until(PROMPT)
    terminal.type("\x04")
    assert terminal.end() == 0
    contents = [message.get("content") or "" for message in at.server.received[-1].json["messages"]]
    (batch,) = [content for content in contents if "<events>" in content]
    assert "[Unprocessed event 1/2] user.input" in batch and "2 events: 2 user.input" in batch
    assert "two" in batch and "three" in batch
