"""How many tokens of a request the provider should have found in its cache.

Our bytes become tokens by the provider's own ratio: the prompt tokens it counted for the request
before, over the bytes of that request's segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lorimer.core.usage import Usage
from lorimer.models.profiles import Profile
from lorimer.models.usage_fields import tells_cached


@dataclass(frozen=True, slots=True)
class CacheRule:
    """When a provider caches: prompts of at least `minimum` tokens, for `kept_s` seconds after the
    last use. Where models differ, the longest minimum; where nothing is written, a careful guess,
    and `source` is empty: a warning must not be wrong."""

    minimum: int
    kept_s: float
    as_of: str = ""
    source: str = ""


_OPENAI = CacheRule(
    1024, 300.0, "2026-11-30", "https://developers.openai.com/api/docs/guides/prompt-caching"
)
_RULES: Final[Mapping[str, CacheRule]] = {
    "openai": _OPENAI,
    "openai-responses": _OPENAI,
    "anthropic": CacheRule(
        4096, 300.0, "2026-11-30",
        "https://platform.claude.com/docs/en/build-with-claude/prompt-caching",
    ),
    "gemini": CacheRule(4096, 60.0, "2026-10-23", "https://ai.google.dev/gemini-api/docs/caching"),
    "llamacpp": CacheRule(
        64, 86_400.0, "2026-11-30",
        "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    ),
}  # fmt: skip
_OWN_ENGINE = CacheRule(64, 86_400.0)
_UNKNOWN = CacheRule(4096, 60.0)


def rule_of(profile: Profile) -> CacheRule:
    """The rule of the provider of `profile`."""
    if profile.wire in ("local", "scripted"):
        return _OWN_ENGINE
    return _RULES.get(profile.name, _UNKNOWN)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a request was, once it was answered: its prompt tokens as the provider counted them, the
    bytes of its segments, and when it was (seconds since the epoch)."""

    tokens: int
    size: int
    at_s: float


def expected_tokens(before: Measured | None, shared_bytes: int) -> int:
    """Tokens that `shared_bytes` at the start of the request are worth."""
    if before is None or before.size <= 0:
        return 0
    return round(before.tokens * min(1.0, shared_bytes / before.size))


def cached_told(usage: Usage, profile: Profile) -> int | None:
    """The cached tokens of `usage`; `None` when the provider said nothing of them."""
    if usage.cached_tokens:
        return usage.cached_tokens
    raw: Mapping[str, Any] = usage.raw
    if profile.wire == "local":
        return 0 if "cache_n" in raw else None
    return 0 if tells_cached(raw, profile) else None


def is_miss(cached: int | None, expected: int, profile: Profile, idle_s: float) -> bool:
    """Whether the counter stands at zero where a hit was to be expected."""
    rule = rule_of(profile)
    return cached == 0 and expected >= rule.minimum and idle_s < rule.kept_s
