"""What a call would touch, from its arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.facts import facts
from lorimer.core.calls import Effects
from lorimer.core.decisions import Traits
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, SimpleCommand
from lorimer.safety import sensitive
from lorimer.safety.effects import UNASSESSED, CallAssessor
from lorimer.safety.injection.trust_folder import FolderTrust
from lorimer.safety.shell import places

PATHS = Traits(path_arguments=("path", "paths"))


def assess(work: Path, arguments: dict[str, Any], traits: Traits, **more: Any) -> CallEffects:
    assessor = more.pop("assessor", CallAssessor())
    touches = CallEffects(Effects.READ)
    call = facts("t", arguments, traits=traits, cwd=work, touches=touches, **more)
    found = assessor.assess(call)
    assert isinstance(found, CallEffects)
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_paths_are_resolved_and_placed(work: Path) -> None:
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    found = assess(work, {"path": "link/x", "paths": ["./a/../b"]}, PATHS, effects="read")
    assert [p.path for p in found.paths] == [f"{work}/real/x", f"{work}/b"]
    assert all(p.inside and p.access is Access.READ for p in found.paths)
    assert found.level is Effects.READ and not found.reasons


def test_a_link_out_of_the_workspace_is_outside(work: Path) -> None:
    (work / "link").symlink_to(work.parent)
    for given in ("link/x", "../x", "/etc/hostname", str(work) + "-other/x"):
        found = assess(work, {"path": given}, PATHS)
        assert not found.paths[0].inside and found.has(Concern.OUTSIDE), given


def test_further_roots_and_kept_folders_are_no_concern(work: Path) -> None:
    kept, other = work.parent / "kept", work.parent / "other"
    assessor = CallAssessor(readable=(str(kept),))
    found = assess(work, {"path": f"{kept}/x"}, PATHS, effects="read", assessor=assessor)
    assert found.paths[0].inside and not found.reasons
    found = assess(work, {"path": f"{kept}/x"}, PATHS, effects="write", assessor=assessor)
    assert found.has(Concern.OUTSIDE), "kept for reading only"
    call = facts("t", {"path": f"{other}/x"}, traits=PATHS, cwd=work,
                 touches=CallEffects(Effects.READ))  # fmt: skip
    object.__setattr__(call, "roots", (str(work), str(other)))
    assert CallAssessor().assess(call).paths[0].inside


@pytest.mark.parametrize(
    "given",
    [
        ".env",
        "config/.env.local",
        "id_rsa",
        "deploy.pem",
        ".netrc",
        "CREDENTIALS.json",
        "sub/.aws/config",
        ".E\u200bnv",
    ],
)
def test_reading_a_secret_file_is_a_concern(work: Path, given: str) -> None:
    found = assess(work, {"path": given}, PATHS, effects="read")
    assert found.has(Concern.SECRETS) and found.level is Effects.READ


@pytest.mark.parametrize("given", [".env.example", "env.py", "key.py", "tokens.md", "id_rsa.pub",
                                   "secrets.py", "src/environment.ts"])  # fmt: skip
def test_ordinary_files_are_no_secret(work: Path, given: str) -> None:
    assert not assess(work, {"path": given}, PATHS, effects="read").reasons


@pytest.mark.parametrize("given", ["~/.ssh/id_ed25519", "/etc/shadow", "/proc/1/environ"])
def test_what_no_call_has_to_read_is_forbidden_to_every_tool(work: Path, given: str) -> None:
    assert assess(work, {"path": given}, PATHS, effects="read").has(Concern.FORBIDDEN)


def test_file_tools_and_the_shell_agree_on_secrets() -> None:
    table = places.rules()
    home = "/home/ada"
    some = [p.replace("~", home).replace("*", "x").replace("[0-9]", "7")
            for p in (*table.secret_paths, *table.forbidden_reads)]  # fmt: skip
    names = [n.replace("*", "x") for n in (*table.secret_names, *table.allowed_names)]
    some += [f"/w/{n}" for n in names] + [f"/w/{n}/inner.txt" for n in names]
    some += ["/w/a.py", "/w/environment", "/etc/hosts", "/home/eve/.sshd", "/w", "/", "/homes/.x",
             f"{home}/.SSH/ID_RSA", "/w/.ENV", "/w/X.Pem", f"{home}x/.config/gh"]  # fmt: skip
    for path in some:
        assert sensitive.kind(path, home) == places.secret(path, home), path


@pytest.mark.parametrize(
    "given", ["/etc/cron.d/x", "~/.config/systemd/user/x.service", "/usr/bin/x", "~/.bashrc"]
)
def test_writing_to_the_system_or_what_starts_later_is_more_than_outside(
    work: Path, given: str
) -> None:
    found = assess(work, {"path": given}, PATHS)
    assert found.has(Concern.PERSISTENCE) and found.has(Concern.OUTSIDE)


@pytest.mark.parametrize("tool", ["shell", "path"])
def test_no_call_changes_what_decides_about_calls(
    work: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the home folder of lorimer lies in the workspace, or around it."""
    for home, own in (
        (work / "own", "own/policy.toml"),
        (work / "own", "own/store.db"),
        (work.parent, "../policy.toml"),
        (work.parent, "../trusted.json"),
    ):
        monkeypatch.setenv("LORIMER_HOME", str(home))

        def look(path: str) -> CallEffects:
            if tool == "path":
                return assess(work, {"path": path}, PATHS)
            shell = Traits(command_argument="command")
            return assess(work, {"command": f"echo x > {path}"}, shell)

        assert look(own).has(Concern.FORBIDDEN), own
        assert not look("notes.md").has(Concern.FORBIDDEN)
        assert not look("sub/policy.toml").has(Concern.FORBIDDEN)


def test_git_is_believed_in_a_folder_that_the_person_trusts(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORIMER_HOME", str(work.parent / "home"))
    shell = Traits(command_argument="command")
    status = {"command": "git status"}
    assert assess(work, status, shell).has(Concern.RUNS_CODE)
    FolderTrust(work.parent / "home").trust(work)
    assert assess(work, status, shell) == assess(
        work, status, shell, assessor=CallAssessor(trusted_folder=True)
    )
    assert not assess(work, status, shell).has(Concern.RUNS_CODE)
    (work / "AGENTS.md").write_text("Obey me.")
    assert assess(work, status, shell).has(Concern.RUNS_CODE), "it changed since"


def test_a_repository_inside_a_trusted_one_is_not_trusted(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LORIMER_HOME", str(work.parent / "home"))
    FolderTrust(work.parent / "home").trust(work)
    (work / "sub" / "deep" / ".git").mkdir(parents=True)
    (work / "plain").mkdir()
    status, shell = {"command": "git status"}, Traits(command_argument="command")
    for folder, runs_code in (("plain", False), ("sub", False), ("sub/deep", True)):
        call = facts(
            "t", status, traits=shell, cwd=work / folder, touches=CallEffects(Effects.READ)
        )
        object.__setattr__(call, "roots", (str(work),))
        assert CallAssessor().assess(call).has(Concern.RUNS_CODE) is runs_code, folder


def test_the_level_of_a_command_is_what_it_does(work: Path) -> None:
    shell = Traits(command_argument="command")
    for text, level in [("ls -la", "read"), ("touch a", "write"), ("git push", "irreversible")]:
        assert assess(work, {"command": text}, shell, effects="write").level == level
    found = assess(work, {"command": "cat a > b; cd sub && rm c"}, shell)
    touched = {(str(p.access), p.path) for p in found.paths}
    assert {("read", f"{work}/a"), ("write", f"{work}/b"), ("delete", f"{work}/sub/c")} <= touched


def test_a_command_that_is_no_text_is_not_known(work: Path) -> None:
    found = assess(work, {"command": ["ls"]}, Traits(command_argument="command"))
    assert found.has(Concern.UNKNOWN) and found.level is Effects.WRITE


def test_results_that_the_session_keeps_may_be_read_by_commands(work: Path) -> None:
    home = "/srv/kept-home"
    kept = f"{home}/.local/share/lorimer/blobs"
    shell = Traits(command_argument="command")

    def look(text: str) -> CallEffects:
        assessor = CallAssessor(readable=(kept,), home=home)
        return assess(work, {"command": text}, shell, assessor=assessor)

    assert look(f"grep x {kept}/1.txt") == CallEffects(
        Effects.READ, (PathTouch(f"{kept}/1.txt", f"{kept}/1.txt", Access.READ, True),),
        commands=(SimpleCommand(("grep", "x", f"{kept}/1.txt"), f"grep x {kept}/1.txt"),),
    )  # fmt: skip
    assert look(f"grep x {kept}/1.txt {home}/.local/share/lorimer/x").has(Concern.SECRETS)
    assert look(f"grep x {kept}/1.txt {home}/other").has(Concern.OUTSIDE)
    assert look(f"grep x {kept}/../../x").reasons
    assert look(f"cat {kept}/1 > {kept}/2").has(Concern.OUTSIDE)
    assert look(f"rm {kept}/1").has(Concern.OUTSIDE)


def test_a_link_to_a_secret_is_one(work: Path) -> None:
    (work / ".env").write_text("KEY=1")
    (work / "notes.txt").symlink_to(".env")
    assert assess(work, {"path": "notes.txt"}, PATHS, effects="read").has(Concern.SECRETS)


@pytest.mark.parametrize("given", [".git/hooks/pre-commit", ".git/config", ".bashrc",
                                   "lorimer.toml", ".vscode/tasks.json", "sub/.envrc"])  # fmt: skip
def test_writing_what_runs_later_is_a_concern(work: Path, given: str) -> None:
    found = assess(work, {"path": given}, PATHS)
    assert found.has(Concern.PERSISTENCE)
    assert not assess(work, {"path": given}, PATHS, effects="read").has(Concern.PERSISTENCE)


def test_the_home_folder_is_meant_by_a_tilde_unless_the_tool_takes_paths_as_they_are(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work.parent))
    assert not assess(work, {"path": "~/x"}, PATHS).paths[0].inside
    confined = Traits(path_arguments=("path",), confined=True)
    assert assess(work, {"path": "~/x"}, confined).paths[0].path == f"{work}/~/x"


def test_hosts(work: Path) -> None:
    hosts = Traits(host_arguments=("url",))
    found = assess(work, {"url": "https://Example.org/a?b"}, hosts, effects="read")
    assert found.hosts == ("example.org",) and found.has(Concern.NETWORK)
    assert found.level is Effects.WRITE, "a call that connects does not only read"
    found = assess(work, {"url": "file:///etc/passwd"}, hosts)
    assert not found.hosts and found.has(Concern.UNKNOWN)


def test_secret_handles_anywhere_in_the_arguments(work: Path) -> None:
    given = {"a": [{"b": "Bearer ${secret:github}"}], "c": "secret:mail", "d": "no secret: x"}
    found = assess(work, given, Traits())
    assert set(found.secrets) == {"github", "mail"} and found.has(Concern.SECRETS)
    assert not assess(work, {"d": "the secret: none"}, Traits()).secrets


def test_code_is_a_concern_of_its_own(work: Path) -> None:
    assert assess(work, {"code": "1"}, Traits(runs_code=True)).has(Concern.RUNS_CODE)


@pytest.mark.parametrize("value", [1, {"a": "b"}, [1], ["x", {"y": 1}], True])
def test_what_should_be_a_path_and_is_none_is_not_known(work: Path, value: Any) -> None:
    assert assess(work, {"path": value}, PATHS).has(Concern.UNKNOWN)


def test_a_path_that_cannot_be_resolved_is_not_known(work: Path) -> None:
    for given in ("a\0b", "\ud800"):
        found = assess(work, {"path": given}, PATHS)
        assert found.has(Concern.UNKNOWN), given


def test_a_fault_of_the_assessment_is_a_concern_and_no_crash(work: Path) -> None:
    class Odd(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise RuntimeError("broken")

    found = assess(work, {"path": Odd([1])}, PATHS, effects="read")
    assert found.reasons[0].where == UNASSESSED and found.reasons[0].concern is Concern.UNKNOWN
    assert found.level is Effects.WRITE
    found = assess(work, {"path": Odd([1])}, PATHS, effects="irreversible")
    assert found.level is Effects.IRREVERSIBLE


def test_an_argument_that_is_not_given_is_nothing(work: Path) -> None:
    assert assess(work, {"path": None}, PATHS, effects="read") == CallEffects(Effects.READ)


def test_a_user_that_an_argument_names_is_only_an_argument(work: Path) -> None:
    """G6: who acts is the session's business."""
    one = assess(work, {"user": "root", "principal": "root", "roles": ["admin"]}, Traits())
    assert one == assess(work, {}, Traits())


def test_deep_arguments_are_searched_without_end_of_the_stack(work: Path) -> None:
    value: Any = "secret:deep"
    for _ in range(5_000):
        value = [value]
    found = assess(work, {"a": value}, Traits())
    assert found.has(Concern.SECRETS) or found.reasons[0].where == UNASSESSED
    assert os.path.isdir(work)
