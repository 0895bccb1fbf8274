# ruff: noqa: ASYNC240 - tests look at the disk, and wait for it
"""list_directory, find_file and grep_file over trees of difficult files."""

import os
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from lorimer.toolkits.perception.find_file import matcher
from lorimer.tools.tool import ToolError

pytestmark = pytest.mark.anyio


@pytest.fixture
def tree(workspace: Path) -> Path:
    (workspace / "src" / "deep").mkdir(parents=True)
    (workspace / "src" / "main.py").write_text("def main():\n    return 'needle'\n")
    (workspace / "src" / "deep" / "test_main.py").write_text("import main\n")
    (workspace / ".hidden").write_text("needle in hidden\n")
    (workspace / ".gitignore").write_text("ignored/\n*.log\n")
    (workspace / "ignored").mkdir()
    (workspace / "ignored" / "x.py").write_text("needle\n")
    (workspace / "a.log").write_text("needle\n")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "x.py").write_text("needle\n")
    return workspace


async def test_a_folder_is_listed_with_sizes_and_kinds(call: Any, tree: Path) -> None:
    (tree / "link").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe")
    said = await call("list_directory")
    assert said.splitlines()[0] == ".: entries 1–8 of 8"
    assert "src/" in said and "link -> /etc/passwd" in said and "pipe  (pipe)" in said
    assert ".hidden  17 bytes  20" in said


async def test_a_long_list_comes_in_pages(call: Any, workspace: Path) -> None:
    for number in range(250):
        (workspace / f"f{number:03d}").touch()
    names: list[str] = []
    offset = 1
    while True:
        head, *rest = (await call("list_directory", offset=offset)).splitlines()
        names += [line.split("  ")[0] for line in rest]
        if "continue" not in head:
            break
        offset = int(head.split("offset=")[1])
    assert names == [f"f{number:03d}" for number in range(250)]
    with pytest.raises(ToolError, match="250 entries"):
        await call("list_directory", offset=251)


async def test_odd_names_stay_on_one_line(call: Any, workspace: Path) -> None:
    for name in ("new\nline", "tab\t", "nb\u00a0sp\u202fx", os.fsdecode(b"latin\xe9")):
        (workspace / name).write_text("needle\n")
    for tool, arguments in (
        ("list_directory", {}),
        ("find_file", {"pattern": "*"}),
        ("grep_file", {"pattern": "needle"}),
    ):
        lines = (await call(tool, **arguments)).splitlines()
        assert len(lines) == 5, (tool, lines)
        text = "\n".join(lines)
        assert "'new\\nline'" in text and "nb\u00a0sp\u202fx" in text and "latin\\udce9" in text


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/deep/test_main.py", "src/main.py"]),
        ("src/*.py", ["src/main.py"]),
        ("src/**/*.py", ["src/deep/test_main.py", "src/main.py"]),
        ("**/main.py", ["src/main.py"]),
        ("MAIN", ["src/deep/test_main.py", "src/main.py"]),
        ("deep/", ["src/deep/test_main.py"]),
        ("[mt]*.py", ["src/deep/test_main.py", "src/main.py"]),
        ("[!t]*.py", ["src/main.py"]),
        ("?ain.py", ["src/main.py"]),
        (".hid*", [".hidden"]),
    ],
)
async def test_files_are_found(call: Any, tree: Path, pattern: str, found: list[str]) -> None:
    head, *rest = (await call("find_file", pattern=pattern)).splitlines()
    assert rest == found
    assert head == f"files 1–{len(found)} of {len(found)}"


async def test_ignored_files_are_left_out_and_said(call: Any, tree: Path) -> None:
    said = await call("find_file", pattern="*.log")
    assert said == "no files (1 among ignored files: use include_ignored=true)"
    assert "a.log" in await call("find_file", pattern="*.log", include_ignored=True)
    assert "hidden:1" in await call("grep_file", pattern="needle")
    assert "a.log" not in await call("grep_file", pattern="needle")
    assert "a.log:1" in await call("grep_file", pattern="needle", include_ignored=True)
    assert ".git/" not in await call("grep_file", pattern="needle", include_ignored=True)


async def test_a_search_can_start_below(call: Any, tree: Path) -> None:
    assert (await call("find_file", pattern="*", path="src/deep")).endswith("src/deep/test_main.py")
    assert "src/main.py:2:     return 'needle'" in await call(
        "grep_file", pattern="needle", path="src"
    )
    said = await call("grep_file", pattern="needle", path="src/main.py")
    assert said == "matches 1–1 of 1 (in 1 file)\nsrc/main.py:2:     return 'needle'"


@pytest.mark.parametrize("tool", ["find_file", "grep_file", "list_directory"])
async def test_a_search_cannot_start_outside(call: Any, tree: Path, tool: str) -> None:
    (tree / "out").symlink_to("/etc")
    for path in ("..", "/etc", "out"):
        arguments = {} if tool == "list_directory" else {"pattern": "root"}
        with pytest.raises(ToolError) as caught:
            await call(tool, path=path, **arguments)
        assert caught.value.code == "outside"


async def test_links_are_not_followed_while_searching(call: Any, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("needle\n")
    (workspace / "folder").symlink_to(outside)
    (workspace / "file").symlink_to(outside / "secret.txt")
    assert await call("grep_file", pattern="needle") == "no matches"
    assert "secret" not in await call("find_file", pattern="*")


async def test_matches_come_in_pages_with_the_total(call: Any, workspace: Path) -> None:
    for number in range(4):
        (workspace / f"f{number}").write_text("needle\n" * 30)
    got: list[str] = []
    offset = 1
    while True:
        head, *rest = (await call("grep_file", pattern="needle", offset=offset)).splitlines()
        assert "of 120" in head and "(in 4 files)" in head
        got += rest
        if "continue" not in head:
            break
        offset = int(head.split("offset=")[1].split(" ")[0])
    assert got == [f"f{n}:{line}: needle" for n in range(4) for line in range(1, 31)]
    with pytest.raises(ToolError, match="120 matches"):
        await call("grep_file", pattern="needle", offset=121)


async def test_very_many_matches_are_counted_to_a_point(call: Any, workspace: Path) -> None:
    (workspace / "x").write_text("needle\n" * 50_000)
    assert "of at least 10,000" in await call("grep_file", pattern="needle")


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
async def test_other_encodings_are_searched(call: Any, workspace: Path, codec: str) -> None:
    (workspace / "x").write_bytes("first\r\nthe nädel here\r\n".encode(codec))
    for path in (".", "x"):
        assert "x:2: the nädel here" in await call("grep_file", pattern="nädel here$", path=path)


async def test_a_minified_line_shows_the_part_around_the_match(call: Any, workspace: Path) -> None:
    (workspace / "min.js").write_text("ü" * 300_000 + "needle" + "y" * 300_000)
    said = await call("grep_file", pattern="needle")
    assert "needle" in said and len(said) < 1000
    assert "⟪characters 299,901–300,300 of 600,006⟫" in said


async def test_binary_files_are_named_not_shown(call: Any, workspace: Path) -> None:
    (workspace / "b").write_bytes(b"needle\0\xff\n")
    (workspace / "t").write_text("needle\n")
    said = await call("grep_file", pattern="needle")
    assert "of 1 (in 1 file); 1 binary files match too and are not shown" in said


@pytest.mark.parametrize(
    ("content", "pattern", "hint"),
    [
        ("a\u00a0b", "a b", "other kinds of space"),
        ("a\u202fb", "a b", "other kinds of space"),
        ("cafe\u0301", "caf\u00e9", "Unicode form NFD"),
        ("caf\u00e9", "cafe\u0301", "Unicode form NFC"),
        ("Needle", "needle", "(?i)"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
async def test_nothing_found_says_what_would_have_been(
    call: Any, workspace: Path, content: str, pattern: str, hint: str, literal: bool
) -> None:
    (workspace / "x").write_text(f"one\n{content}\n")
    for path in (".", "x"):
        said = await call("grep_file", pattern=pattern, literal=literal, path=path)
        assert said.startswith("no matches\nbut 1 ") and hint in said and "x:2:" in said


@pytest.mark.parametrize("pattern", ["-e", "--pre=sh", "-", "--", "-n", "$(x)", "a'b\"c"])
async def test_a_pattern_is_never_an_option(call: Any, workspace: Path, pattern: str) -> None:
    (workspace / "x").write_text(f"one\n{pattern}\n")
    assert "x:2:" in await call("grep_file", pattern=pattern, literal=True)
    assert await call("grep_file", pattern="one", glob="--pre=sh") == "no matches"


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}"])
async def test_a_wrong_pattern_is_explained(call: Any, workspace: Path, pattern: str) -> None:
    (workspace / "x").write_text("one\n")
    with pytest.raises(ToolError) as caught:
        await call("grep_file", pattern=pattern)
    assert caught.value.code == "bad_pattern"
    assert "literal=true" in caught.value.next


async def test_only_the_files_of_a_glob_are_searched(call: Any, tree: Path) -> None:
    assert "1 of 1" in await call("grep_file", pattern="needle", glob="*.py")


async def test_a_configuration_of_ripgrep_is_not_read(
    call: Any, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.parent / "rc").write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tree.parent / "rc"))
    assert "2 of 2" in await call("grep_file", pattern="needle")


async def test_cancelling_ends_the_search(call: Any, workspace: Path) -> None:
    (workspace / "x").write_text("needle\n" * 200_000)
    before = threading.active_count()
    for delay in (0.0, 0.002, 0.01, 0.02):
        with anyio.move_on_after(delay):
            await call("grep_file", pattern="needle")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert "rg" not in [Path(f"/proc/{c}/comm").read_text().strip() for c in children]
    assert threading.active_count() < before + 10


def test_a_glob_says_what_fits() -> None:
    fits = matcher("a[b-d]/**/x?.txt")
    assert fits("ab/x1.txt") and fits("ac/y/z/x1.txt")
    assert not fits("a/x1.txt") and not fits("ab/x/1.txt")
    assert matcher("caf\u00e9*")("cafe\u0301.txt")
    with pytest.raises(ToolError):
        matcher("")
