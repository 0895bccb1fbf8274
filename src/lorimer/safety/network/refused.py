"""The one error of everything here that connects."""

from __future__ import annotations

from enum import StrEnum

from lorimer.core.errors import LorimerError


class Why(StrEnum):
    """Which check said no, or which part of the exchange failed."""

    URL = "url"
    HOST = "host"
    PORT = "port"
    ADDRESS = "address"
    REQUEST = "request"
    RESOLUTION = "resolution"
    CONNECTION = "connection"
    TLS = "tls"
    REDIRECT = "redirect"
    TIME = "time"
    SIZE = "size"
    ENCODING = "encoding"
    PROTOCOL = "protocol"


class NetworkRefused(LorimerError):
    """A connection was not made, or what came over it was not taken.

    Messages name the host and never the path, query or user part of a URL: those can be secrets.

    Attributes:
        why: which check.
        host: the host it was about, as far as it is known.
        sent: whether (a part of) a request may have reached a server. When false, nothing happened
            outside this process but a name look-up or a connection without content.
    """

    def __init__(
        self, message: str, *, why: Why, host: str = "", next: str = "", sent: bool = False
    ) -> None:
        super().__init__(message, next=next)
        self.why = why
        self.host = host
        self.sent = sent
