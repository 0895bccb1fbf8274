"""One request and its answer over one pinned connection.

Imports httpcore2 (the transport of httpx2), so it is imported only when something is fetched.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import httpcore2

from lorimer.safety.network.connect import first_of, same_peer
from lorimer.safety.network.decoding import Decoder
from lorimer.safety.network.hosts import Address, Host
from lorimer.safety.network.records import FetchLimits, Header, Reply
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.urls import CheckedUrl

_CLOSE_S = 1.0


class Pinned(httpcore2.AnyIOBackend):
    """Connects to checked addresses of one host, whatever the name may resolve to by now.

    Asked for another host or port it refuses: check and connection would have parted.
    """

    def __init__(self, host: Host, port: int, addresses: Sequence[Address], timeout_s: float):
        self._host, self._port, self._addresses = host, port, addresses
        self._timeout_s = timeout_s
        self.peer = ""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        if (host, port) != (self._host.name, self._port):
            raise NetworkRefused(
                f"A connection to {host}:{port} was asked for, but {self._host}:{self._port} was "
                "checked.",
                why=Why.CONNECTION, host=self._host.name,
            )  # fmt: skip
        plain = super().connect_tcp

        async def open_one(address: str) -> httpcore2.AsyncNetworkStream:
            try:
                return await plain(address, port, None, local_address, socket_options)
            except httpcore2.ConnectError as fault:
                raise OSError(str(fault)) from fault

        stream = await first_of(
            self._host, port, self._addresses, open_one, timeout_s=self._timeout_s
        )
        try:
            self.peer = str(stream.get_extra_info("server_addr")[0])
            same_peer(self.peer, self._addresses, self._host)
        except NetworkRefused:
            await stream.aclose()
            raise
        return stream

    async def connect_unix_socket(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        raise NetworkRefused("Unix sockets are not connected to.", why=Why.CONNECTION)


class Exchange:
    """Sends one request and reads its answer within limits.

    `sent` becomes true when the first byte of the request may have left. With a `proxy` the
    addresses are the proxy's.
    """

    def __init__(
        self,
        url: CheckedUrl,
        addresses: Sequence[Address],
        limits: FetchLimits,
        tls: ssl.SSLContext | None,
        proxy: tuple[Host, int] | None = None,
    ) -> None:
        self.sent = False
        self._url, self._limits = url, limits
        self._connection: httpcore2.AsyncHTTPConnection | httpcore2.AsyncConnectionPool
        if proxy is not None:
            host, port = proxy
            self._backend = Pinned(host, port, addresses, limits.connect_s)
            self._connection = httpcore2.AsyncConnectionPool(
                proxy=httpcore2.Proxy(
                    httpcore2.URL(scheme="http", host=host.name, port=port, target="/")
                ),
                ssl_context=tls,
                max_connections=1,
                network_backend=self._backend,
            )
            return
        self._backend = Pinned(url.host, url.port, addresses, limits.connect_s)
        self._connection = httpcore2.AsyncHTTPConnection(
            httpcore2.Origin(url.scheme.encode(), url.host.name.encode(), url.port),
            ssl_context=tls,
            network_backend=self._backend,
        )

    async def run(self, method: str, headers: Sequence[Header], body: bytes | None) -> Reply:
        """The whole answer.

        Cancellation closes the connection; the server may have acted on the request by then.

        Raises:
            NetworkRefused: no answer, not an answer, or one that breaks a limit.
        """
        limits = self._limits
        request = httpcore2.Request(
            method,
            httpcore2.URL(
                scheme=self._url.scheme, host=self._url.host.name, target=self._url.target,
                port=None if self._url.authority == str(self._url.host) else self._url.port,
            ),
            headers=[(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers],
            content=body,
            extensions={
                "timeout": {
                    "connect": limits.connect_s, "read": limits.idle_s, "write": limits.idle_s,
                },
                "trace": self._trace,
            },
        )  # fmt: skip
        try:
            response = None
            with anyio.move_on_after(limits.head_s):
                response = await self._connection.handle_async_request(request)
            if response is None:
                raise self._refused(
                    Why.TIME, f"sent no complete answer head within {limits.head_s:g} s"
                )
            try:
                return await self._read(method, response)
            finally:
                with anyio.move_on_after(_CLOSE_S, shield=True):
                    await response.aclose()
        except httpcore2.TimeoutException as fault:
            raise self._refused(Why.TIME, "was silent for too long") from fault
        except httpcore2.ConnectError as fault:
            raise self._refused(Why.TLS, f"cannot be trusted or understood: {fault}") from fault
        except httpcore2.ProxyError as fault:
            raise self._refused(
                Why.CONNECTION, f"was not reached: the proxy answered {fault}",
                "Ask for the host to be allowed in the proxy.",
            ) from fault  # fmt: skip
        except (httpcore2.ProtocolError, httpcore2.NetworkError) as fault:
            raise self._refused(Why.PROTOCOL, f"broke the exchange: {fault}") from fault
        finally:
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await self._connection.aclose()

    async def _trace(self, event: str, info: Any) -> None:
        if event == "http11.send_request_headers.started":
            self.sent = self.sent or info["request"].method != b"CONNECT"

    async def _read(self, method: str, response: httpcore2.Response) -> Reply:
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers]
        told = [v for k, v in headers if k.lower() == "content-length"]
        limits = self._limits
        has_body = method != "HEAD" and response.status not in (204, 304)
        if has_body and told and told[0].isdigit() and int(told[0]) > limits.wire_bytes:
            raise self._too_much(f"announces {int(told[0]):,} bytes", limits.wire_bytes)
        codings = [
            one.strip().lower()
            for k, v in headers
            if k.lower() == "content-encoding"
            for one in v.split(",")
        ]
        decoder = Decoder(codings if has_body else (), limits.body_bytes, str(self._url.host))
        body, wire = bytearray(), 0
        async for piece in response.aiter_stream():
            wire += len(piece)
            if wire > limits.wire_bytes:
                raise self._too_much("sends more", limits.wire_bytes)
            for out in decoder.feed(piece):
                body += out
                if len(body) > limits.body_bytes:
                    raise self._too_much("sends more", limits.body_bytes)
        decoder.finish()
        return Reply(response.status, tuple(headers), bytes(body), wire, self._backend.peer)

    def _too_much(self, what: str, limit: int) -> NetworkRefused:
        return self._refused(
            Why.SIZE,
            f"{what} than {limit:,} bytes"
            if what == "sends more"
            else f"{what}; {limit:,} is the most",
            "Ask for a smaller part of it, or raise the limit.",
        )

    def _refused(self, why: Why, what: str, what_next: str = "") -> NetworkRefused:
        host = self._url.host
        return NetworkRefused(
            f"The server {host} {what}.", why=why, host=host.name, sent=self.sent,
            next=what_next or (
                "Check the service and its certificate." if why is Why.TLS
                else "Try again later, or use another source."
            ),
        )  # fmt: skip
