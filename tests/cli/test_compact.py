"""`lorimer compact`: what it would do, and doing it, on sessions of the real command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cli.conftest import Cli, call
from wire.answers import Say

RULE = "Never mention the price of 40 euro."


def researched(cli: Cli, serve: Any, *more: Any) -> tuple[str, str]:
    """A session that has read two long files; its id and model."""
    for word in ("osk", "dun"):
        lines = [f"The {word} mill {n} holds {n * 37} crates of flour." for n in range(150)]
        (cli.folder / f"{word}.txt").write_text("\n".join(lines))
    reads = [Say(calls=(call("read_file", id=f"c_{w}", path=f"{w}.txt"),)) for w in ("osk", "dun")]
    model = serve(*reads, "The mills are known.", *more).model
    cli.run("run", "-m", model, "--mode", "auto", f"Read both. {RULE}")
    found = re.search(r'"(s_[0-9a-z]+)"', cli.run("sessions", "list", "--json").stdout.decode())
    assert found is not None
    return found[1], model


def test_a_dry_run_shows_what_would_be_left_out_and_changes_nothing(cli: Cli, serve: Any) -> None:
    session, _ = researched(cli, serve)
    before = cli.run("sessions", "show", session, "--json").stdout
    ended = cli.run("compact", session, "--dry-run")
    out = ended.stdout.decode()
    assert ended.returncode == 0, ended.stderr.decode()
    assert "Would be replaced" in out and out.count("read_file") == 2
    assert re.search(r"tokens +[\d,]+ → [\d,]+ \(estimated\)", out)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert cli.run("sessions", "show", session, "--json").stdout == before


def test_it_is_done_and_the_session_goes_on(cli: Cli, serve: Any) -> None:
    session, model = researched(cli, serve, "Still known.")
    body = cli.json("compact", session, "--json", "--show")
    assert body["done"] and body["level"] == "notes" and len(body["calls"]) == 2
    assert body["tokens_after"] < body["tokens_before"]
    (text,) = body["texts"]
    paths = re.findall(r'read_file\(path="([^"]+)"\)', text)
    held = "\n".join(Path(path).read_text("utf-8") for path in paths)
    assert "The osk mill 149 holds 5513 crates of flour." in held
    ended = cli.run("run", "-m", model, "--session", session, "--mode", "auto", "And now?")
    assert ended.returncode == 0 and b"Still known." in ended.stdout
    again = cli.run("compact", session)
    assert again.returncode == 1 and b"Nothing was compacted" in again.stdout
    shown = cli.run("sessions", "show", session).stdout.decode()
    assert RULE in shown


def test_bad_input_is_said(cli: Cli, serve: Any) -> None:
    session, _ = researched(cli, serve)
    bad = cli.run("compact", session, "--strategy", "best")
    assert bad.returncode != 0 and b"layered" in bad.stderr
    assert cli.run("compact", "s_nothing").returncode != 0
    ended = cli.run("compact", session, "--strategy", "none", "--json")
    assert json.loads(ended.stdout)["why"].startswith("the strategy none")


def test_without_a_key_it_ends_as_run_does(cli: Cli, serve: Any) -> None:
    session, model = researched(cli, serve)
    words = ("compact", session, "-m", model, "--strategy", "combined")
    asked = cli.run("run", "-m", model, "hello", LORIMER_API_KEY="wrong")
    ended = cli.run(*words, LORIMER_API_KEY="wrong")
    assert ended.returncode == asked.returncode == 4, ended
    assert b"LORIMER_API_KEY" in ended.stderr and b"Check" in ended.stderr
    assert not ended.stdout
