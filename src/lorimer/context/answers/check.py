"""The faithfulness check: what an answer says that nothing recorded bears out.

A claim is borne out when a result, the user or the operator said it, in whatever form; it is
derived when code can work it out (`derive`); anything else is flagged. It never changes an answer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from decimal import Decimal

from lorimer.context.answers.belonging import misplaced, sentences
from lorimer.context.answers.claims import Claim, claims, same_currency
from lorimer.context.answers.day_steps import clock_follows, day_follows, span_follows
from lorimer.context.answers.derive import Derivations, nearest_number
from lorimer.context.answers.evidence import Evidence, Fact, singular, squeezed
from lorimer.context.answers.follows import implied, percentage, stated
from lorimer.context.answers.nearness import near_clock, near_day, near_name, near_number
from lorimer.context.answers.ordinary import code_spans, is_ordinary, other_year
from lorimer.context.answers.records import AnswerSettings, Derived, Flag, Severity
from lorimer.context.answers.saying import check_states
from lorimer.context.answers.units import converted, said_duration

_UNIT = re.compile(
    r"[ \u00a0-]?(?:°|(?:days?|weeks?|months?|years?|hours?|hrs?|minutes?|mins?|seconds?|secs?|ms|s"
    r"|h|km|kg|g|mg|m|cm|mm|miles?|mph|km/h|lbs?|oz|[KMGT]i?B|kB|bytes?|points?|stars?|degrees?|C"
    r"|F|kWh|W|V|A|Hz|l|ml|Tage?n?|Stunden|Minuten|Wochen)\b)"
)
_DAY_UNIT = re.compile(r"[ \u00a0-](?:days?|Tagen?)\b")
_WEEK_UNIT = re.compile(r"[ \u00a0-](?:weeks?|Wochen?)\b")
_MINUTES = re.compile(r"[ \u00a0-](?:min(?:ute)?s?|Minuten?)\b")
_HOURS = re.compile(r"[ \u00a0-](?:h|hours?|hrs?|Stunden?)\b")
_BYTE_UNIT = re.compile(r"[ \u00a0]?[KMGk]i?B\b")
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|over|more than|less than"
    r"|under|some|circa|ca\.?|at least|up to|rund|etwa)|[~≈<>+])[ \u00a0]*$",
    re.I,
)
_AROUND = re.compile(r"\b(?:after|about|around|before|past|near|towards?)[ \u00a0]*$", re.I)
_NOUN = re.compile(r"[ \u00a0]([A-Za-z]{3,20})(?:[ \u00a0]([A-Za-z]{3,20}))?")
_NUMBER_WORDS = {
    word: n + 2
    for n, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
_COUNTED_WORD = re.compile(r"\b(" + "|".join(_NUMBER_WORDS) + r")(?= [a-z])", re.I)
_SMALL = 10
_MOST_COUNTED = 1_000
"""What is more is no count: `year: 2021` does not count years."""
_HEX = re.compile(r"[0-9a-f]{7,64}")
_WORD_SPLIT = re.compile(r"[-_/]")


class Check:
    """One look at one answer."""

    def __init__(self, answer: str, evidence: Evidence, settings: AnswerSettings) -> None:
        self.flags: list[Flag] = []
        self.derived: list[Derived] = []
        self._answer = answer
        self._evidence = evidence
        self._settings = settings
        self._derivations = Derivations(evidence)
        self._listed: dict[str, list[Decimal]] = {"number": [], "money": []}
        self._borne: list[tuple[Claim, list[Fact]]] = []
        self._sentences = sentences(answer)
        self._code = code_spans(answer)
        self._numeric_claims: list[Claim] = []

    def run(self, skip: Sequence[tuple[int, int]]) -> None:
        found = claims(self._answer, skip=skip, answer=True)
        self._numeric_claims = [claim for claim in found if claim.reading is not None]
        for claim in sorted(found, key=lambda one: one.kind == "percent"):  # they need the others
            if claim.kind in self._settings.kinds:
                self._one(claim)
        kinds = self._settings.kinds
        if "number" in kinds:
            self._counted_words(skip)
        self.flags += misplaced(self._answer, self._borne, found, self._evidence)
        if "status" in kinds:
            self.flags += check_states(self._answer, self._evidence, skip)
        self.flags.sort(key=lambda flag: flag.span)
        self.derived.sort(key=lambda one: one.span)

    def _one(self, claim: Claim) -> None:
        match claim.kind:
            case "number" | "money" | "percent":
                self._numeric(claim)
            case "date":
                self._date(claim)
            case "time":
                self._time(claim)
            case _:
                self._name(claim)

    def _flag(
        self, claim: Claim, why: str, nearest: Fact | str | None = None, *, against: bool = False
    ) -> None:
        span = (claim.start, claim.end)
        near = "" if nearest is None else str(nearest)
        severity: Severity = "contradicts" if against else "unsupported"
        if not against and any(a <= claim.start < b for a, b in self._code):
            return  # an example or a command; only what is near a recorded value is said of it
        self.flags.append(Flag(claim.kind, claim.text, span, why, near, severity))

    def _sentence(self, claim: Claim) -> tuple[int, int]:
        return next((s for s in self._sentences if s[0] <= claim.start < s[1]), (0, 0))

    def _derive(self, claim: Claim, how: str) -> None:
        self.derived.append(Derived(claim.kind, claim.text, (claim.start, claim.end), how))

    # --- numbers ---

    def _numeric(self, claim: Claim) -> None:
        assert claim.reading is not None
        value = claim.reading.value
        facts = self._evidence.numbers.get(value, [])
        fits = [f for f in facts if same_currency(claim.currency, f.currency)]
        behind = self._answer[claim.end : claim.end + 24]
        if fits or (claim.kind != "money" and facts):
            self._listed["money" if claim.kind == "money" else "number"].append(value)
            self._borne.append((claim, fits or facts))
            return
        if claim.kind == "number" and self._says_nothing(claim, behind):
            return
        how = self._how(claim, behind)
        if how is not None:
            exact = self._derivations.exact if claim.kind != "percent" else value
            self._listed["money" if claim.kind == "money" else "number"].append(exact)
            self._derive(claim, how)
            return
        if facts:
            why = f"The amount is recorded in {facts[0].currency}."
            self._flag(claim, why, facts[0], against=True)
            return
        if other_year(claim, self._answer):
            return
        near = self._near(claim, value)
        how = self._follows(claim, behind, near)
        if how is not None:
            self._derive(claim, how)
            return
        ordinary = is_ordinary(claim, self._answer, self._sentence(claim))
        if ordinary and (near is None or len(value.normalize().as_tuple().digits) < 3):
            return
        nearest = near or nearest_number(self._evidence, value)
        self._flag(claim, _NOWHERE, nearest, against=near is not None)

    def _near(self, claim: Claim, value: Decimal) -> Fact | None:
        near = near_number(self._evidence, value)
        if near is None and claim.kind == "percent":
            near = near_number(self._evidence, value / 100)
        return near

    def _follows(self, claim: Claim, behind: str, near: Fact | None) -> str | None:
        """How a number follows from its sentence or, unless it is a long near miss of a recorded
        value, from any two values of one result."""
        assert claim.reading is not None
        start, end = self._sentence(claim)
        sentence = self._answer[start:end]
        about_it = [
            c for c in self._numeric_claims if c is not claim and start - 120 <= c.start < end
        ]
        given = [c.reading.value for c in about_it if c.reading and c.kind != "percent"]
        shares = [
            c.reading.value
            for c in about_it
            if c.reading and c.kind == "percent" and c.start >= start
        ]
        words = self._answer[start:end].lower()
        given += [Decimal(_NUMBER_WORDS[m[1].lower()]) for m in _COUNTED_WORD.finditer(words)]
        given += [Decimal(12)] if re.search(r"\b(?:one|a|per) year\b", words) else []
        if claim.kind != "percent":
            how = stated(claim.reading, given, shares, sentence)
            if how is not None:
                return how
        loosely = _ABOUT.search(self._answer[max(0, claim.start - 16) : claim.start]) is not None
        if claim.kind == "number":
            evidence, answer = self._evidence, self._answer
            how = said_duration(evidence, answer, claim.start) or converted(
                claim.reading, evidence, behind, sentence, loosely=loosely
            )
            if how is not None:
                return how
        if near is not None and near_number(self._evidence, claim.reading.value, short=False):
            return None
        if claim.kind == "percent":
            around = self._answer[max(start, claim.start - 36) : claim.end + 36]
            return percentage(claim.reading, self._evidence, given, around)
        return implied(claim.reading, self._evidence, given, shares, sentence, loosely=loosely)

    def _says_nothing(self, claim: Claim, behind: str) -> bool:
        """Small counts in prose, years of recorded dates, and digits of recorded ids."""
        assert claim.reading is not None
        value = claim.reading.value
        if value != value.to_integral_value() or claim.reading.step > 1:
            return False
        whole = int(value)
        if whole <= _SMALL and claim.text.isdigit() and not _UNIT.match(behind):
            counts = self._counts_of(behind)
            return counts is None or whole in counts
        if 1900 <= whole <= 2100 and claim.text.isdigit():
            return any(day.year == whole for day in self._evidence.days)
        if whole >= 100 and claim.text.isdigit():
            return claim.text.lstrip("0") in self._evidence.digits
        return False

    def _counts_of(self, behind: str) -> set[int] | None:
        """How many there are of what `behind` names; `None` where no result says."""
        match = _NOUN.match(behind)
        for word in match.groups() if match else ():
            counts = self._evidence.counted.get(singular((word or "").lower()))
            if counts:
                return counts
        return None

    def _counted_words(self, skip: Sequence[tuple[int, int]]) -> None:
        """`two orders`, where results list orders."""
        for match in _COUNTED_WORD.finditer(self._answer):
            if any(a <= match.start() < b for a, b in skip):
                continue
            counts = self._counts_of(self._answer[match.end() : match.end() + 45])
            number = _NUMBER_WORDS[match[1].lower()]
            if (
                counts is None
                or min(counts) > _MOST_COUNTED
                or number in counts
                or Decimal(number) in self._evidence.numbers
            ):
                continue
            span = (match.start(), match.end())
            nearest = ", ".join(str(n) for n in sorted(counts))
            self.flags.append(
                Flag("number", match[0], span, _COUNTED_OTHERWISE, nearest, "contradicts")
            )

    def _how(self, claim: Claim, behind: str) -> str | None:
        reading = claim.reading
        assert reading is not None
        self._derivations.exact = reading.value
        loosely = _ABOUT.search(self._answer[max(0, claim.start - 16) : claim.start]) is not None
        loosely = loosely or claim.text[-1:].isalpha()
        if claim.kind == "percent":
            listed = self._listed["number"] + self._listed["money"]
            return self._derivations.percent(reading, listed)
        if claim.kind == "number":
            if _BYTE_UNIT.match(behind):
                how = self._derivations.size(reading)
                if how is not None:
                    return how
            if _DAY_UNIT.match(behind):
                how = self._derivations.span_days(reading.value)
                if how is not None:
                    return how
            if _WEEK_UNIT.match(behind):
                how = self._derivations.span_days(reading.value * 7)
                if how is not None:
                    return how
            how = span_follows(reading.value, behind, self._evidence)
            if how is not None:
                return how
            minutes = _HOURS.match(behind) and reading.value * 60
            if minutes or _MINUTES.match(behind):
                how = self._derivations.span_minutes(minutes or reading.value)
                if how is not None:
                    return how
        return self._derivations.number(reading, self._listed[claim.kind], loosely=loosely)

    # --- dates, times, names ---

    def _date(self, claim: Claim) -> None:
        known = self._evidence.days
        fits = [f for d in claim.days for k, fs in known.items() if d.fits(k) for f in fs]
        weekday = next((w for d in claim.days if (w := d.wrong_weekday)), "")
        if fits and weekday:
            self._flag(claim, f"That day is a {weekday}.", fits[0], against=True)
        elif fits:
            self._borne.append((claim, fits))
        else:
            how = day_follows(
                claim.days, self._evidence, self._answer[slice(*self._sentence(claim))]
            )
            if how is not None:
                self._derive(claim, how)
                return
            near = next((f for d in claim.days if (f := near_day(self._evidence, d))), None)
            nearest = near or self._nearest_day(claim)
            self._flag(claim, _NOWHERE, nearest, against=near is not None)

    def _nearest_day(self, claim: Claim) -> Fact | None:
        wanted = claim.days[0]
        real = wanted.real
        if real is None:
            same = [f for d, f in self._evidence.days.items() if d.month == wanted.month]
            every = same or list(self._evidence.days.values())
            return every[0][0] if every else None
        dated = [(d.real, f[0]) for d, f in self._evidence.days.items() if d.real is not None]
        near = min(dated, key=lambda one: abs((one[0] or real) - real), default=None)
        return None if near is None else near[1]

    def _time(self, claim: Claim) -> None:
        assert claim.clock is not None
        wanted = claim.clock
        clocks = self._evidence.clocks
        if any(wanted.fits(known) for known in clocks):
            return
        minutes = wanted.hour * 60 + wanted.minute
        before = self._answer[max(0, claim.start - 24) : claim.start]
        if wanted.minute == 0 and _AROUND.search(before):
            for clock, facts in clocks.items():
                if abs(clock.hour * 60 + clock.minute - minutes) <= 30:
                    self._derive(claim, f"about {facts[0]}")
                    return
        slip = near_clock(self._evidence, wanted)
        how = clock_follows(wanted, self._evidence, self._answer[slice(*self._sentence(claim))])
        if how is not None:
            self._derive(claim, how)
            return
        near = min(clocks, key=lambda c: abs(c.hour * 60 + c.minute - minutes), default=None)
        nearest = slip or (None if near is None else clocks[near][0])
        self._flag(claim, _NOWHERE, nearest, against=slip is not None)

    def _name(self, claim: Claim) -> None:
        wanted = squeezed(claim.text)
        evidence = self._evidence
        if wanted in evidence.names:
            return
        whole = re.compile(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])")
        if any(whole.search(text) for text in evidence.squeezed):
            return
        literal = re.compile(rf"(?<!\w){re.escape(claim.text.casefold())}(?!\w)")
        if any(literal.search(text) for text, _ in evidence.prose):
            return
        if claim.kind == "id":
            if self._same_digits(claim.text, wanted):
                return
        elif claim.kind == "url" and any(_same_page(claim.text, t) for t, _ in evidence.prose):
            return
        slip = near_name(wanted, evidence.names)
        if slip is not None:
            self._flag(claim, _NOWHERE, evidence.names[slip], against=True)
            return
        if is_ordinary(claim, self._answer, self._sentence(claim)):
            return
        near = difflib.get_close_matches(wanted, evidence.names, 1, 0.7)
        self._flag(claim, _NOWHERE, evidence.names[near[0]] if near else None)

    def _same_digits(self, text: str, wanted: str) -> bool:
        """Whether an id is a recorded number with a word before it (`#1042`, `order-1042` where
        the field is `id`), or words of the user with other separators between."""
        evidence = self._evidence
        pieces = _WORD_SPLIT.split(text.lstrip("#"))
        last = pieces[-1]
        fact = evidence.digits.get(last.lstrip("0") or "0") if last.isdigit() else None
        word = "".join(pieces[:-1]).lower()
        if fact is not None and (not word or (word.isalpha() and fact.text == last)):
            key = fact.key.lower()
            if not word or key in ("id", "number", "no") or word in squeezed(key):
                return True
        if _HEX.fullmatch(text) and any(n.startswith(wanted) for n in evidence.names):
            return True
        if text[0] in "+(0" and text.lstrip("+(").replace(" ", "")[:1].isdigit():
            digits = re.sub(r"\D", "", text)
            return any(digits in re.sub(r"[^\d]", "", t) for t in evidence.squeezed)
        # The user may have written it in one sentence: "Where is order 4711?"
        after = re.compile(rf"{re.escape(wanted)}(?!\d)")
        letters = wanted[0].isalpha() and last.isdigit()
        return letters and any(after.search(t) for t in evidence.squeezed)


_NOWHERE = "No result says this, nor does the user."
_COUNTED_OTHERWISE = "Results count these otherwise."


def _same_page(url: str, text: str) -> bool:
    bare = re.sub(r"^https?://(?:www\.)?", "", url.casefold()).rstrip("/")
    return re.search(rf"(?<![\w.-]){re.escape(bare)}(?![\w-])", text) is not None


def check(
    answer: str,
    evidence: Evidence,
    settings: AnswerSettings | None = None,
    *,
    skip: Sequence[tuple[int, int]] = (),
) -> tuple[tuple[Flag, ...], tuple[Derived, ...]]:
    """What in `answer` is not borne out by `evidence`, and what only follows from it.

    Args:
        skip: places that code filled; they are right by construction.
    """
    looked = Check(answer, evidence, settings or AnswerSettings())
    looked.run(skip)
    return tuple(looked.flags), tuple(looked.derived)
