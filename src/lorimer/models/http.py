"""One HTTP client for all wires: bytes out, server-sent events in, faults as types.

httpx2 is imported when the first request is sent, not before.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anyio.lowlevel import EventLoopToken, current_token

from lorimer.core.clock import Clock, SystemClock
from lorimer.core.errors import (
    AuthenticationFailed,
    BadAnswer,
    ConfigError,
    ModelError,
    ProviderUnreachable,
    RequestRefused,
    StreamCut,
)
from lorimer.models.faults import Peer, scrub, status_fault
from lorimer.models.sse import SseDecoder, SseEvent

if TYPE_CHECKING:
    import httpx2

Tap = Callable[[bytes], None]
"""Called with the exact bytes of a request body, before it is sent. What it raises stops the
request."""

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 300.0
"""Longest silence inside an answer; local servers read a long prompt without a sign of life."""

_ERROR_BODY_BYTES = 64 * 1024
_TOLD_BYTES = 4 * 1024 * 1024


class EventSource:
    """Sends request bodies to one provider and yields the events of each answer.

    Args:
        base_url: scheme, host and path, without a slash at the end.
        headers: sent with every request; they may hold the key and are never shown.
        peer: who is asked, for messages.
        tap: see `Tap`.
        keep_alive: whether a connection is used for more than one request.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        peer: Peer,
        *,
        tap: Tap | None = None,
        clock: Clock | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
        keep_alive: bool = True,
    ) -> None:
        self._keep_alive = keep_alive
        self.base_url = check_base_url(base_url)
        self.tap = tap
        self._headers = {"content-type": "application/json", "accept": "text/event-stream"}
        self._headers |= headers
        self._peer = peer
        self._clock = clock or SystemClock()
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._client: httpx2.AsyncClient | None = None
        self._loop: EventLoopToken | None = None

    async def events(
        self, path: str, body: bytes, tap: Tap | None = None
    ) -> AsyncGenerator[SseEvent]:
        """POST `body`, yield what comes. Closing the generator closes the connection. `tap` is for
        this request only, beside the one for all.

        Raises:
            ModelError: the class says what went wrong; a clean end of the stream raises nothing,
                whether the answer is complete is for the reader of the events to judge.
        """
        import httpx2

        _check_key(self._peer)
        for one in (self.tap, tap):
            if one is not None:
                one(body)
        begun = False
        decoder = SseDecoder()
        try:
            async with self._open().stream(
                "POST", self.base_url + path, content=body, headers=self._headers
            ) as response:
                if response.status_code != 200:
                    raise await self._refusal(response)
                begun = True
                if "text/html" in response.headers.get("content-type", ""):
                    raise BadAnswer(
                        f"{self._peer.host} answered with a web page instead of an event stream.",
                        next="Check the base URL.",
                    )
                async for chunk in response.aiter_bytes():
                    for event in decoder.feed(chunk):
                        yield event
        except httpx2.LocalProtocolError:
            # Its text can quote a header, and with that the key.
            raise RequestRefused("The request could not be written as HTTP.") from None
        except httpx2.HTTPError as error:
            raise _broken(error, self._peer, begun=begun) from error
        decoder.close()

    async def get_json(self, url: str, *, timeout_s: float) -> Any:
        """What `url` of this server says of itself, with the same key; `None` for everything that
        is no JSON in time."""
        import httpx2

        try:
            async with self._open().stream(
                "GET", url, headers={**self._headers, "accept": "application/json"},
                timeout=timeout_s,
            ) as response:  # fmt: skip
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _TOLD_BYTES:
                        return None
            return json.loads(body) if response.status_code == 200 else None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError):
            return None

    async def _refusal(self, response: httpx2.Response) -> ModelError:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _ERROR_BODY_BYTES:
                break
        headers = {name.lower(): value for name, value in response.headers.items()}
        return status_fault(response.status_code, headers, body, self._peer, self._clock.now())

    def _open(self) -> httpx2.AsyncClient:
        import httpx2

        loop = current_token()
        if self._client is None or self._loop != loop:
            # Connections belong to the event loop that opened them; a client left behind by a loop
            # that has ended holds only dead sockets.
            connect_s, read_s = self._timeouts
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(read_s, connect=connect_s),
                verify=self.base_url.startswith("https:"),
                # A proxy from the environment is not for servers on this machine.
                trust_env=not is_loopback(self.base_url),
                limits=httpx2.Limits(max_keepalive_connections=20 if self._keep_alive else 0),
            )
            self._loop = loop
        return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop == current_token():
            await client.aclose()


def check_base_url(url: str) -> str:
    """`url` without a slash at its end.

    Raises:
        ConfigError: when it is no http(s) URL.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(
            f"{scrub(url, '')!r} is not a base URL.", next="It must look like https://host/v1."
        )
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether `url` points to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_key(peer: Peer) -> None:
    if not all("!" <= char <= "~" for char in peer.secret):
        where = peer.key_env or "the key"
        raise AuthenticationFailed(
            f"The key in {where} has a character that no key has (a space, a line end, a quote "
            "that an editor changed).",
            next=f"Set {where} again, without anything before or after the key.",
        )


def _broken(error: httpx2.HTTPError, peer: Peer, *, begun: bool) -> ModelError:
    """The error for a connection that could not be made, or broke."""
    import httpx2

    kind = type(error).__name__
    detail = scrub(str(error), peer.secret, 200)
    what = f"{kind}: {detail}" if detail else kind
    where = peer.host or peer.provider
    if isinstance(error, httpx2.DecodingError):
        return BadAnswer(f"The answer of {where} could not be unpacked ({what}).")
    if begun:
        return StreamCut(
            f"The connection to {where} broke in the middle of the answer ({what}).",
            next="Ask again; nothing of this answer was run.",
        )
    return ProviderUnreachable(
        f"No answer from {where} ({what}).",
        next="Check the network, the base URL and whether the server is running.",
    )
