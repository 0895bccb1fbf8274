"""What an answer says by itself rather than of a result: ports and versions of instructions, round
numbers of advice, assumed rates. Only asked where nothing recorded is near."""

from __future__ import annotations

import re

from lorimer.context.answers.claims import Claim

_VERSION_BEFORE = re.compile(
    r"(?:[=~<>!]=|@|\b(?:python|node|java|ruby|go|php|rust|gcc|django|postgres\w*|ubuntu|debian"
    r"|version|android|ios|macos|npm|pip|cuda|release|v)[ -]?)[ ]?v?$", re.I
)  # fmt: skip
_PORT_BEFORE = re.compile(
    r"\b(?:ports?|localhost:|HTTPS?|TCP|UDP|status(?: code)?|RFC)[ :]*$", re.I
)
_PORT_LIST = re.compile(r"\bports?\b[^.;\n]*\b(?:or|and|,)\s*$", re.I)
_ADVICE = re.compile(
    r"\b(?:could|should|would|might|try|set|use|using|keep|at least|at most|e\.g\.|for example"
    r"|usual(?:ly)?|typical(?:ly)?|recommend\w*|every|suppose|if|say|consider|rule|assume|assuming"
    r"|normally|generally|worry|plan (?:a|for|to))\b", re.I
)  # fmt: skip
_RATE_BEFORE = re.compile(
    r"\b(?:with|at|of|if|assuming|assume|by|plus|incl\w*|including|mit|bei|zzgl\.?)\s+(?:an?\s+)?$",
    re.I,
)
_RATE_BEHIND = re.compile(
    r"\s*(?:VAT|tax|MwSt|USt|sales tax|discount|interest|tip|inflation)", re.I
)
_YEAR_BEFORE = re.compile(r"(?:^|[.!?\n]\s*)(?:back )?(?:in|since|until|before|by|during)\s$", re.I)
_CODE = re.compile(r"(?<!`)(`+)(?!`)([^`\n]+)\1(?!`)")
_ONE_WORD = re.compile(r"[\w.#@:/+-]+")


def code_spans(answer: str) -> list[tuple[int, int]]:
    """Inline code that is more than one name or value."""
    return [
        (m.start(), m.end())
        for m in _CODE.finditer(answer)
        if not _ONE_WORD.fullmatch(m[2].strip())
    ]


def other_year(claim: Claim, answer: str) -> bool:
    """Whether a claim is the year that a sentence begins with (`In 2025 this was …`)."""
    before = answer[max(0, claim.start - 16) : claim.start]
    year = claim.kind == "number" and claim.text.isdigit() and len(claim.text) == 4
    return year and claim.text[:2] in ("19", "20") and _YEAR_BEFORE.search(before) is not None


def is_ordinary(claim: Claim, answer: str, sentence: tuple[int, int]) -> bool:
    """Whether a claim that nothing recorded is near to says nothing of results."""
    before = answer[max(sentence[0], claim.start - 48) : claim.start]
    behind = answer[claim.end : claim.end + 24]
    if claim.kind in ("id", "number") and _VERSION_BEFORE.search(before):
        return True
    if claim.kind == "percent":
        return bool(_RATE_BEHIND.match(behind) and _ADVICE_OR_RATE.search(before))
    if claim.kind not in ("number", "money") or claim.reading is None:
        return False
    value = claim.reading.value
    if claim.kind == "number" and (_PORT_BEFORE.search(before) or _PORT_LIST.search(before)):
        return True
    if claim.kind == "money" or not _ADVICE.search(answer, *sentence):
        return False
    single = len(value.normalize().as_tuple().digits) == 1
    return single or str(value) in _USUAL


_ADVICE_OR_RATE = re.compile(_RATE_BEFORE.pattern + "|" + _ADVICE.pattern, re.I)
_USUAL = frozenset({"12", "15", "24", "120", "128", "256", "512", "1024"})
