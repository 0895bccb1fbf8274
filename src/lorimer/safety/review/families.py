"""Which model families a name belongs to: words in the names of models, as their makers use them.

A distilled or merged model belongs to every family whose word stands in its name.
"""

from __future__ import annotations

import re

_FAMILIES: dict[str, tuple[str, ...]] = {
    "anthropic": ("claude",),
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "codex"),
    "google": ("gemini", "gemma", "codegemma", "palm"),
    "meta": ("llama", "codellama"),
    "alibaba": ("qwen", "qwq", "tongyi"),
    "deepseek": ("deepseek",),
    "mistral": ("mistral", "mixtral", "ministral", "codestral", "devstral", "magistral", "pixtral"),
    "xai": ("grok",),
    "moonshot": ("kimi", "moonshot"),
    "zhipu": ("glm", "chatglm"),
    "microsoft": ("phi",),
    "cohere": ("command", "aya"),
    "ibm": ("granite",),
    "nvidia": ("nemotron",),
    "huggingface": ("smollm",),
    "ai2": ("olmo", "tulu"),
    "01": ("yi",),
    "minimax": ("minimax", "abab"),
    "baidu": ("ernie",),
    "bytedance": ("doubao", "seed"),
    "amazon": ("nova", "titan"),
    "ai21": ("jamba",),
    "tii": ("falcon",),
    "liquid": ("lfm", "lfm2"),
}
_PROVIDERS = {
    "anthropic": "anthropic", "openai": "openai", "openai-responses": "openai", "gemini": "google",
    "xai": "xai", "xai-responses": "xai", "qwen": "alibaba", "deepseek": "deepseek",
    "moonshot": "moonshot", "mistral": "mistral",
}  # fmt: skip
_WORD = {word: family for family, words in _FAMILIES.items() for word in words}


def families_of(name: str) -> frozenset[str]:
    """The families of the model with this name, e.g. `anthropic:claude-…`, `ollama:llama3.2`,
    `http://127.0.0.1:8000/v1#qwen3-8b`; empty when no word of it is known."""
    text = name.casefold()
    model = text.rpartition("#")[2] if "://" in text else text
    provider, colon, rest = model.partition(":")
    found = {
        family
        for piece in re.split(r"[^a-z0-9]+", rest if colon and provider in _PROVIDERS else model)
        if (family := _of_piece(piece)) is not None
    }
    if not found and colon and provider in _PROVIDERS:
        found = {_PROVIDERS[provider]}
    return frozenset(found)


def _of_piece(piece: str) -> str | None:
    """`llama3` and `qwen2` are the word and a number; `o3` is the word itself."""
    return _WORD.get(piece) or _WORD.get(piece.rstrip("0123456789"))
