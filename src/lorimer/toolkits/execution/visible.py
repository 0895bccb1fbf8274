"""What programs of this machine a shell in the sandbox can see and find, besides the system's own.

Read-only: the running Python with its packages, the folders on our own PATH, and beside each such
`bin` the folders that programs need (`lib`, `share`, …), by name: what else lies there may be the
user's (`~/.cargo/bin` lies beside a file of passwords). Version managers, whose programs need all
of their folder, are named below.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_SYSTEM = (Path("/usr"), Path("/bin"), Path("/sbin"))
_NEVER = tuple(map(Path, ("/", "/tmp", "/var", "/etc", "/root", "/home", "/opt", "/mnt", "/srv")))
_BESIDE = (
    "bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "conf", "jmods",
    "node_modules", "pyvenv.cfg", "release", "go.env",
)  # fmt: skip
"""What is shown of a folder with programs in its `bin`."""
_GO = ("src", "pkg", "VERSION")
_MANAGERS = frozenset(
    {".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".asdf", ".volta", ".nvm", ".sdkman", "mise"}
)
"""Folders with nothing but programs in them, shown whole."""
DEFAULT_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def interpreter() -> tuple[Path, ...]:
    """The running Python and its packages, and what its links lead to."""
    program = Path(os.path.realpath(sys.executable))
    found = [Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.base_prefix))]
    if not any(program.is_relative_to(p) for p in found):
        found.append(program.parent)
    return _outside_system(found)


def programs(path: str | None = None) -> tuple[tuple[Path, ...], str]:
    """The folders to show, and the `PATH` to search in.

    Args:
        path: instead of our own `PATH`.
    """
    given = os.environ.get("PATH", "") if path is None else path
    shown: list[Path] = []
    search: list[str] = []
    for text in given.split(os.pathsep):
        folder = Path(text)
        if not folder.is_absolute() or ".." in folder.parts or not folder.is_dir():
            continue
        if folder in _NEVER or folder == Path.home():
            continue
        shown += _of_prefix(folder)
        real = Path(os.path.realpath(folder))
        if real != folder:
            shown += _of_prefix(real)
        search.append(text)
    search += [p for p in DEFAULT_PATH if p not in search]
    own = str(Path(sys.executable).parent)
    if own not in search:  # last: only for what nothing else offers
        search.append(own)
    return _outside_system([*interpreter(), *shown]), os.pathsep.join(search)


def git_settings() -> str:
    """What git in the sandbox is told: the name and address for commits, and that it may work in a
    folder of another user than the one inside. Nothing else of the user's own settings."""
    lines = ["[safe]", "\tdirectory = *"]
    git = shutil.which("git")
    if git is not None:
        ask = [git, "config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"]
        try:
            told = subprocess.run(ask, capture_output=True, timeout=5, check=False, cwd="/").stdout
        except (OSError, subprocess.SubprocessError):
            told = b""
        lines.append("[user]")
        for entry in told.decode("utf-8", "replace").split("\0"):
            key, _, value = entry.partition("\n")
            if value and "\n" not in value:
                escaped = value.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'\t{key.removeprefix("user.")} = "{escaped}"')
    return "\n".join(lines) + "\n"


def _of_prefix(folder: Path) -> list[Path]:
    """A folder of programs, and what they need beside it."""
    manager = next((p for p in (folder, *folder.parents) if p.name in _MANAGERS), None)
    if manager is not None:
        return [manager]
    found = [folder]
    prefix = folder.parent
    home = Path.home()
    its_own = prefix not in _NEVER and prefix not in (home, home / ".local")
    if folder.name in ("bin", "sbin") and its_own:
        names = (*_BESIDE, *_GO) if (folder / "go").exists() else _BESIDE
        found += [prefix / name for name in names if (prefix / name).exists()]
    if folder == home / ".cargo" / "bin" and (home / ".rustup").is_dir():
        found.append(home / ".rustup")
    return found


def _outside_system(found: list[Path]) -> tuple[Path, ...]:
    return tuple(
        dict.fromkeys(
            p
            for p in found
            if p not in _NEVER and not any(p == s or p.is_relative_to(s) for s in _SYSTEM)
        )
    )
