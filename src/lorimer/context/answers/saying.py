"""Whether the states that an answer says are those that results hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lorimer.context.answers.belonging import named_in, pairs, sentences
from lorimer.context.answers.evidence import Evidence
from lorimer.context.answers.records import Flag
from lorimer.context.answers.statuses import STEMS, bears_out, known, said_states

_YOU = re.compile(r"\byou(?:[’']?(?:ve|d))?\b(?:\W+\w+){0,2}\W*$", re.I)


def check_states(
    answer: str, evidence: Evidence, skip: Sequence[tuple[int, int]] = ()
) -> list[Flag]:
    """Flags for states that results contradict. Nothing is said where no result holds a state."""
    recorded = [state for state in evidence.states if _in_words(state)]
    if not recorded:
        return []
    flags: list[Flag] = []
    said = [
        one for one in said_states(answer) if not any(a <= one[0] < b for a, b in skip)
    ]  # fmt: skip
    for start, end in sentences(answer):
        here = [one for one in said if start <= one[0] < end]
        if not here:
            continue
        named = named_in(answer, start, end, evidence)
        belongs = pairs([a for a, _, _ in here], named)
        for (a, b, state), number in zip(here, belongs, strict=True):
            if _YOU.search(answer, start, a) or _brought_about(state, evidence):
                continue
            own = evidence.records[number] if number is not None else None
            if own is not None and own.states:
                told_apart = state in evidence.states  # then it is not just another word for it
                if not any(
                    one == state if told_apart else bears_out(one, state) for one in own.states
                ):
                    why = f"The result says {', '.join(own.states)} of {own.label}."
                    flags.append(
                        Flag("status", answer[a:b], (a, b), why, own.states[0], "contradicts")
                    )
                continue
            if any(bears_out(one, state) for one in evidence.states) or _told(
                answer[a:b], evidence
            ):
                continue
            nearest = evidence.states[recorded[0]]
            why = f"Results say {', '.join(sorted(recorded)[:5])}."
            flags.append(Flag("status", answer[a:b], (a, b), why, str(nearest), "contradicts"))
    return flags


def _in_words(state: str) -> bool:
    return known(state) or any(known(word) for word in state.split())


def _brought_about(state: str, evidence: Evidence) -> bool:
    """Whether a call of a tool that brings this state about was done."""
    return any(stem in tool for stem in STEMS.get(state, ()) for tool in evidence.acted)


def _told(word: str, evidence: Evidence) -> bool:
    """Whether a result says the word somewhere; the user's words do not count: whoever asks "is
    it shipped?" has not been told that it is."""
    whole = re.compile(rf"(?<!\w){re.escape(word.casefold())}(?!\w)")
    return any(whole.search(text) for text in evidence.told)
