"""Whether a value stands with the thing that it belongs to: a recorded amount said of another
order is as wrong as an invented one.

Only said where the sentence leaves no doubt what belongs to what.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from lorimer.context.answers.claims import Claim
from lorimer.context.answers.evidence import Evidence, Fact, squeezed
from lorimer.context.answers.records import Flag

_SENTENCE_END = re.compile(r"\n|(?<=[.!?;])\s+(?=[A-Z0-9*_`\"(])")
_NAME = re.compile(r"#?\w[\w@.+/-]*\w|#\d+")
_SEVERAL = re.compile(
    r"\b(?:total|sum|together|combined|all|both|average|difference|overall|respectively|other"
    r"|than|more|less|compared)\b",
    re.I,
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence or line of `text` stands."""
    cuts = [0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]


def named_in(text: str, start: int, end: int, evidence: Evidence) -> list[tuple[int, int]]:
    """The records that the sentence names: (place, number of the record); a name that several
    records have names none."""
    by_name: dict[str, int] = {}
    for number, record in enumerate(evidence.records):
        for name in record.names:
            by_name[name] = -1 if by_name.get(name, number) != number else number
    found: list[tuple[int, int]] = []
    for match in _NAME.finditer(text, start, end):
        number = by_name.get(squeezed(match[0].strip(".")), -2)
        if number == -1:
            return []
        if number >= 0:
            found.append((match.start(), number))
    for name, number in by_name.items():
        label = evidence.records[number].label if number >= 0 else ""
        if " " not in label or squeezed(label) != name:
            continue
        at = text.lower().find(label.lower(), start, end)
        if at >= 0:
            found.append((at, number))
    return sorted(found)


def pairs(places: Sequence[int], named: Sequence[tuple[int, int]]) -> list[int | None]:
    """For each place the record that it belongs to; `None` where that is not clear: where the
    sentence names one thing and says one thing of it, or names and says in turn."""
    records = {number for _, number in named}
    if len(records) == 1 and len(places) == 1:
        return [named[0][1]]
    if len(named) == len(records) == len(places) > 1:
        marks = sorted([(p, "v") for p in places] + [(p, "n") for p, _ in named])
        order = "".join(mark for _, mark in marks)
        if order in ("nv" * len(places), "vn" * len(places)):
            return [number for _, number in named]
    return [None] * len(places)


def misplaced(
    answer: str,
    borne: Sequence[tuple[Claim, list[Fact]]],
    every: Sequence[Claim],
    evidence: Evidence,
) -> list[Flag]:
    """Borne-out amounts, numbers and dates that stand with the wrong record."""
    flags: list[Flag] = []
    if len(evidence.records) < 2:
        return flags
    for start, end in sentences(answer):
        if _SEVERAL.search(answer, start, end):
            continue
        named = named_in(answer, start, end, evidence)
        if not named:
            continue
        for kinds in (("money", "number"), ("date",)):
            here = [c for c in every if c.kind in kinds and start <= c.start < end]
            facts = {c.start: f for c, f in borne if c.kind in kinds}
            if any(c.start not in facts for c in here):
                continue
            for claim, number in zip(here, pairs([c.start for c in here], named), strict=True):
                if number is None:
                    continue
                flag = _other(claim, facts[claim.start], number, evidence)
                if flag is not None:
                    flags.append(flag)
    return flags


def _other(claim: Claim, facts: Sequence[Fact], number: int, evidence: Evidence) -> Flag | None:
    """A flag when all that bears the claim out is of other records that have the same field."""
    own = evidence.records[number]
    if any(f.record in (number, -1) or f.key not in own.values for f in facts):
        return None
    fact = facts[0]
    is_there = own.values[fact.key]
    if is_there is None or isinstance(is_there, bool):
        return None
    other = evidence.records[fact.record].label or "another one"
    return Flag(
        claim.kind,
        claim.text,
        (claim.start, claim.end),
        f"That is the {fact.key} of {other}, not of {own.label}.",
        f"{is_there} ({fact.key} of {own.label})",
        "contradicts",
    )
