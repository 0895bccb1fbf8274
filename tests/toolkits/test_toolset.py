import json

import pytest

from lorimer.core.calls import Effects
from lorimer.core.errors import UsageFault
from lorimer.toolkits import default_tools, toolset
from lorimer.tools.tool import Idempotency


def test_names_choose_tools_in_order_and_once() -> None:
    chosen = toolset(["read_file", "grep_file", "read_file"])
    assert [tool.name for tool in chosen] == ["read_file", "grep_file"]


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(UsageFault, match="read_file"):
        toolset(["readfile"])
    with pytest.raises(UsageFault, match="write_file"):
        toolset(["zzz"])


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


@pytest.mark.parametrize("tool", default_tools(), ids=lambda tool: tool.name)
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
