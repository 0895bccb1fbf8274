"""TCP sockets on the event loop, by descriptor: also such as live in another network namespace."""

from __future__ import annotations

import errno
import os
import socket

import anyio

_PIECE = 1 << 16


class Wire:
    """One connected socket. Each direction may be used by one task at a time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    @staticmethod
    async def open(address: str, port: int) -> Wire:
        """Connect to an address (not a name). Cancellation closes the socket.

        Raises:
            OSError: nobody answered there.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            wire = Wire(sock)
            code = sock.connect_ex((address, port))
            if code == errno.EINPROGRESS:
                await anyio.wait_writable(sock)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            sock.close()
            raise
        return wire

    @property
    def peer(self) -> str:
        return str(self._socket.getpeername()[0])

    async def receive(self) -> bytes:
        """Some bytes; empty at the end."""
        while True:
            try:
                return self._socket.recv(_PIECE)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)

    async def send(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    def end(self) -> None:
        """Tell the other side that no more will come."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as fault:
            if fault.errno not in (errno.ENOTCONN, errno.EPIPE):
                raise

    def close(self) -> None:
        self._socket.close()


async def accept(listener: socket.socket) -> Wire:
    """The next connection to a listening, non-blocking socket."""
    while True:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            await anyio.wait_readable(listener)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Wire(sock)
