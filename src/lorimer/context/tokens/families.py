"""Which models share a tokenizer, and how its tokens compare with o200k before anything was
measured. Data with date and source: `families.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class TokenizerFamily:
    """Models with one tokenizer. `ratio`: tokens there for one token of o200k, as first read."""

    name: str
    models: str = ""
    ratio: float = 1.0
    as_of: str = ""
    source: str = ""


@lru_cache(maxsize=1)
def tokenizer_families() -> tuple[TokenizerFamily, ...]:
    """All families of the data, in the order in which they are tried."""
    import tomllib
    from importlib.resources import files

    text = files("lorimer.context.tokens").joinpath("families.toml").read_text("utf-8")
    return tuple(TokenizerFamily(**record) for record in tomllib.loads(text)["family"])


@lru_cache(maxsize=256)
def family_of(model: str) -> TokenizerFamily:
    """The family of the model called `model` (`anthropic:claude-…`, `ollama:qwen3`); one of its own
    where the data has none."""
    low = model.lower()
    for family in tokenizer_families():
        if re.search(family.models, low):
            return family
    return TokenizerFamily(low.rpartition("/")[2][-80:] or "unnamed")
