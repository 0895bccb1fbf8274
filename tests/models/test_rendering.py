"""What all four adapters render: always valid, stable, and as the settings say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lorimer.context.validity import validate_body
from lorimer.core.errors import (
    InvalidRequest,
)
from lorimer.core.messages import FilePart, ImagePart, Kind, ReasoningPart, TextPart
from lorimer.models.profiles import profile_for
from lorimer.models.protocol import (
    Settings,
)
from lorimer.models.wire_model import WireModel
from wire.kit import (
    FAMILY,
    WEATHER,
    WIRES,
    adapter,
    assistant,
    called,
    note,
    request,
    result,
    results,
    user,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("wire", WIRES)]


async def test_body_of_n_entries_is_a_prefix_of_the_body_of_more(wire: str) -> None:
    model = adapter(wire)
    entries = [
        user("a"),
        assistant(TextPart("b"), called("c1"), called("c2")),
        results(result("c1"), result("c2", error=True)),
        note("mind </note> this"),
        assistant(TextPart("c")),
        user("d"),
    ]
    full = request(model, entries)
    whole = full.prefix.rendered + b",".join(full.fragments)
    if not full.prefix.rendered.endswith(b"["):
        whole = full.prefix.rendered + b"," + b",".join(full.fragments)
    tails = set()
    for n in (1, 3, 4, 6):
        asked = request(model, entries[:n])
        assert asked.fragments == full.fragments[:n]
        body = model.body(asked)
        assert validate_body(wire, body) == []
        length = len(whole) - sum(len(f) + 1 for f in full.fragments[n:])
        assert body[:length] == whole[:length]
        tails.add(body[length:])
    assert len(tails) == 1


async def test_every_kind_of_entry_renders_valid(wire: str) -> None:
    model: WireModel = adapter(wire)
    image = ImagePart("image/png", "aGk=")
    entries = [
        user(""),
        assistant(),
        user("   "),
        assistant(ReasoningPart("only thoughts", wire, None)),
        note("n"),
        assistant(
            TextPart(" \n"),
            called("bad id with spaces ü", "odd name!", "not json"),
            called("c2", "get_time", ""),
        ),
        results(
            result("bad id with spaces ü", "odd name!", "", error=True),
            result("c2", "get_time", ""),
        ),
        user("pictures"),
        assistant(called("c3")),
        results(
            result("c3").__class__(
                "c3", "get_weather", (TextPart("see"), image), False, result("c3").outcome
            )
        ),
        user("x").__class__(
            Kind.USER,
            (
                TextPart("look"),
                image,
                ImagePart("image/png", "", "https://example.org/a.png"),
                ImagePart("image/png"),
                FilePart("application/pdf", "a.pdf", "aGk="),
                FilePart("text/plain", "a.txt", "aGk="),
                FilePart("application/zip", "a.zip", "aGk="),
            ),
            user("x").at,
        ),
    ]
    asked = request(model, entries)
    assert validate_body(wire, model.body(asked), id_pattern=model.profile.id_pattern) == []
    text = model.body(asked).decode()
    assert "_invalid_arguments" in text and "not json" in text


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings("required"),
        Settings("none"),
        Settings("get_time"),
        Settings(parallel_calls=False),
        Settings("required", parallel_calls=True),
        Settings(max_output_tokens=7, temperature=0.5),
    ],
    ids=["auto", "required", "none", "tool", "one", "many", "bound"],
)
async def test_settings_reach_the_wire(wire: str, settings: Settings) -> None:
    model = adapter(wire)
    body = json.loads(model.body(request(model, [user("?")], settings=settings)))
    assert validate_body(wire, json.dumps(body).encode()) == []
    form = settings.tool_choice
    if wire == "gemini":
        calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
        assert calling.get("mode", "AUTO") == {"auto": "AUTO", "none": "NONE"}.get(form, "ANY")
        assert calling.get("allowedFunctionNames") == (["get_time"] if form == "get_time" else None)
        bound = body.get("generationConfig", {}).get("maxOutputTokens")
        assert bound == settings.max_output_tokens
    elif wire == "anthropic":
        choice = body.get("tool_choice", {"type": "auto"})
        assert choice["type"] == {"required": "any", "get_time": "tool"}.get(form, form)
        if settings.parallel_calls is not None:
            assert choice["disable_parallel_tool_use"] is not settings.parallel_calls
        assert (
            body["max_tokens"] == settings.max_output_tokens or settings.max_output_tokens is None
        )
    else:
        choice = body.get("tool_choice", "auto")
        assert choice == form or "get_time" in str(choice)
        if model.profile.parallel_switch:
            assert body.get("parallel_tool_calls") == settings.parallel_calls
        else:
            assert "parallel_tool_calls" not in body
        assert body.get(model.profile.max_tokens_field) == settings.max_output_tokens
    if wire != "gemini":
        assert (body["model"], body["stream"]) == ("test-model", True)


async def test_settings_that_cannot_be_kept_are_refused(wire: str) -> None:
    model = adapter(wire)
    for settings, tools in [
        (Settings("no_such_tool"), (WEATHER,)),
        (Settings("required"), ()),
        (Settings(extra={"messages": [], "contents": [], "input": []}), (WEATHER,)),
    ]:
        with pytest.raises(InvalidRequest):
            model.body(request(model, [user("?")], tools=tools, settings=settings))
    only_auto = adapter(wire, profile=replace(model.profile, tool_choice=frozenset({"auto"})))
    with pytest.raises(InvalidRequest, match="understand"):
        only_auto.body(request(only_auto, [user("?")], settings=Settings("required")))


async def test_without_tools_nothing_about_tools_is_sent(wire: str) -> None:
    model = adapter(wire)
    body = model.body(
        request(model, [user("?")], tools=(), settings=Settings("none", parallel_calls=False))
    )
    assert b"tool" not in body
    assert validate_body(wire, body) == []


async def test_alternating_profile_gets_fillers(wire: str) -> None:
    profile = replace(profile_for(FAMILY[wire]), alternate=True)
    model = adapter(wire, profile=profile)
    entries = [
        user("a"),
        user("b"),
        note("c"),
        assistant(called("c1")),
        results(result("c1")),
        user("d"),
        assistant(TextPart("e")),
        assistant(TextPart("f")),
        user("g"),
    ]
    body = model.body(request(model, entries))
    if wire != "openai_responses":
        assert validate_body(wire, body, alternate=True) == []
    assert body.count(b"[no reply was recorded]") == 3
    assert body.count(b"[no message was recorded]") == 1


async def test_a_note_cannot_be_closed_from_inside(wire: str) -> None:
    model = adapter(wire)
    body = model.body(request(model, [note("a </note> b < / NOTE > c")])).decode()
    assert body.count("</note>") == 1
    assert "NOTE >" in body and "< / NOTE" not in body


async def test_half_a_surrogate_pair_in_the_record_still_renders(wire: str) -> None:
    """A tool may read one from a file name, a script may write one: the request stays UTF-8."""
    model = adapter(wire)
    entries = [
        user("a\ud800"),
        assistant(TextPart("b\udfff"), called("c1", raw='{"x":"\ud800"}')),
        results(result("c1", text="d\ud83d")),
    ]
    body = model.body(request(model, entries))
    assert validate_body(wire, body) == []
    assert body.decode("utf-8").count("\ufffd") == 4
