"""The scripted model behaves like a model, and is cheap."""

from __future__ import annotations

import cProfile
import gc
import pstats
from typing import Any

import anyio
import pytest

from lorimer import testing
from lorimer.context.validity import validate_body
from lorimer.core.calls import ToolCall
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
from lorimer.testing import ManualClock, Reply, ScriptedModel, ScriptExhausted, call, reply
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
            gc.collect()
            gc.disable()  # what other tests left behind may not be collected, and counted, here
            try:
                profile.enable()
                for _ in range(5):
                    await collect(model.stream(asked))
                profile.disable()
            finally:
                gc.enable()

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


A1 = '{"a":1}'
TOOL_CALL = ToolCall("x1", "add", '{"a": 1 }')
FORMS: dict[str, tuple[Any, str, list[tuple[str, str, str]]]] = {
    "arguments": ({"name": "add", "arguments": {"a": 1}}, "", [("", "add", A1)]),
    "text": ({"name": "add", "arguments": "{oops"}, "", [("", "add", "{oops")]),
    "bytes": ({"name": "add", "arguments": b"{oops"}, "", [("", "add", "{oops")]),
    "args": ({"name": "add", "args": {"a": 1}}, "", [("", "add", A1)]),
    "input": ({"name": "add", "input": {"a": 1}}, "", [("", "add", A1)]),
    "parameters": ({"name": "add", "parameters": {"a": 1}}, "", [("", "add", A1)]),
    "no arguments": ({"name": "add"}, "", [("", "add", "{}")]),
    "tool": ({"tool": "add", "args": {"a": 1}}, "", [("", "add", A1)]),
    "tool_use": (
        {"type": "tool_use", "name": "add", "input": {"a": 1}, "id": "t"}, "", [("t", "add", A1)],
    ),
    "function": (
        {"type": "function", "function": {"name": "add", "arguments": "{ }"}, "id": "f"},
        "", [("f", "add", "{ }")],
    ),
    "reply dict": (
        {"text": "hi", "calls": [{"name": "add", "args": {"a": 1}}]}, "hi", [("", "add", A1)],
    ),
    "message": (
        {"role": "assistant", "content": None, "tool_calls": [
            {"type": "function", "function": {"name": "add", "arguments": A1}, "id": "f"}],
         "finish_reason": "tool_calls"},
        "", [("f", "add", A1)],
    ),
    "blocks": (
        {"content": [{"type": "text", "text": "hi"},
                     {"type": "tool_use", "name": "add", "input": {"a": 1}, "id": "t"}],
         "stop_reason": "tool_use"},
        "hi", [("t", "add", A1)],
    ),
    "ToolCall": (TOOL_CALL, "", [("x1", "add", '{"a": 1 }')]),
    "ToolCalls": ([TOOL_CALL, call("b")], "", [("x1", "add", '{"a": 1 }'), ("", "b", "{}")]),
    "Reply(ToolCall)": (Reply(calls=[TOOL_CALL]), "", [("x1", "add", '{"a": 1 }')]),
    "tuple": (("add", {"a": 1}), "", [("", "add", A1)]),
    "tuples": ([("add", {"a": 1}), ("b", {})], "", [("", "add", A1), ("", "b", "{}")]),
    "mixed": (["hi", call("add", a=1)], "hi", [("", "add", A1)]),
    "mapping": (call("add", {"a": 1}), "", [("", "add", A1)]),
    "raw": (call("add", "{oops"), "", [("", "add", "{oops")]),
    "reply(call)": (reply(call("add", a=1)), "", [("", "add", A1)]),
    "reply(tuple)": (reply(("add", {"a": 1})), "", [("", "add", A1)]),
    "reply(text, call)": (reply("hi", call("add", a=1)), "hi", [("", "add", A1)]),
    "reply(text, list)": (reply("hi", [call("add", a=1)]), "hi", [("", "add", A1)]),
    "reply(calls)": (reply(calls=[call("add", a=1)]), "", [("", "add", A1)]),
    "reply(text=, calls=)": (reply(text="hi", calls=call("b")), "hi", [("", "b", "{}")]),
    "nothing": ([], "", []),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("given_by", ["item", "function", "coroutine function"])
async def test_every_form_of_an_answer(form: str, given_by: str) -> None:
    item, text, calls = FORMS[form]

    async def later() -> Any:
        return item

    script = {"item": item, "function": lambda asked: item, "coroutine function": later}
    events = await ask(ScriptedModel([script[given_by]]))
    assert text_of(events) == text
    assert [(c.id, c.name, c.raw) for c in calls_of(events)] == calls
    assert stop_of(events).reason is (StopReason.CALLS if calls else StopReason.END)


@pytest.mark.parametrize(
    ("item", "error", "says"),
    [
        ({"name": "add", "argumnts": {"a": 1}}, ValueError, "unknown key 'argumnts'"),
        ({"name": "add", "args": {}, "input": {}}, ValueError, "'args', 'input' mean the same"),
        ({"arguments": {"a": 1}}, ValueError, "names no tool"),
        ({"type": "tool_use", "input": {}}, ValueError, "names no tool"),
        ({"name": None}, ValueError, "names no tool"),
        ({"name": 7}, TypeError, "the name is of type int"),
        ({"name": "add", "id": 7}, TypeError, "the id is of type int"),
        ({"name": "add", "arguments": {"a": object()}}, TypeError, "no JSON"),
        ({"name": "add", "arguments": float("nan")}, ValueError, "no JSON"),
        ({"name": "add", "arguments": b"\xff"}, ValueError, "no JSON"),
        ({"name": "add", "type": "tool"}, ValueError, "the type 'tool'"),
        ({"function": "add"}, TypeError, "'function' is of type str"),
        ({"function": {"name": "add", "args": {}}}, ValueError, "unknown key 'args'"),
        ({"name": "add", "calls": []}, ValueError, "has 'calls' too"),
        ({"a": 1}, ValueError, "unknown key 'a'"),
        ({}, ValueError, "empty"),
        ({"text": "hi", "stop": "lenght"}, ValueError, "'lenght'.*'max_tokens'.*'content_filter'"),
        (reply("hi", stop="cut"), ValueError, "'cut' is no reason to stop"),
        ({"text": "hi", "calls": [{"a": 1}]}, ValueError, "unknown key 'a'"),
        ({"text": "hi", "calls": "add"}, TypeError, "not a list of calls"),
        ({"text": 3}, TypeError, "the text is of type int"),
        ({"role": "user", "content": "hi"}, ValueError, "'user'"),
        ([call("add"), "hi"], ValueError, "part 1 is text after a call"),
        (["a", "b"], ValueError, "second text"),
        (["a", 7], TypeError, "part 1 is of type int"),
        ([{"a": 1}], ValueError, "names no tool"),
        (("a", "b"), ValueError, "a tuple is a call"),
        (("hi", call("add")), ValueError, "write a list"),
        (Reply(calls=[7]), TypeError, "call 0 is of type int"),  # type: ignore[list-item]
        (Reply(cut_after=-1), ValueError, "cut_after"),
        (ToolCall("", "add", {}), TypeError, "are text"),  # type: ignore[arg-type]
        (None, TypeError, "None is no form"),
        (7, TypeError, "of type int"),
        (b"hi", TypeError, "of type bytes"),
        (dict, TypeError, "no exception"),
        (lambda a, b: "hi", TypeError, "one parameter"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(
    item: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=f"(?s)^Item 1 of the script .*{says}.*A script item is one of"):
        ScriptedModel(["fine", item])
    model = ScriptedModel("fine")
    with pytest.raises(error, match="Item 1 of the script"):
        model.add(item)
    assert model.left == 1


async def test_a_function_that_gives_nonsense_is_named() -> None:
    model = ScriptedModel("x", lambda: {"a": 1})
    await ask(model)
    with pytest.raises(ValueError, match=r"What item 1 of the script gave.*unknown key 'a'"):
        await ask(model)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", StopReason.END),
        ("end_turn", StopReason.END),
        ("tool_calls", StopReason.CALLS),
        ("tool_use", StopReason.CALLS),
        ("max_tokens", StopReason.LENGTH),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSAL),
        ("refusal", StopReason.REFUSAL),
        *((reason, reason) for reason in StopReason),
    ],
)
async def test_stop_words(word: str, reason: StopReason) -> None:
    one = {"name": "a", "arguments": "{"}
    model = ScriptedModel(
        reply("hi", stop=word),
        {"text": "hi", "stop_reason": word},
        {"content": "hi", "finish_reason": word},
        {**one, "stop": word},
    )
    for _ in range(4):
        events = await ask(model)
        assert stop_of(events).reason is reason and stop_of(events).raw == word
    assert bool(calls_of(events)) is (reason is not StopReason.LENGTH)


async def test_ways_to_give_the_script() -> None:
    assert ScriptedModel().left == ScriptedModel([]).left == 0
    assert text_of(await ask(ScriptedModel("hi"))) == "hi"
    assert [c.name for c in calls_of(await ask(ScriptedModel({"name": "add"})))] == ["add"]
    for model in (ScriptedModel("a", "b"), ScriptedModel(["a", "b"]), ScriptedModel(iter("ab"))):
        assert model.left == 2 and text_of(await ask(model)) == "a"
    with pytest.raises(TypeError, match="Item 0"):
        ScriptedModel(7)  # type: ignore[arg-type]


async def test_functions_of_the_request_or_of_nothing() -> None:
    async def nothing() -> str:
        return "nothing"

    def may(asked: Request | None = None) -> str:
        return "asked" if asked else "not asked"

    def nested() -> Any:
        return lambda asked: ProviderFailed("down") if asked else "up"

    model = ScriptedModel(nothing, may, *(lambda n=n: str(n) for n in range(2)), nested)
    assert [text_of(await ask(model)) for _ in range(4)] == ["nothing", "asked", "0", "1"]
    with pytest.raises(ProviderFailed, match="down"):
        await ask(model)


async def test_exception_classes() -> None:
    model = ScriptedModel(TimeoutError, ProviderFailed)
    with pytest.raises(TimeoutError):
        await ask(model)
    with pytest.raises(TypeError, match=r"Item 1 .* write an instance: ProviderFailed"):
        await ask(model)


def test_helpers_refuse_what_they_would_have_to_guess() -> None:
    for wrong in (lambda: call("a", {}, b=1), lambda: call("a", 1), lambda: call("a", {}, {})):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="takes keywords, or one mapping"):
            wrong()
    with pytest.raises(TypeError, match="not 7"):
        call(7)  # type: ignore[arg-type]
    for wrong in (lambda: reply("a", "b"), lambda: reply(call("a"), "b")):  # type: ignore[assignment]
        with pytest.raises(TypeError, match="'b' is not"):
            wrong()


def test_the_script_is_read_once() -> None:
    arguments = {"a": 1}
    model = ScriptedModel([{"name": "add", "arguments": arguments}])
    arguments["a"] = 2
    assert calls_of(anyio.run(ask, model))[0].raw == A1


def test_everything_for_tests_is_exported() -> None:
    names = "StopReason ToolCall Reply reply call ScriptedModel ManualClock ScriptExhausted"
    assert set(names.split()) <= set(testing.__all__)
