"""What a small model may write next: which tools, whether it may speak, whether in a list.

Small models call well and choose badly: they announce what they would do, guess what a file holds,
answer from an error, or go on calling after they have the answer. So the choice is narrowed by what
can be known without understanding the question. The rules, first match wins, for the messages since
the user last spoke:

1. `tool_choice` of the request is obeyed.
2. Models of 3 billion parameters and more: everything is offered.
3. Two equal calls in a row: only "say".
4. The question names files, asks for no change, and one of the first three was not looked at yet:
   only `read_file`, of those files; three lines of a table.
5. The last call failed and fewer than three did: calls only.
6. The question names a table and `run_python` has not run well yet: only `run_python`.
7. Models under 1 billion whose last call went well on a question that names a file: only "say"
   (they never stop otherwise).
8. The question names a file and nothing was called yet: calls only.
9. Everything is offered. Lists of calls only to models of 1 billion and more, and only when the
   question seems to ask for several things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lorimer.core.messages import Entry, Kind, ResultPart, TextPart
from lorimer.core.specs import ToolSpec

TINY = 1_000_000_000
SMALL = 3_000_000_000
LOOK_LINES = 3
MAX_LOOKS = 3
MAX_FAILURES = 3
READER, COMPUTER = "read_file", "run_python"

_FILE = re.compile(
    r"(?<![\w@:/.-])(?:~?[\w.-]*/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b(?![\w(/])"
)
_QUOTES = "\"'`\u201e\u201c\u201d\u201a\u2018\u2019\u00ab\u00bb"
_QUOTED = re.compile(rf"[{_QUOTES}]([^{_QUOTES}\n]{{1,200}}\.\w{{1,8}})[{_QUOTES}]")
_FAILING = re.compile(r"^\[exit code (?!0\])", re.M)
_NOT_FILES = re.compile(r"^(?:e\.g|i\.e|etc|vs|www\..*|.*\.(?:com|org|net|io|eu|de|uk))$", re.I)
_TABLES = (".csv", ".tsv")
_CHANGES = re.compile(
    r"\b(?:write|create|make|save|append|add|edit|replace|change|rename|delete|remove|move|copy|fix)\b",
    re.I,
)
_SEVERAL = re.compile(r"\b(?:both|each|all of|as well as|and)\b|[,;]\s|\?.+\?", re.I)


@dataclass(frozen=True, slots=True)
class Offer:
    """What may be written next. `narrow` replaces a tool's argument schema for this one answer."""

    tools: tuple[ToolSpec, ...]
    say: bool = True
    several: bool = False
    rule: str = ""
    narrow: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Turn:
    question: str
    results: tuple[ResultPart, ...]
    written: tuple[tuple[str, str], ...]

    @property
    def failures(self) -> int:
        return sum(failed(result) for result in self.results)

    def went_well(self, name: str) -> bool:
        return any(r.name == name and not failed(r) for r in self.results)


def failed(result: ResultPart) -> bool:
    """An error, or nothing at all: a program that printed nothing has not answered. Nor has one
    that
    failed: `run_python` gives what it printed as a result, with the exit code at the end."""
    text = "".join(part.text for part in result.content if isinstance(part, TextPart))
    if result.name == COMPUTER and _FAILING.search(text):
        return True
    return result.is_error or not text.strip()


def files_named(question: str) -> tuple[str, ...]:
    """The file names in a question, in order, each once: words with a dot and a short ending; a
    name with spaces is one where it stands in quotes."""
    found = [(m.start(), m[1].strip()) for m in _QUOTED.finditer(question)]
    rest = _QUOTED.sub(lambda m: " " * len(m[0]), question)
    found += [(m.start(), m[0]) for m in _FILE.finditer(rest)]
    names = (name for _, name in sorted(found))
    return tuple(dict.fromkeys(name for name in names if not _NOT_FILES.match(name)))


def offer(
    entries: Sequence[Entry],
    tools: Sequence[ToolSpec],
    parameters: int,
    tool_choice: str = "auto",
    parallel_calls: bool | None = None,
) -> Offer:
    """What a model with `parameters` weights may write after `entries`. Pure."""
    all_tools = tuple(tools)
    if not all_tools or tool_choice == "none":
        return Offer((), rule="no tools")
    turn = _turn(entries)
    several = (
        parameters >= TINY and parallel_calls is not False and bool(_SEVERAL.search(turn.question))
    )
    if tool_choice == "required":
        return Offer(all_tools, say=False, several=several, rule="required")
    if tool_choice != "auto":
        chosen = tuple(tool for tool in all_tools if tool.name == tool_choice)
        return Offer(chosen or all_tools, say=False, rule="one tool")
    everything = Offer(all_tools, several=several, rule="everything")
    if parameters >= SMALL:
        return everything
    return _small(turn, all_tools, parameters) or everything


def _small(turn: _Turn, tools: tuple[ToolSpec, ...], parameters: int) -> Offer | None:
    if len(turn.written) > 1 and turn.written[-1] == turn.written[-2]:
        return Offer((), rule="same call twice")
    by_name = {tool.name: tool for tool in tools}
    files = files_named(turn.question)
    changes = bool(_CHANGES.search(turn.question))
    read = sum(name == READER for name, _ in turn.written)
    looking = read == len(turn.written) and read < min(len(files), MAX_LOOKS)
    if looking and not changes and READER in by_name:
        narrow = {READER: _look(by_name[READER], files[read:])}
        return Offer((by_name[READER],), say=False, rule="look first", narrow=narrow)
    if turn.results and failed(turn.results[-1]) and turn.failures < MAX_FAILURES:
        return Offer(tools, say=False, rule="failed: again")
    table = any(name.lower().endswith(_TABLES) for name in files)
    computed = turn.went_well(COMPUTER) or turn.failures >= MAX_FAILURES
    if table and not changes and COMPUTER in by_name and not computed:
        return Offer((by_name[COMPUTER],), say=False, rule="compute")
    if parameters < TINY and files and turn.results and not failed(turn.results[-1]):
        return Offer((), rule="answer now")
    if files and not turn.results:
        return Offer(tools, say=False, rule="names a file")
    return None


def _look(reader: ToolSpec, files: Sequence[str]) -> dict[str, Any]:
    known = reader.input_schema.get("properties", {})
    properties: dict[str, Any] = {"path": {"enum": list(files)}}
    if "limit" in known and all(name.lower().endswith(_TABLES) for name in files):
        properties["limit"] = {"const": LOOK_LINES}
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}  # fmt: skip


def _turn(entries: Sequence[Entry]) -> _Turn:
    start = max((i for i, e in enumerate(entries) if e.kind is Kind.USER), default=0)
    turn = entries[start:]
    return _Turn(
        question=turn[0].text if turn else "",
        results=tuple(result for entry in turn for result in entry.results),
        written=tuple((call.name, call.raw) for entry in turn for call in entry.calls),
    )
