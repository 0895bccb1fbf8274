"""`lorimer sandbox`: what it prints and how it ends. The whole suite runs in tests/safety."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lorimer.cli.sandbox import _begin, _row, _summary
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.escapes.attempts import ATTEMPTS

OS, LANDLOCK = choose.available()[:2]


def lorimer(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from lorimer.cli.main import main; main()", "sandbox", *arguments],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
    )  # fmt: skip


@pytest.mark.skipif(not OS.usable, reason=OS.reason)
def test_a_check_prints_one_row_for_each_attempt_and_the_sum() -> None:
    done = lorimer("check", "read-home", "device-node", "own-settings")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ read-home" in done.stdout and "✓ own-settings" in done.stdout
    assert "? device-node" in done.stdout
    assert done.stdout.endswith(
        "2 of 2 stopped; 1 more not provable here (stopped, and outside, too)\n"
    )
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.skipif(not OS.usable, reason=OS.reason)
def test_a_check_as_json() -> None:
    done = lorimer("check", "--json", "--as-user", "read-home", "tcp")
    told = json.loads(done.stdout)
    assert (told["level"], told["stopped"], told["open"]) == ("os", 2, 0)
    assert told["user"] == (65534 if os.geteuid() == 0 else os.geteuid())
    assert [a["name"] for a in told["attempts"]] == ["read-home", "tcp"]
    assert told["attempts"][0]["result"] == "stopped"
    assert told["attempts"][0]["control"] == "the secret"


@pytest.mark.skipif(not LANDLOCK.usable, reason=LANDLOCK.reason)
def test_something_open_ends_with_1_and_is_told() -> None:
    done = lorimer("check", "--level", "landlock", "metadata", "read-home")
    assert done.returncode == 1
    assert "✗ metadata" in done.stdout and "OPEN" in done.stdout
    assert "Documented: Landlock does not look at stat" in done.stdout
    assert done.stdout.endswith("1 of 2 stopped\n")


def test_a_level_that_cannot_be_had_ends_with_2_and_what_to_do(tmp_path: Path) -> None:
    done = lorimer("check", "read-home", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "bubblewrap" in done.stderr and "→" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"), [(["no-such"], "no attempt called"), (["--level", "x"], "level 'x'")]
)
def test_wrong_words_are_told(arguments: list[str], why: str) -> None:
    done = lorimer("check", *arguments)
    assert done.returncode == 2 and why in done.stderr


def test_levels_say_what_can_be_had_and_why_not(tmp_path: Path) -> None:
    told = json.loads(lorimer("levels", "--json", PATH=str(tmp_path)).stdout)
    found = {one["level"]: one for one in told}
    assert list(found) == ["os", "landlock", "container", "microvm", "none"]
    assert not found["os"]["usable"] and "bubblewrap" in found["os"]["reason"]
    assert not found["container"]["usable"] and "Neither" in found["container"]["reason"]
    assert found["os"]["next"] and found["container"]["next"]
    shown = lorimer("levels").stdout
    assert "landlock" in shown and max(len(line) for line in shown.splitlines()) <= 80


@pytest.mark.parametrize("own_mounts", [True, False])
@pytest.mark.parametrize("result", ["stopped", "open", "not provable", "not enforced"])
def test_the_whole_table_is_straight_within_80_columns(
    result: str, own_mounts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    bys = ("mounts", "pid namespace end", "mounts, seccomp and no new privileges, one by one")
    outcomes = [
        {"name": a.name, "what": a.what, "by": by, "result": result, "known": "it is known. " * 9,
         "detail": "it met " + "something very long " * 12}
        for a in ATTEMPTS
        for by in bys
    ]  # fmt: skip
    _begin("landlock", {"user": 65534, "attempts": len(ATTEMPTS), "own_mounts": own_mounts})
    begun = len(capsys.readouterr().out.splitlines())
    for one in outcomes:
        _row(one)
    rows = capsys.readouterr().out.splitlines()
    place = max(len(a.name) for a in ATTEMPTS) + 3
    last = place + max(len(a.what) for a in ATTEMPTS) + 1
    assert begun >= 3 and len(rows) >= len(outcomes)
    for row in rows:
        assert len(row) <= 80, row
        assert row[last - 1] == " " and row[last] != " ", f"shifted: {row}"
        assert row[place - 1] == " " and row[1] == " "
    _summary(outcomes, Counter({result: len(outcomes)}))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
