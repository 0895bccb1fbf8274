"""The HTTP server under all four protocols: real sockets, chunked bodies, and faults."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from lorimer.context.validity import validate_body
from wire.answers import Answer, Cut, Fail, Raw, Say
from wire.protocol import Protocol
from wire.protocols import PROTOCOLS

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WireServer:
    """A provider on 127.0.0.1. Use as a context manager.

    Args:
        wire: which protocol.
        script: what is answered, in order; a function gets the request and gives the answer.
        status_role: the role that its model takes inside a conversation for its operator's words.
    """

    def __init__(
        self,
        wire: str,
        script: Sequence[Answer | Callable[[Received], Answer]] = (),
        *,
        status_role: str = "",
    ) -> None:
        self.status_role = status_role
        self.protocol: Protocol = PROTOCOLS[wire]
        self.script = list(script)
        self.received: list[Received] = []
        self.faults: list[str] = []
        self.connections = 0
        self.gone = threading.Event()
        """Set when a client closed its connection in the middle of an answer."""
        handler = type("Handler", (_Handler,), {"wire": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def base_url(self) -> str:
        return self.origin + ("/v1beta" if self.protocol.name == "gemini" else "/v1")

    def __enter__(self) -> WireServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, request: Received) -> Answer:
        """What to answer: a refusal by the rules, or the next item of the script."""
        self.received.append(request)
        if not self.protocol.authorised(request.headers, KEY):
            key = request.headers.get(self.protocol.key_header, "")
            # Real providers quote the key in their answer; a client must not pass that on.
            return Fail(401, message=f"Incorrect API key provided: {key}", code=self._code("key"))
        if not self.protocol.accepts(request.path):
            return Fail(404, message=f"Unknown URL {request.path}")
        faults = validate_body(self.protocol.name, request.body, status_role=self.status_role)
        if faults:
            self.faults += faults
            return Fail(400, message="; ".join(faults))
        if not self.script:
            return Fail(400, message="the script is at its end")
        item = self.script.pop(0)
        return item(request) if callable(item) else item

    def _code(self, what: str) -> str:
        return "invalid_api_key" if what == "key" and "openai" in self.protocol.name else ""

    def stream_of(self, answer: Say | Raw, request: Received) -> bytes:
        if isinstance(answer, Raw):
            return answer.data
        return self.protocol.encode(answer, request.json)


class _Handler(BaseHTTPRequestHandler):
    wire: ClassVar[WireServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.wire.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Received(self.path, headers, body)
        answer = self.wire.answer(request)
        try:
            if isinstance(answer, Fail):
                self._fail(answer)
            elif isinstance(answer, Cut):
                self._stream(
                    self.wire.stream_of(answer.answer, request)[: answer.at], answer.cleanly
                )
            else:
                self._stream(self.wire.stream_of(answer, request), True)
        except OSError:
            self.wire.gone.set()
            self.close_connection = True

    def _fail(self, fail: Fail) -> None:
        body = fail.body if fail.body is not None else self.wire.protocol.error(fail)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(fail.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in fail.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, data: bytes, cleanly: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        # Pieces of a prime length end everywhere: in lines, in escapes, in characters.
        for at in range(0, len(data), 61):
            piece = data[at : at + 61]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if cleanly:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""
