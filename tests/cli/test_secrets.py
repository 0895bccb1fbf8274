"""`lorimer secrets`, and a run in which a tool uses one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import COMMAND, Cli, call
from wire.answers import Say

VALUE = "tok-pässwörd-12345678"
FILE = {"LORIMER_SECRETS_BACKEND": "file"}


@pytest.fixture
def with_file(cli: Cli) -> Cli:
    cli.environ |= FILE
    cli.environ.pop("LORIMER_SECRETS_PASSPHRASE", None)
    return cli


def everything(folder: Path) -> bytes:
    return b"".join(f.read_bytes() for f in folder.rglob("*") if f.is_file())


def test_set_list_allow_remove(with_file: Cli) -> None:
    cli = with_file
    ended = cli.run("secrets", "set", "github", "--stdin", "-t", "fetch", stdin=VALUE.encode())
    assert ended.returncode == 0, ended.stderr
    assert VALUE.encode() not in ended.stdout + ended.stderr + everything(cli.home)
    (one,) = cli.json("secrets", "list", "--json")
    assert (one["name"], one["backend"], one["tools"]) == ("github", "file", ["fetch"])
    assert cli.run("secrets", "allow", "github", "shell_exec").returncode == 0
    shown = cli.run("secrets", "list").stdout.decode()
    assert "github  file" in shown and "fetch, shell_exec" in shown and "key file" in shown
    assert cli.run("secrets", "allow", "--remove", "github", "fetch").returncode == 0
    assert cli.json("secrets", "list", "--json")[0]["tools"] == ["shell_exec"]
    refused = cli.run("secrets", "remove", "github")
    assert refused.returncode == 2 and b"--yes" in refused.stderr
    assert cli.run("secrets", "remove", "github", "--yes").returncode == 0
    assert cli.json("secrets", "list", "--json") == []
    assert cli.run("secrets", "remove", "github", "--yes").returncode == 2


def test_a_value_on_the_command_line_is_refused_and_not_repeated(with_file: Cli) -> None:
    ended = with_file.run("secrets", "set", "github", VALUE)
    assert ended.returncode == 2 and b"history of the shell" in ended.stderr
    assert VALUE.encode() not in ended.stderr + ended.stdout
    assert not (with_file.home / "secrets").exists()


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("A",), b"x", b"no name"),
        (("a",), b"", b"empty"),
        (("a",), b"\n", b"empty"),
        (("a",), b"\xff\xfe", b"not UTF-8"),
        (("a",), b"x" * 70_000, b"at most"),
    ],
)
def test_what_cannot_be_kept_is_said(
    words: tuple[str, ...], stdin: bytes, said: bytes, with_file: Cli
) -> None:
    ended = with_file.run("secrets", "set", *words, "--stdin", stdin=stdin)
    assert ended.returncode == 2 and said in ended.stderr, ended.stderr
    assert not (with_file.home / "secrets" / "secrets.json").exists()


def test_a_line_end_is_left_out_unless_exact(with_file: Cli) -> None:
    from lorimer.safety.secrets.stored import StoredVault

    vault = StoredVault(with_file.home / "secrets")
    ended = with_file.run("secrets", "set", "a", "--stdin", stdin=b"tok-12345678\n")
    assert b"line end" in ended.stderr and vault.get("a").value == "tok-12345678"
    with_file.run("secrets", "set", "a", "--stdin", "--exact", stdin=b"tok-12345678\n")
    assert vault.get("a").value == "tok-12345678\n"


def test_a_short_value_is_warned_of(with_file: Cli) -> None:
    ended = with_file.run("secrets", "set", "pin", "--stdin", stdin=b"1234")
    assert ended.returncode == 0 and b"fewer than 8 characters" in ended.stderr


def test_without_a_terminal_it_does_not_wait_for_a_value(with_file: Cli) -> None:
    ended = with_file.run("secrets", "set", "a")
    assert ended.returncode == 2 and b"--stdin" in ended.stderr


def test_at_a_terminal_the_value_is_not_echoed(with_file: Cli) -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "secrets", "set", "github"], stdin=theirs, stdout=theirs, stderr=theirs,
        cwd=with_file.folder, env=with_file.environ, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    shown, typed = b"", False
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if b"not shown): " in shown and not typed:
            typed = True
            os.write(ours, f"{VALUE}\n".encode())
    os.close(ours)
    assert process.wait() == 0, shown
    assert VALUE.encode() not in shown and b"Kept github" in shown
    from lorimer.safety.secrets.stored import StoredVault

    assert StoredVault(with_file.home / "secrets").get("github").value == VALUE


def test_a_damaged_file_is_said_and_kept(with_file: Cli) -> None:
    folder = with_file.home / "secrets"
    folder.mkdir(parents=True)
    (folder / "secrets.json").write_bytes(b"{ damaged")
    for words in (("list",), ("set", "a", "--stdin"), ("remove", "a", "--yes")):
        ended = with_file.run("secrets", *words, stdin=b"tok-12345678")
        assert ended.returncode == 5 and b"damaged" in ended.stderr
    assert (folder / "secrets.json").read_bytes() == b"{ damaged"


TOOLS = '''
import hashlib
from lorimer import tool

@tool(effects="read")
async def login(token: str) -> str:
    """Log in."""
    return f"{hashlib.sha256(token.encode()).hexdigest()} {token}"
'''


def test_a_run_uses_it_and_shows_it_nowhere(with_file: Cli, serve: Any) -> None:
    cli = with_file
    (cli.folder / "mine.py").write_text(TOOLS)
    (cli.folder / ".env.txt").write_text(f"T={VALUE}\n")
    cli.run("secrets", "set", "github", "--stdin", "-t", "login", stdin=VALUE.encode())
    at = serve(
        Say(calls=(call("login", token="secret:github"),)),
        Say(calls=(call("read_file", id="c2", path=".env.txt"),)),
        "Done.",
    )
    ended = cli.run(
        "run", "--model", at.model, "--mode", "trusted", "--tools", "mine.py,read_file", "--json",
        "Log in",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    login, read = json.loads(ended.stdout)["calls"]
    digest = hashlib.sha256(VALUE.encode()).hexdigest()
    assert login["result"] == f"{digest} [secret:github]", "the tool had the value"
    assert "T=[secret:github]" in read["result"]
    stored = b"".join(f.read_bytes() for f in cli.home.rglob("*") if f.is_file())
    for place in (
        ended.stdout,
        ended.stderr,
        stored,
        repr([r.body for r in at.server.received]).encode(),
    ):
        assert VALUE.encode() not in place and json.dumps(VALUE).encode()[1:-1] not in place
