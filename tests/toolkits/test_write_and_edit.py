# ruff: noqa: ASYNC240, PT017 - tests look at the disk, and wait for it
import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.core.calls import Outcome
from lorimer.toolkits.execution import replace
from lorimer.toolkits.execution.checks import check_written
from lorimer.toolkits.execution.edit_file import find_outcome
from lorimer.tools.tool import NOT_FOUND, EffectMark, ToolContext, ToolError

pytestmark = pytest.mark.anyio
Call = Callable[..., Any]


async def fails(call: Call, name: str, code: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(name, **arguments)
    assert caught.value.code == code, caught.value
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT
    assert caught.value.next
    return caught.value


def only(workspace: Path, *names: str) -> None:
    """Nothing else is left behind, hidden files included."""
    assert sorted(p.name for p in workspace.iterdir()) == sorted(names)


async def test_a_new_file_is_made_with_its_folders(call: Call, workspace: Path) -> None:
    said = await call("write_file", path="a/b/c.txt", content="one\ntwo")
    assert (workspace / "a/b/c.txt").read_bytes() == b"one\ntwo"
    assert "7 bytes, 2 lines" in said and "made the folder a/b" in said
    only(workspace / "a/b", "c.txt")


async def test_an_existing_file_is_only_overwritten_when_it_was_read(
    call: Call, workspace: Path
) -> None:
    (workspace / "x").write_text("old\n")
    await fails(call, "write_file", "not_read", path="x", content="new\n")
    assert (workspace / "x").read_text() == "old\n"
    await call("read_file", path="x")
    said = await call("write_file", path="x", content="new\n")
    assert "-old\n+new" in said
    await call("write_file", path="x", content="newer\n")
    assert (workspace / "x").read_text() == "newer\n"


async def test_writing_the_same_again_changes_nothing(
    call: Call, workspace: Path, context: ToolContext
) -> None:
    await call("write_file", path="x", content="same")
    before = (workspace / "x").stat()
    context.mark = EffectMark.NOT_MARKED
    assert "already" in await call("write_file", path="x", content="same")
    after = (workspace / "x").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert context.mark is EffectMark.NOT_BEGUN


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_a_stale_read_is_refused(call: Call, workspace: Path, tool: str) -> None:
    (workspace / "x").write_text("one two\n")
    await call("read_file", path="x")
    (workspace / "x").write_text("one two three\n")
    arguments = {"content": "n"} if tool == "write_file" else {"old_text": "two", "new_text": "2"}
    fault = await fails(call, tool, "stale", path="x", **arguments)
    assert "again" in fault.next
    await call("read_file", path="x")
    await call(tool, path="x", **arguments)


async def test_an_edit_without_a_read_is_refused(call: Call, workspace: Path) -> None:
    (workspace / "x").write_text("one")
    await fails(call, "edit_file", "not_read", path="x", old_text="one", new_text="two")


async def test_a_read_through_a_link_counts_for_the_file(call: Call, workspace: Path) -> None:
    (workspace / "real").write_text("one\n")
    (workspace / "link").symlink_to("real")
    await call("read_file", path="link")
    await call("edit_file", path="real", old_text="one", new_text="two")
    await call("edit_file", path="link", old_text="two", new_text="three")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "three\n"
    only(workspace, "real", "link")


async def test_a_text_that_stands_twice_says_how_often_and_where(
    call: Call, workspace: Path
) -> None:
    (workspace / "x").write_text("a\nfoo\nb\nfoo foo\n")
    await call("read_file", path="x")
    fault = await fails(call, "edit_file", "ambiguous", path="x", old_text="foo", new_text="bar")
    assert "3 times" in fault.message and "at lines 2, 4, 4" in fault.message
    said = await call("edit_file", path="x", old_text="foo", new_text="bar", replace_all=True)
    assert "(3 places)" in said
    assert (workspace / "x").read_text() == "a\nbar\nb\nbar bar\n"


@pytest.mark.parametrize("every", [False, True])
async def test_a_text_that_overlaps_itself_is_not_unique(
    call: Call, workspace: Path, every: bool
) -> None:
    (workspace / "x").write_text("aaa")
    await call("read_file", path="x")
    await fails(call, "edit_file", "ambiguous", path="x", old_text="aa", new_text="b",
                replace_all=every)  # fmt: skip


DIFFERENT = [
    ("a\r\nb\r\n", "a\nb\n", "line ends"),
    ("say “hi”", 'say "hi"', "quotes"),
    ("it’s", "it's", "quotes"),
    ("cafe\u0301", "caf\u00e9", "Unicode form"),
    ("a\u00a0b", "a b", "space"),
    ("a\u202fb", "a b", "space"),
    ("end  \nnext", "end\nnext", "end of lines"),
    ("\tx = 1", "    x = 1", "tabs"),
    ("a – b", "a - b", "dash"),
    ("Foo", "foo", "case"),
    ("a\u200bb", "ab", "invisible"),
    ("say “hi”\r\nyou", 'say "hi"\nyou', "quotes"),
]


@pytest.mark.parametrize(("has", "given", "why"), DIFFERENT)
async def test_a_near_miss_is_explained_and_never_edited(
    call: Call, workspace: Path, has: str, given: str, why: str
) -> None:
    raw = f"first\n{has}\nlast\n".encode()
    (workspace / "x").write_bytes(raw)
    await call("read_file", path="x")
    fault = await fails(call, "edit_file", "no_match", path="x", old_text=given, new_text="NEW")
    assert why in fault.message and "line 2" in fault.message
    assert (workspace / "x").read_bytes() == raw


async def test_a_far_miss_shows_the_most_similar_line(call: Call, workspace: Path) -> None:
    (workspace / "x").write_text("alpha\ndef compute_total(items):\nomega\n")
    await call("read_file", path="x")
    fault = await fails(call, "edit_file", "no_match", path="x",
                        old_text="def compute_totals(item):", new_text="x")  # fmt: skip
    assert "line 2" in fault.message and "compute_total(items)" in fault.message


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("a", "a")])
async def test_an_edit_that_is_none_is_refused(
    call: Call, workspace: Path, old: str, new: str
) -> None:
    (workspace / "x").write_text("a")
    await call("read_file", path="x")
    await fails(call, "edit_file", "value", path="x", old_text=old, new_text=new)


async def test_half_a_surrogate_pair_is_refused(call: Call, workspace: Path) -> None:
    await fails(call, "write_file", "value", path="x", content="a\ud800")
    only(workspace)


async def test_mode_owner_and_attributes_are_kept(call: Call, workspace: Path) -> None:
    path = workspace / "run.sh"
    path.write_text("echo one\n")
    path.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    try:
        os.setxattr(path, "user.note", b"kept")
        has_attributes = True
    except OSError:
        has_attributes = False
    before = path.stat()
    await call("read_file", path="run.sh")
    await call("edit_file", path="run.sh", old_text="one", new_text="two")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid
    )  # fmt: skip
    assert after.st_ino != before.st_ino
    if has_attributes:
        assert os.getxattr(path, "user.note") == b"kept"


async def test_hard_links_are_kept_and_told(call: Call, workspace: Path) -> None:
    (workspace / "x").write_text("one two")
    os.link(workspace / "x", workspace / "y")
    await call("read_file", path="x")
    said = await call("edit_file", path="x", old_text="one", new_text="1")
    assert "2 hard links" in said
    assert (workspace / "y").read_text() == "1 two"
    only(workspace, "x", "y")


async def test_a_hard_link_to_a_protected_file_is_protected(call: Call, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("[core]\n")
    os.link(workspace / ".git/config", workspace / "x")
    await call("read_file", path="x")
    await fails(call, "edit_file", "protected", path="x", old_text="core", new_text="x")


async def test_two_edits_at_once_are_both_there_or_one_is_told(
    workspace: Path, make_context: Any, in_context: Any
) -> None:
    (workspace / "x").write_text("a b\n")
    contexts = [make_context(workspace) for _ in range(2)]
    for context in contexts:
        await in_context(context, "read_file", path="x")
    told: list[str] = []

    async def edit(context: ToolContext, old: str) -> None:
        try:
            await in_context(context, "edit_file", path="x", old_text=old, new_text=old.upper())
            told.append(old)
        except ToolError as fault:
            assert fault.code == "stale"

    async with anyio.create_task_group() as group:
        group.start_soon(edit, contexts[0], "a")
        group.start_soon(edit, contexts[1], "b")
    expected = "a b\n"
    for old in told:
        expected = expected.replace(old, old.upper())
    assert told and (workspace / "x").read_text() == expected


async def test_an_edit_waits_for_the_lock_of_the_folder_and_then_says_so(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replace, "_LOCK_WAIT_S", 0.05)
    (workspace / "x").write_text("one")
    await call("read_file", path="x")
    folder = os.open(workspace, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        await fails(call, "edit_file", "busy", path="x", old_text="one", new_text="two")
        await fails(call, "write_file", "busy", path="y", content="two")
    finally:
        os.close(folder)
    await call("edit_file", path="x", old_text="one", new_text="two")


async def test_only_one_of_many_makes_a_new_file(
    workspace: Path, make_context: Any, in_context: Any
) -> None:
    made: list[str] = []

    async def write(text: str) -> None:
        try:
            await in_context(make_context(workspace), "write_file", path="new", content=text)
            made.append(text)
        except ToolError as fault:
            assert fault.code in ("not_read", "stale")

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(write, f"content {number}")
    assert len(made) == 1
    assert (workspace / "new").read_text() == made[0]
    only(workspace, "new")


async def test_a_swap_of_the_folder_never_writes_outside(
    workspace: Path, make_context: Any, in_context: Any
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (workspace / "sub").mkdir()
    (workspace / "evil").symlink_to(outside)
    done = threading.Event()

    libc, here, exchange = ctypes.CDLL(None), -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = (os.fsencode(workspace / "sub"), os.fsencode(workspace / "evil"))

    def swap() -> None:
        while not done.is_set():
            assert libc.renameat2(here, names[0], here, names[1], exchange) == 0

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for number in range(100):
            try:
                await in_context(
                    make_context(workspace), "write_file", path=f"sub/f{number}", content="x"
                )
            except ToolError as fault:
                assert fault.outcome is Outcome.FAILED_BEFORE_EFFECT
    finally:
        done.set()
        swapper.join()
    only(outside)


async def test_cancelling_at_any_moment_leaves_a_true_mark(
    workspace: Path, make_context: Any, in_context: Any
) -> None:
    """Before the effect: nothing there. After it: the whole file, and the mark says so."""
    for number in range(40):
        context = make_context(workspace)
        name = f"f{number}"
        with anyio.move_on_after(number * 0.0002):
            await in_context(context, "write_file", path=name, content="whole\n" * 1000)
        if context.mark is EffectMark.COMPLETE:
            assert (workspace / name).read_text() == "whole\n" * 1000
        else:
            assert context.mark in (EffectMark.NOT_MARKED, EffectMark.NOT_BEGUN)
            assert not (workspace / name).exists()
    assert not [p for p in workspace.iterdir() if p.name.startswith(".")]


FULL = """
import asyncio, errno, os, sys
from pathlib import Path
from lorimer.toolkits import default_tools
from lorimer.tools.tool import Principal, ToolContext, ToolError
tools = {t.name: t.function for t in default_tools()}
top = Path(sys.argv[1])
ctx = ToolContext("s", "c", Principal("p"), "k", top)
(top / "old").write_text("old text\\n" * 1000)
os.link(top / "old", top / "twin")
(top / "alone").write_text("old text\\n" * 1000)
async def main():
    for name in ("old", "alone"):
        tools["read_file"](path=name, context=ctx)
    before = sorted(os.listdir(top))
    for name, code in (("new", None), ("a/b/new", None), ("old", None), ("alone", None)):
        try:
            await tools["write_file"](path=name, content="x" * 3_000_000, context=ctx)
            print("WRITTEN", name)
        except ToolError as fault:
            print(name, fault.code, fault.outcome, "Nothing was changed" in fault.message)
    assert sorted(os.listdir(top)) == before, os.listdir(top)
    for name in ("old", "twin", "alone"):
        assert (top / name).read_text() == "old text\\n" * 1000, name
    print("all as before")
asyncio.run(main())
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare (util-linux)")
def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    """On a file system of 1 MiB, in a mount namespace of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "full.py").write_text(FULL)
    script = (
        f"mount -t tmpfs -o size=1m none {disk} && exec {sys.executable} {tmp_path}/full.py {disk}"
    )
    who = ["--user", "--map-root-user"] if os.geteuid() else []
    done = subprocess.run(
        ["unshare", *who, "--mount", "--propagation", "private", "sh", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert "all as before" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("disk_full failed_before_effect True") == 4, done.stdout


def test_a_file_size_limit_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
    (tmp_path / "full.py").write_text(limit + textwrap.dedent(FULL))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "full.py"), str(tmp_path / "ws")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "all as before" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("not_written failed_before_effect True") == 4, done.stdout


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare (util-linux)")
def test_a_read_only_file_system_is_told(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    code = FULL.split("(top /")[0] + textwrap.dedent("""
        async def main():
            for path in ("x", "a/b/x"):
                try:
                    await tools["write_file"](path=path, content="x", context=ctx)
                except ToolError as fault:
                    print(fault.code, fault.outcome, fault)
        asyncio.run(main())
        """)
    (tmp_path / "ro.py").write_text(code)
    script = f"mount -t tmpfs -o ro none {disk} && exec {sys.executable} {tmp_path}/ro.py {disk}"
    who = ["--user", "--map-root-user"] if os.geteuid() else []
    done = subprocess.run(
        ["unshare", *who, "--mount", "--propagation", "private", "sh", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.count("not_written failed_before_effect") == 2, done.stdout + done.stderr
    assert "Read-only file system" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_file_without_write_permission_is_not_replaced(call: Call, workspace: Path) -> None:
    (workspace / "x").write_text("one")
    (workspace / "x").chmod(0o444)
    await call("read_file", path="x")
    await fails(call, "edit_file", "not_written", path="x", old_text="one", new_text="two")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_in_a_folder_that_cannot_be_written(call: Call, workspace: Path) -> None:
    (workspace / "x").write_text("one")
    workspace.chmod(0o555)
    try:
        await call("read_file", path="x")
        said = await call("edit_file", path="x", old_text="one", new_text="two")
        assert "in place" in said
        assert (workspace / "x").read_text() == "two"
        await fails(call, "write_file", "not_written", path="y", content="two")
        await fails(call, "write_file", "not_written", path="a/y", content="two")
        only(workspace, "x")
    finally:
        workspace.chmod(0o755)


@pytest.mark.parametrize("path", ["../x", "/etc/x", ".git/hooks/x", ".mcp.json", "lorimer.toml"])
async def test_places_that_may_not_be_written(call: Call, workspace: Path, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        await call("write_file", path=path, content="x")
    assert caught.value.code in ("outside", "protected")
    assert caught.value.outcome is Outcome.FAILED_BEFORE_EFFECT
    only(workspace)


async def test_the_scratch_folder_cannot_be_written(call: Call, context: ToolContext) -> None:
    assert context.scratch is not None
    context.scratch.mkdir()
    await fails(call, "write_file", "read_only", path=str(context.scratch / "x"), content="x")


async def test_a_lost_byte_order_mark_is_told(call: Call, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    await call("read_file", path="x")
    said = await call("write_file", path="x", content="a\nc\n")
    assert "byte order mark" in said and "CRLF" in said


class TestFindOutcome:
    async def test_an_edit_that_was_made_is_found(
        self, call: Call, workspace: Path, context: ToolContext
    ) -> None:
        (workspace / "x").write_text("one\n")
        await call("read_file", path="x")
        await call("edit_file", path="x", old_text="one", new_text="two")
        assert "was edited" in find_outcome(context.operation_key, context)

    async def test_an_edit_that_stopped_before_its_effect_is_not_found(
        self, call: Call, workspace: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (workspace / "x").write_text("one\n")
        await call("read_file", path="x")

        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(replace, "overwrite", stop)
        with pytest.raises(KeyboardInterrupt):
            await call("edit_file", path="x", old_text="one", new_text="two")
        assert find_outcome(context.operation_key, context) is NOT_FOUND
        assert find_outcome("never used", context) is NOT_FOUND

    async def test_a_file_that_changed_since_cannot_tell(
        self, call: Call, workspace: Path, context: ToolContext
    ) -> None:
        (workspace / "x").write_text("one\n")
        await call("read_file", path="x")
        await call("edit_file", path="x", old_text="one", new_text="two")
        (workspace / "x").write_text("three\n")
        with pytest.raises(ToolError):
            find_outcome(context.operation_key, context)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("x.py", "def f(:\n", "line 1"), ("x.py", "x = 1 if 1 is 1 else 2\n", None),
        ("x.json", '{"a": 1,}', "line 1"), ("x.json", '{"a": 1}', None),
        ("x.toml", "a = \n", "line 1"), ("x.toml", "a = 1\n", None), ("x.txt", "def f(:", None),
        ("x.py", "a\0", "null"), ("x.JSON", "{", "line 1"),
    ],
)  # fmt: skip
async def test_syntax_is_looked_at_after_writing(
    call: Call, context: ToolContext, monkeypatch: pytest.MonkeyPatch,
    name: str, content: str, found: str | None,
) -> None:  # fmt: skip
    monkeypatch.setenv("LORIMER_WRITE_CHECKS", "parse")
    said = await call("write_file", path=name, content=content)
    findings = await check_written({"path": name}, said, context)
    if found is None:
        assert findings == []
    else:
        assert found in findings[0].message and findings[0].severity == "error"
