"""The whole escape suite: as root and as a normal user, at both levels of Linux."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.escapes.attempts import ATTEMPTS

USABLE = {one.level for one in choose.available() if one.usable}
USERS = ("-", "65534") if os.geteuid() == 0 else ("-",)
RUNS = [(level, user) for level in ("os", "landlock") for user in USERS]
OPEN_AT = {
    "os": set(),
    "landlock": {"metadata", "account-names"},
}
NEEDS_PRIVILEGES = {
    "read-shadow", "device-node", "open-memory", "open-disks", "kernel-settings", "sysrq",
    "kernel-modules", "restart", "kernel-log", "ports", "terminal", "kernel-crypto", "signal-us",
    "ptrace-parent",
}  # fmt: skip
"""A user without privileges, or this kernel, cannot do these outside either."""


def started(level: str, user: str, scratch: str, *names: str) -> "subprocess.Popen[str]":
    """`scratch` is a folder that other users can get into."""
    Path(scratch).chmod(0o755)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "lorimer.safety.sandbox.escapes", level, user, scratch,
         *names],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def outcomes(suite: "subprocess.Popen[str]") -> dict[str, dict[str, Any]]:
    try:
        said, faults = suite.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        suite.kill()
        suite.communicate()
        raise
    assert suite.returncode == 0, said[-2000:] + faults[-2000:]
    records = [json.loads(line) for line in said.splitlines()]
    return {one["name"]: one for one in records if "result" in one}


@pytest.fixture
def scratch() -> Iterator[Callable[[], str]]:
    with contextlib.ExitStack() as folders:
        yield lambda: folders.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))


@pytest.fixture(scope="module")
def found() -> dict[Any, Any]:
    """Every run, one after the other: they would signal each other."""
    got: dict[Any, Any] = {}
    for run in RUNS:
        if run[0] in USABLE:
            with tempfile.TemporaryDirectory(dir="/tmp") as folder:
                got[run] = outcomes(started(*run, folder))
    return got


@pytest.mark.slow
@pytest.mark.parametrize(("level", "user"), RUNS)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: a.name)
def test_the_attempt_is_stopped(found: Any, attempt: Any, level: str, user: str) -> None:
    if level not in USABLE:
        pytest.skip(f"the level {level} cannot be had here")
    outcome = found[level, user][attempt.name]
    if attempt.name in OPEN_AT[level]:
        assert outcome["result"] == "open" and outcome["known"]
    else:
        assert outcome["result"] in ("stopped", "not provable"), outcome
    if attempt.name not in NEEDS_PRIVILEGES:
        assert outcome["result"] != "not provable", outcome


@pytest.mark.slow
@pytest.mark.parametrize(("level", "user"), RUNS)
def test_at_least_38_attempts_are_provably_stopped(found: Any, level: str, user: str) -> None:
    if level not in USABLE:
        pytest.skip(f"the level {level} cannot be had here")
    assert sum(o["result"] == "stopped" for o in found[level, user].values()) >= 38


def test_what_is_documented_as_open_is_marked_so_in_the_data() -> None:
    for level, names in OPEN_AT.items():
        assert {a.name for a in ATTEMPTS if level in a.known} == names


def test_names_are_unique_and_every_attempt_without_control_says_why() -> None:
    assert len({a.name for a in ATTEMPTS}) == len(ATTEMPTS) >= 38
    for attempt in ATTEMPTS:
        assert len(attempt.name) <= 20 and len(attempt.what) <= 38 and len(attempt.by) <= 17
        if attempt.evidence == "killed":
            assert attempt.no_control and attempt.limits


def test_without_a_sandbox_the_same_attempts_get_through(scratch: Callable[[], str]) -> None:
    """The suite can fail: harmless attempts, by a user without privileges."""
    names = ["read-home", "read-link", "write-append", "write-dotdot", "own-settings", "git-rename",
             "tcp", "unix-socket", "signal-other", "metadata", "setuid-file", "user-namespace",
             "link-for-tools"]  # fmt: skip
    user = "65534" if os.geteuid() == 0 else "-"
    got = outcomes(started("none", user, scratch(), *names))
    assert {o["result"] for n, o in got.items() if n != "link-for-tools"} == {"open"}
    assert got["link-for-tools"]["result"] == "stopped"
