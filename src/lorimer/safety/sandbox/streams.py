"""Reading a program's output while it runs, without keeping more than agreed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio

from lorimer.core.secrets import ByteStream
from lorimer.safety.sandbox.spec import Limits, OnOutput, Output, SandboxSpec

_PIECE = 1 << 16


class Capture:
    """Takes the bytes of one stream: keeps the first and last half of `kept_bytes`, stores all.

    Args:
        name: `stdout` or `stderr`.
        spool: where the whole stream goes once it is more than is kept; `None` for nowhere.
        clean: what every piece goes through first.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        spool: Path | None,
        on_output: OnOutput | None,
        clean: ByteStream | None = None,
    ) -> None:
        self._clean = clean
        self._name = name
        self._half = limits.kept_bytes // 2
        self._limit = limits.output_bytes
        self._spool = spool
        self._on_output = on_output
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._stored = -1
        self.fault: OSError | None = None

    @property
    def full(self) -> bool:
        """Whether more came than may."""
        return self._total > self._limit

    def take(self, piece: bytes) -> None:
        if self._clean is not None:
            piece = self._clean.feed(piece)
        if piece:
            self._take(piece)

    def _take(self, piece: bytes) -> None:
        self._total += len(piece)
        room = self._half - len(self._head)
        if self._stored < 0 and self._spool is not None and self._total > 2 * self._half:
            self._begin_store()
        if self._stored >= 0:
            self._store(piece)
        if room > 0:
            self._head += piece[:room]
            piece_rest = piece[room:]
        else:
            piece_rest = piece
        self._tail += piece_rest
        if len(self._tail) > 2 * self._half + _PIECE:
            del self._tail[: len(self._tail) - self._half]
        if self._on_output is not None:
            self._on_output(self._name, piece)

    def _begin_store(self) -> None:
        assert self._spool is not None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            self._stored = os.open(self._spool, flags, 0o600)
        except OSError as fault:
            self.fault, self._spool = fault, None
            return
        self._store(bytes(self._head + self._tail))

    def _store(self, piece: bytes) -> None:
        view = memoryview(piece)
        try:
            while view:
                view = view[os.write(self._stored, view) :]
        except OSError as fault:  # a full disk: what is kept is still told
            self.fault, self._spool = fault, None
            os.close(self._stored)
            self._stored = -1

    def close(self) -> Output:
        rest = b"" if self._clean is None else self._clean.end()
        self._clean = None
        if rest:
            self._take(rest)
        stored = self._spool if self._stored >= 0 else None
        if self._stored >= 0:
            os.close(self._stored)
            self._stored = -1
        tail = bytes(self._tail)
        if self._total > 2 * self._half:
            tail = tail[-self._half :] if self._half else b""
        return Output(bytes(self._head), tail, self._total, stored)


def captures_of(spec: SandboxSpec, on_output: OnOutput | None) -> tuple[Capture, Capture]:
    """One for standard output, one for standard error."""

    def one(name: str) -> Capture:
        spool = spec.spool / f"{spec.spool_name}.{name}" if spec.spool is not None else None
        clean = None if spec.without_secrets is None else spec.without_secrets()
        return Capture(name, spec.limits, spool, on_output, clean)

    return one("stdout"), one("stderr")


async def pump(fd: int, capture: Capture, stop: Callable[[str], None]) -> None:
    """Read `fd` to its end; calls `stop("output")` once when more came than may.

    Cancellation leaves what was read in `capture`.
    """
    while True:
        await anyio.wait_readable(fd)
        try:
            piece = os.read(fd, _PIECE)
        except BlockingIOError:
            continue
        if not piece:
            return
        was_full = capture.full
        capture.take(piece)
        if capture.full and not was_full:
            stop("output")


async def feed(fd: int, content: bytes) -> None:
    """Write `content` to `fd` and close it; a reader that goes away is no fault."""
    view = memoryview(content)
    try:
        while view:
            await anyio.wait_writable(fd)
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return
    finally:
        os.close(fd)
