"""Whom a TLS client means: the server name in the first message of a connection.

Behind one address there may be many hosts (a shared front), and TLS says which one is meant. So a
tunnel to an allowed host must not ask for another one inside. The layout is that of RFC 8446 4.1.2
and RFC 6066 3; whatever does not keep to it, is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_HANDSHAKE, _CLIENT_HELLO = 0x16, 1
_MOST_BYTES = 1 << 16
ALERT = bytes.fromhex("15030300020270")
"""A fatal `unrecognized_name`, so that the client says something to the point."""


class NotUnderstood(Exception):
    """It begins like TLS, and is not a hello as it should be."""


@dataclass(slots=True)
class Hello:
    """Takes the first bytes of a client until it is known what they are.

    Attributes:
        known: whether enough came.
        tls: whether it is TLS; other protocols have no name to look at.
        name: the server name; `None` when the client gives none.
    """

    known: bool = False
    tls: bool = False
    name: str | None = None
    _bytes: bytearray = field(default_factory=bytearray)
    _message: bytearray = field(default_factory=bytearray)
    _total: int = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes; the work is linear in them, however small the pieces.

        Raises:
            NotUnderstood: it is no hello.
        """
        self._total += len(piece)
        self._bytes += piece
        if self.known or not self._bytes:
            return
        if not self.tls:
            self.tls = self._bytes[0] == _HANDSHAKE
            self.known = not self.tls
        if not self.tls:
            return
        if self._total > _MOST_BYTES:
            raise NotUnderstood("the hello is too long")
        while not self.known and self._next_record():
            pass

    def _next_record(self) -> bool:
        """Take one whole record out of the bytes, if there is one."""
        if len(self._bytes) < 5:
            return False
        size = int.from_bytes(self._bytes[3:5], "big")
        if self._bytes[0] != _HANDSHAKE or self._bytes[1] != 3 or not 0 < size <= 1 << 14:
            raise NotUnderstood("a record of the hello is not one")
        if len(self._bytes) < 5 + size:
            return False
        self._message += self._bytes[5 : 5 + size]
        del self._bytes[: 5 + size]
        if self._message[0] != _CLIENT_HELLO:
            raise NotUnderstood("the first message is not a hello")
        whole = 4 + int.from_bytes(self._message[1:4], "big")
        if len(self._message) >= 4 and len(self._message) >= whole:
            if len(self._message) != whole or self._bytes:
                raise NotUnderstood("something follows the hello at once")
            self.name = _server_name(bytes(self._message[4:]))
            self.known = True
        return True


class _Reader:
    """Reads fields of a message in order."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    @property
    def left(self) -> int:
        return len(self._content) - self._place

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise NotUnderstood("the hello ends too early")
        self._place += count
        return self._content[self._place - count : self._place]

    def sized(self, width: int) -> bytes:
        """A field behind its length of `width` bytes."""
        return self.take(int.from_bytes(self.take(width), "big"))


def _server_name(hello: bytes) -> str | None:
    reader = _Reader(hello)
    reader.take(2 + 32)  # version, random
    for width in (1, 2, 1):  # session, ciphers, compression
        reader.sized(width)
    if not reader.left:
        return None
    extensions = _Reader(reader.sized(2))
    if reader.left:
        raise NotUnderstood("something follows the extensions")
    name: str | None = None
    seen: set[bytes] = set()
    while extensions.left:
        kind, content = extensions.take(2), extensions.sized(2)
        if kind in seen:
            raise NotUnderstood("an extension is there twice")
        seen.add(kind)
        if kind == b"\x00\x00":
            entries = _Reader(_Reader(content).sized(2))
            if len(content) != entries.left + 2 or entries.take(1) != b"\x00":
                raise NotUnderstood("the server name is not a host name")
            raw = entries.sized(2)
            if entries.left or not raw.isascii() or not raw:
                raise NotUnderstood("the server name is not one host name")
            name = raw.decode("ascii")
    return name
