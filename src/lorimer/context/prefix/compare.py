"""Two prefixes: which parts and tools differ, and how much of a cache is lost between them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.context.prefix.parts import Prompt
from lorimer.core.canonical import canonical_json


@dataclass(frozen=True, slots=True)
class Piece:
    """A part or a tool: `kind` is `part` or `tool`; `text` is how it is read and compared, `shown`
    how a person sees it."""

    kind: str
    name: str
    text: str
    shown: str

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one piece: `added`, `removed`, `changed` or `moved`. `diff` is a unified
    diff."""

    kind: str
    name: str
    what: str
    diff: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "what": self.what, "diff": self.diff}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two prefixes.

    Attributes:
        changes: in the order in which the provider reads; empty when they are the same.
        first: the name of the piece where the cache ends; empty when it does not.
        kept_bytes: of the first prefix, how much the second begins with.
        before_bytes, after_bytes: their sizes.
    """

    changes: tuple[Change, ...]
    first: str
    kept_bytes: int
    before_bytes: int
    after_bytes: int

    @property
    def same(self) -> bool:
        return not self.changes


def pieces_of(prompt: Prompt, tools: Sequence[Mapping[str, Any]], wire: str = "") -> list[Piece]:
    """A prefix in the order in which the provider of `wire` reads it: tools before the system text
    at Anthropic (https://platform.claude.com/docs/en/build-with-claude/prompt-caching), behind it
    elsewhere."""
    parts = []
    for place, part in enumerate(prompt.placed):
        last = place + 1 == len(prompt.placed)
        end = len(prompt.text) if last else prompt.placed[place + 1].start
        parts.append(Piece("part", part.name, prompt.text[part.start : end], prompt.rendered(part)))
    listed = []
    for tool in tools:
        shown = json.dumps(tool, indent=1, sort_keys=True, ensure_ascii=False)
        text = canonical_json(tool).decode()
        listed.append(Piece("tool", str(tool["name"]), text, shown))
    return [*listed, *parts] if wire == "anthropic" else [*parts, *listed]


def compare(before: Sequence[Piece], after: Sequence[Piece]) -> Comparison:
    """What became of `before`."""
    old = {(piece.kind, piece.name): piece for piece in before}
    new = {(piece.kind, piece.name): piece for piece in after}
    first, kept = _shared(before, after)
    common_before = [key for key in old if key in new]
    common_after = [key for key in new if key in old]
    moved = {
        key
        for tag, a0, a1, _, _ in difflib.SequenceMatcher(
            None, common_before, common_after, autojunk=False
        ).get_opcodes()
        if tag != "equal"
        for key in common_before[a0:a1]
    }
    changes = []
    for key in dict.fromkeys([*old, *new]):
        one, other = old.get(key), new.get(key)
        if one is None or other is None:
            what = "added" if one is None else "removed"
        elif one.shown != other.shown:
            what = "changed"
        elif key in moved:
            what = "moved"
        else:
            continue
        changes.append(Change(*key, what, _diff(one, other)))
    return Comparison(tuple(changes), first, kept, _size(before), _size(after))


def _shared(before: Sequence[Piece], after: Sequence[Piece]) -> tuple[str, int]:
    """The first piece that differs, and the bytes before the difference."""
    kept = 0
    for place, piece in enumerate(before):
        other = after[place] if place < len(after) else None
        if other is not None and (other.kind, other.text) == (piece.kind, piece.text):
            kept += piece.size
            continue
        if other is not None and other.kind == piece.kind:
            kept += _common(piece.text, other.text)
        return f"{piece.kind} {piece.name}", kept
    if len(after) > len(before):
        piece = after[len(before)]
        return f"{piece.kind} {piece.name}", kept
    return "", kept


def _common(one: str, other: str) -> int:
    """Bytes that both begin with."""
    count = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                 min(len(one), len(other)))  # fmt: skip
    return len(one[:count].encode("utf-8", "surrogatepass"))


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.size for piece in pieces)


def _diff(one: Piece | None, other: Piece | None) -> str:
    return "\n".join(
        difflib.unified_diff(
            [] if one is None else one.shown.splitlines(),
            [] if other is None else other.shown.splitlines(),
            "before" if one else "nothing", "now" if other else "nothing", lineterm="", n=2,
        )
    )  # fmt: skip
