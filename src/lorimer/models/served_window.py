"""The context window of a model that a server of one's own serves: asked of the server, because it
depends on how that was started.

llama.cpp: `/props` (https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md) ·
vLLM: `max_model_len` in `/v1/models` (https://docs.vllm.ai/en/latest/cli/serve.html) · Ollama:
`context_length` in `/api/ps`, of a model that is loaded (https://docs.ollama.com/api/ps).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from lorimer.models.http import EventSource

SELF_HOSTED: Final = frozenset({"llamacpp", "vllm", "ollama", "compatible"})
"""Families whose window nobody can know beforehand."""
TIMEOUT_S: Final = 2.0


async def served_window(source: EventSource, family: str, model: str) -> int | None:
    """Tokens of the window of `model`; `None` when the server does not say. Never raises.

    Cancellation: the question is dropped.
    """
    ways: Mapping[str, tuple[Callable[[EventSource, str], Awaitable[int | None]], ...]] = {
        "llamacpp": (_props,),
        "vllm": (_models,),
        "ollama": (_loaded,),
        "compatible": (_models, _props),
    }
    for ask in ways.get(family, ()):
        found = await ask(source, model)
        if found is not None:
            return found
    return None


async def _props(source: EventSource, model: str) -> int | None:
    answer = await source.get_json(f"{_origin(source)}/props", timeout_s=TIMEOUT_S)
    return _tokens(answer, "default_generation_settings", "n_ctx")


async def _models(source: EventSource, model: str) -> int | None:
    answer = await source.get_json(f"{source.base_url}/models", timeout_s=TIMEOUT_S)
    served = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(served, list):
        return None
    for one in served:
        if isinstance(one, Mapping) and (one.get("id") == model or len(served) == 1):
            return _tokens(one, "max_model_len")
    return None


async def _loaded(source: EventSource, model: str) -> int | None:
    answer = await source.get_json(f"{_origin(source)}/api/ps", timeout_s=TIMEOUT_S)
    loaded = answer.get("models") if isinstance(answer, Mapping) else None
    for one in loaded if isinstance(loaded, list) else ():
        if isinstance(one, Mapping) and model in (one.get("name"), one.get("model")):
            return _tokens(one, "context_length")
        if isinstance(one, Mapping) and one.get("name") == f"{model}:latest":
            return _tokens(one, "context_length")
    return None


def _origin(source: EventSource) -> str:
    parts = urlsplit(source.base_url)
    return f"{parts.scheme}://{parts.netloc}"


def _tokens(record: Any, *path: str) -> int | None:
    for step in path:
        record = record.get(step) if isinstance(record, Mapping) else None
    if isinstance(record, int) and not isinstance(record, bool) and record > 0:
        return record
    return None
