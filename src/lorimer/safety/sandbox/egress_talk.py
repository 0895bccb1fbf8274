"""One connection to the proxy of a sandbox: a CONNECT tunnel, or plain HTTP by an absolute URL.

It speaks HTTP/1.1 (h11 on both sides, so that nothing passes that was not understood), one request
a connection. Of what is inside a tunnel only the server name of TLS is looked at: whoever may reach
a host may say anything to it. Names are looked up here, after the host was allowed, and never by
the sandbox.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime

import anyio
import h11

from lorimer.safety.network.connect import first_of, same_peer
from lorimer.safety.network.hosts import Host, parse_host
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.resolve import resolve_checked
from lorimer.safety.network.urls import CheckedUrl, check_url
from lorimer.safety.sandbox.egress import Attempt, Egress, Verdict
from lorimer.safety.sandbox.hello import ALERT, Hello, NotUnderstood
from lorimer.safety.sandbox.wire import Wire

_HEAD_S = 20.0
_DRAIN_S = 1.0
_DRAIN_BYTES = 1 << 20
_HEAD_BYTES = 1 << 16
_LONGEST_HOST = 260
_HOP = frozenset({b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
                  b"proxy-connection", b"te", b"trailer", b"upgrade", b"expect"})  # fmt: skip
_FAILED = frozenset({Why.RESOLUTION, Why.CONNECTION})
_ADVICE = (
    "The sandbox has no other way to the network, so other programs, ports and addresses will not "
    "work either. Go on without it, or say which host is needed and what for."
)


Count = Callable[[int, int], None]
"""Counts bytes up and down that are about to pass on; raises LimitPassed when they may not."""


class LimitPassed(Exception):
    """So many bytes may not pass."""


class _WrongName(Exception):
    """A tunnel to one host is used for another."""


class Talk:
    """One request of the sandboxed program, and where it led.

    Args:
        count: told of every byte that passes, for the limits of the run.
    """

    def __init__(self, egress: Egress, wire: Wire, count: Count) -> None:
        self._egress, self._wire, self._of_run = egress, wire, count
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        self._asked = False
        self._host, self._method = "", ""
        self._port = 0
        self._verdict: Verdict = "refused"
        self._reason = "the request was never finished"
        self._address = ""
        self._up, self._down = 0, 0
        self._started_at, self._started = datetime.now(UTC), time.monotonic()
        self._active = self._started

    def tell(self) -> None:
        if self._egress.on_attempt is not None and self._asked:
            self._egress.on_attempt(Attempt(
                self._host, self._port, self._method, self._verdict, self._reason, self._address,
                self._up, self._down, self._started_at, time.monotonic() - self._started,
            ))  # fmt: skip

    async def run(self, *, crowded: bool) -> None:
        try:
            request = None
            with anyio.move_on_after(_HEAD_S):
                request = await self._request()
            if request is None:
                return
            if crowded:
                self._verdict, self._reason = "refused", "too many connections at one time"
                await self._say(
                    503, "There are too many connections at one time; "
                    f"{self._egress.connections} are allowed. Close some, then try again.",
                )  # fmt: skip
                return
            await self._answer(request)
        except NetworkRefused as fault:
            failed = fault.why in _FAILED
            self._verdict = "failed" if failed else "refused"
            self._reason = fault.message
            await self._say(502 if failed else 403, str(fault))
        except LimitPassed:
            most = f"{self._egress.bytes_up:,} bytes up and {self._egress.bytes_down:,} down"
            self._verdict, self._reason = "failed", f"the limit of {most} was reached"
            await self._say(403, f"This run may send and receive {most}; that is used up.")
        except _WrongName as fault:
            self._verdict, self._reason = "refused", str(fault)
        except h11.RemoteProtocolError as fault:
            self._verdict = "failed" if self._address else "refused"
            self._reason = f"not HTTP: {fault}"
            whose = f"The answer of {self._host}" if self._address else "What came here"
            await self._say(502 if self._address else 400, f"{whose} is not HTTP: {fault}.")
        except TimeoutError:
            self._verdict, self._reason = "failed", "it was silent for too long"
            await self._say(504, f"{self._host} was silent for {self._egress.idle_s:g} s.")
        except (OSError, h11.LocalProtocolError) as fault:
            self._verdict = "allowed" if self._address else "failed"
            self._reason = f"the connection broke: {fault}"
            await self._say(502, f"The connection to {self._host} broke: {fault}.")

    async def _request(self) -> h11.Request | None:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            piece = await self._wire.receive()
            self._asked = self._asked or bool(piece)
            self._http.receive_data(piece)

    async def _answer(self, request: h11.Request) -> None:
        self._method = request.method.decode("ascii")
        target = request.target.decode("latin-1")
        rules = self._egress.rules
        url: CheckedUrl | None = None
        if self._method == "CONNECT":
            name, _, port = target.rpartition(":")
            self._host = name[:_LONGEST_HOST]
            self._port = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
            bare = ":" in name and not name.startswith("[")  # IPv6, as some write it
            host = parse_host(f"[{name}]" if bare else name)
            if host.odd or not 0 < self._port < 65536:
                raise NetworkRefused(
                    f"{target[:200]!r} is not a host and a port in their usual spelling.",
                    why=Why.URL, host=host.name, next="Write e.g. example.com:443.",
                )  # fmt: skip
        else:
            self._host = (
                target.partition("://")[2].partition("/")[0].rpartition("@")[2][:_LONGEST_HOST]
            )
            if target.startswith("/") or target == "*":
                raise NetworkRefused(
                    "This is the sandbox's proxy and not a web server.",
                    why=Why.URL, next="Ask it for whole URLs: http://host/path, or CONNECT.",
                )  # fmt: skip
            if target.lower().startswith("https:"):
                raise NetworkRefused(
                    "This proxy does not speak TLS for others.",
                    why=Why.URL, next="Open a tunnel with CONNECT, and speak TLS in it.",
                )  # fmt: skip
            url = check_url(target, rules)
            host, self._port = url.host, url.port
        self._host = host.name
        upstream = await self._connect(host)
        try:
            self._verdict, self._reason, self._address = "allowed", "", upstream.peer
            if url is None:
                await self._tunnel(host, upstream)
            else:
                await self._forward(request, url, upstream)
        finally:
            upstream.close()

    async def _connect(self, host: Host) -> Wire:
        limit = self._egress.connect_s
        addresses = await resolve_checked(
            host, self._port, self._egress.rules,
            resolver=self._egress.resolver, timeout_s=limit,
        )  # fmt: skip
        self._verdict, self._reason = "failed", "the run ended before there was a connection"

        async def open_one(address: str) -> Wire:
            return await Wire.open(address, self._port)

        wire = await first_of(host, self._port, addresses, open_one, timeout_s=limit)
        try:
            same_peer(wire.peer, addresses, host)
        except BaseException:
            wire.close()
            raise
        return wire

    async def _tunnel(self, host: Host, upstream: Wire) -> None:
        await self._send_down(self._http.send(h11.Response(status_code=200, headers=[])))
        early, _closed = self._http.trailing_data

        async def up() -> None:
            await self._send_up(upstream, await self._first(host, early))
            while piece := await self._receive(self._wire):
                await self._send_up(upstream, piece)
            upstream.end()

        async def down() -> None:
            while piece := await self._receive(upstream):
                self._count(down=len(piece))
                await self._send_down(piece)
            self._wire.end()

        await _together(up, down)

    async def _first(self, host: Host, early: bytes) -> bytes:
        """The first bytes from inside; when they are TLS they must be meant for this host."""
        hello, held = Hello(), bytearray(early)
        try:
            hello.feed(early)
            while not hello.known and (piece := await self._receive(self._wire)):
                held += piece
                hello.feed(piece)
            if not hello.tls:
                return bytes(held)
            if hello.name is None:
                named = host.address is not None
            else:
                named = parse_host(hello.name).name == host.name
            fault = f"TLS in the tunnel is meant for {hello.name or 'no name'}, not for {host}"
        except (NotUnderstood, NetworkRefused) as wrong:
            named, fault = False, f"TLS in the tunnel to {host} is not understood: {wrong}"
        if not named:
            await self._send_down(ALERT)
            self._wire.end()
            raise _WrongName(fault)
        return bytes(held)

    async def _forward(self, request: h11.Request, url: CheckedUrl, upstream: Wire) -> None:
        """One request, and its answer, each understood and written anew."""
        far = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        head = [one for one in _without_hops(request.headers) if one[0] != b"host"]
        head = [(b"Host", url.authority.encode()), *head, (b"Connection", b"close")]
        asks = h11.Request(method=request.method, target=url.target.encode(), headers=head)
        await self._send_up(upstream, far.send(asks))

        async def up() -> None:
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        await self._send_down(self._http.send(go_on))
                    self._http.receive_data(await self._receive(self._wire))
                elif isinstance(event, h11.Data | h11.EndOfMessage):
                    await self._send_up(upstream, far.send(event))
                    if isinstance(event, h11.EndOfMessage):
                        return
                else:
                    return

        async def down() -> None:
            while True:
                event = far.next_event()
                if event is h11.NEED_DATA:
                    piece = await self._receive(upstream)
                    self._count(down=len(piece))
                    far.receive_data(piece)
                elif isinstance(event, h11.Response):
                    kept = [*_without_hops(event.headers), (b"Connection", b"close")]
                    await self._send_down(self._http.send(h11.Response(
                        status_code=event.status_code, headers=kept, reason=event.reason
                    )))  # fmt: skip
                elif isinstance(event, h11.Data):
                    await self._send_down(self._http.send(event))
                elif isinstance(event, h11.EndOfMessage):
                    await self._send_down(self._http.send(h11.EndOfMessage()))
                    return
                elif not isinstance(event, h11.InformationalResponse):
                    raise h11.RemoteProtocolError("it ended early")

        await _together(up, down, until_last=True)
        await self._part()

    async def _receive(self, wire: Wire) -> bytes:
        """Raises TimeoutError when neither side has sent anything for the whole idle time."""
        while True:
            left = self._active + self._egress.idle_s - time.monotonic()
            if left <= 0:
                raise TimeoutError
            with anyio.move_on_after(left):
                piece = await wire.receive()
                self._active = time.monotonic()
                return piece

    async def _send_up(self, upstream: Wire, content: bytes | None) -> None:
        self._count(up=len(content or b""))
        with anyio.fail_after(self._egress.idle_s):
            await upstream.send(content or b"")

    async def _send_down(self, content: bytes | None) -> None:
        with anyio.fail_after(self._egress.idle_s):
            await self._wire.send(content or b"")

    def _count(self, *, up: int = 0, down: int = 0) -> None:
        self._up, self._down = self._up + up, self._down + down
        self._of_run(up, down)

    async def _say(self, status: int, text: str) -> None:
        """Answer with a text that teaches, unless an answer has begun."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        first = text.encode("ascii", "replace")[:200]
        body = f"{text}\n{_ADVICE}\n".encode()
        head = [
            (b"Content-Type", b"text/plain; charset=utf-8"),
            (b"Content-Length", str(len(body)).encode()), (b"Connection", b"close"),
        ]  # fmt: skip
        events = (
            h11.Response(status_code=status, headers=head, reason=first),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        try:
            for event in events:
                await self._send_down(self._http.send(event))
            await self._part()
        except (OSError, TimeoutError, h11.LocalProtocolError):
            return  # it went away, or asked with HEAD

    async def _part(self) -> None:
        """End our direction and take what is still under way, so that the answer is not lost."""
        self._wire.end()
        taken = 0
        with anyio.move_on_after(_DRAIN_S), contextlib.suppress(OSError):
            while taken < _DRAIN_BYTES and (piece := await self._wire.receive()):
                taken += len(piece)


async def _together(*parts: Callable[[], Awaitable[None]], until_last: bool = False) -> None:
    """Run the parts at one time; the first fault ends all of them and is raised.

    Args:
        until_last: whether the end of the last part is the end of all.
    """
    faults: list[Exception] = []

    async def one(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except (OSError, TimeoutError, h11.ProtocolError, LimitPassed, _WrongName) as fault:
            faults.append(fault)
        if faults or (until_last and part is parts[-1]):
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for part in parts:
            group.start_soon(one, part)
    if faults:
        raise faults[0]


def _without_hops(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without what is meant for the next hop only (RFC 9110 7.6.1)."""
    given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
    named = {
        token.strip().lower()
        for name, value in given
        if name == b"connection"
        for token in value.split(b",")
    }
    out = named - {b"content-length", b"transfer-encoding", b"host"} | _HOP
    return [one for one in given if one[0] not in out]
