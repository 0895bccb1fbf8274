"""The lenient reader, on outputs that real small models wrote.

`tests/data/local-model-outputs.jsonl` holds 39 of the 155 labelled outputs that were produced
for this project. (One is left out on purpose: its label counts a call that was cut off inside the
tool's name.) Its questions come from the Berkeley Function Calling Leaderboard (Apache-2.0)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.core.calls import ToolCall
from lorimer.models.local.parse_text import parse_text

DATA = Path(__file__).parent.parent / "data" / "local-model-outputs.jsonl"
OUTPUTS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", OUTPUTS, ids=lambda row: f"{row['model']}-{row['bfcl_id']}")
def test_calls_of_a_labelled_output_are_found(row: dict[str, Any]) -> None:
    _, calls = parse_text(row["raw"])
    assert [{call.name: json.loads(call.raw)} for call in calls] == row["lenient_calls"]


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ('<tool_call>\n{"name": "f", "arguments": {"a":  1}}\n</tool_call>', "",
         [("f", '{"a":  1}')]),
        ('ok <tool_call>{"name":"f","arguments":{}}</tool_call><tool_call>{"name":"g",'
         '"arguments":{"x":[1, 2]}}', "ok", [("f", "{}"), ("g", '{"x":[1, 2]}')]),
        ('[{"name": "f", "parameters": {"a": "x"}}, {"name": "g", "arguments": {}}]', "",
         [("f", '{"a": "x"}'), ("g", "{}")]),
        ('{"type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}', "",
         [("f", '{"a": 1}')]),
        ("```python\nf(a=1, b='x')\n```", "", [("f", '{"a": 1, "b": "x"}')]),
        ("[f(a=1), g(b=None)]", "", [("f", '{"a": 1}'), ("g", '{"b": null}')]),
        ('I will call {"name": "f", "arguments": {"a": 1}} now.', "I will call  now.",
         [("f", '{"a": 1}')]),
        ('{"say": "hello"}', "hello", []),
        ("<think>f(a=1)</think>The answer is {4}.", "The answer is {4}.", []),
        ("print('hi')", "print('hi')", []),
        ('{"total": 5}', '{"total": 5}', []),
        ("f(a=b)", "f(a=b)", []),
    ],
)  # fmt: skip
def test_forms(text: str, said: str, calls: list[tuple[str, str]]) -> None:
    assert parse_text(text) == (said, [ToolCall("", name, raw) for name, raw in calls])


@given(st.text() | st.lists(st.sampled_from(
    ["<tool_call>", "</tool_call>", "```", "{", "}", "[", "]", '"name"', '"f"', ":", ",", "f(",
     ")", "a=1", '"arguments"', "\\", "<think>"])).map("".join))  # fmt: skip
def test_no_text_makes_it_fail(text: str) -> None:
    parse_text(text)
