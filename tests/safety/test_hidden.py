# ruff: noqa: ASYNC221, ASYNC240 - tests look at the disk
"""Secret files of the workspace are not shown to programs. Run once more as a normal user."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from lorimer.safety import sensitive
from lorimer.safety.sandbox import choose, hidden, os_level
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec
from lorimer.safety.shell.places import rules

pytestmark = pytest.mark.anyio
sandboxed = pytest.mark.skipif(
    not choose.available()[0].usable, reason=choose.available()[0].reason
)
SECRET = "tok-4711-geheim"
Run = Callable[..., Awaitable[SandboxResult]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    folder.mkdir()
    (folder / "plain.txt").write_text("plain\n")
    return folder


def put(workspace: Path, *names: str) -> None:
    for name in names:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"KEY={SECRET}\n")


def found(workspace: Path, **options: Any) -> set[str]:
    told = hidden.find(workspace, **options)
    return {str(path.relative_to(workspace)) for path in told.paths}


# --- what is found -------------------------------------------------------------------------------


async def test_the_table_of_secrets_says_what_is_hidden(workspace: Path) -> None:
    secret = {
        ".env", "app/.env.local", "a/b/c/d/e/server.key", "id_rsa", "conf/credentials.json",
        ".npmrc", "Ärger/.ENV",
    }  # fmt: skip
    put(workspace, *secret, ".ssh/config", ".aws/x/y")
    put(workspace, ".env.example", "id_rsa.pub", "secrets.py", "credentials/readme.md")
    put(workspace, "node_modules/x/test.pem", ".git/objects/.env", "venv/site-packages/x/a.key")
    assert found(workspace) == {*secret, ".ssh", ".aws"}


async def test_what_is_hidden_is_what_file_tools_ask_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place and name of the table, in a home folder that is the workspace."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    table = rules()
    patterns = (*table.secret_names, *table.allowed_names, *table.secret_paths)
    names = {p.removeprefix("~/").replace("*", "x").replace("[0-9]", "1") for p in patterns}
    names = {n for n in names if not n.startswith("/")}
    for name in names:
        for folder in ("", "deep/er/", "Ünï/"):
            with contextlib.suppress(OSError):  # one of them may be a folder by now
                put(home, f"{folder}{name}", f"{folder}{name}-not", f"{folder}plain/{name}/in")
    files = [str(p) for p in home.rglob("*") if p.is_file()]
    told = {str(p) for p in hidden.find(home).paths}
    shown = [f for f in files if not any(f == t or f.startswith(f"{t}/") for t in told)]
    assert len(files) > 500
    assert [f for f in shown if sensitive.kind(f, str(home)) is not None] == []
    assert [
        t for t in told if sensitive.kind(f"{t}/x" if os.path.isdir(t) else t, str(home)) is None
    ] == []


async def test_a_python_environment_named_env_is_none(workspace: Path) -> None:
    put(workspace, ".env/pyvenv.cfg", ".env/bin/python", "sub/.env/values")
    assert found(workspace) == {"sub/.env"}


async def test_who_works_in_a_folder_of_secrets_sees_the_rest_of_it(tmp_path: Path) -> None:
    folder = tmp_path / ".ssh"
    put(folder, "config", "known_hosts", "id_rsa", "sub/.env")
    assert found(folder) == {"id_rsa", "sub/.env"}


async def test_links_are_hidden_by_what_they_lead_to(workspace: Path, tmp_path: Path) -> None:
    put(workspace, "real-settings", "other")
    put(tmp_path, "outside")
    (workspace / ".env").symlink_to("real-settings")
    (workspace / ".npmrc").symlink_to(tmp_path / "outside")
    (workspace / "id_rsa").symlink_to("missing")
    (workspace / ".pypirc").symlink_to(".pypirc")
    assert found(workspace) == {"real-settings"}


async def test_the_workspace_may_be_named_by_a_link(workspace: Path, tmp_path: Path) -> None:
    put(workspace, "a/.env")
    (tmp_path / "link").symlink_to(workspace)
    assert found(tmp_path / "link") == {"a/.env"}


async def test_our_own_home_is_hidden_whole(workspace: Path, tmp_path: Path) -> None:
    put(workspace, "home/store.db", "home/.env")
    assert found(workspace, own=workspace / "home") == {"home"}
    assert found(workspace / "home", own=workspace) == {".env"}
    assert found(workspace, own=tmp_path / "elsewhere") == {"home/.env"}
    assert found(workspace, own=workspace) == {"home/.env"}


async def test_a_second_look_sees_what_has_changed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "a/.env", "b/c/plain")
    monkeypatch.setattr(hidden, "_SETTLED_NS", -1)  # everything is remembered at once
    assert found(workspace) == {"a/.env"}
    assert found(workspace) == {"a/.env"}
    put(workspace, "b/c/.env", "b/c/d/.npmrc")
    (workspace / "a" / ".env").unlink()
    assert found(workspace) == {"b/c/.env", "b/c/d/.npmrc"}
    os.rename(workspace / "b" / "c" / "plain", workspace / "b" / "c" / "x.pem")
    assert found(workspace) == {"b/c/.env", "b/c/d/.npmrc", "b/c/x.pem"}


async def test_what_changed_just_now_is_not_remembered(workspace: Path) -> None:
    """Two changes within one tick of the file system's clock look like one."""
    put(workspace, "x")
    assert found(workspace) == set()
    assert not any(key[0] == str(workspace) for key in hidden._known)
    assert hidden._SETTLED_NS > 1_000_000_000


async def test_too_large_a_workspace_is_said_to_be_so(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, ".env", *(f"d{n}/x" for n in range(20)))
    assert hidden.find(workspace).complete
    monkeypatch.setattr(hidden, "MOST_FOLDERS", 10)
    told = hidden.find(workspace)
    assert not told.complete
    assert told.paths == (workspace / ".env",)
    monkeypatch.undo()
    put(workspace, "/".join("abcdefghijk") + "/.env")
    assert not hidden.find(workspace).complete


# --- what a program sees -------------------------------------------------------------------------


@pytest.fixture
def run(workspace: Path) -> Run:
    async def inside(command: str, **options: Any) -> SandboxResult:
        options = {"writable": True, "hidden": hidden.find(workspace).paths, **options}
        spec = SandboxSpec(workspace, limits=Limits(wall_s=20), **options)
        return await os_level.run(["/bin/sh", "-c", command], spec=spec)

    return inside


def said(result: SandboxResult) -> str:
    return result.stdout.text() + result.stderr.text()


READING = (
    "cat .env", "cat link", "head -c 9 deep/.env", "cat .ssh/config", "ls .ssh",
    "grep -r geheim .", "cp .env x && cat x", "tar cf - .", "cat < .env", "ln .env y; cat y",
    "ln -s .env z; cat z", "chmod 644 .env; cat .env", "mv .env m; cat m; cat .env",
    "mv deep d; cat d/.env", "rm -f .env; cat .env", "cat /proc/self/cwd/.env",
    "dd if=.env", "umount .env; cat .env", "mount --bind plain.txt .env; cat .env",
    "unshare -r -m sh -c 'umount .env; cat .env'", "cat /proc/self/root$PWD/.env",
    "tail -c +1 .env", "perl -e 'truncate(\".env\", 0)'; cat .env",
)  # fmt: skip


@sandboxed
@pytest.mark.parametrize("writable", [True, False])
async def test_no_way_of_reading_shows_it(run: Run, workspace: Path, writable: bool) -> None:
    put(workspace, ".env", "deep/.env", ".ssh/config")
    (workspace / "link").symlink_to(".env")
    for command in READING:
        result = await run(command, writable=writable)
        assert SECRET not in said(result), command
    for name in (".env", ".ssh/config"):
        assert (workspace / name).read_text() == f"KEY={SECRET}\n"
    kept = [p for p in (workspace / "deep/.env", workspace / "d/.env") if p.exists()]
    assert [p.read_text() for p in kept] == [f"KEY={SECRET}\n"]
    control = await run("cat .env deep/.env d/.env .ssh/config", hidden=())
    assert said(control).count(SECRET) == 3


@sandboxed
async def test_to_read_it_is_a_plain_fault(run: Run, workspace: Path) -> None:
    put(workspace, ".env", ".ssh/config")
    result = await run("cat .env .ssh/config plain.txt; test -f .env && test -d .ssh && echo there")
    assert said(result).count("Permission denied") == 2
    assert "plain\nthere\n" in result.stdout.text()


@sandboxed
async def test_it_cannot_be_changed(run: Run, workspace: Path) -> None:
    put(workspace, ".env", ".aws/credentials")
    result = await run(
        "echo x > .env; echo x >> .env; rm -rf .env .aws; mv .env a; mv .aws b; touch .aws/new; "
        "chmod 777 .env .aws; truncate -s 0 .env; ls -A"
    )
    assert sorted(result.stdout.text().split()) == [".aws", ".env", "plain.txt"]
    assert sorted(p.name for p in workspace.iterdir()) == [".aws", ".env", "plain.txt"]
    assert (workspace / ".env").read_text() == f"KEY={SECRET}\n"
    assert (workspace / ".aws" / "credentials").read_text() == f"KEY={SECRET}\n"
    assert [p.name for p in (workspace / ".aws").iterdir()] == ["credentials"]


@sandboxed
async def test_what_is_hidden_for_its_place_stays_in_its_place(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one program could move a folder, and the next would read what was in it."""
    monkeypatch.setenv("HOME", str(workspace))
    put(workspace, ".config/gh/hosts.yml", ".config/other/plain", ".local/share/lorimer/store.db")
    assert found(workspace) == {".config/gh", ".local/share/lorimer"}
    first = await run(
        "mv .config c; mv .config/gh g; mv .local l; mv .local/share s; mv .local/share/lorimer o; "
        "echo new > .config/other/plain; echo new > .config/new"
    )
    assert said(first).count("Device or resource busy") == 2, said(first)
    for name in (".config/gh/hosts.yml", ".local/share/lorimer/store.db"):
        assert SECRET in (workspace / name).read_text()
    assert (workspace / ".config/other/plain").read_text() == "new\n"
    assert (workspace / ".config/new").read_text() == "new\n"
    second = await run("grep -r . .")
    assert SECRET not in said(second)


@sandboxed
async def test_what_is_to_be_seen_in_a_hidden_folder_is_seen(run: Run, workspace: Path) -> None:
    put(workspace, "home/store.db", "home/blobs/figure", "home/tmp/x")
    home = workspace / "home"
    result = await run(
        "cat home/store.db; ls home; cat home/blobs/figure; ls /tmp; echo y > home/blobs/y",
        hidden=hidden.find(workspace, own=home).paths,
        read_only=(home / "blobs",),
        folders={"/tmp": home / "tmp"},
    )
    out = result.stdout.text()
    assert out.count(SECRET) == 1, out
    assert "store.db" not in out
    assert not (home / "blobs" / "y").exists()


@sandboxed
async def test_covers_leave_nothing_behind(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(workspace, ".env")
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    await run("cat .env; ls -l .env")
    assert list(place.iterdir()) == []
    assert list(workspace.iterdir()) != []


@sandboxed
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_git_takes_a_hidden_file_for_unchanged(run: Run, workspace: Path) -> None:
    put(workspace, ".env", "run.key")
    (workspace / "run.key").chmod(0o755)
    old = time.time() - 3600
    os.utime(workspace / ".env", (old, old))
    os.utime(workspace / "run.key", (old, old))
    settings = {"safe.directory": "*", "user.name": "t", "user.email": "t@example.org"}
    environment = {"GIT_CONFIG_COUNT": str(len(settings) + 1)}
    for n, (key, value) in enumerate([*settings.items(), ("core.checkStat", "minimal")]):
        environment |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    for step in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words, *step], cwd=workspace, check=True)
    result = await run(
        "git status --short; git diff; echo more >> plain.txt; git commit -qam more; "
        "git show --stat --format=%s HEAD",
        environment=environment,
    )
    assert said(result).split("\n")[0] == "more", said(result)
    assert ".env" not in said(result)


@sandboxed
async def test_hundreds_of_files_are_hidden(run: Run, workspace: Path) -> None:
    put(workspace, *(f"keys/{n}.pem" for n in range(300)))
    result = await run("cat keys/*.pem; echo done")
    assert SECRET not in said(result)
    assert result.stdout.text() == "done\n"


@pytest.mark.skipif(not choose.available()[1].usable, reason=choose.available()[1].reason)
async def test_the_level_landlock_says_that_it_does_not_hide_them(workspace: Path) -> None:
    put(workspace, ".env")
    spec = SandboxSpec(workspace, hidden=hidden.find(workspace).paths, limits=Limits(wall_s=20))
    result = await choose.run(["/bin/true"], spec=spec, level="landlock")
    assert "secret files are not hidden (1)" in result.not_enforced
