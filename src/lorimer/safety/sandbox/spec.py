"""What a sandboxed program may use, and what became of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lorimer.core.secrets import ByteStream

if TYPE_CHECKING:
    from lorimer.safety.sandbox.egress import Egress

OnOutput = Callable[[str, bytes], None]
"""Called with `"stdout"` or `"stderr"` and each piece as it comes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Quotas of one run.

    Attributes:
        wall_s: seconds from start to the end of the whole tree.
        cpu_s: CPU seconds of one process.
        memory_bytes: address space of one process.
        tree_memory_bytes: resident memory of all processes together, with what lies in the
            temporary file systems.
        file_bytes: size of one file.
        disk_bytes: what a writable workspace may grow by.
        inodes: files and folders that may be made, in the workspace and in each temporary file
            system.
        processes: processes and threads at one time.
        open_files: descriptors of one process.
        kept_bytes: of each stream, how much the result holds (first and last half of it).
        output_bytes: of each stream, how much may be written before the tree is killed; so much is
            also stored in the spool.
        tmp_bytes: size of each of the temporary file systems (`/tmp`, home, `/dev/shm`).
    """

    wall_s: float = 60.0
    cpu_s: int = 60
    memory_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    processes: int = 256
    open_files: int = 1024
    kept_bytes: int = 1 << 20
    output_bytes: int = 512 << 20
    tmp_bytes: int = 512 << 20
    tree_memory_bytes: int = 4 << 30
    disk_bytes: int = 4 << 30
    inodes: int = 200_000


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What one run gets to see.

    Attributes:
        workspace: visible at its own path, and where the program starts; `None` for none.
        writable: whether the workspace may be written (protected names never).
        read_only: files and folders to show at their own paths.
        environment: the program's whole environment besides `PATH`, `HOME`, `TMPDIR`, `LANG`.
        unix_sockets: whether `socket(AF_UNIX)` is allowed.
        spool: a folder for the whole output, as `<name>.stdout` and `<name>.stderr`; written only
            when the output is more than the result holds.
        spool_name: that name.
        folders: further folders that the program may write, by where it sees them; an own `/tmp`
            that outlives the run, for one. Only levels with mounts (`os` with bubblewrap) show
            them there.
        pass_fds: descriptors that the program inherits under the same numbers.
        without_secrets: makes a stream for each of the outputs, which takes secrets out of it
            before anything else sees it.
        egress: hosts that the program may reach through our proxy; `None` for no network at all.
        hidden: files and folders in the workspace (absolute, links resolved) that the program can
            neither read nor change, see `hidden.find`. Only the level `os` on Linux hides them.
    """

    workspace: Path | None = None
    writable: bool = False
    read_only: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    unix_sockets: bool = False
    spool: Path | None = None
    spool_name: str = "output"
    folders: Mapping[str, Path] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    egress: Egress | None = None
    without_secrets: Callable[[], ByteStream] | None = None
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """One stream: the first and last bytes, how many there were, and where all of them are."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    stored: Path | None = None

    @property
    def missing(self) -> int:
        """How many bytes lie between `head` and `tail`."""
        return self.total - len(self.head) - len(self.tail)

    def text(self) -> str:
        """As UTF-8, other bytes shown as `\\xNN`; a gap is named where it is."""
        if not self.missing:
            return (self.head + self.tail).decode("utf-8", "backslashreplace")
        where = f", whole output in {self.stored}" if self.stored else ""
        return (
            self.head.decode("utf-8", "backslashreplace")
            + f"\n[{self.missing:,} bytes left out here{where}]\n"
            + self.tail.decode("utf-8", "backslashreplace")
        )


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a run ended.

    Attributes:
        exit_code: of the program; `None` when the tree was killed by us.
        signal: the signal that ended the program, as far as its exit code (128 + n) tells.
        killed: why we killed the tree: `timeout`, `output`, `processes`, `memory`, `disk`,
            `inodes`, `protected`, or empty.
        duration_s: from start to the end of the whole tree.
        quiescent_s: from the decision to kill to the end of the whole tree (G7); else 0.0.
        quarantined: protected names that appeared during the run and were renamed.
        not_enforced: limits that could not be set here, in words.
        watched: limits that are not the kernel's but looked after from outside, in words; a program
            may be over them for a tenth of a second.
    """

    exit_code: int | None
    signal: signal.Signals | None
    stdout: Output
    stderr: Output
    killed: str = ""
    duration_s: float = 0.0
    quiescent_s: float = 0.0
    quarantined: tuple[str, ...] = ()
    not_enforced: tuple[str, ...] = ()
    level: str = "os"
    watched: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        return self.killed == "timeout"


def signal_of(exit_code: int | None) -> signal.Signals | None:
    """The signal behind a shell-style (128 + n) or Python-style (-n) exit code, if any."""
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return signal.Signals(number) if number > 0 else None
    except ValueError:
        return None
