"""The engine: llama.cpp in this process, spoken to over its own HTTP server on loopback.

One engine for each model file in a process, shared and counted. It starts at the first request,
on a free port, with a random key, one slot, and silent. Reading a prompt is done in two steps where
the static prefix is new to the slot: the prefix is restored from disk or read and saved, then the
rest.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from lorimer.core.errors import ConfigError, ContextTooLong, MissingExtra, ProviderFailed
from lorimer.models.local import kv_cache
from lorimer.models.local.errors import CorruptModelFile
from lorimer.models.local.gguf import ModelFacts, read_facts
from lorimer.models.local.template import segments

if TYPE_CHECKING:
    import httpx2

CONTEXT_TOKENS = 16_384
BATCH_TOKENS = 128
"""Prompt tokens read between two progress reports; larger is not faster on a CPU."""
_MAX_THREADS = 16
_engines: dict[Path, Engine] = {}
_engines_lock = threading.Lock()


class Engine:
    """One loaded model. Get it with `acquire`, give it back with `release`."""

    def __init__(self, facts: ModelFacts) -> None:
        self.facts = facts
        self.context_tokens = min(_number("LORIMER_LOCAL_CONTEXT", CONTEXT_TOKENS),
                                  facts.context_length)  # fmt: skip
        self._users = 0
        self._server: Any = None
        self._key = secrets.token_urlsafe(24)
        self._starting = threading.Lock()
        self._turn = threading.Lock()
        self._resident = ""
        self._llguidance = True
        self._build = ""
        self._token_cache: dict[str, tuple[int, ...]] = {}

    @property
    def llguidance(self) -> bool:
        """Whether this build compiles grammars with llguidance; known after the start."""
        return self._llguidance

    async def start(self) -> None:
        """Load the model unless it is loaded. Cancelling leaves the loading to finish by itself.

        Raises:
            MissingExtra: the engine is not installed.
            CorruptModelFile: the engine cannot load the file.
        """
        await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True)

    def _load(self) -> None:
        with self._starting:
            if self._server is None:
                self._server = self._open()

    def _open(self) -> Any:
        try:
            import xllamacpp
        except ImportError as fault:
            raise MissingExtra("local models", "local") from fault
        folder = kv_cache.cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        threads = _number("LORIMER_LOCAL_THREADS", default_threads())
        params = xllamacpp.CommonParams()
        params.model.path = str(self.facts.path)
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [self._key]
        params.n_parallel = 1
        params.n_ctx = self.context_tokens
        params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.slot_save_path = f"{folder}{os.sep}"  # the engine joins it as text
        params.cache_ram_mib = 0  # one slot: nothing to swap
        params.warmup = False
        params.ui = False
        params.verbosity = 3 if os.environ.get("LORIMER_DEBUG") else -1
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as fault:
            raise CorruptModelFile(
                f"{self.facts.path} could not be loaded: damaged, cut short, or of a kind that "
                "this engine does not know, or there is too little memory for it.",
                next="Run: lorimer models verify   (LORIMER_DEBUG=1 shows the engine's own words).",
            ) from fault
        self._llguidance = xllamacpp.json_schema_to_grammar('{"type":"string"}').startswith(
            "%llguidance"
        )
        self._build = f"{xllamacpp.__version__}/{self.context_tokens}"
        return server

    def stop(self) -> None:
        """Unload the model."""
        with self._starting:
            self._server = None
            self._resident = ""

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        # the server closes a connection after a stream, so none is kept for the next request
        return httpx2.AsyncClient(
            base_url=self._server.listening_address,
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=httpx2.Timeout(None, connect=10.0),
            limits=httpx2.Limits(max_keepalive_connections=0),
            trust_env=False,
        )

    async def tokenize(self, rendered: str) -> tuple[int, ...]:
        """The token ids of a rendering; control tokens inside marked text stay text."""
        if (known := self._token_cache.get(rendered)) is not None:
            return known
        pieces = await self.token_pieces(rendered)
        tokens = tuple(token for token, _ in pieces)
        if len(self._token_cache) > 2000:
            self._token_cache.clear()
        self._token_cache[rendered] = tokens
        return tokens

    async def token_pieces(self, rendered: str) -> list[tuple[int, str]]:
        """Token ids with the text of each, in order."""
        await self.start()
        out: list[tuple[int, str]] = []
        async with self._client() as client:
            for segment in segments(rendered):
                if not segment:
                    continue
                answer = await client.post(
                    "/tokenize",
                    json={
                        "content": segment.encode("utf-8", "replace").decode("utf-8"),
                        "add_special": False,
                        "parse_special": True,
                        "with_pieces": True,
                    },
                )
                _check(answer.status_code, answer.content, self.context_tokens)
                out += [(t["id"], _piece(t["piece"])) for t in answer.json()["tokens"]]
        return out

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One request at a time: the slot's state belongs to it. Waiting can be cancelled."""
        # a thread lock, because the users of one engine may live in several event loops
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110
            await anyio.sleep(0.02)
        try:
            yield
        finally:
            self._turn.release()

    async def prepare(
        self, prefix: Sequence[int], all_tokens: int
    ) -> AsyncGenerator[tuple[int, int], None]:
        """Have `prefix` in the slot: there already, restored from disk, or read and saved.

        Yields (tokens read, all tokens of the request). Call inside `turn`.
        """
        name = kv_cache.state_name(self.facts.fingerprint, self._build, prefix)
        if name == self._resident:
            return
        if len(prefix) < kv_cache.MIN_TOKENS:
            self._resident = ""
            return
        path = kv_cache.cache_folder() / name
        if path.exists() and await self._slot("restore", name):
            kv_cache.touch(path)
            self._resident = name
            yield len(prefix), all_tokens
            return
        path.unlink(missing_ok=True)
        self._resident = ""
        async for event in self.complete(prefix, {"n_predict": 0, "return_progress": True}):
            if progress := event.get("prompt_progress"):
                yield progress["processed"], all_tokens
        fresh = f"{name}.{os.getpid()}"
        if await self._slot("save", fresh):
            os.replace(kv_cache.cache_folder() / fresh, path)
            kv_cache.prune(kv_cache.cache_folder())
        self._resident = name

    async def _slot(self, action: str, filename: str) -> bool:
        async with self._client() as client:
            answer = await client.post(f"/slots/0?action={action}", json={"filename": filename})
        return answer.status_code == 200

    async def complete(
        self, tokens: Sequence[int], options: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of one streamed completion. Closing it stops the engine's work.

        Raises:
            ContextTooLong: the prompt does not fit.
            ProviderFailed: the engine reported a fault.
        """
        body = {
            "prompt": list(tokens), "stream": True, "cache_prompt": True, "id_slot": 0,
            "return_tokens": True, **options,
        }  # fmt: skip
        async with (
            self._client() as client,
            client.stream("POST", "/completion", json=body) as answer,
        ):
            if answer.status_code != 200:
                _check(answer.status_code, await answer.aread(), self.context_tokens)
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    event = json.loads(line[6:])
                    if "error" in event:
                        _check(500, line[6:].encode(), self.context_tokens)
                    yield event


def acquire(path: Path) -> Engine:
    """The engine of the model file at `path`, not yet started; one more user of it.

    Raises:
        CorruptModelFile: the file is no model.
    """
    path = path.resolve()
    with _engines_lock:
        engine = _engines.get(path)
        if engine is None:
            engine = _engines[path] = Engine(read_facts(path))
        engine._users += 1
        return engine


def release(engine: Engine) -> None:
    """One user less; the last one unloads the model."""
    with _engines_lock:
        engine._users -= 1
        if engine._users > 0:
            return
        _engines.pop(engine.facts.path.resolve(), None)
    engine.stop()


def default_threads() -> int:
    """One thread a core; half of them on a machine that has twice as much to do as it has cores,
    where threads that wait for each other at every layer lose more than they win."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 2
    busy = os.getloadavg()[0] > 2 * cores
    return max(1, min(cores // 2 if busy else cores, _MAX_THREADS))


def _check(status: int, body: bytes, context: int) -> None:
    if status == 200:
        return
    try:
        error = json.loads(body)["error"]
        kind, message = str(error.get("type", "")), str(error.get("message", ""))
    except (ValueError, KeyError, AttributeError, TypeError):
        kind, message = "", body[:200].decode("utf-8", "replace")
    if "exceed_context" in kind:
        raise ContextTooLong(
            f"The conversation does not fit the local model's context: {message}.",
            next=f"Start a new session, or set LORIMER_LOCAL_CONTEXT above {context}.",
        )
    raise ProviderFailed(f"The local engine answered {status}: {message}")


def _piece(piece: Any) -> str:
    return piece if isinstance(piece, str) else bytes(piece).decode("utf-8", "backslashreplace")


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{variable} must be a whole number above 0, it is {text!r}.")
    return int(text)
