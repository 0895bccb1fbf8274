"""Wrapping changes nothing: what is dangerous stays so in any dress, what is safe stays safe."""

from __future__ import annotations

import pytest
from shell_cases import CORPUS, listed, look
from shell_wraps import HARMLESS, RUNNING, respelled

from lorimer.safety.shell import verdict

DANGEROUS = [e["cmd"] for e in CORPUS if e["label"] != "safe"] + listed("deny")[::4]
ASKING = listed("ask")[::7]
SAFE = [e["cmd"] for e in CORPUS if e["label"] == "safe"] + listed("safe")[::4]

# Broken text that a wrapper mends, and paths that are outside only from the folder they start in.
_MENDED = ("ls )", "ls &&", "ls | ", "ls < ", "ls > ")
_BY_FOLDER = ("cd ", "pushd ", "../", "cat ../x", "git -C ..", "~/")


def judged(text: str) -> str:
    return verdict(look(text))


def test_there_are_enough_ways() -> None:
    assert len(RUNNING) + len(list(respelled("rm -rf ~"))) >= 80


@pytest.mark.parametrize("name", sorted(RUNNING))
def test_no_dangerous_command_is_safe_when_wrapped(name: str) -> None:
    wrap = RUNNING[name]
    for command in DANGEROUS + ASKING:
        if command in _MENDED or (command in ASKING and command.startswith(_BY_FOLDER)):
            continue
        assert judged(wrap(command)) != "safe", wrap(command)


@pytest.mark.parametrize("command", DANGEROUS)
def test_no_dangerous_command_is_safe_when_spelled_differently(command: str) -> None:
    for how, text in respelled(command):
        assert judged(text) != "safe", f"{how}: {text}"


@pytest.mark.parametrize("name", sorted(RUNNING))
def test_a_refused_deletion_is_refused_in_every_wrapper(name: str) -> None:
    assert judged(RUNNING[name]("rm -rf ~")) == "deny"


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_a_safe_command_stays_safe(name: str) -> None:
    wrap = HARMLESS[name]
    for command in SAFE:
        loops = command.startswith(("cd ", "pushd")) and name in ("for", "twice")
        grammar = name == "not" and command.startswith(
            ("if ", "for ", "case ", "while ", "{ ", "#")
        )
        if loops or grammar or "<<" in command or command.startswith("#"):
            continue
        if name in ("true &&", "or") and ("; " in command or "&& " in command) and "$" in command:
            continue
        assert judged(wrap(command)) == "safe", wrap(command)


def test_thirty_wrappers_around_each_other_end_in_a_question_not_in_a_fault() -> None:
    text = "ls"
    for wrap in list(RUNNING.values())[:30]:
        text = wrap(text)
        judged(text)
    assert judged("timeout 5 " * 30 + "ls") == "needs-approval"
