"""Profiles and usage: data that is read right."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from lorimer.models.profiles import Price, families, known_models, profile_for
from lorimer.models.usage_fields import cost_of, read_usage, tells_cached


@pytest.mark.parametrize(
    ("family", "raw", "expected"),
    [
        (
            "anthropic",
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 70,
                "cache_creation_input_tokens": 20,
                "output_tokens": 5,
                "output_tokens_details": {"thinking_tokens": 2},
            },
            (100, 70, 20, 5, 2),
        ),
        (
            "openai",
            {
                "prompt_tokens": 100,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            (100, 64, 0, 9, 4),
        ),
        (
            "openai-responses",
            {
                "input_tokens": 100,
                "output_tokens": 9,
                "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 30},
                "output_tokens_details": {"reasoning_tokens": 4},
            },
            (100, 64, 30, 9, 4),
        ),
        (
            "gemini",
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 7,
                "thoughtsTokenCount": 3,
            },
            (100, 60, 0, 10, 3),
        ),
        (
            "deepseek",
            {
                "prompt_tokens": 100,
                "prompt_cache_hit_tokens": 80,
                "prompt_cache_miss_tokens": 20,
                "completion_tokens": 5,
            },
            (100, 80, 0, 5, 0),
        ),
        (
            "moonshot",
            {"prompt_tokens": 100, "cached_tokens": 30, "completion_tokens": 5},
            (100, 30, 0, 5, 0),
        ),
        (
            "vllm",
            {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": None},
            (100, 0, 0, 5, 0),
        ),
        (
            "llamacpp",
            {"prompt_tokens": 100, "completion_tokens": 5, "timings": {"cache_n": 90}},
            (100, 90, 0, 5, 0),
        ),
        (
            "xai",
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            (32, 0, 0, 103, 94),
        ),
        (
            "anthropic",
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 30,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 10,
                },
                "output_tokens": 5,
            },
            (40, 0, 30, 5, 0),
        ),
        (
            "anthropic",
            {
                "input_tokens": 10,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 10,
                },
                "output_tokens": 5,
            },
            (40, 0, 30, 5, 0),
        ),
        (
            "openai",
            {
                "prompt_tokens": 2000,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 512},
            },
            (2000, 1024, 512, 9, 0),
        ),
        (
            "deepseek",
            {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
            (100, 64, 0, 0, 0),
        ),
        (
            "moonshot",
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 32}},
            (100, 32, 0, 0, 0),
        ),
        (
            "xai",
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 48}},
            (100, 48, 0, 0, 0),
        ),
        (
            "vllm",
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 96}},
            (100, 96, 0, 0, 0),
        ),
        (
            "llamacpp",
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "timings": {"cache_n": 90, "prompt_n": 10},
                "tokens_cached": 105,
            },
            (100, 90, 0, 5, 0),
        ),
        ("llamacpp", {"timings": {"cache_n": 90, "prompt_n": 10}}, (100, 90, 0, 0, 0)),
        (
            "llamacpp",
            {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 40}},
            (50, 40, 0, 0, 0),
        ),
        ("openai", {"prompt_tokens": True, "completion_tokens": "9"}, (0, 0, 0, 0, 0)),
        ("openai", {}, (0, 0, 0, 0, 0)),
    ],
)
def test_usage_of_each_provider(
    family: str, raw: dict[str, Any], expected: tuple[int, ...]
) -> None:
    used = read_usage(raw, profile_for(family))
    assert (
        used.input_tokens,
        used.cached_tokens,
        used.cache_write_tokens,
        used.output_tokens,
        used.reasoning_tokens,
    ) == expected
    assert used.raw == raw and used.requests == 1


@pytest.mark.parametrize(
    ("family", "raw", "tells"),
    [
        ("openai", {"prompt_tokens_details": {"cached_tokens": 0}}, True),
        ("openai", {"prompt_tokens_details": None}, False),
        ("moonshot", {"cached_tokens": 0}, True),
        ("ollama", {"prompt_tokens": 5}, False),
        ("gemini", {"promptTokenCount": 5}, False),
    ],
)
def test_a_counter_at_zero_is_not_a_counter_that_is_missing(
    family: str, raw: dict[str, Any], tells: bool
) -> None:
    assert tells_cached(raw, profile_for(family)) is tells


def test_a_cost_that_the_provider_tells_goes_before_our_price() -> None:
    used = read_usage(
        {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.00014}, profile_for("openrouter")
    )
    assert used.cost == Decimal("0.00014")


def test_no_price_no_cost() -> None:
    assert read_usage({"prompt_tokens": 1}, profile_for("vllm")).cost is None


def test_cached_tokens_without_their_own_price_cost_the_plain_price() -> None:
    price = Price(Decimal(2), Decimal(10), None, None, "2026-01-01", "test")
    raw = {"prompt_tokens": 1_000_000, "prompt_tokens_details": {"cached_tokens": 500_000}}
    profile = replace(profile_for("openai"), price=price)
    assert read_usage(raw, profile).cost == Decimal(2)
    assert cost_of(read_usage({}, profile), price) == 0


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-opus-5", True),
        ("claude-opus-5-20260724", True),
        ("claude-opus-5-5", True),
        ("claude-opus-55", False),
        ("claude-opus-5x-20260101", False),
        ("other", False),
    ],
)
def test_a_dated_name_is_its_model_and_a_near_name_is_not(model: str, known: bool) -> None:
    assert (profile_for("anthropic", model).price is not None) is known
    if model == "claude-opus-5-5":
        assert (
            profile_for("anthropic", model).price != profile_for("anthropic", "claude-opus-5").price
        )


def test_every_price_has_a_date_and_a_source() -> None:
    seen = 0
    for family in families():
        for model in known_models(family):
            price = profile_for(family, model).price
            if price is not None:
                seen += 1
                assert price.as_of[:4].isdigit() and price.source.startswith("https://")
                assert 0 < price.input < price.output
                assert price.cached is None or price.cached < price.input
    assert seen >= 8


def test_an_unknown_family_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        profile_for("nobody")
