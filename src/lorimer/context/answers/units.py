"""Values in another unit than the result has them in: a small table of exact factors."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

from lorimer.context.answers.evidence import Evidence, Fact
from lorimer.context.answers.numbers import Reading, about, rounds_to, shown

_D = Decimal
_SIZES: Final = {"B": _D(1), "kB": _D(10) ** 3, "MB": _D(10) ** 6, "GB": _D(10) ** 9,
                 "TB": _D(10) ** 12, "KiB": _D(1024), "MiB": _D(1024) ** 2, "GiB": _D(1024) ** 3,
                 "TiB": _D(1024) ** 4}  # fmt: skip
_LENGTHS: Final = {"km": _D(1000), "m": _D(1), "cm": _D("0.01"), "mm": _D("0.001"),
                   "mi": _D("1609.344"), "ft": _D("0.3048"), "in": _D("0.0254")}  # fmt: skip
_WEIGHTS: Final = {"kg": _D(1000), "g": _D(1), "lb": _D("453.59237"),
                   "oz": _D("28.349523125")}  # fmt: skip
_SPANS: Final = {"ms": _D("0.001"), "s": _D(1), "min": _D(60), "h": _D(3600), "d": _D(86400),
                 "week": _D(604800), "month": _D(2629746), "year": _D(31556952)}  # fmt: skip
_SPEEDS: Final = {"m/s": _D(1), "km/h": _D(1) / _D("3.6"), "mph": _D("0.44704"),
                  "kn": _D(1852) / 3600}  # fmt: skip
_POWERS: Final = {"kW": _D(1000), "W": _D(1), "hp": _D("745.69987"), "PS": _D("735.49875")}
_KINDS: Final = (_SIZES, _LENGTHS, _WEIGHTS, _SPANS, _SPEEDS, _POWERS)
_WRITTEN: Final = {
    "kb": "kB", "mb": "MB", "gb": "GB", "tb": "TB", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "bytes": "B", "byte": "B", "k": "kB", "g": "g", "kilometers": "km", "kilometres": "km",
    "miles": "mi", "mile": "mi", "feet": "ft", "inches": "in", "meters": "m", "metres": "m",
    "kg": "kg", "lbs": "lb", "pounds": "lb", "seconds": "s", "second": "s", "secs": "s",
    "sec": "s", "minutes": "min", "minute": "min", "mins": "min", "hours": "h", "hour": "h",
    "hrs": "h", "days": "d", "day": "d", "weeks": "week", "months": "month", "years": "year",
    "ms": "m/s", "mps": "m/s", "kmh": "km/h", "kph": "km/h", "kw": "kW", "horsepower": "hp",
}  # fmt: skip
_UNIT = re.compile(r"[ \u00a0-]?([A-Za-z]+(?:/[a-z])?)")
_BEFORE = re.compile(
    r"\b(?:in|as) (miles|kilometers|kilometres|feet|hours|minutes|seconds)\b", re.I
)
_FAHRENHEIT = re.compile(r"[ \u00a0]?(?:°[ ]?F|degrees F|F\b)")
_CELSIUS = re.compile(r"[ \u00a0]?(?:°[ ]?C|degrees C|C\b)")
_WARMTH = re.compile(r"(?:.*_)?(?:t|c|f|temp\w*|celsius|fahrenheit|hi|high|lo|low|min|max)(?:_.*)?")
_IN_F = re.compile(r"(?:.*_)?(?:f|fahrenheit)(?:_.*)?", re.I)
_COMPOUND = re.compile(
    r"(?<![\w.,:])(?:(\d{1,3}) ?(?:d|days?),? (?:and )?)?"
    r"(?:(\d{1,3}) ?(?:h|hours?|hrs?),?(?: and)? ?)?"
    r"(?:(\d{1,3}) ?(?:m|mins?|minutes?),?(?: and)? ?)?(?:(\d{1,2}) ?(?:s|secs?|seconds?))?(?!\w)"
)
_PER_EACH = re.compile(r"\b(?:per|each|average)\b", re.I)
_MOST = 2_000


def converted(
    reading: Reading, evidence: Evidence, behind: str, sentence: str, *, loosely: bool
) -> str | None:
    """How a number with the unit `behind` it follows from a recorded one in another unit."""
    known = list(itertools.islice(evidence.numbers.items(), _MOST))
    facts = [(value, fact) for value, some in known for fact in some[:3]]
    if _FAHRENHEIT.match(behind) or _CELSIUS.match(behind):
        to_f = _FAHRENHEIT.match(behind) is not None
        for value, fact in facts:
            in_f = _IN_F.fullmatch(fact.key or fact.unit) is not None
            if in_f is to_f or (fact.key and not _WARMTH.fullmatch(fact.key.lower())):
                continue
            signed = _signed(fact, value)
            made = signed * 9 / 5 + 32 if to_f else (signed - 32) * 5 / 9
            if _near(abs(made), reading, loosely=loosely):
                return f"{fact} in another unit"
        return None
    unit = _unit_of(behind) or _unit_of(" " + m[1] if (m := _BEFORE.search(sentence)) else "")
    kind = next((k for k in _KINDS if unit in k), None)
    if kind is None:
        return None
    if kind is _SPANS and _recorded_duration(evidence, reading.value * kind[unit]):
        return "a recorded length of time in another unit"
    for value, fact in facts:
        own = _own_unit(fact, kind)
        for one in own:
            if one == unit and not _PER_EACH.search(sentence):
                continue
            made = value * kind[one] / kind[unit]
            if _near(made, reading, loosely=loosely):
                return f"{fact} in another unit"
            if _PER_EACH.search(sentence):
                for other, by in known:
                    if other and _near(made / other, reading, loosely=False):
                        return f"{fact} ÷ {by[0]} in another unit"
    return None


@lru_cache(maxsize=256)
def durations(text: str) -> tuple[tuple[int, int, Decimal], ...]:
    """Where `text` says a length of time in two units or more (`6m12s`, `3 h 48 min`), and how
    many seconds that is."""
    found = []
    for match in _COMPOUND.finditer(text):
        parts = match.groups()
        if sum(part is not None for part in parts) >= 2:
            total = sum(
                (Decimal(p) * n for p, n in zip(parts, (86400, 3600, 60, 1), strict=True) if p),
                Decimal(0),
            )
            found.append((match.start(), match.end(), total))
    return tuple(found)


def said_duration(evidence: Evidence, answer: str, at: int) -> str | None:
    """How the length of time that `answer` says at `at` is a recorded one, otherwise written."""
    here = next((total for a, b, total in durations(answer) if a <= at < b), None)
    if here is None:
        return None
    for text, _ in evidence.prose[-200:]:
        if any(total == here for _, _, total in durations(text[:20_000])):
            return f"{shown(here)} s"
    known = itertools.islice(evidence.numbers.items(), _MOST)
    for value, fact in ((v, f) for v, facts in known for f in facts[:3]):
        if any(value * _SPANS[unit] == here for unit in _own_unit(fact, _SPANS)):
            return f"{fact} in other units"
    return None


def _recorded_duration(evidence: Evidence, seconds: Decimal) -> bool:
    return any(
        total == seconds
        for text, _ in evidence.prose[-200:]
        for _, _, total in durations(text[:20_000])
    )


def _own_unit(fact: Fact, kind: dict[str, Decimal]) -> list[str]:
    """The units that a recorded number may be in, as its key or the text behind it says."""
    if not fact.key:
        found = [fact.unit] if fact.unit else []
    else:
        words = re.split(r"[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])", fact.key)
        found = [words[-1], *words[:-1]]
        if "bytes" in fact.key.lower() or fact.key.lower() in ("size", "length"):
            found.append("bytes")
    units = [_WRITTEN.get(w.lower(), w) for w in found]
    both = [b for u in units for b in _BOTH.get(u, (u,))]
    return [u for u in both if u in kind]


_BOTH: Final = {"MB": ("MB", "MiB"), "GB": ("GB", "GiB"), "kB": ("kB", "KiB"), "m/s": ("m/s", "ms")}
"""Units that are written alike: MB for MiB, `_ms` for meters a second as for milliseconds."""


def _unit_of(text: str) -> str:
    match = _UNIT.match(text)
    if match is None:
        return ""
    word = match[1]
    if any(word in kind for kind in _KINDS):
        return word
    return _WRITTEN.get(word.lower(), "")


def _signed(fact: Fact, value: Decimal) -> Decimal:
    try:
        return Decimal(fact.text.replace("−", "-"))
    except InvalidOperation:
        return value


def _near(made: Decimal, reading: Reading, *, loosely: bool) -> bool:
    return (
        made == reading.value
        or rounds_to(made, reading)
        or (loosely and (about(made, reading) or abs(made - reading.value) * 50 <= made))
    )
