"""The same tests for the kernel's walk (openat2) and for ours."""

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lorimer.safety import openat2
from lorimer.safety.path_faults import PathRefused
from lorimer.safety.paths import Roots

KERNEL = pytest.param(
    True, id="openat2", marks=pytest.mark.skipif(not openat2.is_available(), reason="no openat2")
)


@pytest.fixture(params=[KERNEL, pytest.param(False, id="walk")])
def use_openat2(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("inside")
    (folder / "sub" / "b.txt").write_text("below")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def roots(top: Path, use_openat2: bool) -> Roots:
    return Roots(top, use_openat2=use_openat2)


@pytest.fixture(autouse=True)
def no_descriptor_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


def content(roots: Roots, path: str) -> str:
    with roots.open_file(path) as opened:
        return os.read(opened.fd, 100).decode()


def refused(roots: Roots, path: str, code: str) -> PathRefused:
    for attempt in (roots.open_file, roots.open_folder, roots.slot):
        with pytest.raises(PathRefused) as caught:
            attempt(path)
        assert caught.value.code == code, attempt
        assert caught.value.next
    return caught.value


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "./a.txt",
        "sub/../a.txt",
        "sub/deep/../../a.txt",
        "//a.txt"[1:].lstrip("/"),
        ".//a.txt",
    ],
)
def test_paths_inside_are_opened(roots: Roots, path: str) -> None:
    assert content(roots, path) == "inside"


def test_an_absolute_path_inside_a_root_is_opened(roots: Roots, top: Path) -> None:
    assert content(roots, f"{top}/sub/b.txt") == "below"
    with roots.open_folder(str(top)) as opened:
        assert opened.parts == ()


def test_the_real_place_is_told(roots: Roots, top: Path) -> None:
    (top / "link").symlink_to("sub")
    with roots.open_file("link/deep/../b.txt") as opened:
        assert opened.path == top.resolve() / "sub" / "b.txt"
        assert opened.shown == "sub/b.txt"


@pytest.mark.parametrize("path", ["../secret.txt", "sub/../../secret.txt", "..", "sub/../..",
                                  "/etc/passwd", "/", "nowhere/../../secret.txt"])  # fmt: skip
def test_paths_outside_are_refused(roots: Roots, path: str) -> None:
    for attempt in (roots.open_file, roots.open_folder, roots.slot):
        with pytest.raises(PathRefused) as caught:
            attempt(path)
        assert caught.value.code in ("outside", "not_found")


def test_an_absolute_path_cannot_climb_out_of_its_root(roots: Roots, top: Path) -> None:
    refused(roots, f"{top}/../secret.txt", "outside")
    refused(roots, f"{top}-other/x", "outside")


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "../../../../../etc/passwd",
                                    "{parent}/secret.txt"])  # fmt: skip
def test_links_that_leave_are_refused(roots: Roots, top: Path, target: str) -> None:
    (top / "link").symlink_to(target.format(parent=top.parent))
    refused(roots, "link", "outside")
    (top / "folder").symlink_to(Path(target.format(parent=top.parent)).parent)
    refused(roots, "folder/secret.txt", "outside")


@pytest.mark.parametrize("absolute", [False, True])
def test_links_that_stay_inside_are_followed(roots: Roots, top: Path, absolute: bool) -> None:
    (top / "link").symlink_to(top / "sub" / "b.txt" if absolute else "sub/b.txt")
    (top / "folder").symlink_to(top / "sub" if absolute else "sub")
    (top / "sub" / "up").symlink_to("../a.txt")
    assert content(roots, "link") == "below"
    assert content(roots, "folder/b.txt") == "below"
    assert content(roots, "folder/up") == "inside"
    with roots.slot("link") as slot:
        assert slot.parts == ("sub", "b.txt")
    with roots.slot("folder/new.txt") as slot:
        assert slot.parts == ("sub", "new.txt")
        assert slot.found is None


def test_a_root_that_is_given_through_a_link_works(top: Path, use_openat2: bool) -> None:
    (top.parent / "alias").symlink_to(top)
    roots = Roots(top.parent / "alias", use_openat2=use_openat2)
    assert content(roots, "a.txt") == "inside"
    assert content(roots, f"{top.parent}/alias/a.txt") == "inside"
    assert content(roots, f"{top}/a.txt") == "inside"


def test_magic_links_are_not_followed(use_openat2: bool) -> None:
    roots = Roots(Path("/proc/self"), use_openat2=use_openat2)
    for path in ("root/etc/passwd", "cwd", "fd/0", "exe"):
        with pytest.raises(PathRefused):
            roots.open_file(path)


def test_a_loop_of_links_is_refused(roots: Roots, top: Path) -> None:
    (top / "x").symlink_to("y")
    (top / "y").symlink_to("x")
    refused(roots, "x", "link_loop")


def test_special_files_are_refused(
    roots: Roots, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(top / "pipe")
    monkeypatch.chdir(top)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket"):
            for attempt in (roots.open_file, roots.slot):
                with pytest.raises(PathRefused) as caught:
                    attempt(name)
                assert caught.value.code == "special_file"


def test_devices_are_refused(use_openat2: bool) -> None:
    with pytest.raises(PathRefused) as caught:
        Roots(Path("/dev"), use_openat2=use_openat2).open_file("zero")
    assert caught.value.code == "special_file"


@pytest.mark.parametrize(
    "path", ["", "a\0b", "x" * 256, "x/" * 2100, "\ud800", "sub/" + "ü" * 128], ids=repr
)
def test_names_that_cannot_be_are_refused_with_words(roots: Roots, path: str) -> None:
    refused(roots, path, "bad_path")


def test_file_and_folder_are_told_apart(roots: Roots) -> None:
    with pytest.raises(PathRefused, match="folder") as caught:
        roots.open_file("sub")
    assert caught.value.code == "not_a_file"
    with pytest.raises(PathRefused) as caught:
        roots.open_folder("a.txt")
    assert caught.value.code == "not_a_folder"
    with pytest.raises(PathRefused) as caught:
        roots.open_file("a.txt/x")
    assert caught.value.code == "not_a_folder"


def test_a_path_that_ends_in_a_slash_is_no_place_for_a_file(roots: Roots) -> None:
    for path in ("new/", "sub/", "a/b/", "."):
        with pytest.raises(PathRefused) as caught:
            roots.slot(path)
        assert caught.value.code == "not_a_file"


def test_what_is_missing_is_named(roots: Roots) -> None:
    with pytest.raises(PathRefused) as caught:
        roots.open_file("no/such/file")
    assert caught.value.code == "not_found"
    with roots.slot("no/such/file") as slot:
        assert (slot.missing, slot.name) == (("no", "such"), "file")


def test_further_roots_can_only_be_read(top: Path, tmp_path: Path, use_openat2: bool) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "x").write_text("extra")
    roots = Roots(top, [extra], use_openat2=use_openat2)
    assert content(roots, str(extra / "x")) == "extra"
    with pytest.raises(PathRefused) as caught:
        roots.slot(str(extra / "x"))
    assert caught.value.code == "read_only"


PROTECTED = [
    ".git", ".git/hooks/pre-commit", ".git/config", ".GIT/hooks/x", ".git/modules/a/config",
    "sub/.git/hooks/post-checkout", ".bashrc", "sub/.zshrc", ".mcp.json", ".vscode/tasks.json",
    ".idea/x.xml", "lorimer.toml", "Lorimer.TOML", ".lorimer/x", ".envrc", ".g\u200cit/config",
    ".git./config", ".config/fish/config.fish", ".ssh/authorized_keys",
]  # fmt: skip


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("path", PROTECTED)
def test_protected_names_are_not_writable(roots: Roots, top: Path, path: str, exists: bool) -> None:
    if exists and path != ".git":
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("x")
    with pytest.raises(PathRefused) as caught:
        roots.slot(path)
    assert caught.value.code in ("protected", "not_a_file")
    if exists and path != ".git":
        assert content(roots, path) == "x"


def test_a_link_to_a_protected_name_is_protected(roots: Roots, top: Path) -> None:
    (top / ".git" / "hooks").mkdir(parents=True)
    (top / "harmless").symlink_to(".git/hooks")
    (top / "settings").symlink_to(".mcp.json")
    for path in ("harmless/pre-commit", "settings"):
        with pytest.raises(PathRefused) as caught:
            roots.slot(path)
        assert caught.value.code == "protected"


@pytest.mark.parametrize("path", ["git/config", ".github/x.yml", ".gitignore", "config", "x.toml"])
def test_names_like_protected_ones_are_writable(roots: Roots, path: str) -> None:
    roots.slot(path).close()


def test_a_folder_swapped_for_a_link_never_leads_outside(roots: Roots, top: Path) -> None:
    """While one thread swaps `sub` and a link to the outside, no open ever gets the secret."""
    outside = top.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("secret")
    (top / "evil").symlink_to(outside)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(top / "sub", top / "kept")
            os.rename(top / "evil", top / "sub")
            os.rename(top / "sub", top / "evil")
            os.rename(top / "kept", top / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        for _ in range(1500):
            try:
                seen.add(content(roots, "sub/b.txt"))
            except PathRefused as fault:
                seen.add(fault.code)
            try:
                with roots.slot("sub/b.txt") as slot:
                    real = os.readlink(f"/proc/self/fd/{slot.fd}")
                    assert real.startswith(str(top.resolve()))
            except PathRefused:
                pass
    finally:
        done.set()
        swapper.join()
    assert "secret" not in seen
    assert "below" in seen


@pytest.mark.parametrize("path", ["sub/b.txt", "a.txt"])
def test_a_swap_right_after_the_look_never_leads_outside(
    roots: Roots, top: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    outside = top.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("secret")
    look = os.stat
    name = path.split("/")[0]

    def look_then_swap(*args: Any, **options: Any) -> os.stat_result:
        found = look(*args, **options)
        if args[0] == name and not (top / name).is_symlink():
            os.rename(top / name, top / "kept")
            (top / name).symlink_to(outside if name == "sub" else outside / "b.txt")
        return found

    monkeypatch.setattr(os, "stat", look_then_swap)
    try:
        assert content(roots, path) in ("inside", "below")
    except PathRefused as fault:
        assert fault.code in ("outside", "link_loop")  # noqa: PT017


@pytest.mark.skipif(not openat2.is_available(), reason="no openat2")
@pytest.mark.parametrize("path", ["..", "sub/../..", "/etc", "link", "magic/root"])
def test_the_kernel_itself_refuses_to_leave(top: Path, path: str) -> None:
    (top / "link").symlink_to("../secret.txt")
    folder = os.open("/proc/self" if path == "magic/root" else top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(OSError, match=r"cross-device|symbolic"):
            openat2.open_beneath(folder, path.removeprefix("magic/"), os.O_RDONLY)
    finally:
        os.close(folder)


def test_the_descriptor_that_was_checked_is_the_one_that_is_read(roots: Roots, top: Path) -> None:
    with roots.open_file("a.txt") as opened:
        os.rename(top / "a.txt", top / "b")
        (top / "a.txt").symlink_to("/etc/passwd")
        assert os.read(opened.fd, 100) == b"inside"
        assert stat.S_ISREG(os.fstat(opened.fd).st_mode)


def test_names_that_are_not_utf8_can_be_opened(roots: Roots, top: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (top / name).write_text("latin")
    assert content(roots, name) == "latin"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused_with_words(roots: Roots, top: Path) -> None:
    (top / "a.txt").chmod(0)
    with pytest.raises(PathRefused) as caught:
        roots.open_file("a.txt")
    assert caught.value.code == "denied"
