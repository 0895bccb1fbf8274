"""Real HTTP servers on loopback, fake name look-ups, and rules that let tests reach them."""

import contextlib
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lorimer.safety.network import NetworkRules, Resolver

LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass
class Seen:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes
    server_name: str | None = None

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


Answer = bytes | Iterator[bytes]
Responder = Callable[[Seen], Answer]


@dataclass
class Server:
    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    done: threading.Event = field(default_factory=threading.Event)


def reply(
    body: bytes = b"", status: str = "200 OK", headers: Sequence[str] = (), length: bool = True
) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(where: str, status: str = "302 Found") -> bytes:
    return reply(status=status, headers=[f"Location: {where}"])


class Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = False
    block_on_close = True
    allow_reuse_address = True


def read_request(sock: ssl.SSLSocket) -> Seen | None:
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = sock.recv(65536)
        if not piece:
            return None
        raw += piece
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    while len(body) < int(headers.get("content-length", 0)):
        body += sock.recv(65536)
    return Seen(lines[0], headers, body)


def names(table: Mapping[str, Sequence[str]]) -> Resolver:
    """A resolver that knows these names only; a name's answers change if they are an iterator."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        if host not in table:
            raise OSError("no such name")
        found = table[host]
        return next(found) if isinstance(found, Iterator) else found

    return resolve


def local_rules(*servers: Server, **more: object) -> NetworkRules:
    """Rules that let the test's servers be reached."""
    options = {"allow_networks": LOOPBACK, "ports": tuple(s.port for s in servers), **more}
    return NetworkRules(**options)  # type: ignore[arg-type]


Serve = Callable[..., Server]


@dataclass
class Authority:
    """A certificate authority, and a way to get certificates of it."""

    pem: str
    issue: Callable[..., ssl.SSLContext]

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.pem)


@contextlib.contextmanager
def running(
    respond: Responder, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> Iterator[Server]:
    """A server until the end of the block; then its threads are gone too."""

    class One(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            server.connections += 1
            sock = self.request
            sock.settimeout(10)
            with contextlib.suppress(OSError):
                if tls is not None:
                    sock = tls.wrap_socket(sock, server_side=True)
                with contextlib.closing(sock):
                    request = read_request(sock)
                    if request is None:
                        return
                    request.server_name = getattr(tls, "seen_name", None)
                    server.seen.append(request)
                    answer = respond(request)
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        sock.sendall(piece)

    with Tcp((address, 0), One) as tcp:
        server = Server(tcp.server_address[1])
        thread = threading.Thread(target=tcp.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.done.set()
            tcp.shutdown()
            thread.join()
