"""llama.cpp's own server as a second, real peer of the chat wire."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.errors import AuthenticationFailed, ContextTooLong
from lorimer.core.messages import TextPart
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import Settings, StopReason
from lorimer.models.wire_model import WireModel
from wire.kit import (
    TIME,
    WEATHER,
    adapter,
    assistant,
    called,
    calls_of,
    collect,
    note,
    request,
    result,
    results,
    stop_of,
    text_of,
    usage_of,
    user,
)

pytestmark = [pytest.mark.anyio, pytest.mark.local_model]
LLAMA_KEY = "llama-test-key"


def _model_file() -> Path | None:
    """The file of smollm2-135m, if it is on this machine."""
    if named := os.environ.get("LORIMER_TEST_SMOLLM"):
        return Path(named) if Path(named).is_file() else None
    try:
        from lorimer.models.local.catalogue import MODELS, is_present, model_path
    except ImportError:
        return None
    model = MODELS["smollm2-135m"]
    return model_path(model) if is_present(model) else None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    file = _model_file()
    if file is None:
        pytest.skip("no smollm2-135m: `lorimer models pull smollm2-135m` or LORIMER_TEST_SMOLLM")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [LLAMA_KEY]
    params.n_ctx = 2048
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    params.ui = False
    params.verbosity = -1
    running = xllamacpp.Server(params)
    yield running.listening_address
    del running


def peer(server: str, **more: Any) -> WireModel:
    profile = replace(profile_for("llamacpp"), tool_choice=frozenset({"auto", "required", "none"}))
    more.setdefault("api_key", LLAMA_KEY)
    return adapter("openai_chat", f"{server.rstrip('/')}/v1", profile, **more)


def settings(**more: Any) -> Settings:
    return Settings(temperature=0.0, seed=1, **{"max_output_tokens": 24, **more})


async def test_an_answer_with_usage_and_cache(server: str) -> None:
    model = peer(server)
    asked = request(model, [user("Say hello.")], tools=(), settings=settings())
    for _ in range(2):
        events = await collect(model.stream(asked))
    await model.aclose()
    assert text_of(events)
    assert stop_of(events).reason in (StopReason.END, StopReason.LENGTH)
    used = usage_of(events)
    assert used.output_tokens > 0
    # The second request found all but the last token in the cache.
    assert 0 < used.cached_tokens <= used.input_tokens


async def test_a_bound_on_the_answer_ends_it_as_length(server: str) -> None:
    model = peer(server)
    asked = request(
        model, [user("Count to one hundred.")], tools=(), settings=settings(max_output_tokens=3)
    )
    events = await collect(model.stream(asked))
    await model.aclose()
    assert stop_of(events).reason is StopReason.LENGTH


async def test_tools_are_taken_and_so_are_a_call_and_its_result(server: str) -> None:
    """The model's template knows no tools, so the server offers none to it; the shape of the
    request is what is checked here: tools, a call with its id, a result under that id."""
    model = peer(server)
    entries = [user("What is the weather in Oslo?")]
    offered = request(model, entries, tools=(WEATHER, TIME), settings=settings(max_output_tokens=4))
    stop_of(await collect(model.stream(offered)))
    entries += [
        assistant(TextPart("I look."), called("c1", raw='{"city":"Zürich 😀"}')),
        results(result("c1", text="雨")),
    ]
    after = request(model, entries, tools=(WEATHER, TIME), settings=settings(max_output_tokens=4))
    assert stop_of(await collect(model.stream(after))).reason in (StopReason.END, StopReason.LENGTH)
    await model.aclose()


async def test_a_call_cut_by_length_is_not_complete(server: str) -> None:
    model = peer(server)
    forced = settings(tool_choice="required", max_output_tokens=4)
    asked = request(model, [user("Weather in Oslo?")], tools=(WEATHER,), settings=forced)
    events = await collect(model.stream(asked))
    await model.aclose()
    assert stop_of(events).reason is StopReason.LENGTH
    assert calls_of(events) == []


async def test_every_kind_of_entry_is_accepted(server: str) -> None:
    model = peer(server)
    entries = [
        user("a"),
        user(""),
        note("n"),
        assistant(),
        user("b"),
        assistant(called("c1", raw="not json"), called("c2", "get_time", "")),
        results(result("c1", error=True), result("c2", "get_time", "")),
        note("n"),
    ]
    asked = request(model, entries, tools=(WEATHER, TIME), settings=settings(max_output_tokens=2))
    stop_of(await collect(model.stream(asked)))
    await model.aclose()


async def test_a_wrong_key_is_refused(server: str) -> None:
    model = peer(server, api_key="wrong-key-123456")
    with pytest.raises(AuthenticationFailed, match="LLAMA_API_KEY"):
        await collect(model.stream(request(model, [user("?")], tools=())))
    await model.aclose()


async def test_a_prompt_that_does_not_fit_says_so(server: str) -> None:
    model = peer(server)
    with pytest.raises(ContextTooLong):
        await collect(model.stream(request(model, [user("word " * 6000)], tools=())))
    await model.aclose()


async def test_it_tells_its_window(server: str) -> None:
    model = peer(server)
    try:
        assert await model.served_window() == 2048
    finally:
        await model.aclose()
