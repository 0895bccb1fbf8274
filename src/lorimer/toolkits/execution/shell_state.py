"""What a session's shell keeps between calls, and across restarts: folder, variables, functions,
options, `/tmp`.

Each call runs a new bash in a new sandbox; at its end bash writes down what it has become, and the
next one reads that first. The text is made and read inside the sandbox only; here it is bytes that
are kept. The one thing we use of it is the folder, and that is checked each time: it must exist and
lie in the workspace.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lorimer.core.canonical import digest
from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.mounts import sealed
from lorimer.tools.tool import ToolContext

HARNESS = Path(__file__).with_name("shell_harness.bash")
_LARGEST = 4 << 20
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NEVER = (b"set -o noexec", b"set -o onecmd", b"set -o restricted")


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a shell.

    Attributes:
        cwd: relative to the workspace; empty for the workspace itself.
        text: shell text that makes a new bash what the last one was.
    """

    cwd: str = ""
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class After:
    """What a bash wrote at its end.

    Attributes:
        kept: the state of after; `None` when it did not come to write it.
        left_cwd: the folder it ended in, when that cannot be kept.
        jobs: process numbers of its background jobs that still ran.
    """

    kept: Kept | None
    left_cwd: str = ""
    jobs: tuple[int, ...] = ()


def shell_home(context: ToolContext) -> tuple[Path, bool]:
    """The private folder of this session's shell (0700), made if need be; and whether it lasts.

    It lies beside the session's scratch folder, where no tool looks.

    Raises:
        OSError: when it cannot be made.
    """
    if context.scratch is None:
        return Path(tempfile.mkdtemp(prefix="lorimer-shell-")), False
    name = context.session
    if not _SAFE.fullmatch(name):
        name = digest(name.encode()).removeprefix("sha256:")[:32]
    beside = context.scratch.parent
    folder = (beside.parent if beside.name == "results" else beside) / "shells" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder, True


class ShellState:
    """The state of one session's shell in its private folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True, mode=0o700)
        self._file = folder / "state"
        self.kept = self._load()

    def _load(self) -> Kept:
        try:
            fd = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return Kept()
        with open(fd, "rb") as file:
            head, _, text = file.read(2 * _LARGEST).partition(b"\n")
        try:
            found = json.loads(head)
            cwd, size = str(found["cwd"]), int(found["size"])
        except (ValueError, KeyError, TypeError):
            return Kept()
        return Kept(cwd, text) if len(text) == size else Kept()

    def keep(self, kept: Kept) -> None:
        """On disk whole or not at all."""
        self.kept = kept
        head = json.dumps({"cwd": kept.cwd, "size": len(kept.text)}).encode()
        new = self._file.with_name(f"state.{os.getpid()}")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(head + b"\n" + kept.text)
        os.replace(new, self._file)

    def next_number(self) -> int:
        """1, 2, …: never the same twice in this session, not even after a restart."""
        place = self.folder / "tasks"
        try:
            number = int(place.read_bytes()[:20]) + 1
        except (OSError, ValueError):
            number = 1
        place.write_bytes(b"%d" % number)
        return number

    def cwd(self, workspace: Path) -> Path | None:
        """The shell's folder, absolute; `None` when it is no folder of the workspace any more."""
        if not self.kept.cwd:
            return workspace
        place = workspace / self.kept.cwd
        return place if _inside(place, workspace) else None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _inside(place: Path, workspace: Path) -> bool:
    """Whether `place` is a folder of the workspace, also when its links are followed."""
    try:
        real = os.path.realpath(place, strict=True)
    except (OSError, ValueError):
        return False
    root = os.path.realpath(workspace)
    return os.path.isdir(real) and (real == root or real.startswith(root.rstrip("/") + "/"))


class Exchange:
    """The descriptors of one call: state in, command in, state out.

    The state that comes out is written to a nameless file that only the shell itself is given, so
    that a program which merely writes files cannot change what the shell keeps.

    Args:
        forget: names of variables that are not kept.

    Raises:
        SandboxUnavailable: on systems without such files.
    """

    def __init__(self, kept: Kept, command: str, forget: Iterable[str] = ()) -> None:
        self._open: list[int] = []
        if not hasattr(os, "memfd_create"):
            raise SandboxUnavailable(
                f"The shell needs Linux; this is {sys.platform}.", next="Use run_python instead."
            )
        try:
            self._in = self._take(sealed(kept.text))
            self._text = self._take(sealed(os.fsencode(command)))
            self._out = self._take(os.memfd_create("lorimer", os.MFD_CLOEXEC))
            harness = HARNESS.read_text(encoding="utf-8")
            harness = harness.replace("@SKIP@", " | ".join(forget) or "__lorimer_none")
            for name, fd in (("IN", self._in), ("TEXT", self._text), ("OUT", self._out)):
                harness = harness.replace(f"@{name}@", str(fd))
            self._harness = self._take(sealed(harness.encode()))
        except BaseException:
            self.close()
            raise

    def _take(self, fd: int) -> int:
        self._open.append(fd)
        return fd

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(self._open)

    def argv(self, cwd: Path) -> list[str]:
        """A shell that holds the way out and starts the one that works, in `cwd`.

        The command is evaluated on the first line of what that one is given, so that the line
        numbers in its messages are those of the command.
        """
        inner = f'. /dev/fd/{self._harness}; exec {self._harness}<&-; eval "$__lorimer_text"'
        outer = f'cd -- "$1" && bash --noprofile --norc -c "$2" bash {self._out}>&-\nexit $?'
        return ["bash", "--noprofile", "--norc", "-c", outer, "bash", str(cwd), inner]

    def after(self, workspace: Path) -> After:
        """What the shell wrote at its end."""
        if os.fstat(self._out).st_size > _LARGEST:
            return After(None)
        raw = os.pread(self._out, _LARGEST, 0)
        pieces = raw.split(b"\0")
        if len(pieces) != 5 or pieces[4] != b"done":
            return After(None)
        options, place, jobs, text, _ = pieces
        options = b"\n".join(o for o in options.split(b"\n") if o.strip() not in _NEVER)
        cwd = os.fsdecode(place.removesuffix(b"\n"))
        numbers = tuple(int(n) for n in jobs.split() if n.isdigit())
        root = os.path.abspath(workspace)
        for base in dict.fromkeys((root, os.path.realpath(workspace))):
            if cwd == base or cwd.startswith(base.rstrip("/") + "/"):
                relative = os.path.relpath(cwd, base)
                kept = Kept("" if relative == "." else relative, text + options)
                return After(kept, jobs=numbers)
        return After(Kept("", text + options), left_cwd=cwd, jobs=numbers)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
