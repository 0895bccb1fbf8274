"""git is believed only in the repository of a trusted root: not in one that lies inside it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.facts import facts
from lorimer.core.calls import Effects
from lorimer.core.decisions import Traits
from lorimer.core.effects import CallEffects, Concern
from lorimer.safety.effects import CallAssessor
from lorimer.safety.injection.trust_folder import FolderTrust
from lorimer.safety.shell import analyse, verdict


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a repository, another one in it, a bare one, and a link to the other."""
    folder = tmp_path / "ws"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "sub" / ".git").mkdir()
    (folder / "module").mkdir()
    (folder / "module" / ".git").write_text("gitdir: ../.git/modules/module\n")
    for name in ("objects", "refs"):
        (folder / "bare" / "lib" / name).mkdir(parents=True)
    (folder / "bare" / "lib" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "link").symlink_to(folder / "sub" / "deep")
    return folder


def look(root: Path, text: str, trusted: bool | Callable[[str], bool] = True) -> CallEffects:
    return analyse(text, cwd=str(root), roots=[str(root)], home="/home/me", trusted_folder=trusted)


@pytest.mark.parametrize(
    "command",
    ["git status", "cd src && git status", "git -C src/deep log", "(cd src; git diff)",
     "cd sub && cd .. && git status", "cd src/deep && cd ../.. && git log"],
)  # fmt: skip
def test_the_repository_of_the_root_is_believed(root: Path, command: str) -> None:
    assert verdict(look(root, command)) == "safe"


@pytest.mark.parametrize(
    "command",
    ["cd sub && git status", "git -C sub status", "git -C sub/deep log", "cd module && git log",
     "cd bare/lib && git status", "git -C bare/lib log", "cd link && git status",
     "git -C link diff", "cd src/../sub && git log", "pushd sub && git status",
     "cd $X && git status", 'for d in */; do (cd "$d" && git status); done',
     "for d in */; do git -C $d log; done", "find . -name x -execdir git status \\;",
     "git --git-dir=sub/.git log", "GIT_DIR=sub/.git git log", "git --bare log",
     "git --work-tree=sub status", "cp -r a src && cd src && git status",
     "tar xf a.tar && cd src && git status", "git -C .. log"],
)  # fmt: skip
def test_another_repository_can_run_code(root: Path, command: str) -> None:
    found = look(root, command)
    assert found.has(Concern.RUNS_CODE) or found.has(Concern.UNKNOWN)
    assert verdict(found) != "safe"


def test_a_root_that_looks_like_a_bare_repository_is_not_believed(tmp_path: Path) -> None:
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    assert look(tmp_path, "git status").has(Concern.RUNS_CODE)
    (tmp_path / ".git").mkdir()
    assert verdict(look(tmp_path, "git status")) == "safe"


def test_a_function_decides_by_the_resolved_folder(root: Path) -> None:
    asked: list[str] = []

    def trusted(folder: str) -> bool:
        asked.append(folder)
        return not folder.endswith("deep")

    assert verdict(look(root, "cd src && git status", trusted)) == "safe"
    assert look(root, "cd src/deep && git status", trusted).has(Concern.RUNS_CODE)
    assert asked == [os.path.realpath(root / "src"), os.path.realpath(root / "src" / "deep")]
    assert verdict(look(root, "cat a", trusted)) == "safe"
    assert len(asked) == 2


def test_git_agrees_on_which_repository_a_folder_belongs_to(root: Path) -> None:
    """The look at the files is held against git itself."""
    from lorimer.safety.shell.places import other_repository

    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    for folder in (root, root / "sub"):
        (folder / ".git").rmdir()
        subprocess.run(["git", "init", "-q"], cwd=folder, env=environment, check=True)
    for name in ("src", "src/deep", "sub", "sub/deep", "bare", "bare/lib"):
        folder = root / name
        run = subprocess.run(
            ["git", "rev-parse", "--absolute-git-dir"],
            cwd=folder, env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        other = run.stdout.strip() != str(root / ".git")
        assert other_repository(str(folder), str(root)) is other, name


def test_a_trusted_root_does_not_make_what_lies_in_it_trusted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a session: the person has trusted the root with `lorimer trust`."""
    monkeypatch.setenv("LORIMER_HOME", str(root.parent / "home"))
    FolderTrust(root.parent / "home").trust(root)

    def runs_code(command: str) -> bool:
        call = facts(
            "t",
            {"command": command},
            traits=Traits(command_argument="command"),
            cwd=root,
            touches=CallEffects(Effects.READ),
        )
        return CallAssessor().assess(call).has(Concern.RUNS_CODE)

    assert not runs_code("git status")
    assert not runs_code("cd src && git status")
    assert runs_code("cd sub && git status")
    assert runs_code("git -C bare/lib log")
