"""`lorimer tools lint`: is a tool described so that a model chooses and calls it well? (T-14)

The five labelled parts, examples and concrete values in parameter descriptions are what the
contract of a tool asks for; overlap between two tools is what makes models choose wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lorimer.core.calls import Effects
from lorimer.tools.guess import brings_outside_content
from lorimer.tools.tool import Tool

_LONG = 1600
_OVERLAP = 0.55
_CONCRETE = re.compile(r"e\.g\.|for example|[\"'`0-9]", re.I)
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "for",
        "from",
        "has",
        "in",
        "into",
        "is",
        "it",
        "its",
        "not",
        "of",
        "on",
        "one",
        "only",
        "or",
        "than",
        "that",
        "the",
        "this",
        "to",
        "use",
        "what",
        "when",
        "which",
        "with",
        "you",
        "your",
        "file",
        "files",
        "returns",
        "cost",
    ]
)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing to improve: the tool, the rule, and what to do."""

    tool: str
    rule: str
    message: str


def lint(tools: Sequence[Tool]) -> list[LintFinding]:
    """All findings, tool by tool, then overlaps."""
    found: list[LintFinding] = []
    for one in tools:
        found += (LintFinding(one.name, rule, text) for rule, text in _alone(one))
    for first, second in combinations(tools, 2):
        share = _overlap(first, second)
        if share >= _OVERLAP:
            found.append(
                LintFinding(
                    f"{first.name}, {second.name}",
                    "overlap",
                    f"their descriptions share {share:.0%} of their words: say in each when to use "
                    "the other",
                )
            )
    return found


def _alone(tool: Tool) -> Iterable[tuple[str, str]]:
    parts = tool.description
    if not parts.use_when:
        yield "use-when", "does not say when to use it"
    if not parts.not_when:
        yield "not-when", "does not say when not to use it, or what it cannot do"
    if not parts.cost:
        yield "cost", "does not say what a call costs (time, money, output)"
    if not parts.returns:
        yield "returns", "does not say what it returns"
    if not tool.examples:
        yield "examples", "has no example call (1–5 are wanted)"
    elif len(tool.examples) > 5:
        yield "examples", f"has {len(tool.examples)} example calls (1–5 are wanted)"
    if len(tool.spec.description) > _LONG:
        yield "long", f"its description has {len(tool.spec.description)} characters (over {_LONG})"
    if tool.effects is not Effects.READ and tool.timeout_s is None:
        yield "timeout", "changes something and has no time-out"
    yield from _undeclared(tool)
    for name, schema in _properties(tool.input_schema):
        text = schema.get("description", "") if isinstance(schema, dict) else ""
        if not text:
            yield "parameter", f"parameter {name} has no description"
        elif not (_CONCRETE.search(text) or "enum" in schema or schema.get("type") == "boolean"):
            yield "parameter", f"the description of parameter {name} shows no concrete value"


def _undeclared(tool: Tool) -> Iterable[tuple[str, str]]:
    """What decisions about its calls rest on, and was only guessed."""
    sinks, paths = (tool.guessed.get(option, ()) for option in ("sinks", "path_arguments"))
    if sinks:
        yield (
            "sinks",
            f"{_and(sinks)} seem to decide where something goes (guessed by name): declare "
            f"sinks={list(sinks)!r}, or sinks=[] when nothing goes anywhere",
        )
    if paths:
        yield (
            "paths",
            f"{_and(paths)} seem to be paths (guessed by name): declare "
            f"path_arguments={list(paths)!r}, or path_arguments=[] when they are none",
        )
    reads = tool.effects is Effects.READ
    if "trust" in tool.guessed and brings_outside_content(tool.name, reads):
        yield (
            "trust",
            'seems to return what strangers wrote: declare trust="external", so that it is '
            'marked and nothing in it is obeyed, or trust="user_data" when it is the user\'s own',
        )


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _properties(schema: Any) -> Iterable[tuple[str, Any]]:
    found = schema.get("properties", {})
    return found.items() if isinstance(found, dict) else ()


def _words(tool: Tool) -> set[str]:
    return {
        w for w in _WORD.findall(tool.description.what.lower()) if w not in _COMMON and len(w) > 2
    }


def _overlap(first: Tool, second: Tool) -> float:
    one, other = _words(first), _words(second)
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller >= 3 else 0.0
