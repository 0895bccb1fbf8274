"""What follows from at most two recorded values in one step of arithmetic.

Two strengths. A `stated` step uses values that the same sentence gives. An `implied` one uses two
values of one result and needs a word in the sentence that announces it (`together`,
`per`, `more than`, `half`); it yields to a near miss of a recorded value.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from lorimer.context.answers.evidence import Evidence
from lorimer.context.answers.numbers import Reading, about, coarse, rounds_to, shown

_SUM = re.compile(
    r"\b(?:together|total(?:s|ling)?|altogether|sum|combined|overall|in all|both|plus|whole"
    r"|votes|zusammen|insgesamt|gesamt|answered)\b|\+", re.I
)  # fmt: skip
_DIFFERENCE = re.compile(
    r"\b(?:more|less|fewer|than|difference|differ|left|remain\w*|rest|range|span|margin|ahead|beat"
    r"|higher|lower|older|younger|colder|warmer|cheaper|longer|shorter|interest|increase|decrease"
    r"|due in|saved?|mehr|weniger|übrig)\b|[−]", re.I
)  # fmt: skip
_RATIO = re.compile(
    r"\b(?:per|each|average|mean|median|ratio|speed|pace|lasts?|unit|je|pro|durchschnittlich)\b",
    re.I,
)
_PRODUCT = re.compile(r"\b(?:times|payments? of|nights at|pieces at)\b|[×*]", re.I)
_LOOSE = re.compile(r"\b(?:makes?|costs?|comes?|paid|pay|for|at|of|so|in|a|each)\b|[-x+/]", re.I)
"""Words that announce a step only where its values stand in the same sentence."""
_PART = re.compile(
    r"\b(?:half|double|twice|third|quarter|halb\w*|doppelt\w*|hälfte|return)\b", re.I
)
_SHARE = re.compile(
    r"\bof (?:the|all|it|its|them|those|total|your)\b|\b(?:share|rate|percentage|more|less|fewer"
    r"|than|plus|minus|said|against|used|full|accounts?|went|voted|up|down|by|in use|increase"
    r"|decrease|growth)\b|=", re.I
)  # fmt: skip
_SCALED = re.compile(
    r"\b(?:pace|rate|would take|would need|lasts?|per|each|after|grows?|by|for \w+ people"
    r"|of them)\b",
    re.I,
)
_RATED = re.compile(
    r"\b(?:VAT|tax|MwSt|USt|discount|interest|grows?|growth|rises?|off|increase|decrease|incl\w*"
    r"|tip|inflation|fee|% of)\b", re.I
)  # fmt: skip
_PARTS = (Decimal(2), Decimal(3), Decimal(4))
_MOST_POOLS = 400
_MOST = 14
_TWELVE = Decimal(12)

Step = tuple[Decimal, str]


def stated(
    reading: Reading, given: Sequence[Decimal], shares: Sequence[Decimal], sentence: str
) -> str | None:
    """How a number follows from the numbers of its sentence.

    Args:
        given: the numbers of its sentence and of the one before it.
        shares: the percentages there (19 for 19 %).
    """
    numbers = [n for n in given[-_MOST:] if n]
    for a in numbers if _RATED.search(sentence) else ():
        for share in shares:
            part = share / 100
            for value in (a * part, a * (1 + part), a * (1 - part), a * part / (1 + part),
                          a / (1 + part)):  # fmt: skip
                if _is(value, reading):
                    return f"{shown(a)} and {shown(share)} %"
    if _PART.search(sentence):
        for a in numbers:
            for value in _parts_of(a):
                if _is(value, reading):
                    return f"a part or multiple of {shown(a)}"
    for value, how in _pairs(numbers, sentence, loose=True):
        if _is(value, reading):
            return how
    return None


def implied(
    reading: Reading, evidence: Evidence, given: Sequence[Decimal], shares: Sequence[Decimal],
    sentence: str, *, loosely: bool,
) -> str | None:  # fmt: skip
    """How a number follows from values of one result."""
    digits = len(shown(reading.value).replace(".", "").strip("0"))
    scaled, parts = _SCALED.search(sentence), _PART.search(sentence)
    counted = list(itertools.islice(evidence.line_sums, _MOST))
    for pool in evidence.pools[-_MOST_POOLS:]:
        if shares and (how := stated(reading, pool[:_MOST], shares, _rated(sentence))) is not None:
            return how
        if parts:
            for a in pool:
                if any(_is(v, reading) for v in _parts_of(a)):
                    return f"a part or multiple of {shown(a)}"
        for value, how in _whole(pool, sentence):
            if _is(value, reading):
                return how
        if digits < 2:
            continue
        for value, how in _pairs(pool, sentence):
            if _is(value, reading, loosely=loosely and digits > 1):
                return how
        for one in given[-4:]:
            if one in pool or not one:
                continue
            for a in pool:
                for value, sign in ((a * one, "×"), (a / one, "÷")):
                    if scaled and _is(value, reading):
                        return f"{shown(a)} {sign} {shown(one)}"
                if scaled:
                    for b in (*pool, *counted):
                        if b and a != b and _is(a * one / b, reading):
                            return f"{shown(one)} × {shown(a)} ÷ {shown(b)}"
    return None


def percentage(
    reading: Reading, evidence: Evidence, given: Sequence[Decimal], sentence: str
) -> str | None:
    """How a percentage follows as the share or change of two values of one result, or of one and
    a number that the sentence gives."""
    if not _SHARE.search(sentence):
        return None
    for pool in evidence.pools[-_MOST_POOLS:]:
        values = [v for v in dict.fromkeys(pool) if v][:_MOST]
        total = sum(pool, Decimal(0))
        pairs = itertools.chain(
            itertools.permutations(values, 2), ((a, total) for a in values),
            ((a, b) for a in values for b in given if b),
            ((a, a + b) for a, b in itertools.permutations(values, 2)),
        )  # fmt: skip
        for a, b in pairs:
            changes = (a / b, abs(a - b) / b) if b <= total else (a / b,)
            for value in changes:
                if value < 20 and _is(value * 100, reading):
                    return f"{shown(a)} of {shown(b)} as a percentage"
        for a in values:
            if _is(a * 100 / _TWELVE, reading) and "month" in sentence.lower():
                return f"a twelfth of {shown(a * 100)} %"
    return None


def _rated(sentence: str) -> str:
    """Only the word that says what a percentage is for."""
    match = _RATED.search(sentence)
    return match[0] if match else ""


def _parts_of(a: Decimal) -> Iterator[Decimal]:
    for n in _PARTS:
        yield a / n
    yield a * 2
    yield a * 3


def _whole(pool: Sequence[Decimal], sentence: str) -> Iterator[Step]:
    """Sum, mean, median and range of a few values."""
    if len(pool) < 2 or len(pool) > 200:
        return
    total = sum(pool, Decimal(0))
    if _SUM.search(sentence):
        yield total, f"sum of {len(pool)} values"
    if _RATIO.search(sentence):
        ordered = sorted(pool)
        yield total / len(pool), f"mean of {len(pool)} values"
        middle = len(ordered) // 2
        yield (ordered[middle] + ordered[~middle]) / 2, f"median of {len(pool)} values"


def _pairs(pool: Sequence[Decimal], sentence: str, *, loose: bool = False) -> Iterator[Step]:
    every = loose and _LOOSE.search(sentence)
    sums, less = every or _SUM.search(sentence), every or _DIFFERENCE.search(sentence)
    ratio, product = every or _RATIO.search(sentence), every or _PRODUCT.search(sentence)
    for a, b in itertools.combinations(pool[:_MOST], 2):
        if sums:
            yield a + b, f"{shown(a)} + {shown(b)}"
        if less:
            yield abs(a - b), f"difference of {shown(a)} and {shown(b)}"
        if product:
            yield a * b, f"{shown(a)} × {shown(b)}"
        if ratio and a and b:
            yield a / b, f"{shown(a)} ÷ {shown(b)}"
            yield b / a, f"{shown(b)} ÷ {shown(a)}"


def _is(value: Decimal, reading: Reading, *, loosely: bool = False) -> bool:
    if not value:
        return False
    if value == reading.value or rounds_to(value, reading):
        return True
    return loosely and (about(value, reading) or rounds_to(value, coarse(reading)))
