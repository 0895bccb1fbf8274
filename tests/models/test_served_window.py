"""A server of one's own is asked for its window, and whatever it answers does no harm."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.models.profiles import profile_for
from wire.answers import Say, Usage
from wire.chat import Chat
from wire.kit import adapter

pytestmark = pytest.mark.anyio
KEY = "own-key"


class Own(ThreadingHTTPServer):
    """Serves `pages` to who has the key, and answers every POST with the same words."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, pages: Mapping[str, Any]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Page)


class _Page(BaseHTTPRequestHandler):
    server: Own

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if self.headers.get("authorization") != f"Bearer {KEY}":
            page = None
        body = page if isinstance(page, bytes) else json.dumps(page).encode()
        self._send(404 if page is None else 200, "application/json", body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = Say("Yes.", usage=Usage(input=3000, cached=0, output=8))
        self._send(200, "text/event-stream", Chat().encode(said, asked))

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(pages: Mapping[str, Any]) -> Iterator[Own]:
    server = Own(pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def window(family: str, server: Own, model: str = "m", key: str = KEY) -> int | None:
    url = f"http://127.0.0.1:{server.server_port}/v1"
    one = adapter("openai_chat", url, profile_for(family, model), model=model, api_key=key)
    try:
        return await one.served_window()
    finally:
        await one.aclose()


LLAMA = {"/props": {"default_generation_settings": {"n_ctx": 65536}, "total_slots": 4}}
VLLM = {
    "/v1/models": {
        "object": "list",
        "data": [
            {"id": "other", "max_model_len": 1},
            {"id": "m", "object": "model", "max_model_len": 40960},
        ],
    }
}
OLLAMA = {"/api/ps": {"models": [
    {"name": "m:latest", "model": "m:latest", "size": 5, "context_length": 131072}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "pages", "tokens"),
    [
        ("llamacpp", LLAMA, 65536),
        ("vllm", VLLM, 40960),
        ("ollama", OLLAMA, 131072),
        ("ollama", {"/api/ps": {"models": []}}, None),  # not loaded yet
        ("compatible", VLLM, 40960),
        ("compatible", LLAMA, 65536),
        ("compatible", {"/v1/models": {"data": [{"id": "m", "meta": {}}]}, **LLAMA}, 65536),
        ("compatible", {}, None),
        ("openai", LLAMA | VLLM, None),  # nobody's own server
    ],
)
async def test_each_kind_of_server_is_asked_in_its_way(
    family: str, pages: Mapping[str, Any], tokens: int | None
) -> None:
    with serving(pages) as server:
        assert await window(family, server) == tokens


@pytest.mark.parametrize(
    "page",
    [
        b"", b"<html>", b"null", b"[]", b'{"default_generation_settings": 3}',
        b'{"default_generation_settings": {"n_ctx": -1}}',
        b'{"default_generation_settings": {"n_ctx": "many"}}',
        b'{"default_generation_settings": {"n_ctx": true}}',
        b"[" * 200_000, b'{"x": "' + b"y" * 5_000_000 + b'"}', b"\xff\xfe",
    ],
)  # fmt: skip
async def test_answers_that_make_no_sense_are_no_window(page: bytes) -> None:
    with serving({"/props": page}) as server:
        assert await window("llamacpp", server) is None


async def test_without_the_key_or_without_a_server_there_is_no_window_and_no_error() -> None:
    with serving(LLAMA) as server:
        assert await window("llamacpp", server, key="wrong") is None
    assert await window("llamacpp", server) is None  # it is gone


async def test_a_session_asks_once_and_knows_its_budget(tmp_path: Path) -> None:
    with serving(LLAMA) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        model = adapter("openai_chat", url, profile_for("llamacpp"), model="m", api_key=KEY)
        async with Agent(model, store=tmp_path / "s.db") as agent, agent.session() as session:
            assert session.tokens.budget is None
            for _ in range(3):
                assert (await session.send("?")).answer == "Yes."
            assert session.tokens.window == 65536
            assert session.tokens.budget == 65536 - 8192
            assert session.tokens.share() == pytest.approx(3008 / (65536 - 8192))
            assert session.entries[-1].meta["window"] == 65536
        await model.aclose()
        assert server.asked == ["/props"]


async def test_a_server_that_knows_it_only_after_loading_is_asked_once_more(
    tmp_path: Path,
) -> None:
    with serving({}) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        model = adapter("openai_chat", url, profile_for("ollama"), model="m", api_key=KEY)
        async with Agent(model, store=tmp_path / "s.db") as agent, agent.session() as session:
            await session.send("?")
            assert session.tokens.window is None
            server.pages |= OLLAMA
            for _ in range(3):
                await session.send("?")
            assert session.tokens.window == 131072
        await model.aclose()
        assert server.asked == ["/api/ps", "/api/ps"]
