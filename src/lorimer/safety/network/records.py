"""What a fetch may use and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of one fetch, redirects included.

    Attributes:
        total_s: for everything.
        resolve_s: for one name look-up.
        connect_s: for one connection, and again for its TLS.
        head_s: from the start of a hop's connection to the last line of its answer's head.
        idle_s: the longest silence while reading or writing.
        wire_bytes: of one answer's body as it comes.
        body_bytes: of one answer's body when it is unpacked.
    """

    total_s: float = 60.0
    resolve_s: float = 10.0
    connect_s: float = 10.0
    head_s: float = 30.0
    idle_s: float = 20.0
    wire_bytes: int = 16 << 20
    body_bytes: int = 32 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of one server; `wire_bytes` is the body's length before unpacking."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    wire_bytes: int
    address: str

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Hop:
    """One request on the way to the answer.

    Attributes:
        address: which one was connected to (a proxy's, where the rules name one).
        dropped: names of request headers that were not sent on to this origin.
    """

    method: str
    url: str
    status: int
    address: str
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The last answer, and how it was reached.

    Attributes:
        url: of the last hop, without user and password.
        hops: all requests, the last one included.
        changes: what was changed in the URL that was given, in words.
    """

    url: str
    status: int
    headers: tuple[Header, ...]
    body: bytes
    wire_bytes: int
    hops: tuple[Hop, ...]
    changes: tuple[str, ...] = ()

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)
