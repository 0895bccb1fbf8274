"""What git obeys in a folder counts for trust in it; ordinary work with git does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.safety import git_config
from lorimer.safety.injection.trust_folder import FolderTrust, steering_files

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    more = ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *more, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def record(tmp_path: Path) -> FolderTrust:
    return FolderTrust(tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone with a submodule."""
    inner = tmp_path / "inner"
    origin = tmp_path / "origin"
    for folder in (inner, origin):
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "a.txt").write_text("a\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "start")
    git(origin, "submodule", "--quiet", "add", str(inner), "lib/inner")
    git(origin, "commit", "-qm", "inner")
    folder = tmp_path / "prö ject"
    git(tmp_path, "clone", "-q", "--recurse-submodules", str(origin), str(folder))
    return folder


def add(name: str, text: str, mode: int = 0o644) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
        path.chmod(mode)

    return change


CONFIG = ".git/config"
MODULE = ".git/modules/lib/inner"
CHANGES = {
    "a watcher": (CONFIG, add(CONFIG, "[core]\n\tfsmonitor = touch P\n")),
    "a pager": (CONFIG, add(CONFIG, '[pager]\n\tdiff = "sh -c x"\n')),
    "an alias": (CONFIG, add(CONFIG, "[alias]\n\tst = !x\n")),
    "a converter": (CONFIG, add(CONFIG, '[diff "x"]\n\ttextconv = x\n')),
    "another address": (CONFIG, add(CONFIG, '[remote "origin"]\n\tpushurl = ext::x\n')),
    "a rewritten address": (CONFIG, add(CONFIG, '[url "ext::x"]\n\tinsteadOf = https://\n')),
    "what git does not take": (CONFIG, add(CONFIG, "[branch\n")),
    "settings of the worktree": (
        ".git/config.worktree", add(".git/config.worktree", "[core]\n\teditor = x\n"),
    ),
    "a hook": (".git/hooks/pre-commit", add(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)),
    "attributes": (".gitattributes", add(".gitattributes", "*.txt diff=x\n")),
    "attributes inside": (".git/info/attributes", add(".git/info/attributes", "*.txt diff=x\n")),
    "submodules": (".gitmodules", add(".gitmodules", '[submodule "x"]\n\tpath = x\n')),
    "settings of a submodule": (
        f"{MODULE}/config", add(f"{MODULE}/config", "[core]\n\tfsmonitor = touch P\n"),
    ),
    "a hook of a submodule": (
        f"{MODULE}/hooks/post-checkout", add(f"{MODULE}/hooks/post-checkout", "#!/bin/sh\n", 0o755),
    ),
}  # fmt: skip


@needs_git
@pytest.mark.parametrize("kind", CHANGES)
def test_what_git_obeys_asks_again_by_its_name(
    record: FolderTrust, project: Path, kind: str
) -> None:
    name, change = CHANGES[kind]
    record.trust(project)
    assert record.is_trusted(project).state == "trusted"
    change(project)
    found = record.is_trusted(project)
    assert found.state == "changed"
    assert list(found.changed) == [name]


@needs_git
def test_what_is_named_by_settings_counts_too(record: FolderTrust, project: Path) -> None:
    git(project, "config", "core.hooksPath", ".husky")
    git(project, "config", "include.path", "../shared.cfg")
    add(".husky/pre-push", "#!/bin/sh\n", 0o755)(project)
    add("shared.cfg", "[core]\n\tpager = less\n")(project)
    record.trust(project)
    add(".husky/pre-push", "curl x\n", 0o755)(project)
    add("shared.cfg", "[core]\n\tpager = x\n")(project)
    assert list(record.is_trusted(project).changed) == [".husky/pre-push", "shared.cfg"]


@needs_git
def test_ordinary_work_does_not_ask_again(record: FolderTrust, project: Path) -> None:
    record.trust(project)
    git(project, "checkout", "-q", "-b", "feature")
    git(project, "branch", "-q", "--set-upstream-to=origin/main")
    git(project, "config", "user.name", "Somebody")
    git(project, "config", "user.email", "s@example.org")
    git(project, "config", "core.filemode", "false")
    (project / "b.txt").write_text("b\n")
    git(project, "add", "b.txt")
    git(project, "commit", "-qm", "b")
    git(project, "stash", "list")
    git(project, "fetch", "-q")
    git(project, "gc", "-q")
    (project / ".git" / "hooks" / "pre-commit.sample").write_text("#!/bin/sh\n")
    found = record.is_trusted(project)
    assert found.changed == {}
    assert found.state == "trusted"


@needs_git
def test_a_new_repository_of_ones_own_steers_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "own")
    assert steering_files(tmp_path / "own") == ({}, True)


@needs_git
def test_a_file_that_names_the_repository_is_followed(record: FolderTrust, project: Path) -> None:
    git(project, "worktree", "add", "-q", str(project.parent / "tree"))
    tree = project.parent / "tree"
    record.trust(tree)
    add(CONFIG, "[core]\n\tfsmonitor = x\n")(project)
    assert list(record.is_trusted(tree).changed) == ["../prö ject/.git/config"]
    record.trust(tree)
    (tree / ".git").write_text(f"gitdir: {tree.parent / 'inner' / '.git'}\n")
    assert ".git" in record.is_trusted(tree).changed


@needs_git
def test_the_command_line_names_it(project: Path, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "LORIMER_HOME": str(tmp_path / "home")}

    def trust(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "lorimer", "trust", str(project), *words]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)

    assert trust("--yes").returncode == 0
    add(CONFIG, "[core]\n\tfsmonitor = touch P\n")(project)
    shown = trust("--check")
    assert shown.returncode == 1
    assert "changed  .git/config" in shown.stdout
    assert json.loads(trust("--check", "--json").stdout)["changed"] == {".git/config": "changed"}


# --- the reader of settings ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("[a]b=c", [("a.b", "c")]),
        ("[A]\nB = c d  # x\n", [("a.b", "c d")]),
        ('[a "B.c"]\n k = "x # y" z ; no', [("a.B.c.k", "x # y z")]),
        ('[a "q\\"\\\\"]k', [('a.q"\\.k', "true")]),
        ("[a.B]k=1", [("a.b.k", "1")]),
        ('[a]k = one \\\n two\nl="\\t\\n"', [("a.k", "one  two"), ("a.l", "\t\n")]),
        ("[a]\n# [b]\n; c = d\nk =\n", [("a.k", "")]),
        ("\ufeff[a]\r\nk = v\r\n", [("a.k", "v")]),
    ],
)
def test_settings_are_read_as_git_reads_them(
    text: str, entries: list[tuple[str, str]], tmp_path: Path
) -> None:
    assert git_config.parse(text) == entries
    if shutil.which("git"):
        assert by_git(text, tmp_path) == entries


def by_git(text: str, folder: Path) -> list[tuple[str, str]] | None:
    """What git itself makes of it; `None` when it refuses."""
    path = folder / "settings"
    path.write_bytes(text.encode())
    line = ["git", "config", "--file", str(path), "--no-includes", "--list", "-z"]
    done = subprocess.run(line, capture_output=True, env=ENVIRONMENT, check=False, cwd="/")
    if done.returncode:
        return None
    out = []
    for entry in done.stdout.decode().split("\0")[:-1]:
        key, equals, value = entry.partition("\n")
        out.append((key, value if equals else "true"))
    return out


@pytest.mark.parametrize("text", ["[a", "= v", "[a]k v", '[a]k = "x', "[a]k = \\q", "[a]1=2"])
def test_what_git_refuses_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"character|quote"):
        git_config.parse(text)
    if shutil.which("git"):
        assert by_git(text, tmp_path) is None


PIECES = (
    "[a]", '[a "b"]', "[a.B]", "k", "K-", "=", " ", "v", '"', "\\", "\n", "#", ";", "\t", "\r\n",
    "[", "]", "\\n",
)  # fmt: skip


@needs_git
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES)))
def test_any_settings_are_read_as_git_reads_them(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    text = "".join(pieces)
    found = by_git(text, tmp_path_factory.mktemp("s"))
    if found is not None:  # what git refuses it does not obey
        assert _alike(git_config.parse(text)) == _alike(found)


def _alike(entries: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Some versions of git make a tab between words a space."""
    return [(key, value.replace("\t", " ")) for key, value in entries]
