"""Any text at all: an answer comes, in bounds, and never a wrong "safe"."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell_cases import CORPUS, listed, look

from lorimer.core.effects import Concern
from lorimer.safety.shell import verdict

PIECES = [
    "rm -rf ~", "ls", "cat f", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{", "}", "$(",
    "`", '"', "'", "\\", "$", "${x", "}", "<<EOF", "\nEOF\n", "<<<", ">", "<", ">(", "<(", "[[",
    "]]", "if ", "then ", "fi", "for i in ", "do ", "done", "case ", "esac", "in ", "x=", "a[",
    "]", "((", "))", "#", "!", "~", "*", "$'\\x72", "eval ", "sh -c ", "env ", "function f ",
    "f()", "\t", "\r", "é", "$x", "-c",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
)
COMMANDS = [e["cmd"] for e in CORPUS] + listed("deny") + listed("safe") + listed("ask")


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_no_text_raises(text: str) -> None:
    found = look(text)
    assert verdict(found) in ("safe", "needs-approval", "deny")
    assert look(text) == found


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(COMMANDS), st.integers(0, 200), st.sampled_from(["", *PIECES]))
def test_no_command_raises_when_it_is_cut_and_patched(text: str, place: int, piece: str) -> None:
    look(text[:place] + piece + text[place:])
    look(text[:place] + piece)


@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS)
def test_a_deletion_on_a_line_of_its_own_is_never_safe(before: str, after: str) -> None:
    """True wherever bash would reach the line as a command: outside quotes and here-documents."""
    text = f"{before}\nrm -rf ~\n{after}"
    if verdict(look(text)) != "safe":
        return
    # Then the line must be data to bash: as a command of its own in `before` alone it would parse,
    # so `before` leaves a quote or a here-document open, or a comment or a word swallows it.
    assert _open_at_end(before), text


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_bash_refuses_to_parse_is_not_called_safe_with_a_command_in_it(text: str) -> None:
    """A text that names rm outside quotes is safe for nobody."""
    bare = text.replace("\\", "").replace("'", "").replace('"', "")
    if verdict(look(text)) == "safe" and "rm -rf ~" in bare:
        assert _parses(text) is False or "'" in text or '"' in text or "<<" in text or "#" in text


def _open_at_end(text: str) -> bool:
    return any(mark in text for mark in ("'", '"', "<<", "[[", "((", "case ", "`", "a["))


def _parses(text: str) -> bool | None:
    """Whether bash can parse it; `bash -n` reads and never runs."""
    if "\0" in text:
        return None
    done = subprocess.run(
        ["bash", "-n"], input=text.encode("utf-8", "replace"), capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "ls; " * 20_000,
        "(" * 5_000,
        "$(" * 3_000 + "ls" + ")" * 3_000,
        "`" * 3_000,
        "{" * 3_000,
        "{a,b}" * 40,
        "echo {1..999999999}",
        "'" * 9_999,
        '"$(' * 500,
        "a" * 200_000,
        "x=1;" * 5_000,
        "sh -c " * 200 + "ls",
        "eval " * 500 + "ls",
        "if ls; then " * 400,
        "[[ " + "( " * 500,
        "echo $((" + "(" * 500,
        "cat <<E\n" * 500,
        "f(){ f|f& };" * 300,
        "for i in 1 2 3 4 5 6 7 8; do " * 9 + "ls; " + "done; " * 9,
        "| " * 5_000,
        "<" * 5_000,
        "\\" * 9_999,
        "env -S '" * 300,
        "${" * 2_000,
        "${x:-" * 300 + "}" * 300,
        "awk '" + "(" * 5_000 + "'",
        "awk '" + "/a" * 5_000 + "'",
        "sed '" + "s/a/b/;" * 3_000 + "'",
        "find . " + "-exec ls {} \\; " * 800,
        "cd a;" * 2_000,
        "x=" + "a" * 20_000 + "; echo " + "$x" * 200,
    ],
    ids=lambda t: f"{len(t)} {t[:16]!r}",
)
def test_huge_and_deep_text_ends_in_a_question(text: str) -> None:
    found = look(text)
    assert verdict(found) != "safe" or len(text) < 32_000
    assert len(found.reasons) <= 500


def test_a_text_beyond_the_limit_says_so() -> None:
    found = look("ls\n" * 20_000)
    assert found.has(Concern.UNKNOWN)
    assert any("longer than" in reason.text for reason in found.reasons)
