"""G3. If an answer ended by length, was cut or broke, no call of it runs, whatever parses."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lorimer.context.validity import validate_body
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.errors import ModelError
from lorimer.core.messages import Entry
from lorimer.core.usage import Usage
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    Stop,
    StopReason,
    UsageReport,
)
from lorimer.runtime.agent import Agent
from lorimer.runtime.loop import Limits
from lorimer.store import open_store
from lorimer.testing import ScriptedModel, reply
from lorimer.tools.tool import Tool
from wire.answers import Cut, Raw, Say, SayCall
from wire.kit import WIRES, adapter
from wire.server import WireServer

pytestmark = pytest.mark.anyio

ARGUMENTS = '{"text":"a \\"b\\" ü \\u00e9 {}"}'
ONE_TRY = Limits(request_attempts=1)


class World:
    """A folder that a tool writes to: what is in it has happened."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "happened"

    @property
    def untouched(self) -> bool:
        return not self.file.exists()

    def tool(self) -> Tool:
        async def write_mark(text: str = "") -> str:
            """Write a mark."""
            self.file.write_text(text, "utf-8")
            return "written"

        return Tool.from_function(write_mark)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def agent(model: Any, world: World, limits: Limits | None = None) -> Agent:
    return Agent(
        model,
        [world.tool()],
        system="s",
        mode="trusted",
        store=open_store(":memory:"),
        limits=limits or ONE_TRY,
        workspace=world.file.parent,
    )


def told(entries: Any) -> list[str]:
    """Every error code that the model was told."""
    return [
        json.loads(r.content[0].text)["error"] for e in entries for r in e.results if r.is_error
    ]


# --- through the real adapters --------------------------------------------------------------------


def calls_of(count: int) -> tuple[SayCall, ...]:
    return tuple(SayCall(f"toolu_{n}", "write_mark", ARGUMENTS) for n in range(count))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("count", [1, 2])
async def test_an_answer_that_ended_by_length_runs_none_of_its_calls(
    wire: str, count: int, world: World
) -> None:
    cut_off = Say("I write.", calls_of(count), stop="length")
    with WireServer(wire, [cut_off, Say("It was cut.")]) as server:
        a = agent(adapter(wire, server.base_url), world)
        async with a.session() as session:
            result = await session.send("write")
            assert world.untouched
            assert result.answer == "It was cut."
            assert {c.code for c in result.calls} <= {"truncated"}
            assert all(c.outcome is Outcome.NOT_STARTED for c in result.calls)
            assert set(told(session.entries)) <= {"truncated"}
            if wire != "gemini":  # there, length comes without the half-written call
                assert told(session.entries), "the model was not told"
        await a.model.aclose()
        assert server.faults == []
        assert [validate_body(wire, r.body) for r in server.received] == [[], []]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("cleanly", [False, True], ids=["broken", "ended"])
async def test_a_stream_cut_at_any_byte_runs_nothing(
    wire: str, cleanly: bool, world: World
) -> None:
    """The whole answer is valid and runs; every proper beginning of it, up to the end mark, does
    not."""
    whole = Say("", (SayCall("toolu_1", "write_mark", ARGUMENTS),), piece=20)
    with WireServer(wire, [whole, Say("done")]) as server:
        a = agent(adapter(wire, server.base_url), world)
        await a.run("write")
        await a.model.aclose()
        assert not world.untouched, "the uncut answer must run, or this test shows nothing"
        stream = server.stream_of(whole, server.received[0])
    world.file.unlink()
    end = stream.index(END_MARKS[wire])
    first = stream.index(b"write_mark")
    cuts = sorted({*range(0, end, 97), *range(first, min(end, first + 150)), end - 1, end})
    with WireServer(wire) as server:
        a = agent(adapter(wire, server.base_url), world)
        for at in cuts:
            async with a.session() as session:
                server.script[:] = [Cut(Raw(stream), at, cleanly), Say("I see.")]
                with pytest.raises(ModelError):
                    await session.send("write")
                assert world.untouched, f"it ran after {at} bytes: {stream[:at][-80:]!r}"
                assert not any(e.calls for e in session.entries)
                if at % 10 == 0:
                    assert (await session.send("and now?")).answer == "I see."
        await a.model.aclose()
        assert server.faults == []


END_MARKS = {
    "openai_chat": b'"finish_reason": "tool_calls"',
    "openai_responses": b'"type": "response.completed"',
    "anthropic": b'"type": "message_stop"',
    "gemini": b'"finishReason":"STOP"',
}
"""Before these stand in the stream, an answer is not whole."""


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_answer_that_is_asked_for_again_runs_once(wire: str, world: World) -> None:
    runs: list[int] = []

    async def count(n: int) -> str:
        """Count."""
        runs.append(n)
        return "ok"

    whole = Say("", (SayCall("toolu_1", "count", '{"n":1}'),))
    with WireServer(wire) as server:
        model = adapter(wire, server.base_url)
        a = Agent(model, [count], store=open_store(":memory:"), mode="trusted",
                  workspace=world.file.parent)  # fmt: skip
        request = Cut(whole, 120)
        server.script[:] = [request, whole, Say("done")]
        assert (await a.run("count")).answer == "done"
        await model.aclose()
    assert runs == [1]


# --- through the model protocol: what an adapter of anyone may yield -------------------------------


class Playback:
    """A model that plays given events, then answers in words."""

    def __init__(self, *events: Any) -> None:
        self._scripted = ScriptedModel([])
        self.events: list[Any] = [*events]
        self.requests: list[Any] = []

    name = "playback"

    @property
    def profile(self) -> Any:
        return self._scripted.profile

    def render_prefix(self, *given: Any) -> bytes:
        return self._scripted.render_prefix(*given)

    def render_entry(self, entry: Entry, earlier: Any) -> bytes:
        return self._scripted.render_entry(entry, earlier)

    async def stream(self, request: Any) -> Any:
        self.requests.append(list(request.fragments))
        if len(self.requests) == 1:
            for event in self.events:
                yield event
            return
        scripted = ScriptedModel(["I see."])
        async for event in scripted.stream(request):
            yield event

    async def aclose(self) -> None:
        pass


def complete(index: int, raw: str = '{"text":"x"}', name: str = "write_mark") -> CallComplete:
    return CallComplete(index, ToolCall("", name, raw))


USED = UsageReport(Usage(requests=1))
STREAMS: dict[str, list[Any]] = {
    "no stop at all": [CallStarted(0, "write_mark"), complete(0), USED],
    "length": [CallStarted(0, "write_mark"), complete(0), USED, Stop(StopReason.LENGTH, "length")],
    "refusal": [CallStarted(0, "write_mark"), complete(0), USED, Stop(StopReason.REFUSAL, "safety")],
    "a reason nobody knows": [complete(0), USED, Stop(StopReason.OTHER, "new_reason")],
    "a call begun and not completed": [
        CallStarted(0, "write_mark"), CallDelta(0, '{"text":"x"}'), USED, Stop(StopReason.CALLS, "tool_calls"),
    ],
    "a whole call and one not completed": [
        complete(0), CallStarted(1, "write_mark"), CallDelta(1, "{}"), USED, Stop(StopReason.END, "stop"),
    ],
    "a call begun without a name": [complete(0), CallDelta(1, "{}"), USED, Stop(StopReason.CALLS, "tool_calls")],
    "nothing but the beginning": [CallStarted(0, "write_mark"), USED, Stop(StopReason.CALLS, "tool_calls")],
}  # fmt: skip


@pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS)
async def test_calls_of_an_answer_without_a_sound_end_never_run(
    events: list[Any], world: World
) -> None:
    model = Playback(*events)
    async with agent(model, world).session() as session:
        result = await session.send("write")
        assert world.untouched
        assert result.answer == "I see."
        codes = told(session.entries)
        assert codes and set(codes) == {"truncated"}, "the model was not told"
        body = b"[" + b",".join(model.requests[-1]) + b"]"
        assert validate_body("scripted", body) == []


@pytest.mark.parametrize("at", range(len(ARGUMENTS) + 1))
async def test_arguments_cut_at_any_character_never_run(at: int, world: World) -> None:
    """As a server does it that reports a cut answer as a sound one: what does not parse does not
    run, and what is said to be cut by length does not run even if it parses."""
    cut = reply("", {"name": "write_mark", "arguments": ARGUMENTS[:at]}, stop=StopReason.LENGTH)
    async with agent(ScriptedModel([cut, "I see."]), world).session() as session:
        assert (await session.send("write")).answer == "I see."
        assert world.untouched
        assert told(session.entries) == ["truncated"]
    if 0 < at < len(ARGUMENTS):
        sound = reply("", {"name": "write_mark", "arguments": ARGUMENTS[:at]})
        async with agent(ScriptedModel([sound, "I see."]), world).session() as session:
            await session.send("write")
            assert world.untouched
            assert set(told(session.entries)) <= {"truncated", "not_json"}


@pytest.mark.parametrize("cut_after", range(8))
async def test_a_scripted_stream_that_breaks_runs_nothing(cut_after: int, world: World) -> None:
    item = reply("I write.", {"name": "write_mark", "arguments": ARGUMENTS}, cut_after=cut_after)
    model = ScriptedModel([item, "I see."], chunk=16)
    async with agent(model, world).session() as session:
        with pytest.raises(ModelError):
            await session.send("write")
        assert world.untouched
        assert (await session.send("and now?")).answer == "I see."


async def test_three_cut_answers_end_the_run_and_say_so(world: World) -> None:
    cut = reply("", {"name": "write_mark", "arguments": "{}"}, stop=StopReason.LENGTH)
    async with agent(ScriptedModel([cut, cut, cut]), world).session() as session:
        result = await session.send("write")
        assert result.stop == "length"
        assert world.untouched
