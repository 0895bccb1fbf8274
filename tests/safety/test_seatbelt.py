# ruff: noqa: ASYNC240 - tests look at the disk
"""The Seatbelt profile, read as text, and everything around it with a stand-in for `sandbox-exec`.

Not run on macOS here.
"""

import os
import re
from pathlib import Path

import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import seatbelt
from lorimer.safety.sandbox.spec import Limits, SandboxSpec

pytestmark = pytest.mark.anyio


def rules(text: str) -> list[str]:
    return text.strip().splitlines()


def denied(text: str, path: str) -> bool:
    """What the last `deny file-write*` rule by name says about a path."""
    found = re.findall(r'\(deny file-write[^(]*\(regex #"(.*)"\)\)', text)
    return any(re.search(expression, path) for expression in found)


def test_everything_is_denied_first_and_the_network_with_it(tmp_path: Path) -> None:
    lines = rules(seatbelt.profile(SandboxSpec(tmp_path), []))
    assert lines[:3] == ["(version 1)", "(deny default)", "(deny network*)"]
    assert not any("allow network" in line for line in lines)
    assert not any('"/Users' in line or '"/private/var/folders"' in line for line in lines)
    assert lines.count("(deny file-write-setugid)") == 1


def test_parentheses_are_balanced(tmp_path: Path) -> None:
    for line in rules(seatbelt.profile(SandboxSpec(tmp_path, writable=True), [tmp_path / "h"])):
        plain = re.sub(r'#?"(?:[^"\\]|\\.)*"', "", line)
        assert plain.count("(") == plain.count(")"), line


def test_the_workspace_is_writable_only_when_the_spec_says(tmp_path: Path) -> None:
    real = os.path.realpath(tmp_path)
    reading = seatbelt.profile(SandboxSpec(tmp_path), [])
    writing = seatbelt.profile(SandboxSpec(tmp_path, writable=True), [])
    assert f'(allow file-read* (subpath "{real}"))' in reading
    assert "file-write* (subpath" not in reading
    assert f'(allow file-read* file-write* (subpath "{real}"))' in writing


def test_links_are_resolved_because_seatbelt_sees_real_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    text = seatbelt.profile(SandboxSpec(tmp_path / "link", writable=True), [])
    assert f'"{os.path.realpath(tmp_path)}/real"' in text
    assert "/link" not in text


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git", ".GIT/Hooks/x",
     "sub/deep/.git/hooks/x", ".mcp.json", "lorimer.toml", ".lorimer/skills/x", ".bashrc",
     ".vscode/tasks.json", ".VSCode", "sub/.envrc"],
)  # fmt: skip
def test_protected_names_are_denied_after_the_workspace_is_allowed(
    tmp_path: Path, path: str
) -> None:
    text = seatbelt.profile(SandboxSpec(tmp_path, writable=True), [])
    real = os.path.realpath(tmp_path)
    assert denied(text, f"{real}/{path}")
    allow = text.index(f'file-write* (subpath "{real}")')
    assert all(m.start() > allow for m in re.finditer(r"\(deny file-write", text))


@pytest.mark.parametrize("path", [".git/index", ".git/objects/ab/cd", "src/main.py", "bashrc",
                                  ".gitignore", "hooks/x", "config", "x.mcp.json"])  # fmt: skip
def test_ordinary_names_are_not(tmp_path: Path, path: str) -> None:
    text = seatbelt.profile(SandboxSpec(tmp_path, writable=True), [])
    assert not denied(text, f"{os.path.realpath(tmp_path)}/{path}")


def test_odd_paths_cannot_break_out_of_a_string(tmp_path: Path) -> None:
    odd = tmp_path / 'a") (allow default) ("b\\c [x]'
    odd.mkdir()
    text = seatbelt.profile(SandboxSpec(odd, writable=True), [])
    assert '(subpath "' + str(odd).replace("\\", "\\\\").replace('"', '\\"') + '")' in text
    strings = re.sub(r'#"[^"]*"', "", re.sub(r'(?<!#)"(?:[^"\\]|\\.)*"', "", text))
    assert "allow default" not in strings
    assert denied(text, f"{odd}/.mcp.json")
    with pytest.raises(SandboxUnavailable, match="control character"):
        seatbelt.profile(SandboxSpec(tmp_path, read_only=(Path("/a\nb"),)), [])


def test_unix_sockets_only_where_they_are_granted(tmp_path: Path) -> None:
    text = seatbelt.profile(SandboxSpec(tmp_path, unix_sockets=True), [])
    assert "(allow network-outbound (remote unix-socket))" in text


def test_a_system_folder_is_no_workspace() -> None:
    with pytest.raises(SandboxUnavailable, match="/etc"):
        seatbelt.profile(SandboxSpec(Path("/etc")), [])


FAKE = """#!/bin/sh
printf '%s' "$2" > "{record}"
[ "$1" = -p ] || exit 9
shift 2
exec "$@"
"""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    programs = tmp_path / "programs"
    programs.mkdir()
    fake = programs / "sandbox-exec"
    fake.write_text(FAKE.format(record=tmp_path / "profile"))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SOME_API_KEY", "topsecret")
    return tmp_path / "profile"


async def test_a_run_with_a_stand_in(record: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "wörk space"
    workspace.mkdir()
    spec = SandboxSpec(workspace, writable=True, environment={"GIVEN": "yes"})
    result = await seatbelt.run(
        ["/bin/sh", "-c", 'pwd; env; cat; ulimit -n; exit "$1"', "sh", "3"], spec=spec, stdin=b"in"
    )
    said = result.stdout.text()
    assert (result.exit_code, result.level) == (3, "os")
    assert said.startswith(f"{workspace}\n") and "GIVEN=yes" in said and "topsecret" not in said
    assert said.endswith("in1024\n")
    home = re.search(r"^HOME=(.*)$", said, re.M)
    assert home is not None and not Path(home[1]).exists()
    assert f'"{home[1]}"' in record.read_text()
    assert any("process group" in gap for gap in result.not_enforced)


async def test_a_time_out_with_a_stand_in(record: Path, tmp_path: Path) -> None:
    spec = SandboxSpec(tmp_path, limits=Limits(wall_s=0.3))
    result = await seatbelt.run(["/bin/sh", "-c", "trap '' TERM; echo x; sleep 60"], spec=spec)
    assert result.timed_out and result.exit_code is None and result.stdout.text() == "x\n"
    assert result.duration_s < 20


async def test_without_the_program_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="sandbox-exec"):
        await seatbelt.run(["/bin/true"], spec=SandboxSpec(tmp_path))
