"""What a text claims: its numbers, amounts, dates, times, ids and addresses, with where they stand.

The same reading is used for answers and for results, so that both are told apart alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lorimer.context.answers.dates import Clock, Day, find_clocks, find_days
from lorimer.context.answers.numbers import NUMBER, SCALE, Reading, comma_decimal, read

_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|KRW|SGD|HKD|ZAR|TRY"
)
_SIGNS: Final = {"€": "EUR", "£": "GBP", "$": "$", "¥": "¥", "₹": "INR", "₩": "KRW"}
_WORDS: Final = {
    "euro": "EUR", "euros": "EUR", "dollar": "$", "dollars": "$", "pound": "GBP", "pounds": "GBP",
    "yen": "JPY", "franken": "CHF", "francs": "CHF",
}  # fmt: skip
_DOLLARS: Final = frozenset({"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN"})

_CURRENCY_BEFORE = rf"(?P<before>(?:US|CA|A|NZ|S|HK)?\$|[€£¥₹₩]|\b(?:{_CODES})\b)[ \u00a0]?[-−]?"
_CURRENCY_BEHIND = (
    rf"[ \u00a0]?(?P<behind>[€£$¥₹₩]|(?:{_CODES})\b|(?:euros?|dollars?|pounds?|yen|francs?)\b)"
)
_MONEY = re.compile(
    rf"{_CURRENCY_BEFORE}(?P<n1>{NUMBER})(?P<s1>{SCALE})?"
    rf"|(?<![\w.,])(?P<n2>{NUMBER})(?P<s2>{SCALE})?{_CURRENCY_BEHIND}"
)
_PERCENT = re.compile(rf"(?<![\w.,])(?P<n1>{NUMBER})(?:[ \u00a0]?%|[ \u00a0]per ?cent\b)")
_PLAIN = re.compile(rf"(?<![\w.,])(?P<n1>{NUMBER})(?P<s1>{SCALE})?")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s<>\"'`\])}]+", re.I)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")
_HASH = re.compile(r"(?<![\w-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}(?![\w-])")
_MIXED = re.compile(r"(?<![\w-])(?=[a-z0-9]*\d[a-z]+\d)[a-z0-9]{8,64}(?![\w-])")
_NUMBERED = re.compile(r"(?<![\w-])[A-Za-z]+(?:[-_/][A-Za-z0-9]+)+(?![\w-])")
_BLOCK = re.compile(r"(?<![\w-])(?=[A-Z]*\d)[A-Z0-9]{6,40}(?![\w-])")
_HASHED = re.compile(r"(?<![\w&])#\d{2,}\b")
_PHONE = re.compile(r"(?<![\w.,+])(?:\+\d|\(0|00\d)[\d ()/-]{6,20}\d(?![\w-])")
_DOTTED = re.compile(r"(?<![\w.])v?\d{1,5}(?:\.\d{1,5}){2,}(?![\w.]*\w)")
_DIGITS = re.compile(r"\d{3}")
_STANDARDS = re.compile(
    r"\b(?i:utf|iso|sha|rfc|ieee|din|en|aes|rsa|md|cp|windows|x86|covid|gpt|http|python|fortune"
    r"|boeing|airbus)[-_/ ]\d[\w.-]*"
)
"""Names with a number that is no figure."""
_SINCE = re.compile(r"(?i:mid|pre|post|early|late|since|top|non|sub)-\d+")
_LIST_MARK = re.compile(r"^[ \t>]*(?:[-*+] +)?(?:\*\*)?(?:\(?\d{1,3}[.):](?=\s|\*))", re.M)
_HEADING = re.compile(r"^[ \t]*#{1,6} +\d+(?:\.\d+)*\.?(?=\s)", re.M)
_ORDINAL = re.compile(r"\b\d+(?:st|nd|rd|th)\b")
_COUNTED = re.compile(
    r"\b(?:[Ss]tep|[Oo]ption|[Pp]art|[Ss]ection|[Cc]hapter|[Pp]hase|[Tt]ip|[Pp]oint|[Nn]ote"
    r"|[Ff]igure|[Tt]able|[Rr]ule|[Qq]uestion|[Cc]ase|[Mm]ethod|[Ee]xample)s? \d{1,2}\b"
)
_FENCE = re.compile(r"^(```|~~~)([^\n]*)\n.*?(?:^\1[ \t]*$|\Z)", re.M | re.S)
_TEXTUAL = frozenset({"", "text", "txt", "csv", "markdown", "md", "table"})


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a text says.

    Attributes:
        kind: as in `Flag`.
        readings: of numbers, amounts and shares; one, except where a comma may be two things.
        currency: of amounts: a code, or `$` or `¥` where the sign leaves it open.
        days, clock: of dates and times.
    """

    kind: str
    text: str
    start: int
    end: int
    reading: Reading | None = None
    currency: str = ""
    days: tuple[Day, ...] = ()
    clock: Clock | None = None


def same_currency(one: str, other: str) -> bool:
    """Whether two currencies may be the same; an unsaid one may be any."""
    if not one or not other or one == other:
        return True
    pair = {one, other}
    if "$" in pair:
        return not pair.isdisjoint(_DOLLARS)
    return "¥" in pair and not pair.isdisjoint({"JPY", "CNY"})


class _Taken:
    """The places of a text that are read already."""

    def __init__(self, length: int, skip: Iterable[tuple[int, int]]) -> None:
        self._at = bytearray(length)
        for start, end in skip:
            self.take(start, end)

    def take(self, start: int, end: int) -> None:
        self._at[start:end] = b"\x01" * (end - start)

    def free(self, start: int, end: int) -> bool:
        return not any(self._at[start:end])


def claims(text: str, *, skip: Sequence[tuple[int, int]] = (), answer: bool = False) -> list[Claim]:
    """Everything that `text` says, by its place.

    Args:
        skip: places that are not looked at.
        answer: it is an answer: list numbering, ordinals and fenced code say nothing there.
    """
    taken = _Taken(len(text), skip)
    if answer:
        _prose(text, taken)
    found: list[Claim] = []

    def add(claim: Claim) -> None:
        if taken.free(claim.start, claim.end):
            taken.take(claim.start, claim.end)
            found.append(claim)

    for match in _URL.finditer(text):
        whole = match[0].rstrip(".,;:!?*_")
        add(Claim("url", whole, match.start(), match.start() + len(whole)))
    for pattern, kind in ((_EMAIL, "email"), (_UUID, "id"), (_IBAN, "id")):
        for match in pattern.finditer(text):
            add(Claim(kind, match[0].rstrip(".-"), match.start(), match.end()))
    for start, end, days in find_days(text):
        add(Claim("date", text[start:end], start, end, days=days))
    for start, end, clock in find_clocks(text):
        add(Claim("time", text[start:end], start, end, clock=clock))
    for match in _NUMBERED.finditer(text):
        if _DIGITS.search(match[0]) and not _SINCE.fullmatch(match[0]):
            add(Claim("id", match[0], match.start(), match.end()))
    for pattern in (_HASH, _MIXED, _BLOCK, _HASHED, _PHONE, _DOTTED):
        for match in pattern.finditer(text):
            if pattern is _BLOCK and not _DIGITS.search(match[0]):
                continue
            if pattern is _BLOCK and match[0].isdigit():
                continue
            add(Claim("id", match[0], match.start(), match.end()))
    comma = comma_decimal(text)
    for pattern, kind in ((_MONEY, "money"), (_PERCENT, "percent"), (_PLAIN, "number")):
        for match in pattern.finditer(text):
            add(_numeric(match, kind, comma))
    found.sort(key=lambda claim: claim.start)
    return found


def _prose(text: str, taken: _Taken) -> None:
    for fence in _FENCE.finditer(text):
        if fence[2].strip().lower() not in _TEXTUAL:
            taken.take(fence.start(), fence.end())
    for pattern in (_LIST_MARK, _HEADING, _ORDINAL, _COUNTED, _STANDARDS):
        for match in pattern.finditer(text):
            if pattern is not _ORDINAL or not _month_near(text, match):
                taken.take(match.start(), match.end())


def _month_near(text: str, match: re.Match[str]) -> bool:
    """Whether an ordinal is the day of a date (`November 30th`)."""
    start, end = max(0, match.start() - 12), min(len(text), match.end() + 16)
    return any(
        s <= match.start() - start and match.end() - start <= e
        for s, e, _ in find_days(text[start:end])
    )


def _numeric(match: re.Match[str], kind: str, comma: bool) -> Claim:
    groups = match.groupdict()
    written = groups["n1"] or groups.get("n2") or ""
    scale = groups.get("s1") or groups.get("s2") or ""
    sign = (groups.get("before") or groups.get("behind") or "").strip()
    currency = _SIGNS.get(sign[-1:], "") or _WORDS.get(sign.lower(), "") or sign
    currency = {"US$": "USD", "CA$": "CAD", "A$": "AUD"}.get(sign, currency)
    if kind == "number" and scale in ("m", "b"):
        scale = ""  # meters or minutes rather than millions
    reading = read(written, scale, comma=comma)
    return Claim(kind, match[0], match.start(), match.end(), reading, currency)
