"""Globs of texts, paths, hosts and commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.facts import command
from lorimer.safety.policy.patterns import (
    CommandGlob,
    HostTexts,
    PathGlob,
    Texts,
    escape,
    glob_regex,
    unescape,
)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("git_*", "git_push", True), ("git_*", "xgit_push", False), ("a?c", "abc", True),
        ("a?c", "ac", False), ("[ab]x", "bx", True), ("[!ab]x", "bx", False),
        ("[!ab]x", "cx", True), ("a.c", "abc", False), ("*", "", True), ("*", "a\nb", True),
        ("[", "[", True), ("[a", "[a", True), ("a[]]", "a]", True), ("[a-c]", "b", True),
    ],
)  # fmt: skip
def test_texts(pattern: str, text: str, expected: bool) -> None:
    assert Texts.of([pattern]).match(text) is expected
    assert Texts.of(["nothing-else", pattern]).match(text) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("docs/*", "/w/docs/a", True), ("docs/*", "/w/docs/a/b", False),
        ("docs/**", "/w/docs/a/b", True), ("docs/**", "/w/docs", True),
        ("docs/**", "/w/docs2", False), ("**/x", "/w/x", True), ("**/x", "/w/a/b/x", True),
        ("**/x", "/other/x", False), ("/**/x", "/other/x", True), ("**", "/w/a/b", True),
        ("**", "/wide", False), ("*.md", "/w/a.md", True), ("*.md", "/w/a/b.md", False),
        ("~/n/*", "/h/n/a", True), ("~", "/h", True), ("/a/**/b", "/a/b", True),
        ("/a/**/b", "/a/c/d/b", True), (".", "/w", True), ("a**b", "/w/a/x/b", True),
    ],
)  # fmt: skip
def test_paths(pattern: str, path: str, expected: bool) -> None:
    assert PathGlob(pattern).match(path, "/w", "/h") is expected


def test_the_fixed_part_of_a_path_pattern_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    glob = PathGlob("link/*")
    top = str(tmp_path.resolve())
    assert glob.match(f"{top}/real/x", top, "/h") and not glob.match(f"{top}/link/x", top, "/h")


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [("secrets/**", "/w", True), ("secrets/**", "/w/secrets", True), ("secrets/**", "/", True),
     ("secrets/**", "/w/other", False), ("**/x", "/w", True), ("**/x", "/w/a", False)],
)  # fmt: skip
def test_folders_that_hold_everything_a_pattern_means(
    pattern: str, folder: str, expected: bool
) -> None:
    assert PathGlob(pattern).lies_below(folder, "/w", "/h") is expected


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_an_escaped_text_matches_itself_only(text: str) -> None:
    assert Texts.of([escape(text)]).match(text)
    assert not Texts.of([escape(text)]).match(text + "x")
    assert unescape(escape(text)) == text
    assert glob_regex(escape("*")) == "[*]"


def test_hosts_with_and_without_ports() -> None:
    hosts = HostTexts.of(["Example.org", "*.x.org", "y.org:8443"])
    assert hosts.match("example.org") and hosts.match("EXAMPLE.org:444")
    assert hosts.match("a.x.org:1") and not hosts.match("x.org") and not hosts.match("ax.org")
    assert hosts.match("y.org:8443") and not hosts.match("y.org") and not hosts.match("y.org:1")
    assert not hosts.match("example.org.evil.net")


@pytest.mark.parametrize(
    ("pattern", "words", "covers", "meets"),
    [
        ("git status", ["git", "status"], True, True),
        ("git status", ["git", "status", "-s"], False, False),
        ("git diff *", ["git", "diff"], True, True),
        ("git diff *", ["git", "diff", "a", "b"], True, True),
        ("git diff *", ["git", "difftool"], False, False),
        ("git diff *", ["git", "-c", "x=y", "diff"], False, False),
        ("git *", ["git"], True, True),
        ("*", ["git"], True, True),
        ("* push", ["git", "push"], True, True),
        ("rm -rf 'a b'", ["rm", "-rf", "a b"], True, True),
        ("git push", ["/usr/bin/git", "push"], False, True),
        ("git push *", ["git", "push", None], False, True),
        ("git push *", ["git", None, "push"], False, None),
        ("git push", ["git", "push", None], False, None),
        ("rm *", [None, "-rf"], False, None),
        ("rm *", ["ls", None], False, False),
        ("rm *", [], False, False),
    ],
)  # fmt: skip
def test_commands(pattern: str, words: list[str | None], covers: bool, meets: bool | None) -> None:
    made = command(*words, text="x")
    assert CommandGlob.of(pattern).covers(made) is covers
    assert CommandGlob.of(pattern).meets(made) is meets


@pytest.mark.parametrize(
    ("pattern", "via"),
    [
        ("rm *", ["env"]), ("rm *", ["sh -c", "xargs"]), ("rm *", ["sudo"]), ("rm *", ["ssh"]),
        ("sudo rm *", ["sudo"]), ("sudo *", ["sudo -u root"]), ("sudo *", ["env", "sudo"]),
        ("env sudo *", ["env", "sudo"]), ("sudo *", ["/usr/bin/sudo"]), ("ssh *", ["ssh"]),
    ],
)  # fmt: skip
def test_a_rule_that_denies_means_the_command_in_every_wrapper(
    pattern: str, via: list[str]
) -> None:
    assert CommandGlob.of(pattern).meets(command("rm", "x", via=via))
    assert not CommandGlob.of("ls *").meets(command("rm", "x", via=via))


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [("rm -rf build", True), ("rm *", False), ("rm 'a*'", False), ("rm '[*]'", True), ("*", False),
     ("rm a?", False), ("rm '[?]x[[]'", True), ("rm [ab]", False)],
)  # fmt: skip
def test_a_literal_pattern_means_one_command(pattern: str, literal: bool) -> None:
    assert CommandGlob.of(pattern).literal is literal
