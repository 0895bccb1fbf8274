"""What is known: everything that results, the user and the harness said, ready to be looked up."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from lorimer.context.answers.claims import Claim, claims
from lorimer.context.answers.dates import Clock, Day, in_utc, of_epoch
from lorimer.context.answers.pools import (
    MONEY_TEXT,
    MOST_POOLED,
    decimal_of,
    text_pools,
    tree_pools,
)
from lorimer.context.answers.records import NOTHING, Numeral, Source
from lorimer.context.answers.results import leaves, lists
from lorimer.context.answers.statuses import STATUS_KEY, known, state_of
from lorimer.context.answers.tables import table_in

_CURRENCY_KEY = re.compile(r"currency(?:[_-]?code)?|unit|ccy", re.I)
_CURRENCY_IN_KEY = re.compile(r"(?:.*_)?(usd|eur|gbp|chf|jpy|cad|aud)(?:_.*)?", re.I)
_HUNDREDTHS = re.compile(r"(?:.*_)?(?:cents|minor(?:_units)?|pence|pennies)(?:_.*)?", re.I)
_MOMENT_KEY = re.compile(r"(?:.*_)?(?:at|time|ts|timestamp|date|epoch|created|updated|due)", re.I)
_NAME_KEY = re.compile(
    r"(?:.*[_-])?(?:id|no|nr|number|ref|reference|key|name|title|code|sku|email|login|sha|slug"
    r"|order|invoice|ticket|branch|city|customer|country|region|product|item|user|person|owner|file"
    r"|path|host|account)", re.I
)  # fmt: skip
_DIGITS = re.compile(r"\d{2,}")
_COUNTS = re.compile(r"(?<![\w.,:/-])\d{1,9}(?= [a-z])")
_PACKED = re.compile(r"\d,\d")
_PIECE = re.compile(r"(?<![\d.])\d{1,20}(?:\.\d{1,20})?(?![\d.])")
_MOMENT_ENDING = re.compile(r"[_-]?(?:at|on|date|time|by|amount|total|count)$", re.I)
_ID_ENDING = re.compile(r"[_-]?(?:id|no|nr|num|number)$", re.I)
_SQUEEZED = re.compile(r"[\s_\-#/:.]+")


@dataclass(slots=True)
class Record:
    """One object of a list in a result: what it is called, and its fields."""

    names: set[str] = field(default_factory=set)
    values: dict[str, Any] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    label: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One recorded value: how it is written, where, in which currency, of which record; and in text
    the word behind it."""

    text: str
    where: str
    currency: str = ""
    key: str = ""
    record: int = -1
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.where})" if self.where else self.text


class Evidence:
    """Grows by `add` and `add_text`; what was added stays."""

    def __init__(self) -> None:
        self.numbers: dict[Decimal, list[Fact]] = {}
        self.days: dict[Day, list[Fact]] = {}
        self.clocks: dict[Clock, list[Fact]] = {}
        self.names: dict[str, Fact] = {}
        self.digits: dict[str, Fact] = {}
        self.states: dict[str, Fact] = {}
        self.prose: list[tuple[str, str]] = []
        self.squeezed: list[str] = []
        self.told: list[str] = []  # what results say in words: no keys
        self.records: list[Record] = []
        self.columns: dict[tuple[str, str], list[Decimal]] = {}
        self.groups: dict[tuple[str, str, str, str], list[Decimal]] = {}
        self.counts: dict[int, Fact] = {}
        self.counted: dict[str, set[int]] = {}
        self.products: dict[Decimal, Fact] = {}
        self.line_sums: dict[Decimal, Fact] = {}
        self.acted: list[str] = []
        self.pools: list[list[Decimal]] = []  # numbers that stand together: an object, a line …
        self.day_counts: dict[int, str] = {}
        self.today: date | None = None
        self.results = 0

    def add(self, source: Source) -> None:
        """Take a result, or an argument of a call that changed something."""
        where = source.tool or "the user"
        self.results += 1
        if source.value is NOTHING:
            self._lines(source.text, where)
            self.told.append(source.text.casefold())
            rows, rest = table_in(source.text)
            if rows:
                self._tree(rows, where)
                self._keep_prose(source.text, where)
            self.add_text(rest, where)
            self._pool(text_pools(source.text, rows))
            if rows:
                self.add_text(",".join(rows[0]), where)
            for line in rest.split("\n"):
                self._line_sum(line, where)
                if _PACKED.search(line):
                    self._packed(line, where)
        else:
            self._tree(source.value, where)
            self._pool(tree_pools(source.value))
            self._keep_prose(source.text, where)
        if source.acted is not None:
            self.acted.append(source.tool.lower())
            self._tree(_numerals(source.acted), f"arguments of {source.tool}")

    def add_text(self, text: str, where: str) -> None:
        """Take words: of the user, of the operator, of a result that is no JSON."""
        found = claims(text)
        for at, claim in enumerate(found):
            before = found[at - 1] if at else None
            self._claim(claim, text, where, before)
        for match in itertools.islice(_DAY_COUNT.finditer(text), 200):
            days = int(match[1]) * (7 if match[2].lower().startswith(("w", "W")) else 1)
            self.day_counts.setdefault(days, match[0])
        self._keep_prose(text, where)

    def _keep_prose(self, text: str, where: str) -> None:
        self.prose.append((text.casefold(), where))
        self.squeezed.append(_SQUEEZED.sub("", text.casefold()))

    def _lines(self, text: str, where: str) -> None:
        """How many lines a text has; also without a first line, which may be a heading."""
        lines = [line for line in text.split("\n") if line.strip()]
        if 2 <= len(lines) <= 100_000:
            for count in (len(lines), len(lines) - 1):
                self.counts.setdefault(count, Fact(str(count), f"lines of {where}"))

    def _line_sum(self, line: str, where: str) -> None:
        """What the counts of one line make together: `3 failed, 211 passed`."""
        counts = _COUNTS.findall(line) if len(line) < 200 else []
        if 2 <= len(counts) <= 4:
            total = sum((Decimal(count) for count in counts), Decimal(0))
            self.line_sums.setdefault(total, Fact(" + ".join(counts), where))

    def _pool(self, pools: Iterable[list[Decimal]]) -> None:
        for pool in pools:
            if 2 <= len(pool) <= MOST_POOLED and len(self.pools) < 2_000:
                self.pools.append(pool)

    def _packed(self, line: str, where: str) -> None:
        """Numbers with nothing but commas between them, each by itself."""
        for match in _PIECE.finditer(line):
            self._number(Decimal(match[0]), Fact(match[0], where))

    def _tree(self, value: Any, where: str) -> None:
        of_record: dict[str, int] = {}
        for pointer, key, items in lists(value):
            self._list(pointer, key or where, items, where, of_record)
        if isinstance(value, Mapping):
            of_record[""] = len(self.records)
            self.records.append(_record(value))
        for pointer, key, one, around in leaves(value):
            self._leaf(f"{where} {pointer}", key, one, around, _nearest(pointer, of_record))

    def _list(
        self, pointer: str, key: str, items: list[Any], where: str, of_record: dict[str, int]
    ) -> None:
        place = f"{where} {pointer}".strip()
        self.counts.setdefault(len(items), Fact(str(len(items)), f"entries of {place}"))
        noun = _last_word(key)
        self.counted.setdefault(singular(noun), set()).add(len(items))
        same: dict[tuple[str, str], int] = {}
        for n, item in enumerate(items):
            amount = decimal_of(item)
            if amount is not None:
                self.columns.setdefault((place, ""), []).append(amount)
            if not isinstance(item, Mapping):
                continue
            of_record[f"{pointer}/{n}"] = len(self.records)
            record = _record(item)
            self.records.append(record)
            words = {k: v for k, v in item.items() if isinstance(v, str | bool)}
            for k, v in words.items():
                if not isinstance(v, Numeral):
                    same[k, str(v).lower()] = same.get((k, str(v).lower()), 0) + 1
            for k, v in item.items():
                amount = decimal_of(v)
                if amount is None and isinstance(v, str) and MONEY_TEXT.fullmatch(v):
                    amount = Decimal(v)  # money is often written as text
                if amount is None:
                    continue
                self.columns.setdefault((place, k), []).append(amount)
                for kk, vv in words.items():
                    if not isinstance(vv, Numeral):
                        group = (place, k, kk, str(vv))
                        self.groups.setdefault(group, []).append(amount)
        for (k, v), count in same.items():
            self.counts.setdefault(count, Fact(str(count), f"entries of {place} with {k} {v}"))
            self.counted[singular(noun)].add(count)

    def _leaf(
        self, where: str, key: str, value: Any, around: Mapping[str, Any], record: int
    ) -> None:
        where = where.strip()
        if isinstance(value, bool):
            state = state_of(key)
            if known(state) and value:
                self.states.setdefault(state, Fact(f"{key} true", where, record=record))
            return
        state = _happened(key, value)
        if state:
            self.states.setdefault(state, Fact(f"{key} {value}", where, key=key, record=record))
        if isinstance(value, Numeral):
            self._numeral(where, key, value, around, record)
        elif isinstance(value, str):
            self.told.append(value.casefold())
            if STATUS_KEY.fullmatch(key):
                self.states.setdefault(state_of(value), Fact(value, where, key=key, record=record))
            found = claims(value)
            for at, claim in enumerate(found):
                before = found[at - 1] if at else None
                self._claim(claim, value, where, before, key, record, _currency(key, around))
            if len(value) <= 80:
                self.names.setdefault(_SQUEEZED.sub("", value.casefold()), Fact(value, where))

    def _numeral(
        self, where: str, key: str, value: Numeral, around: Mapping[str, Any], record: int
    ) -> None:
        amount = decimal_of(value)
        if amount is None:
            return
        fact = Fact(str(value), where, _currency(key, around), key, record)
        self._number(amount, fact)
        if _HUNDREDTHS.fullmatch(key):
            self._number(amount / 100, fact)
        if amount == amount.to_integral_value():
            whole = int(amount)
            self.counted.setdefault(singular(_last_word(key)), set()).add(whole)
            self.digits.setdefault(str(whole), fact)
            self.names.setdefault(squeezed(_ID_ENDING.sub("", key) + str(whole)), fact)
            if _DAYS_KEY.fullmatch(key) and 0 < whole < 4_000:
                self.day_counts.setdefault(whole * (7 if "week" in key.lower() else 1), str(fact))
            if _MOMENT_KEY.fullmatch(key):
                seconds = whole // 1000 if whole > 10**11 else whole
                if 10**8 < seconds < 4 * 10**9:
                    day, clock = of_epoch(seconds)
                    self.days.setdefault(day, []).append(fact)
                    self.clocks.setdefault(clock, []).append(fact)
        for other, factor in around.items():
            if other != key and _QUANTITY.fullmatch(other) and not _QUANTITY.fullmatch(key):
                count = decimal_of(factor)
                if count is not None:
                    made = Fact(f"{value} × {factor}", where)
                    self.products.setdefault(abs(amount * count), made)

    def _number(self, amount: Decimal, fact: Fact) -> None:
        facts = self.numbers.setdefault(abs(amount), [])
        if len(facts) < 50:
            facts.append(fact)

    def _claim(
        self, claim: Claim, text: str, where: str, before: Claim | None, key: str = "",
        record: int = -1, currency: str = "",
    ) -> None:  # fmt: skip
        unit = _WORD_BEHIND.match(text, claim.end)
        fact = Fact(
            claim.text, where, claim.currency or currency, key, record, unit[1] if unit else ""
        )
        if claim.reading is not None:
            self._number(claim.reading.value, fact)
        elif claim.kind == "date":
            for day in claim.days:
                self.days.setdefault(day, []).append(fact)
        elif claim.clock is not None:
            self.clocks.setdefault(claim.clock, []).append(fact)
            near = before is not None and claim.start - before.end <= 2
            if before is not None and near and len(before.days) == 1:
                moved = in_utc(before.days[0], claim.clock)
                if moved is not None:
                    self.days.setdefault(moved[0], []).append(fact)
                    self.clocks.setdefault(moved[1], []).append(fact)
        else:
            self.names.setdefault(_SQUEEZED.sub("", claim.text.casefold()), fact)
            for digits in _DIGITS.findall(claim.text):
                self.digits.setdefault(digits.lstrip("0") or "0", fact)


_QUANTITY = re.compile(r"(?:.*_)?(?:qty|quantity|count|units|pieces|hours|nights|seats)", re.I)


_DAYS_KEY = re.compile(r".*(?:days?|nights?|weeks?|eta|net|lead_time|term)(?:_.*)?", re.I)
_DAY_COUNT = re.compile(r"\b(\d{1,3})[ -](?:business )?(days?|weeks?|Tagen?|Wochen?)\b", re.I)
_WORD_BEHIND = re.compile(r"[ \u00a0-]?([A-Za-z]+(?:/[a-z])?)")


def squeezed(text: str) -> str:
    """`text` without case, spaces and separators: `Order #4711` is `order4711`."""
    return _SQUEEZED.sub("", text.casefold())


def _record(item: Mapping[str, Any]) -> Record:
    """What an object is called and what it says, two levels deep."""
    record = Record()
    for key, value in item.items():
        if isinstance(value, Mapping):
            for inner, one in value.items():
                if not isinstance(one, Mapping | list):
                    record.values.setdefault(inner, one)
            continue
        if isinstance(value, list):
            continue
        record.values[key] = value
        if isinstance(value, str) and _NAME_KEY.fullmatch(key) and len(value) >= 2:
            record.names.add(squeezed(value))
            record.label = record.label or value
        if isinstance(value, str) and STATUS_KEY.fullmatch(key):
            record.states.append(state_of(value))
        elif isinstance(value, bool) and value and known(state_of(key)):
            record.states.append(state_of(key))
        elif not isinstance(value, bool) and (state := _happened(key, value)):
            record.states.append(state)
    return record


def _happened(key: str, value: Any) -> str:
    """The state that a field shows by having a value: `paid: 19.82`, `shipped_at: "2026-…"`."""
    if value is None or value == "" or decimal_of(value) == 0:
        return ""
    state = state_of(_MOMENT_ENDING.sub("", key))
    return state if known(state) else ""


def _nearest(pointer: str, of_record: Mapping[str, int]) -> int:
    """The record that `pointer` is in."""
    while True:
        if pointer in of_record:
            return of_record[pointer]
        if not pointer:
            return -1
        pointer = pointer.rpartition("/")[0]


def _currency(key: str, around: Mapping[str, Any]) -> str:
    found = _CURRENCY_IN_KEY.fullmatch(key)
    if found is not None:
        return found[1].upper()
    for other, value in around.items():
        if isinstance(value, str) and _CURRENCY_KEY.fullmatch(other):
            code = value.strip().upper()
            if re.fullmatch(r"[A-Z]{3}", code):
                return code
    return ""


def _numerals(value: Any) -> Any:
    """Python values as `results.read_json` reads them."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return Numeral(str(value))
    if isinstance(value, Mapping):
        return {str(k): _numerals(v) for k, v in value.items()}
    return [_numerals(v) for v in value] if isinstance(value, list | tuple) else str(value)


def _last_word(key: str) -> str:
    return re.split(r"[^a-zA-Z]+", key)[-1].lower() or key


def singular(noun: str) -> str:
    """One of them: `orders` is `order`."""
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") and len(noun) > 3 else noun
