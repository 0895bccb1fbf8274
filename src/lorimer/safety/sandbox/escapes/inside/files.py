"""Attempts on the file system."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Callable
from typing import Any

P = dict[str, Any]
_CANARY = re.compile(rb"LORIMER-CANARY-[0-9a-f]{32}")


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(4096).decode("utf-8", "replace").strip()


def _write(path: str) -> str:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, b"escaped\n")
    os.close(fd)
    return f"wrote {os.path.basename(path)}"


def read(p: P) -> str:
    return _read(p["path"])


def read_shadow(p: P) -> str:
    return f"{len(_read('/etc/shadow'))} bytes of it"


def read_dotdot(p: P) -> str:
    os.chdir(p["workspace"])
    return _read("../../outside/secret")


def read_link_made_here(p: P) -> str:
    os.symlink(p["path"], "made")
    return _read("made")


def read_link_to_folder(p: P) -> str:
    os.symlink(os.path.dirname(p["path"]), "folder")
    return _read("folder/" + os.path.basename(p["path"]))


def read_hard_link(p: P) -> str:
    os.link(p["path"], "linked")
    return _read("linked")


def read_by_proc_root(p: P) -> str:
    last: OSError | None = None
    for who in ("self", "1", str(os.getppid()), "thread-self"):
        try:
            return _read(f"/proc/{who}/root{p['path']}")
        except OSError as fault:
            last = fault
    raise last or OSError("nothing tried")


def read_by_proc_cwd(p: P) -> str:
    last: OSError | None = None
    for who in ("self", "1", str(os.getppid())):
        for way in ("cwd/../../outside/secret", "cwd/../outside/secret"):
            try:
                return _read(f"/proc/{who}/{way}")
            except OSError as fault:
                last = fault
    raise last or OSError("nothing tried")


def read_by_descriptor_of_folder(p: P) -> str:
    fd = os.open(p["workspace"], os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):
        return _read(f"/proc/self/fd/{fd}/../../outside/secret")
    inner = os.open("../../outside/secret", os.O_RDONLY, dir_fd=fd)
    return os.read(inner, 4096).decode()


def read_inherited(p: P) -> str | None:
    for fd in range(3, 256):
        with contextlib.suppress(OSError):
            found = _CANARY.search(os.pread(fd, 4096, 0))
            if found:
                return found[0].decode()
    return None


def list_home(p: P) -> str:
    return " ".join(os.listdir(os.path.dirname(p["path"])))


def environments(p: P) -> str | None:
    return _in_proc("environ")


def command_lines(p: P) -> str | None:
    return _in_proc("cmdline")


def _in_proc(name: str) -> str | None:
    os.listdir("/proc")
    seen: set[bytes] = set()
    for path in glob.glob(f"/proc/[0-9]*/{name}"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            seen |= set(_CANARY.findall(file.read()))
    return b" ".join(sorted(seen)).decode() or None  # of other checks on this machine, too


def own_environment(p: P) -> str | None:
    found = _CANARY.search(repr(os.environ).encode())
    return found[0].decode() if found else None


def metadata(p: P) -> str:
    return f"{os.stat(p['path']).st_size} bytes"


def account_names(p: P) -> str | None:
    names = [line.split(":")[0] for line in _read("/etc/passwd").splitlines()]
    return f"{len(names)} accounts" if "root" in names else None


def write(p: P) -> str:
    return _write(p["path"])


def write_dotdot(p: P) -> str:
    os.chdir(p["workspace"])
    return _write("../../outside/new")


def write_link_made_here(p: P) -> str:
    os.symlink(p["path"], "made")
    return _write("made")


def write_by_proc_root(p: P) -> str:
    last: OSError | None = None
    for who in ("self", "1", str(os.getppid())):
        try:
            return _write(f"/proc/{who}/root{p['path']}")
        except OSError as fault:
            last = fault
    raise last or OSError("nothing tried")


def write_hard_link(p: P) -> str:
    os.link(p["path"], "linked")
    return _write("linked")


def truncate(p: P) -> str:
    os.truncate(p["path"], 0)
    return "cut off"


def change_mode(p: P) -> str:
    os.chmod(p["path"], 0o777)
    return "mode changed"


def change_times(p: P) -> str:
    os.utime(p["path"], (1, 1))
    return "times changed"


def delete(p: P) -> str:
    os.unlink(p["path"])
    return "deleted"


def rename_over(p: P) -> str:
    with open("mine", "w") as file:
        file.write("escaped\n")
    os.rename("mine", p["path"])
    return "replaced"


def leave_link(p: P) -> str:
    os.symlink(p["path"], os.path.join(p["workspace"], "report.txt"))
    return "left a link"


def setuid_file(p: P) -> str:
    path = os.path.join(p["workspace"], "tool")
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    last: OSError | None = None
    ways: tuple[Callable[[], None], ...] = (
        lambda: os.chmod(path, 0o4755),
        lambda: os.close(os.open(path + "2", os.O_CREAT | os.O_WRONLY, 0o4755)),
        lambda: os.mknod(path + "3", 0o104755),
    )
    for way in ways:
        try:
            way()
        except OSError as fault:
            last = fault
            continue
        for made in (path, path + "2", path + "3"):
            if os.path.exists(made) and os.stat(made).st_mode & 0o6000:
                return "a set-user-id file lies in the workspace"
    raise last or OSError("the bits were dropped")


def device_node(p: P) -> str:
    os.mknod("device", 0o60666, os.makedev(8, 0))
    return "made a block device"


def open_memory(p: P) -> str:
    return _opened("/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore", "/dev/kmsg")


def open_disks(p: P) -> str:
    names = os.listdir("/sys/block") if os.path.isdir("/sys/block") else []
    return _opened(*(f"/dev/{name}" for name in (*names, "sda", "vda", "nvme0n1")))


def kernel_settings(p: P) -> str:
    return _opened(
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/protected_symlinks",
        "/sys/kernel/uevent_helper", flags=os.O_WRONLY,
    )  # fmt: skip


def sysrq(p: P) -> str:
    return _opened("/proc/sysrq-trigger", flags=os.O_WRONLY)


def _opened(*paths: str, flags: int = os.O_RDONLY) -> str:
    """Opens, and never reads or writes."""
    last: OSError | None = None
    for path in paths:
        try:
            os.close(os.open(path, flags))
        except OSError as fault:
            last = fault
            continue
        return f"opened {path}"
    raise last or OSError("nothing tried")


def shared_memory_files(p: P) -> str:
    return _read(p["shm"])


# protected names; the working folder is the workspace


def hook(p: P) -> str:
    return _write(".git/hooks/pre-commit")


def git_config(p: P) -> str:
    return _write(".git/config")


def git_config_renamed_over(p: P) -> str:
    with open("mine", "w") as file:
        file.write("[core]\n\tpager = escaped\n")
    os.rename("mine", ".git/config")
    return "replaced .git/config"


def git_renamed(p: P) -> str:
    os.rename(".git", "other")
    os.makedirs(".git/hooks")
    return _write(".git/hooks/pre-commit")


def hooks_renamed(p: P) -> str:
    os.rename(".git/hooks", ".git/other")
    os.makedirs(".git/hooks")
    return _write(".git/hooks/pre-commit")


def git_config_linked(p: P) -> str:
    os.link(".git/config", "linked")
    return _write("linked")


def git_made(p: P) -> str:
    os.makedirs(".git/hooks")
    return _write(".git/hooks/post-checkout")


def nested_hook(p: P) -> str:
    return _write("sub/.git/hooks/pre-commit")


def mcp(p: P) -> str:
    return _write(".mcp.json")


def own_configuration(p: P) -> str:
    return _write("lorimer.toml")


def own_folder(p: P) -> str:
    os.makedirs(".lorimer/skills")
    return _write(".lorimer/skills/x.md")


def own_folder_renamed(p: P) -> str:
    os.makedirs("made/skills")
    _write("made/skills/x.md")
    os.rename("made", ".lorimer")
    return "renamed to .lorimer"


def start_up_file(p: P) -> str:
    return " ".join(_write(name) for name in (".bashrc", ".profile", ".zshenv", ".envrc"))


def editor_tasks(p: P) -> str:
    return _write(".vscode/tasks.json")


def editor_renamed(p: P) -> str:
    os.rename(".vscode", "v")
    os.makedirs(".vscode")
    return _write(".vscode/tasks.json")
