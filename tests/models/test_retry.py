"""Requests are asked again where that may help, and never longer than allowed."""

from __future__ import annotations

import anyio
import pytest

from lorimer.core.errors import (
    AuthenticationFailed,
    ModelError,
    ProviderFailed,
    ProviderUnreachable,
    RateLimited,
    StreamCut,
)
from lorimer.models.protocol import Discarded, ModelEvent, Stop, TextDelta
from lorimer.models.retry import Retry, stream_with_retry
from lorimer.testing import ManualClock, ScriptedModel, reply
from wire.answers import Cut, Fail, Say
from wire.kit import adapter, collect, drain, request, stop_of, text_of, user
from wire.server import WireServer

pytestmark = pytest.mark.anyio
FAST = {"wait_initial_s": 0.001, "wait_max_s": 0.002}


def scripted(*items: object) -> tuple[ScriptedModel, object]:
    model = ScriptedModel(items)  # type: ignore[arg-type]
    return model, request(model, [user("?")], tools=())


@pytest.mark.parametrize(
    "fault",
    [
        ProviderUnreachable("x"),
        ProviderFailed("x"),
        RateLimited("x", retry_after_s=0.001),
        StreamCut("x"),
    ],
    ids=lambda f: type(f).__name__,
)
async def test_a_passing_fault_is_asked_again(fault: ModelError) -> None:
    model, asked = scripted(fault, fault, "fine")
    told: list[Retry] = []
    events = await collect(stream_with_retry(model, asked, on_retry=told.append, **FAST))  # type: ignore[arg-type]
    assert text_of(events) == "fine"
    assert [(r.attempt, r.of, r.error) for r in told] == [(1, 3, fault), (2, 3, fault)]
    assert len(model.requests) == 3
    assert not any(isinstance(e, Discarded) for e in events)  # Nothing had been shown.


async def test_a_fault_that_stays_is_raised_and_says_how_often_was_tried() -> None:
    model, asked = scripted(*[ProviderFailed("down") for _ in range(9)])
    with pytest.raises(ProviderFailed, match="Tried 3 times"):
        await collect(stream_with_retry(model, asked, **FAST))  # type: ignore[arg-type]
    assert len(model.requests) == 3


async def test_a_fault_that_cannot_pass_is_raised_at_once() -> None:
    model, asked = scripted(AuthenticationFailed("no"), "never")
    with pytest.raises(AuthenticationFailed):
        await collect(stream_with_retry(model, asked, **FAST))  # type: ignore[arg-type]
    assert len(model.requests) == 1


async def test_a_cut_answer_is_discarded_and_asked_again() -> None:
    model, asked = scripted(reply("half an ans", cut_after=1), "whole")
    events = await collect(stream_with_retry(model, asked, **FAST))  # type: ignore[arg-type]
    at = next(i for i, e in enumerate(events) if isinstance(e, Discarded))
    assert events[at] == Discarded(events[at].reason, 1, 3)  # type: ignore[union-attr]
    assert text_of(events[:at]) == "half an ans"
    assert text_of(events[at:]) == "whole"
    assert sum(isinstance(e, Stop) for e in events) == 1


async def test_the_last_cut_is_raised_without_a_discard() -> None:
    model, asked = scripted(reply("a", cut_after=1), reply("b", cut_after=1))
    events: list[ModelEvent] = []
    with pytest.raises(StreamCut):
        await drain(stream_with_retry(model, asked, attempts=2, **FAST), events)  # type: ignore[arg-type]
    assert [type(e).__name__ for e in events] == ["TextDelta", "Discarded", "TextDelta"]


async def test_a_pause_longer_than_the_deadline_is_said_and_not_made() -> None:
    model, asked = scripted(RateLimited("slow down", retry_after_s=3600), "never")
    with pytest.raises(RateLimited, match=r"asks to wait 3600 s.*deadline of 600 s"):
        await collect(stream_with_retry(model, asked, **FAST))  # type: ignore[arg-type]
    assert len(model.requests) == 1


async def test_no_attempt_begins_after_the_deadline() -> None:
    clock = ManualClock()

    def slow(_: object) -> Exception:
        clock.advance(400)
        return ProviderFailed("slow")

    model, asked = scripted(slow, slow, "never")
    with pytest.raises(ProviderFailed, match="0 s are left"):
        await collect(stream_with_retry(model, asked, deadline_s=600, clock=clock, **FAST))  # type: ignore[arg-type]
    assert len(model.requests) == 2


async def test_pauses_grow() -> None:
    model, asked = scripted(*[ProviderFailed("x") for _ in range(5)], "ok")
    told: list[Retry] = []
    await collect(
        stream_with_retry(
            model, asked, attempts=6, on_retry=told.append, wait_initial_s=0.001, wait_max_s=0.004
        )
    )  # type: ignore[arg-type]
    assert [r.wait_s for r in told] == [0.001, 0.002, 0.004, 0.004, 0.004]


async def test_retry_after_is_waited_for() -> None:
    model, asked = scripted(RateLimited("x", retry_after_s=0.05), "ok")
    start = anyio.current_time()
    await collect(stream_with_retry(model, asked, **FAST))  # type: ignore[arg-type]
    assert anyio.current_time() - start >= 0.05


async def test_cancelling_ends_the_pause_and_sends_nothing_more() -> None:
    model, asked = scripted(RateLimited("x", retry_after_s=60), "never")
    paused = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await collect(stream_with_retry(model, asked, on_retry=lambda _: paused.set()))  # type: ignore[arg-type]

        tasks.start_soon(run)
        await paused.wait()
        tasks.cancel_scope.cancel()
    assert len(model.requests) == 1


async def test_closing_early_closes_the_model_stream() -> None:
    closed = []

    class Endless(ScriptedModel):
        async def stream(self, request):  # type: ignore[no-untyped-def,override]
            try:
                while True:
                    yield TextDelta("x")
            finally:
                closed.append(True)

    model = Endless([])
    stream = stream_with_retry(model, request(model, [user("?")], tools=()))
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert closed == [True]


async def test_over_real_sockets() -> None:
    say = Say("Hello", piece=1)
    script = [Fail(503), Cut(say, 700), Fail(429, headers={"retry-after-ms": "1"}), say]
    with WireServer("anthropic", script) as server:
        model = adapter("anthropic", server.base_url)
        asked = request(model, [user("?")])
        events = await collect(stream_with_retry(model, asked, attempts=4, **FAST))  # type: ignore[arg-type]
        await model.aclose()
    last = max(i for i, e in enumerate(events) if isinstance(e, Discarded))
    assert text_of(events[last:]) == "Hello"
    assert stop_of(events).raw == "end_turn"
    assert len({r.body for r in server.received}) == 1  # The same bytes each time.
