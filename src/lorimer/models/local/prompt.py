"""What a small local model is told. Every word here is read at 20 to 100 tokens a second.

The texts and the worked examples were chosen by trying them on questions about small files with the
0.5B and 1.5B models; `docs/benchmarks.md` has the success rates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lorimer.core.specs import ToolSpec

_ROLE = "You answer questions and do small jobs by calling tools."
_FILES = (
    "You answer questions about files in the current folder. Look at the file, compute with "
    "run_python, then answer in one short sentence with the value that was printed."
)
_EXAMPLE_CODE = """\
import csv
rows = list(csv.DictReader(open('sales.csv')))
totals = {}
for r in rows:
    totals[r['city']] = totals.get(r['city'], 0) + float(r['price']) * int(r['units'])
print(max(totals.items(), key=lambda item: item[1]))"""
_EXAMPLE = f"""
Example. sales.csv has the columns city,price,units
Which city has the largest total?
{json.dumps({"name": "run_python", "arguments": {"code": _EXAMPLE_CODE}})}
It prints ('Oslo', 512.5).
{{"say": "Oslo has the largest total, 512.5."}}
Last lines for other questions:
how many rows: print(len(rows))
how many in Oslo: print(len([r for r in rows if r['city'] == 'Oslo']))
how many cities: print(len(set(r['city'] for r in rows)))
total value of all rows: print(sum(float(r['price']) * int(r['units']) for r in rows))
average units: print(sum(int(r['units']) for r in rows) / len(rows))
city with most rows: print(max(set(r['city'] for r in rows), key=[r['city'] for r in rows].count))
rows under 5 units: print([r['city'] for r in rows if int(r['units']) < 5])"""

FORM_WITH_TOOLS = (
    'Always write one JSON object: a call {"name": <tool>, "arguments": {…}}, '
    'or the answer {"say": "…"}.'
)
FORM_WITHOUT_TOOLS = 'Always write one JSON object: {"say": "…"}.'


def default_system(tools: Sequence[ToolSpec]) -> str:
    """The system text for these tools: with the worked example where `run_python` is among them."""
    if any(tool.name == "run_python" for tool in tools):
        return _FILES + "\n" + _EXAMPLE
    return _ROLE


def tool_line(tool: ToolSpec, *, descriptions: bool = True) -> str:
    """One tool as one line of JSON: name, short description, and the types of its arguments.

    Optional arguments are not listed (the constraint still allows them): a small model that sees
    them fills them in.
    """
    line: dict[str, Any] = {"name": tool.name}
    if descriptions:
        line["description"] = short_description(tool.description)
    properties = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", ())
    shown = [name for name in properties if name in required] or list(properties)[:1]
    line["arguments"] = {name: _short_schema(properties[name]) for name in shown}
    return json.dumps(line, ensure_ascii=False)


def tool_list(tools: Sequence[ToolSpec], *, descriptions: bool = True) -> str:
    """The tools, one a line; empty without tools."""
    return "\n".join(tool_line(tool, descriptions=descriptions) for tool in tools)


def system_message(system: str, tools: Sequence[ToolSpec]) -> str:
    """The whole first message: the system text, the tools, and the form to write in."""
    if not tools:
        return f"{system}\n\n{FORM_WITHOUT_TOOLS}"
    return f"{system}\n\nTools:\n{tool_list(tools)}\n\n{FORM_WITH_TOOLS}"


def short_description(description: str) -> str:
    """The first sentence of what a tool does, and its "use it when" line where it has one."""
    lines = [line.strip() for line in description.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    first = _first_sentence(re.sub(r"^(what it does|what)\s*:\s*", "", lines[0], flags=re.I))
    for line in lines[1:]:
        found = re.match(r"(?:use it when|use when|when to use|when)\s*:\s*(.*)", line, re.I)
        if found and found[1]:
            return f"{first} Use when: {_first_sentence(found[1])}"
    return first


def _first_sentence(text: str) -> str:
    found = re.match(r".*?[.;](?=\s|$)", text)
    sentence = found[0] if found else text
    return sentence.rstrip(";").strip()[:160]


def _short_schema(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return list(schema["enum"])[:20]
    kind = schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return [_short_schema(schema["items"])]
    return "|".join(kind) if isinstance(kind, list) else kind
