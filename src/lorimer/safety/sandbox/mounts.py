"""What a sandboxed program sees of the file system, as arguments for bubblewrap."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import SandboxSpec

HOME = "/home/user"
TEMPORARY = ("/tmp", HOME, "/dev/shm")
_USER = 1000
_SPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts",
    "--uid", str(_USER), "--gid", str(_USER), "--hostname", "sandbox", "--cap-drop", "ALL",
    "--die-with-parent", "--new-session",
)  # fmt: skip
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
    "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/magic", "/etc/fonts",
    "/etc/services", "/etc/protocols", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
    "/etc/libreoffice",
)  # fmt: skip
_PROC_FOLDERS = ("sys", "irq", "bus", "fs", "acpi", "scsi", "driver", "dynamic_debug", "asound")
_PROC_HIDDEN = ("kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug")
_FORBIDDEN = ("/", "/usr", "/etc", "/proc", "/sys", "/dev", "/run", "/tmp", "/var", "/home")


def arguments(spec: SandboxSpec, guarded: Sequence[str], covers: Sequence[str] = ()) -> list[str]:
    """Everything before the program's own arguments, except what needs descriptors.

    Args:
        guarded: mounts over protected names; they come after the workspace.
        covers: mounts over hidden files; they come last.

    Raises:
        SandboxUnavailable: when the workspace is a folder that cannot be given to a program.
    """
    size = str(spec.limits.tmp_bytes)
    out = [*_SPACES, "--ro-bind", "/usr", "/usr"]
    for path in SYSTEM:
        if os.path.islink(path):
            out += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            out += ["--ro-bind", path, path]
    for path in ETC:
        if os.path.exists(path):
            out += ["--ro-bind", path, path]
    out += ["--proc", "/proc", *_read_only_settings(), "--dev", "/dev"]
    for folder in TEMPORARY:
        out += ["--perms", "0700", "--size", size, "--tmpfs", folder]
    for inside, outside in spec.folders.items():
        out += ["--bind", os.path.abspath(outside), inside]
    shown = [("--ro-bind", place) for place in _read_only(spec)]
    if spec.workspace is not None:
        own = workspace_of(spec.workspace)
        shown.append(("--bind" if spec.writable else "--ro-bind", own))
        shown += [("--bind", place) for place in _pinned(spec, own)]
    for how, place in sorted(shown, key=lambda one: len(one[1].parts)):
        out += [how, str(place), str(place)]
    out += [*guarded, *covers, "--remount-ro", "/dev"]
    return [*out, "--chdir", str(spec.workspace) if spec.workspace is not None else HOME]


def _pinned(spec: SandboxSpec, workspace: Path) -> list[Path]:
    """Folders that must keep their names: what is hidden because of where it lies would be seen by
    the next program, had this one moved a folder around it. A mount point cannot be renamed."""
    from lorimer.safety.sensitive import has_secret_name

    if not spec.writable:
        return []
    by_place = [place for place in spec.hidden if not has_secret_name(place.name)]
    found = {above for place in by_place for above in place.parents}
    return [a for a in sorted(found) if a != workspace and a.is_relative_to(workspace)]


def _read_only(spec: SandboxSpec) -> list[Path]:
    return [Path(os.path.abspath(place)) for place in spec.read_only]


def shown_anyway(spec: SandboxSpec) -> list[tuple[str, Path, str]]:
    """(how, source, where) of what is shown besides the workspace, also in a hidden folder."""
    out = [("--ro-bind", place, str(place)) for place in _read_only(spec)]
    out += [("--bind", Path(os.path.abspath(o)), i) for i, o in spec.folders.items()]
    return sorted(out, key=lambda one: one[2].count("/"))


def workspace_of(folder: Path) -> Path:
    """The absolute path of a workspace.

    Raises:
        SandboxUnavailable: when it is a folder of the system, which no program is given.
    """
    workspace = Path(os.path.abspath(folder))
    if str(workspace) in _FORBIDDEN:
        raise SandboxUnavailable(
            f"The folder {workspace} cannot be given to a sandboxed program as its workspace.",
            next="Start in a folder that holds only what the program may see.",
        )
    return workspace


def _read_only_settings() -> list[str]:
    """Real root may write kernel settings in a new `/proc`, capabilities or not: mount them over.

    Anybody else may write only those of the sandbox's own namespaces, but these are limits, too.
    """
    if os.geteuid() != 0:
        return ["--ro-bind", "/proc/sys", "/proc/sys"] if os.path.isdir("/proc/sys") else []
    out: list[str] = []
    for name in sorted(os.listdir("/proc")):
        path = f"/proc/{name}"
        if name.isdigit() or os.path.islink(path):
            continue
        if name in _PROC_HIDDEN:
            out += ["--ro-bind", "/dev/null", path]
        elif name in _PROC_FOLDERS or (
            not os.path.isdir(path) and stat.S_IMODE(os.stat(path).st_mode) & 0o222
        ):
            out += ["--ro-bind", path, path]
    return out


def environment(spec: SandboxSpec) -> dict[str, str]:
    """The environment of bubblewrap itself, and so of the program.

    Bubblewrap is process 1 inside and `/proc/1/environ` can be read there: it never gets ours.
    """
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        **spec.environment,
        **(spec.egress.environment() if spec.egress is not None else {}),
    }


def identity_files() -> tuple[list[int], list[str]]:
    """Descriptors, and arguments that use them, for `/etc/passwd` and friends with one user."""
    files = {
        "/etc/passwd": f"user:x:{_USER}:{_USER}:user:{HOME}:/bin/sh\n",
        "/etc/group": f"user:x:{_USER}:\n",
        "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    fds, out = [], []
    for path, text in files.items():
        fd = sealed(text.encode())
        fds.append(fd)
        out += ["--perms", "0444", "--ro-bind-data", str(fd), path]
    return fds, out


def sealed(content: bytes) -> int:
    """A descriptor of an anonymous file with this content, at its start."""
    fd = os.memfd_create("lorimer", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
