"""Names that a command found: which of them may be read, and by whom."""

from __future__ import annotations

import pytest
from shell_cases import look

from lorimer.core.effects import Concern
from lorimer.safety.shell import places, verdict
from lorimer.safety.shell.words import stays_a_name


@pytest.mark.parametrize("lister", ["ls -a", "ls -1A", "find . -type f", "git ls-files -o",
                                    "rg --files --hidden", "fd -H x"])  # fmt: skip
def test_hidden_names_are_counted_and_searched_but_not_printed(lister: str) -> None:
    assert look(f"{lister} | xargs cat").has(Concern.SECRETS) or lister.startswith("rg")
    assert verdict(look(f"{lister} | xargs cat")) != "safe"
    assert verdict(look(f'{lister} | while read -r f; do head "$f"; done')) != "safe"
    if not lister.startswith("rg"):
        assert verdict(look(f'{lister} | while read -r f; do wc -l "$f"; done')) == "safe"


@pytest.mark.parametrize(
    "word", ["env", r"'^\.e'", "SECRET", "key", "token", "pem", "id_rsa", "passw", "credential"]
)
def test_a_look_for_secrets_may_not_be_read(word: str) -> None:
    for text in (f"ls -A | grep {word}", f"grep -rl {word} .", f"git ls-files | grep {word}"):
        for reader in ("cat", "head -1", "grep ."):
            assert look(f"{text} | xargs {reader}").has(Concern.SECRETS), (text, reader)
            assert look(f"for f in $({text}); do {reader} $f; done").has(Concern.SECRETS)


@pytest.mark.parametrize(
    "word", ["TODO", "keyboard", "author", "environment", "monkey", "def main"]
)
def test_ordinary_words_are_no_look_for_secrets(word: str) -> None:
    assert not places.secretive(word)
    assert verdict(look(f"grep -rl '{word}' src | xargs wc -l")) == "safe"


@pytest.mark.parametrize(
    ("before", "after", "plain"),
    [("", "", True), ("./", "", True), ("src/", "", True), ("", ".bak", True), ("", "/a.txt", True),
     (".", "", False), ("../", "", False), ("/", "", False), ("~/", "", False), ("id_", "", False),
     ("", "/../..", False), ("", "_rsa", False), ("a/.", "", False), ("", "/.env", False),
     (".ssh/", "", False), ("a/../../", "", False)],
)  # fmt: skip
def test_text_around_a_name_may_make_it_another(before: str, after: str, plain: bool) -> None:
    assert stays_a_name(before, after) is plain
    for text in ("ls | xargs -I{{}} wc -l {}", "find . -type f -exec wc -l {} \\;"):
        command = text.format(before + "{}" + after)
        assert (verdict(look(command)) == "safe") is plain, command
    command = f"for f in *; do wc -l {before}${{f}}{after}; done"
    assert (verdict(look(command)) == "safe") is plain, command


@pytest.mark.parametrize("folder", ["/etc", "/", "/root", "~", "/etc/ssh", "/home"])
@pytest.mark.parametrize("reader", ["grep -r x", "rg x", "grep -Rn x", "diff -r .", "ag x"])
def test_a_search_through_places_with_secrets(reader: str, folder: str) -> None:
    assert look(f"{reader} {folder}").has(Concern.SECRETS)


@pytest.mark.parametrize("folder", ["src", ".", "/usr/include", "/usr/share/doc"])
def test_a_search_through_other_places_is_safe(folder: str) -> None:
    assert verdict(look(f"grep -rn foo {folder}")) == "safe"
