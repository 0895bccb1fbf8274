"""The command on a real (pseudo) terminal of 80 columns."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from typing import Any

from cli.conftest import COMMAND, Cli, call
from wire.answers import Say


class Terminal:
    def __init__(self, cli: Cli, *words: str) -> None:
        self.main, far = pty.openpty()
        environ = {**cli.environ, "TERM": "xterm", "LINES": "24"}
        self.process = subprocess.Popen(
            [*COMMAND, *words], stdin=far, stdout=far, stderr=far, cwd=cli.folder, env=environ,
            start_new_session=True,
        )  # fmt: skip
        os.close(far)
        self.seen = ""

    def until(self, text: str) -> str:
        deadline = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} never came; seen: {self.seen!r}"
            ready, _, _ = select.select([self.main], [], [], 1)
            if ready:
                try:
                    piece = os.read(self.main, 65536)
                except OSError:
                    piece = b""
                if not piece:
                    break
                if b"\x1b[6n" in piece:  # the library asks where the cursor is
                    os.write(self.main, b"\x1b[1;1R")
                self.seen += piece.decode("utf-8", "replace")
        assert text in self.seen, self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def end(self) -> int:
        try:
            return self.process.wait(timeout=60)
        finally:
            self.process.kill()
            os.close(self.main)


def test_a_person_is_shown_the_whole_call_and_approves_it(cli: Cli, serve: Any) -> None:
    at = serve(
        Say(calls=(call("write_file", path="x.txt", content="line one\nline two\n"),)), "Ok."
    )
    terminal = Terminal(cli, "run", "-m", at.model, "Write it")
    shown = terminal.until("Run it?")
    assert (
        "write_file" in shown and "line one" in shown and "line two" in shown and "x.txt" in shown
    )
    terminal.type("\r")
    terminal.until("Run it?")
    assert not (cli.folder / "x.txt").exists()  # Enter alone decides nothing
    terminal.type("y\r")
    terminal.until("Ok.")
    assert terminal.end() == 0
    assert (cli.folder / "x.txt").read_text() == "line one\nline two\n"


def test_a_person_says_why_not_and_the_model_is_told(cli: Cli, serve: Any) -> None:
    at = serve(Say(calls=(call("write_file", path="x.txt", content="x"),)), "Understood.")
    terminal = Terminal(cli, "run", "-m", at.model, "Write it")
    terminal.until("Run it?")
    terminal.type("use y.txt instead\r")
    terminal.until("Understood.")
    assert terminal.end() == 0 and not (cli.folder / "x.txt").exists()
    assert "use y.txt instead" in str(at.server.received[-1].json)


PROMPT = "\x1b[?2004h"  # the line editor is ready


def test_chat_goes_on_after_an_answer_and_keeps_its_session(cli: Cli, serve: Any) -> None:
    at = serve("First answer.", "Second answer.")
    terminal = Terminal(cli, "chat", "-m", at.model)
    for typed, answer in (("one\r", "First answer."), ("two\r", "Second answer.")):
        terminal.until(PROMPT)
        terminal.type(typed)
        terminal.until(answer)
    terminal.until(PROMPT)
    terminal.type("\x04")
    terminal.until("lorimer chat --session s_")
    assert terminal.end() == 0
    beside = ("<agent_status>", "<skills>")
    sent = at.server.received[-1].json["messages"]
    said = [m for m in sent if not any(tag in str(m) for tag in beside)]
    assert [m["role"] for m in said] == ["system", "user", "assistant", "user"]
