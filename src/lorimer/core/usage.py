"""What a model request used: tokens, time, money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one request, or of several added up.

    Attributes:
        input_tokens: all prompt tokens, cached ones included, whatever the provider counts.
        cached_tokens: of these, read from the provider's cache.
        cache_write_tokens: of these, written to the cache.
        output_tokens: all tokens written, reasoning included.
        reasoning_tokens: of these, reasoning.
        requests: how many requests are added up here.
        cost: in US dollars; `None` where no price is known.
        ttft_s: seconds to the first token (of the first request).
        raw: the provider's own usage object, untouched.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    cost: Decimal | None = None
    ttft_s: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: Usage) -> Usage:
        cost = None
        if self.requests == 0:
            cost = other.cost
        elif self.cost is not None and other.cost is not None:
            cost = self.cost + other.cost
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.requests + other.requests,
            cost,
            self.ttft_s if self.ttft_s is not None else other.ttft_s,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "requests": self.requests,
            "cost": None if self.cost is None else str(self.cost),
            "ttft_s": self.ttft_s,
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Usage:
        cost = record.get("cost")
        return Usage(
            record["input_tokens"],
            record["cached_tokens"],
            record["cache_write_tokens"],
            record["output_tokens"],
            record["reasoning_tokens"],
            record["requests"],
            None if cost is None else Decimal(cost),
            record.get("ttft_s"),
        )
