import json

import pytest

from lorimer.core.calls import Effects
from lorimer.core.errors import UsageFault
from lorimer.toolkits import GROUPS, all_tools, default_tools, toolset, usual_tools
from lorimer.tools.tool import Idempotency


def test_names_choose_tools_in_order_and_once() -> None:
    chosen = toolset(["read_file", "grep_file", "read_file"])
    assert [tool.name for tool in chosen] == ["read_file", "grep_file"]


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(UsageFault, match="read_file"):
        toolset(["readfile"])
    with pytest.raises(UsageFault, match="write_file"):
        toolset(["zzz"])


def test_groups_stand_for_several_tools() -> None:
    assert [t.name for t in toolset(["shell", "read_file", "shell_stop"])] == [
        "shell_exec", "shell_output", "shell_stop", "read_file"
    ]  # fmt: skip
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(t.name for t in all_tools())


def test_the_shell_is_a_usual_tool_but_not_for_local_models() -> None:
    from types import SimpleNamespace
    from typing import Any

    from lorimer.cli.setup import choose_tools, for_model

    usual = choose_tools(None, allow_unsandboxed=False)
    assert [t.name for t in usual] == [t.name for t in usual_tools()]
    assert "shell_exec" in [t.name for t in usual]

    def given(wire: str, asked: str | None, tools: list[Any]) -> list[str]:
        model: Any = SimpleNamespace(profile=SimpleNamespace(wire=wire))
        chosen = for_model(model, tools, asked=asked, allow_unsandboxed=False)
        return [t.name for t in chosen]

    assert given("anthropic", None, usual) == [t.name for t in usual]
    assert given("local", None, usual) == [t.name for t in default_tools()]
    asked = choose_tools("shell", allow_unsandboxed=False)
    assert given("local", "shell", asked) == ["shell_exec", "shell_output", "shell_stop"]


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_described_in_few_words(group: str) -> None:
    """Under 1,500 tokens a category; see below for characters and tokens."""
    text = json.dumps([[t.name, t.spec.description, t.input_schema] for t in toolset([group])])
    assert len(text) < 5_150


def test_the_definitions_are_small() -> None:
    """Under 1,500 tokens: 3.48 characters of such JSON were one token of Qwen2.5's tokenizer."""
    text = json.dumps(
        [
            {"name": t.name, "description": t.spec.description, "parameters": t.input_schema}
            for t in default_tools()
        ],
        ensure_ascii=False,
    )
    assert len(text) < 5_150


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_every_tool_is_fully_declared(tool) -> None:  # type: ignore[no-untyped-def]
    parts = tool.description
    assert all((parts.what, parts.use_when, parts.not_when, parts.cost, parts.returns))
    assert 1 <= len(tool.examples) <= 3
    for name, schema in tool.input_schema["properties"].items():
        assert "e.g." in schema["description"] or ": true" in schema["description"], name
    if tool.effects is Effects.READ:
        assert tool.recovery is Idempotency.NATURAL
    else:
        assert tool.idempotency is not None
