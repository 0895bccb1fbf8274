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
)  # fmt: skip
_PROC_FOLDERS = ("sys", "irq", "bus", "fs", "acpi", "scsi", "driver", "dynamic_debug", "asound")
_PROC_HIDDEN = ("kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug")
_FORBIDDEN = ("/", "/usr", "/etc", "/proc", "/sys", "/dev", "/run", "/tmp", "/var", "/home")


def arguments(spec: SandboxSpec, guarded: Sequence[str]) -> list[str]:
    """Everything before the program's own arguments, except what needs descriptors.

    Args:
        guarded: mounts over protected names; they come after the workspace.

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
    shown: list[tuple[Path, str]] = [
        (Path(os.path.abspath(p)), "--ro-bind") for p in spec.read_only
    ]
    if spec.workspace is not None:
        own = workspace_of(spec.workspace)
        shown.append((own, "--bind" if spec.writable else "--ro-bind"))
    for place, how in sorted(shown, key=lambda one: len(one[0].parts)):
        out += [how, str(place), str(place)]
    out += [*guarded, "--remount-ro", "/dev"]
    return [*out, "--chdir", str(spec.workspace) if spec.workspace is not None else HOME]


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
