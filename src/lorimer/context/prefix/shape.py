"""The order of a prefix: of its parts, its tools, its keys; and what is said twice in it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lorimer.context.prefix.finding import Finding, Trouble
from lorimer.context.prefix.parts import ORDER, PromptPart

_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_FEWEST_WORDS = 6
_ALIKE = 0.85
_NEGATIONS = frozenset({"not", "never", "no", "don", "without", "avoid"})


def order_of_parts(parts: Sequence[PromptPart]) -> Iterator[Finding]:
    """A part that stands behind one which changes more often."""
    worst: PromptPart | None = None
    for part in parts:
        if worst is not None and ORDER[part.stability] < ORDER[worst.stability]:
            detail = f"{part.stability}, behind the {worst.stability} part {worst.name}"
            yield Finding(Trouble.STABILITY, part.name, 0, _start(part.text), detail)
        elif worst is None or ORDER[part.stability] > ORDER[worst.stability]:
            worst = part


def said_twice(parts: Sequence[PromptPart]) -> Iterator[Finding]:
    """Sentences that say the same in nearly the same words. Those with other numbers, or of which
    one says not to, say something else."""
    said = [
        _Said(frozenset(found), part.name, sentence, line)
        for part in parts
        for sentence, line in _sentences(part.text)
        if len(found := re.findall(r"\w+", sentence.casefold())) >= _FEWEST_WORDS
        and not sentence.startswith("|")
    ]
    often = Counter(word for one in said for word in one.words)
    by_word: dict[str, list[_Said]] = {}
    for one in said:
        # Two sets that are this much alike have one of their rarest words in common.
        rare = sorted(one.words, key=lambda word: (often[word], word))
        rare = rare[: len(rare) - math.ceil(_ALIKE * len(rare)) + 1]
        other = next((o for word in rare for o in by_word.get(word, ()) if _alike(one, o)), None)
        if other is None:
            for word in rare:
                by_word.setdefault(word, []).append(one)
        else:
            detail = f"as in {other.part}, line {other.line}: {other.sentence[:60]!r}"
            yield Finding(Trouble.DUPLICATE, one.part, one.line, one.sentence[:120], detail)


@dataclass(frozen=True, slots=True)
class _Said:
    words: frozenset[str]
    part: str
    sentence: str
    line: int

    @property
    def kind(self) -> tuple[bool, frozenset[str]]:
        return bool(self.words & _NEGATIONS), frozenset(w for w in self.words if w.isdigit())


def _alike(one: _Said, other: _Said) -> bool:
    both, either = len(one.words & other.words), len(one.words | other.words)
    return both >= _ALIKE * either and one.kind == other.kind


def order_of_tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Tools that are not sorted by name."""
    names = [tool_name(tool) for tool in tools]
    for before, name in pairwise(names):
        if name < before:
            detail = f"sorted they are: {', '.join(sorted(names))}"
            yield Finding(Trouble.UNSORTED_TOOLS, "tools", 0, f"{before}, {name}", detail)
            return


def order_of_keys(tools: Sequence[Mapping[str, Any]], written: str) -> Iterator[Finding]:
    """Records of one kind whose keys stand in different orders: nothing fixes that order.

    `written` is looked at when it is there: what has been read may have been sorted since.
    """
    records = tools
    if written:
        try:
            read = json.loads(written)
        except ValueError:
            return
        records = read if isinstance(read, list) else tools
    orders: dict[frozenset[str], tuple[str, list[str]]] = {}
    for tool in records:
        for record in _records(tool):
            keys = list(record)
            known = orders.setdefault(frozenset(keys), (tool_name(tool), keys))
            if known[1] != keys:
                detail = f"in {known[0]} they are {', '.join(known[1])}"
                name = f"tool {tool_name(tool)}"
                yield Finding(Trouble.KEY_ORDER, name, 0, ", ".join(keys), detail)
                return


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name in a tool's record, of any wire."""
    inner = tool.get("function")
    record = inner if isinstance(inner, Mapping) else tool
    return str(record.get("name") or record.get("type") or "?")


def _records(value: Any) -> Iterator[Mapping[str, Any]]:
    """`value` and its inner records, as far as they are schemas: not the lists of properties, whose
    order is their author's."""
    if not isinstance(value, Mapping):
        return
    yield value
    for key, inner in value.items():
        if key in ("function", "parameters", "input_schema", "inputSchema", "items"):
            yield from _records(inner)
        elif key == "properties" and isinstance(inner, Mapping):
            for one in inner.values():
                yield from _records(one)


def _sentences(text: str) -> Iterator[tuple[str, int]]:
    """The sentences of `text` outside code, each with its line."""
    text = _FENCED.sub(lambda m: re.sub(r"[^\n]+", "", m[0]), text)
    at = 0
    for gap in [*_SENTENCE.finditer(text), None]:
        end = len(text) if gap is None else gap.start()
        sentence = text[at:end].strip(" \t\n-*#>0123456789.")
        if sentence:
            yield sentence, text.count("\n", 0, at) + 1
        at = len(text) if gap is None else gap.end()


def _start(text: str) -> str:
    return text.strip().partition("\n")[0][:80]
