"""Whether an agent goes round in circles: the same calls with the same results, again and again."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from lorimer.core.messages import Entry, Kind, ResultPart, TextPart

IN_A_ROW = 5
"""The same calls so many turns in a row are a loop; of cycles of two or three turns `CYCLES`."""
CYCLES = 4
_LONGEST = 3


@dataclass(frozen=True, slots=True)
class _Turn:
    calls: tuple[tuple[str, str], ...]
    results: tuple[str | None, ...]
    """Texts of the results; `None` for those of failed calls: how they failed makes no difference,
    since the third of the same calls is refused in other words."""


def loop_in(entries: Sequence[Entry], known: Container[str]) -> str:
    """The loop that the last turns are, in words; empty when they are none. An answer without calls
    or a word to the agent ends whatever there was; who asks again for something that changes (the
    output of a running program) makes no loop.

    Args:
        known: names of tools; what else was called is not named: those are a model's own words.
    """
    turns = _turns(entries)
    for length in range(1, _LONGEST + 1):
        times = IN_A_ROW if length == 1 else CYCLES
        last = turns[: length * times]
        if len(last) == length * times and all(
            _same(last[place::length]) for place in range(length)
        ):
            calls = [call for turn in reversed(last[:length]) for call in turn.calls]
            named = (name if name in known else "a tool that it does not have" for name, _ in calls)
            names = ", ".join(dict.fromkeys(named))
            return f"the same calls ({names}) came {times} times in a row"
    return ""


def _same(turns: Sequence[_Turn]) -> bool:
    if len({turn.calls for turn in turns}) > 1:
        return False
    told = zip(*(turn.results for turn in turns), strict=True)
    return all(len({text for text in texts if text is not None}) <= 1 for texts in told)


def _turns(entries: Sequence[Entry]) -> list[_Turn]:
    """The last turns, the newest first."""
    turns: list[_Turn] = []
    results: Mapping[str, ResultPart] = {}
    for entry in reversed(entries):
        if entry.kind is Kind.USER or (entry.kind is Kind.ASSISTANT and not entry.calls):
            break
        if entry.kind is Kind.TOOL_RESULT:
            results = {result.call_id: result for result in entry.results}
        if entry.kind is Kind.ASSISTANT:
            calls = tuple((call.name, call.raw) for call in entry.calls)
            turns.append(_Turn(calls, tuple(_text(results.get(c.id)) for c in entry.calls)))
            if len(turns) >= max(IN_A_ROW, _LONGEST * CYCLES):
                break
    return turns


def _text(result: ResultPart | None) -> str | None:
    if result is None or result.is_error:
        return None
    return "".join(part.text for part in result.content if isinstance(part, TextPart))
