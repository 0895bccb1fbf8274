"""The view in units that may be replaced whole, and those that may not.

A unit is a turn of calls with all its results, or a thinking loop: a run of such turns whose
reasoning has to go back to the provider, with the answer that ends it. Nothing is ever cut inside
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lorimer.core.calls import Outcome
from lorimer.core.messages import Entry, ImagePart, Kind, ReasoningPart

KEPT_TOOLS: Final = frozenset({"skill", "load_tools", "discover_tools"})
"""Tools whose results are loaded instructions or schemas: they stay as they are."""
OPEN_LOOP: Final = "its reasoning is still needed"
UNSEEN: Final = "the model has not seen it"
_BETWEEN = frozenset({Kind.STATUS})


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer with calls and the entry with their results; places in the view."""

    calls: int
    results: int


@dataclass(frozen=True, slots=True)
class Unit:
    """Places `first` to `last` (inclusive) of the view.

    Attributes:
        turns: what it is made of; empty for a compaction that stands there already.
        answer: the place of the answer that ends a thinking loop, else -1.
        why_kept: why it may not be replaced; empty when it may.
    """

    first: int
    last: int
    turns: tuple[Turn, ...]
    answer: int = -1
    why_kept: str = ""


def units_of(
    view: Sequence[Entry], *, reasoning_goes_back: bool, kept_tools: frozenset[str] = KEPT_TOOLS
) -> list[Unit]:
    """The units of `view` in order; what is in none of them (messages, notes, answers, events) is
    never replaced.

    Args:
        reasoning_goes_back: the provider wants reasoning back (`Profile.reasoning` is not `drop`).
    """
    out: list[Unit] = []
    newest = max((n for n, one in enumerate(view) if one.kind is Kind.ASSISTANT), default=-1)
    at = 0
    while at < len(view):
        entry = view[at]
        if entry.kind is Kind.COMPACTION:
            out.append(Unit(at, at, ()))
            at += 1
            continue
        turns, answer, after = _run(view, at)
        if not turns:
            at = max(after, at + 1)
            continue
        is_open = answer < 0 and turns[-1].calls == newest
        if reasoning_goes_back and any(_thinks(view[t.calls]) for t in turns):
            last = turns[-1].results if answer < 0 else answer
            why = OPEN_LOOP if is_open else _why(view, turns, kept_tools)
            out.append(Unit(turns[0].calls, last, tuple(turns), answer, why))
        else:
            for turn in turns:
                unseen = is_open and turn is turns[-1]
                why = UNSEEN if unseen else _why(view, [turn], kept_tools)
                out.append(Unit(turn.calls, turn.results, (turn,), -1, why))
        at = after
    return out


def _run(view: Sequence[Entry], at: int) -> tuple[list[Turn], int, int]:
    """The turns of calls from place `at` on, the answer that ends them (-1: none), and the place
    after them."""
    turns: list[Turn] = []
    after = at
    while after < len(view):
        entry = view[after]
        if entry.kind in _BETWEEN and turns:
            after += 1
        elif entry.kind is Kind.ASSISTANT and entry.calls:
            if after + 1 >= len(view) or view[after + 1].kind is not Kind.TOOL_RESULT:
                return turns, -1, after + 1
            turns.append(Turn(after, after + 1))
            after += 2
        elif entry.kind is Kind.ASSISTANT and turns:
            return turns, after, after + 1
        else:
            break
    return turns, -1, after


def _thinks(entry: Entry) -> bool:
    return any(isinstance(part, ReasoningPart) and part.opaque for part in entry.parts)


def _why(view: Sequence[Entry], turns: Sequence[Turn], kept_tools: frozenset[str]) -> str:
    for turn in turns:
        for result in view[turn.results].results:
            if result.name in kept_tools:
                return f"{result.name} loaded what is still in use"
            if result.outcome is Outcome.UNKNOWN:
                return f"the outcome of {result.name} is not known yet"
    return ""


def whole_loop(unit: Unit, view: Sequence[Entry]) -> Unit | None:
    """An open thinking loop as a unit that is replaced whole, where nothing else can be: its newest
    results then stand in the summary word for word. `None` when they cannot (images)."""
    if not unit.turns or unit.why_kept != OPEN_LOOP:
        return None
    newest = view[unit.turns[-1].results]
    if any(isinstance(p, ImagePart) for r in newest.results for p in r.content):
        return None
    if _why(view, unit.turns, KEPT_TOOLS):
        return None
    return Unit(unit.first, unit.last, unit.turns, -1, "")
