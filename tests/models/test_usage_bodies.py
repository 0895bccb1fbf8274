"""The usage of every provider, from answers in the form that its documentation shows, read by the
real adapters over HTTP.

Each body is written by the form of the page named with it (numbers and ids are ours where the page
gives none); nothing here was recorded from a paid API.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from lorimer.core.usage import Usage
from lorimer.models.cache_prices import cache_prices
from lorimer.models.profiles import families, known_models, profile_for
from lorimer.models.usage_fields import tells_cached
from wire.answers import Raw
from wire.kit import adapter, collect, request, text_of, usage_of, user
from wire.server import WireServer


def events(*records: Any, names: bool = False, done: bool = False) -> bytes:
    out = [
        (f"event: {record['type']}\n" if names else "")
        + f"data: {json.dumps(record, ensure_ascii=False)}\n\n"
        for record in records
    ]
    return "".join([*out, "data: [DONE]\n\n" if done else ""]).encode()


def chat(
    usage: Any = None, *, in_choice: Any = None, last: dict[str, Any] | None = None,
    on_stop: bool = False,
) -> bytes:  # fmt: skip
    """A stream of Chat Completions, with usage in a chunk of its own, with the stop, or in it."""

    def chunk(choices: list[Any], **more: Any) -> dict[str, Any]:
        return {"id": "cmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": choices, **more}  # fmt: skip

    stop: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    if in_choice is not None:
        stop["usage"] = in_choice
    records = [chunk([{"index": 0, "delta": {"role": "assistant", "content": "Yes."}}])]
    if on_stop:
        records.append(chunk([stop], usage=usage, **(last or {})))
    else:
        records.append(chunk([stop], **(last or {})))
        if usage is not None:
            records.append(chunk([], usage=usage))
    return events(*records, done=True)


def messages(start: dict[str, Any], end: dict[str, Any]) -> bytes:
    """A stream of Anthropic Messages: usage at the start, totals in `message_delta`."""
    return events(
        {
            "type": "message_start",
            "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                        "content": [], "stop_reason": None, "stop_sequence": None, "usage": start},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "text_delta", "text": "Yes."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": end},
        {"type": "message_stop"},
        names=True,
    )  # fmt: skip


def responses(usage: dict[str, Any]) -> bytes:
    """A stream of Responses: usage in `response.completed`."""
    part = {"type": "output_text", "text": "Yes.", "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [part]}  # fmt: skip
    place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    return events(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "delta": "Yes.", **place},
        {"type": "response.output_text.done", "text": "Yes.", **place},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {"id": "r", "status": "completed", "output": [item], "usage": usage},
        },
        names=True,
    )


def gemini(usage: dict[str, Any]) -> bytes:
    """A stream of generateContent: usageMetadata grows with each chunk."""
    first = {"promptTokenCount": usage["promptTokenCount"]}
    part = {"role": "model", "parts": [{"text": "Yes."}]}
    return events(
        {"candidates": [{"content": part, "index": 0}], "usageMetadata": first},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]},
                         "finishReason": "STOP", "index": 0}], "usageMetadata": usage},
    )  # fmt: skip


@dataclass(frozen=True)
class Body:
    """One answer: `expected` is input, cached, written, output, reasoning, as we count."""

    family: str
    model: str
    source: str
    stream: bytes
    expected: tuple[int, int, int, int, int]
    told: bool = True
    """Whether it says anything of a cache."""


CLAUDE = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "https://developers.openai.com/api/docs/guides/prompt-caching"
LLAMA = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
BODIES = [
    Body(
        "anthropic", "claude-opus-5-5", CLAUDE + "#tracking-cache-performance",
        messages(
            {"input_tokens": 21, "cache_creation_input_tokens": 188086,
             "cache_read_input_tokens": 0, "output_tokens": 1},
            {"output_tokens": 393},
        ),
        (188107, 0, 188086, 393, 0),
    ),
    Body(
        "anthropic", "claude-opus-5-5", CLAUDE + "#tracking-cache-performance",
        messages(
            {"input_tokens": 21, "cache_creation_input_tokens": 0,
             "cache_read_input_tokens": 188086, "output_tokens": 1},
            {"output_tokens": 393},
        ),
        (188107, 188086, 0, 393, 0),
    ),
    Body(
        "anthropic", "claude-opus-5-5", CLAUDE + "#1-hour-cache-duration",
        messages(
            {"input_tokens": 2048, "cache_read_input_tokens": 1800,
             "cache_creation_input_tokens": 248, "output_tokens": 503,
             "cache_creation": {"ephemeral_5m_input_tokens": 148,
                                "ephemeral_1h_input_tokens": 100}},
            {"input_tokens": 2048, "output_tokens": 503,
             "output_tokens_details": {"thinking_tokens": 300}},
        ),
        (4096, 1800, 248, 503, 300),
    ),
    Body(
        "openai", "gpt-5.6-terra", OPENAI,
        chat({"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
              "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 86},
              "completion_tokens_details": {"reasoning_tokens": 120,
                                            "accepted_prediction_tokens": 0,
                                            "rejected_prediction_tokens": 0}}),
        (2006, 1920, 86, 300, 120),
    ),
    Body(
        "openai-responses", "gpt-5.6-terra", OPENAI,
        responses({"input_tokens": 2006, "output_tokens": 300, "total_tokens": 2306,
                   "input_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 86},
                   "output_tokens_details": {"reasoning_tokens": 120}}),
        (2006, 1920, 86, 300, 120),
    ),
    Body(
        "gemini", "gemini-3.8-flash", "https://ai.google.dev/api/generate-content#UsageMetadata",
        gemini({"promptTokenCount": 4215, "cachedContentTokenCount": 4069,
                "candidatesTokenCount": 81, "thoughtsTokenCount": 412, "toolUsePromptTokenCount": 9,
                "totalTokenCount": 4717,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 4215}],
                "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 4069}]}),
        (4224, 4069, 0, 493, 412),
    ),
    Body(
        "gemini", "gemini-3.8-flash", "https://ai.google.dev/api/generate-content#UsageMetadata",
        gemini({"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}),
        (7, 0, 0, 2, 0), told=False,
    ),
    Body(
        "deepseek", "deepseek-flash", "https://api-docs.deepseek.com/guides/kv_cache",
        chat({"prompt_tokens": 1600, "completion_tokens": 90, "total_tokens": 1690,
              "prompt_cache_hit_tokens": 1536, "prompt_cache_miss_tokens": 64,
              "prompt_tokens_details": {"cached_tokens": 1536},
              "completion_tokens_details": {"reasoning_tokens": 40}}, on_stop=True),
        (1600, 1536, 0, 90, 40),
    ),
    Body(
        "moonshot", "kimi-k3", "https://platform.kimi.ai/docs/api/chat",
        chat({"prompt_tokens": 1900, "completion_tokens": 13, "total_tokens": 1913,
              "cached_tokens": 1792}),
        (1900, 1792, 0, 13, 0),
    ),
    Body(
        "moonshot", "kimi-k3", "https://platform.kimi.ai/docs/api/chat",
        chat(in_choice={"prompt_tokens": 19, "completion_tokens": 13, "total_tokens": 32}),
        (19, 0, 0, 13, 0), told=False,
    ),
    Body(
        "xai", "grok-4.7",
        "https://docs.x.ai/developers/advanced-api-usage/prompt-caching/usage-and-pricing",
        chat({"prompt_tokens": 125, "completion_tokens": 48, "total_tokens": 173,
              "prompt_tokens_details": {"text_tokens": 125, "audio_tokens": 0, "image_tokens": 0,
                                        "cached_tokens": 98},
              "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
                                            "accepted_prediction_tokens": 0,
                                            "rejected_prediction_tokens": 0}}),
        (125, 98, 0, 48, 0),
    ),
    Body(
        "xai-responses", "grok-4.7",
        "https://docs.x.ai/developers/model-capabilities/text/comparison",
        responses({"input_tokens": 125, "output_tokens": 48, "total_tokens": 173,
                   "input_tokens_details": {"cached_tokens": 98},
                   "output_tokens_details": {"reasoning_tokens": 12}}),
        (125, 98, 0, 48, 12),
    ),
    Body(
        "qwen", "qwen3.8-max",
        "https://www.alibabacloud.com/help/en/model-studio/context-cache",
        chat({"prompt_tokens": 3019, "completion_tokens": 104, "total_tokens": 3123,
              "prompt_tokens_details": {"cached_tokens": 2048},
              "completion_tokens_details": {"reasoning_tokens": 60}}),
        (3019, 2048, 0, 104, 60),
    ),
    Body(
        "vllm", "qwen3", "https://docs.vllm.ai/en/latest/cli/serve.html (the flag is on)",
        chat({"prompt_tokens": 512, "total_tokens": 520, "completion_tokens": 8,
              "prompt_tokens_details": {"cached_tokens": 496}}),
        (512, 496, 0, 8, 0),
    ),
    Body(
        "vllm", "qwen3", "https://docs.vllm.ai/en/latest/cli/serve.html (the flag is off)",
        chat({"prompt_tokens": 512, "total_tokens": 520, "completion_tokens": 8,
              "prompt_tokens_details": None}),
        (512, 0, 0, 8, 0), told=False,
    ),
    Body(
        "llamacpp", "m", LLAMA,
        chat({"prompt_tokens": 237, "completion_tokens": 35, "total_tokens": 272},
             last={"tokens_cached": 271,
                   "timings": {"cache_n": 236, "prompt_n": 1, "prompt_ms": 30.958,
                               "prompt_per_token_ms": 30.958, "predicted_n": 35,
                               "predicted_ms": 661.064, "predicted_per_second": 52.94}}),
        (237, 236, 0, 35, 0),
    ),
    Body(
        "llamacpp", "m", LLAMA,
        chat(last={"timings": {"cache_n": 0, "prompt_n": 237, "predicted_n": 35}}),
        (237, 0, 0, 0, 0),
    ),
    Body(
        "mistral", "mistral-large-latest",
        "https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching",
        chat({"prompt_tokens": 1400, "completion_tokens": 20, "total_tokens": 1420,
              "prompt_tokens_details": {"cached_tokens": 1344}}, on_stop=True),
        (1400, 1344, 0, 20, 0),
    ),
    Body(
        "mistral", "mistral-large-latest",
        "https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching",
        chat({"prompt_tokens": 1400, "completion_tokens": 20, "total_tokens": 1420,
              "num_cached_tokens": 1344}, on_stop=True),
        (1400, 1344, 0, 20, 0),
    ),
    Body(
        "groq", "openai/gpt-oss-120b", "https://console.groq.com/docs/prompt-caching",
        chat({"queue_time": 0.02, "prompt_tokens": 4641, "prompt_time": 0.01,
              "completion_tokens": 1817, "completion_time": 5.2, "total_tokens": 6458,
              "prompt_tokens_details": {"cached_tokens": 4608},
              "completion_tokens_details": {"reasoning_tokens": 900}}),
        (4641, 4608, 0, 1817, 900),
    ),
    Body(
        "groq", "openai/gpt-oss-120b", "https://console.groq.com/docs/api-reference#chat-create",
        chat(last={"x_groq": {"id": "req_1",
                              "usage": {"prompt_tokens": 18, "completion_tokens": 3,
                                        "total_tokens": 21}}}),
        (18, 0, 0, 3, 0), told=False,
    ),
    Body(
        "openrouter", "anthropic/claude-opus-5.5",
        "https://openrouter.ai/docs/use-cases/usage-accounting",
        chat({"prompt_tokens": 10339, "completion_tokens": 60, "total_tokens": 10399,
              "cost": 0.0123, "cost_details": {"upstream_inference_cost": 0.0120},
              "prompt_tokens_details": {"cached_tokens": 10318, "cache_write_tokens": 0},
              "completion_tokens_details": {"reasoning_tokens": 12}}),
        (10339, 10318, 0, 60, 12),
    ),
    Body(
        "ollama", "qwen3", "https://docs.ollama.com/api/openai-compatibility",
        chat({"prompt_tokens": 26, "completion_tokens": 298, "total_tokens": 324}),
        (26, 0, 0, 298, 0), told=False,
    ),
]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body", BODIES, ids=[f"{n}-{body.family}" for n, body in enumerate(BODIES)]
)
async def test_usage_as_the_provider_sends_it(body: Body) -> None:
    profile = profile_for(body.family, body.model)
    with WireServer(profile.wire, [Raw(body.stream)]) as server:
        model = adapter(profile.wire, server.base_url, profile, model=body.model)
        try:
            seen = await collect(model.stream(request(model, [user("?")])))
        finally:
            await model.aclose()
    assert text_of(seen) == "Yes."
    usage: Usage = usage_of(seen)
    assert (
        usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens,
        usage.reasoning_tokens,
    ) == body.expected  # fmt: skip
    assert tells_cached(usage.raw, profile) is body.told
    assert "https://" in body.source
    if body.family == "openrouter":
        assert str(usage.cost) == "0.0123"


def test_every_family_has_a_body() -> None:
    assert {body.family for body in BODIES} == set(families()) - {"compatible"}


# --- what the cache costs, and how much there is room for ---


@pytest.mark.parametrize(
    ("family", "model", "read", "write"),
    [
        ("anthropic", "claude-opus-5-5", 0.05, 1.25),  # its own price
        ("anthropic", "claude-opus-4-8", 0.1, 1.25),  # the family's
        ("anthropic", "claude-of-tomorrow", 0.1, 1.25),
        ("openai", "gpt-5.6-terra", 0.1, 1.25),
        ("openai-responses", "gpt-5.4", 0.1, 1.0),
        ("openai", "gpt-4o-2024-08-06", 0.5, 1.0),
        ("gemini", "gemini-3.8-flash", 0.1, 1.0),
        ("deepseek", "deepseek-flash", 0.02, 1.0),
        ("mistral", "mistral-large-latest", 0.1, 1.0),
        ("groq", "openai/gpt-oss-120b", 0.5, 1.0),
        ("llamacpp", "m", 0.0, 1.0),
    ],
)
def test_cache_prices(family: str, model: str, read: float, write: float) -> None:
    found = cache_prices(profile_for(family, model))
    assert found.known
    assert (found.read_ratio, found.write_ratio) == pytest.approx((read, write))


def test_where_nothing_is_known_of_the_cache_nothing_is_saved() -> None:
    found = cache_prices(profile_for("compatible", "m"))
    assert (found.read_ratio, found.write_ratio, found.known) == (1.0, 1.0, False)


def test_cache_prices_have_a_date_and_a_source_and_are_sane() -> None:
    for family in families():
        for model in ("", *known_models(family)):
            found = cache_prices(profile_for(family, model))
            assert 0 <= found.read_ratio <= 1 <= found.write_ratio <= 2
            if found.known and family not in ("vllm", "ollama", "llamacpp"):
                assert found.as_of and found.source.startswith("https://"), (family, model)


def test_every_model_that_is_named_has_a_window_with_a_source() -> None:
    for family in families():
        for model in known_models(family):
            profile = profile_for(family, model)
            assert profile.context_window and profile.context_window >= 100_000, (family, model)
            assert "https://" in profile.sources["windows"], family
            assert (profile.max_output_tokens or 0) < profile.context_window
