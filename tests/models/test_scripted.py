"""The scripted model behaves like a model, and is cheap."""

from __future__ import annotations

import cProfile
import pstats

import anyio
import pytest

from lorimer.context.validity import validate_body
from lorimer.core.errors import ProviderFailed, StreamCut
from lorimer.core.messages import ReasoningPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import (
    CallDelta,
    ModelEvent,
    Prefix,
    ReasoningDone,
    Request,
    Settings,
    StopReason,
)
from lorimer.testing import ManualClock, ScriptedModel, ScriptExhausted, call, reply
from wire.kit import (
    answer_entry,
    assistant,
    called,
    calls_of,
    collect,
    drain,
    request,
    result,
    results,
    stop_of,
    text_of,
    usage_of,
    user,
)

pytestmark = pytest.mark.anyio


async def ask(model: ScriptedModel, *texts: str):  # type: ignore[no-untyped-def]
    return await collect(model.stream(request(model, [user(t) for t in texts or ("?",)], tools=())))


async def test_items_of_every_kind() -> None:
    async def later(asked: Request) -> str:
        return f"later {len(asked.entries)}"

    model = ScriptedModel(
        [
            "text",
            call("add", a=1),
            [call("add", a=1), {"name": "b", "arguments": "{oops", "id": "x9"}],
            reply("both", call("add"), reasoning="hm", usage=Usage(input_tokens=5, requests=1)),
            lambda asked: f"saw {asked.entries[-1].text}",
            later,
            ProviderFailed("down"),
            ProviderFailed,
        ]
    )
    assert text_of(await ask(model)) == "text"
    events = await ask(model)
    assert [(c.id, c.name, c.raw) for c in calls_of(events)] == [("", "add", '{"a":1}')]
    assert stop_of(events).reason is StopReason.CALLS
    assert [(c.id, c.raw) for c in calls_of(await ask(model))] == [("", '{"a":1}'), ("x9", "{oops")]
    events = await ask(model)
    assert isinstance(events[1], ReasoningDone) and events[1].part == ReasoningPart(
        "hm", "scripted"
    )
    assert usage_of(events).input_tokens == 5
    assert text_of(await ask(model, "you")) == "saw you"
    assert text_of(await ask(model, "a", "b")) == "later 2"
    with pytest.raises(ProviderFailed, match="down"):
        await ask(model)
    with pytest.raises(TypeError):
        await ask(model)
    assert model.left == 0 and len(model.requests) == 8


async def test_running_out_says_how_many_there_were_and_what_came() -> None:
    model = ScriptedModel(["one"])
    await ask(model)
    with pytest.raises(ScriptExhausted, match=r"has 1 item, and request 2 came.*'the question'"):
        await ask(model, "the question")
    entries = [user("?"), assistant(called("c")), results(result("c", text="42"))]
    with pytest.raises(ScriptExhausted, match=r"get_weather: 42"):
        await collect(model.stream(request(model, entries, tools=())))


async def test_chunks_split_text_and_arguments() -> None:
    model = ScriptedModel([reply("abcde", call("t", x="yz"))], chunk=2)
    events = await ask(model)
    assert text_of(events) == "abcde"
    assert [e.text for e in events if isinstance(e, CallDelta)] == ['{"', 'x"', ':"', "yz", '"}']


@pytest.mark.parametrize("after", range(6))
async def test_cut_after_breaks_wherever_it_says(after: int) -> None:
    model = ScriptedModel([reply("ab", call("t"), cut_after=after)], chunk=1)
    events: list[ModelEvent] = []
    with pytest.raises(StreamCut):
        await drain(model.stream(request(model, [user("?")], tools=())), events)
    assert len(events) == after


async def test_length_leaves_the_last_call_incomplete() -> None:
    model = ScriptedModel([reply("", call("a"), call("b"), stop=StopReason.LENGTH)])
    events = await ask(model)
    assert [c.name for c in calls_of(events)] == ["a"]
    assert stop_of(events).reason is StopReason.LENGTH


async def test_recorded_requests_do_not_grow_with_the_session() -> None:
    model = ScriptedModel(["a", "b"])
    entries = [user("1")]
    fragments = [b"1"]
    asked = Request(Prefix("", (), b"{}"), entries, fragments, Settings())
    await collect(model.stream(asked))
    entries.append(user("2"))
    fragments.append(b"2")
    await collect(model.stream(asked))
    assert [len(r.entries) for r in model.requests] == [1, 2]
    assert model.requests[0].entries[-1].text == "1"
    assert list(model.requests[0].fragments) == [b"1"]
    with pytest.raises(IndexError):
        model.requests[0].entries[1]


async def test_renderings_are_entries_that_can_be_checked() -> None:
    model = ScriptedModel([call("t", a=1)])
    entries = [user("?")]
    entries.append(answer_entry(await ask(model)))
    entries.append(results(result("own_0", "t")))
    fragments = [model.render_entry(e, entries[:i]) for i, e in enumerate(entries)]
    assert validate_body("scripted", b"[" + b",".join(fragments) + b"]") == []
    assert validate_body("scripted", b"[" + b",".join(fragments[:2]) + b"]") != []


def test_cost_of_a_request_does_not_grow_with_the_history() -> None:
    def function_calls(length: int) -> int:
        model = ScriptedModel(["x"] * 10)
        entries = [user("q")] * length
        asked = Request(Prefix("", (), b"{}"), entries, [b"f"] * length, Settings())
        profile = cProfile.Profile()

        async def run() -> None:
            await collect(model.stream(asked))
            profile.enable()
            for _ in range(5):
                await collect(model.stream(asked))
            profile.disable()

        anyio.run(run)
        return pstats.Stats(profile).total_calls  # type: ignore[attr-defined,no-any-return]

    short, long = function_calls(1), function_calls(10_000)
    assert short == long
    assert short / 5 < 60


def test_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock()
    start = clock.now()
    clock.advance(1.5)
    assert (clock.now() - start).total_seconds() == clock.monotonic() == 1.5
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)
