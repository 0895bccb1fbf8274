"""A research task made by rule: seven long results, sixty facts hidden in them, the user's rules.

Nothing marks a fact. It is a sentence among sentences, a row among rows, an item among items, built
like its neighbours; what makes it one is that it is asked for. `river` and `clinic` are two
generators with other names, other wording and other forms: what is tuned to one fails in the other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

SIZE = 52_000
RESULTS = 7
FACTS = 60


@dataclass(frozen=True, slots=True)
class Fact:
    """`value` stands once in all results; `question` asks for it and names its subject."""

    question: str
    value: str
    result: int


@dataclass(slots=True)
class Result:
    query: str
    source: str
    external: bool
    text: str = ""


@dataclass(slots=True)
class ResearchTask:
    """Attributes:
    turns: what the user says, and the numbers of the results that are looked up for it.
    constraints: the user's rules, word for word as they stand in `turns`.
    """

    turns: list[tuple[str, list[int]]]
    results: list[Result]
    facts: list[Fact]
    constraints: list[str] = field(default_factory=list)


class _Names:
    """Names that occur once."""

    def __init__(self, rng: random.Random, first: str, second: str, last: str) -> None:
        self._rng = rng
        self._parts = [part.split() for part in (first, second, last)]
        self._used: set[str] = set()

    def __call__(self) -> str:
        for more in range(1000):  # more syllables when the short names are used up
            middle = [self._rng.choice(self._parts[1]) for _ in range(1 + more // 4)]
            first, last = self._rng.choice(self._parts[0]), self._rng.choice(self._parts[2])
            name = "".join([first, *middle, last]).capitalize()
            if name not in self._used:
                self._used.add(name)
                return name
        raise RuntimeError("no name is left")


Item = tuple[str, str, str]
"""A piece of text, and the question and value it answers (empty: none)."""


def make(name: str, seed: int = 7, *, size: int = SIZE, facts: int = FACTS) -> ResearchTask:
    """The task `name` (`river`, `clinic`): `facts` hidden in results of `size` characters."""
    rng = random.Random(f"{name}-{seed}")
    build = {"river": _river, "clinic": _clinic}[name]
    queries, sources, writers, turns, constraints = build(rng)
    numbers = _Numbers(rng)
    results, hidden = [], []
    for at in range(RESULTS):
        wanted = facts // RESULTS + (1 if at < facts % RESULTS else 0)
        text, items = writers[at % len(writers)](rng, numbers, size)
        chosen = [items[int((n + 0.5) * len(items) / wanted)] for n in range(wanted)]
        hidden += [Fact(question, value, at) for _, question, value in chosen]
        results.append(Result(queries[at], sources[at], at % 2 == 0, text))
    return ResearchTask(turns, results, hidden, constraints)


class _Numbers:
    """Figures that occur once each, in several forms."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def _once(self, make_one: Callable[[], str]) -> str:
        while True:
            one = make_one()
            if one not in self._used:
                self._used.add(one)
                return one

    def decimal(self) -> str:
        return self._once(lambda: f"{self._rng.randint(100, 9999)}.{self._rng.randint(11, 99)}")

    def grouped(self) -> str:
        return self._once(lambda: f"{self._rng.randint(10_000, 9_999_999):,}")

    def day(self) -> str:
        return self._once(
            lambda: (
                f"{self._rng.randint(1931, 2025)}-{self._rng.randint(1, 12):02}-"
                f"{self._rng.randint(1, 28):02}"
            )
        )

    def code(self) -> str:
        letters = "".join(self._rng.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(2))
        return self._once(lambda: f"{letters}-{self._rng.randint(10_000, 99_999)}")

    def any(self) -> str:
        return self._rng.choice((self.decimal, self.grouped, self.day, self.code))()


def _filled(size: int, one: Callable[[], list[Item]], join: str) -> tuple[str, list[Item]]:
    pieces: list[str] = []
    items: list[Item] = []
    length = 0
    while length < size:
        for item in one():
            pieces.append(item[0])
            length += len(item[0]) + len(join)
            if item[1]:
                items.append(item)
    return join.join(pieces), items


def _said(rng: random.Random, filler: list[str]) -> str:
    return rng.choice(filler).format(rng.randint(2, 90), rng.randint(1900, 2025))


# --- river: stations along rivers ---


def _river(rng: random.Random):  # type: ignore[no-untyped-def]
    name = _Names(rng, "har kel dun mor vas tel bry osk lin fer", "ro ma ve di lo na su",
                  "gate mouth ford wick stead holm bury")  # fmt: skip

    def prose(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def section() -> list[Item]:
            place = name()
            out: list[Item] = [(f"\n## The works at {place}\n", "", "")]
            for _ in range(rng.randint(3, 5)):
                value = n.any()
                out.append(rng.choice([
                    (f"Surveyors who walked the weir at {place} noted a reading of {value} and "
                     "left the matter there, since the gauge had been reset in the spring.",
                     f"What reading did the surveyors note at the weir at {place}?", value),
                    (f"The ledger for {place} closes with {value}, an entry that later clerks "
                     "repeated without comment.",
                     f"With what does the ledger for {place} close?", value),
                    ("Silt had gathered against the lower sill, as it does most years, and the "
                     f"crew of {rng.randint(3, 19)} cleared it over {rng.randint(2, 9)} days "
                     "while the upper pool was held steady.", "", ""),
                    (f"An older plan, kept under {value}, shows {place} with a second sluice that "
                     "was never built for want of stone.",
                     f"Under what is the older plan of {place} kept?", value),
                ]))  # fmt: skip
                filler = " ".join(_said(rng, _RIVER_FILLER) for _ in range(3))
                out.append((filler, "", ""))
            return out

        return _filled(size, section, "\n")

    def table(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def rows() -> list[Item]:
            out: list[Item] = [(f"\nReach {name()} of the {name()}\n| station | datum | keeper "
                                "| last seen |\n|---|---|---|---|", "", "")]  # fmt: skip
            for _ in range(rng.randint(8, 12)):
                place, value, keeper, seen = name(), n.decimal(), name(), n.day()
                remark = rng.choice(_RIVER_FILLER).format(
                    rng.randint(2, 90), rng.randint(1900, 2024)
                )
                out.append((f"| {place} | {value} | {keeper} | {seen} | {remark} |",
                            f"What is the datum of the station {place}?", value))  # fmt: skip
            return out

        return _filled(size, rows, "\n")

    def records(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def one() -> list[Item]:
            place, value = name(), n.any()
            record = {
                "site": place, "operator": name(), "permit": value,
                "remark": _said(rng, _RIVER_FILLER),
                "levels": [rng.randint(100, 999) for _ in range(6)],
                "checked_by": name(),
                "notes": _said(rng, _RIVER_FILLER),
            }  # fmt: skip
            return [(json.dumps(record), f"What is the permit of the site {place}?", value)]

        text, items = _filled(size, one, ", ")
        return f'{{"sites": [{text}]}}', items

    queries = [
        "weirs and sluices of the upper valley", "gauging stations by reach", "permits by site",
        "ledgers of the lower works", "stations along the northern reaches",
        "operators and permits",
        "older plans and what became of them",
    ]  # fmt: skip
    sources = [f"https://archive-{at}.example/rivers" for at in range(RESULTS)]
    constraints = [
        "Never quote a figure from before 1930.",
        "The report must not exceed four pages, because the board reads nothing longer.",
        "whatever you do, don't mention the Oskvebury dispute",
        "Use metric units only.",
        "Keep every source address next to the number it belongs to.",
        "I need this no later than Thursday noon.",
    ]
    turns = [
        ("I am writing about small waterworks. Find out what is known of the upper valley. "
         f"{constraints[0]} {constraints[1]}", [0, 1]),
        (f"Good. Now the permits and the lower works; {constraints[2]}. {constraints[3]}",
         [2, 3, 4]),
        (f"Now the operators and the older plans. {constraints[4]} {constraints[5]}", [5, 6]),
        ("Put together what you have.", []),
    ]  # fmt: skip
    return queries, sources, [prose, table, records], turns, constraints


_RIVER_FILLER = [
    "The towpath was relaid in {1} after a flood that took {0} metres of it.",
    "Visitors are told to mind the planks, of which {0} have been replaced since {1}.",
    "In dry summers the pool falls by {0} centimetres and the mill stands idle, as in {1}.",
    "A committee of {0} met in {1} and adjourned.",
    "The lamps on the bridge, {0} in number, were changed over in {1}.",
    "Bream and pike are taken here; {0} licences were sold in {1}.",
    "The keeper's cottage has {0} windows and a slate roof from {1}.",
    "Stone came by barge from a quarry that closed in {1}, {0} loads in all.",
]


# --- clinic: trials, batches, logs ---


def _clinic(rng: random.Random):  # type: ignore[no-untyped-def]
    drug = _Names(rng, "zen alo tri vex qua pro ner cor lam", "ta li xo mi ru va ce", "mab nib ine "
                  "olol pril statin gliptin")  # fmt: skip
    person = _Names(rng, "ag bel cor dar ev fio gus hel im jon", "a e i o u", "brecht lund moor "
                    "sson etti wicz dahl quist")  # fmt: skip

    def log(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def line() -> list[Item]:
            who, batch, value = person(), n.code(), n.decimal()
            stamp = f"{n.day()}T{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
            return [
                (f"{stamp} INFO assay: batch={batch} technician={who} potency={value} status="
                 f"{rng.choice(['released', 'held', 'retested'])}",
                 f"What potency did technician {who} measure?", value),
                *[(f"{n.day()}T{rng.randint(0, 23):02}:{rng.randint(0, 59):02} DEBUG chamber: "
                   f"temperature {rng.randint(18, 25)} humidity {rng.randint(30, 60)} ok", "", "")
                  for _ in range(6)],
            ]  # fmt: skip

        return _filled(size, line, "\n")

    def letter(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def paragraph() -> list[Item]:
            agent, chief, value = drug(), person(), n.any()
            opener = rng.choice([
                (f"On {agent} there is little to add: Professor {chief}'s group settled on {value} "
                 "and the other sites followed suit within the year.",
                 f"On what did Professor {chief}'s group settle for {agent}?", value),
                (f"{chief}, who ran the {agent} arm, was asked twice about {value} and both times "
                 "said it was the figure that had been agreed.",
                 f"About what figure was {chief} of the {agent} arm asked?", value),
            ])  # fmt: skip
            rest = " ".join(_said(rng, _CLINIC_FILLER) for _ in range(rng.randint(6, 9)))
            return [(f"{opener[0]} {rest}", opener[1], opener[2])]

        return _filled(size, paragraph, "\n\n")

    def nested(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def one() -> list[Item]:
            agent, value = drug(), n.any()
            record = {
                "compound": agent,
                "sponsor": {"contact": person(), "registry": value},
                "arms": [{"label": chr(65 + k), "n": rng.randint(20, 400)} for k in range(3)],
                "comment": " ".join(
                    _said(rng, _CLINIC_FILLER)
                    for _ in range(3)
                ),
            }  # fmt: skip
            return [(json.dumps(record, indent=1),
                     f"What is the registry number of the compound {agent}?", value)]  # fmt: skip

        text, items = _filled(size, one, ",\n")
        return f"[{text}]", items

    def csv(rng: random.Random, n: _Numbers, size: int) -> tuple[str, list[Item]]:
        def row() -> list[Item]:
            agent, who, value = drug(), person(), n.grouped()
            remark = _said(rng, _CLINIC_FILLER)
            return [(f'{agent};{who};"{value}";{n.day()};{remark}',
                     f"How many doses of {agent} were shipped?", value)]  # fmt: skip

        text, items = _filled(size, row, "\n")
        return f"compound;warehouse clerk;doses shipped;date;remark\n{text}", items

    queries = [
        "assay logs", "correspondence on dosing", "registry extract", "shipping list",
        "assay logs, second site", "letters of the steering group", "registry extract, part two",
    ]  # fmt: skip
    sources = [f"https://registry-{at}.example.org/export?page={at}" for at in range(RESULTS)]
    constraints = [
        "Patients' initials are off limits.",
        "Stay under 900 words, since the journal cuts anything above that.",
        "Please treat anything dated after 2024-06-30 as unconfirmed!",
        "you're to compare at most three compounds at once",
        "Under no circumstances round a potency.",
    ]
    turns = [
        (f"Let's prepare the supplement. {constraints[0]} Look at the assay logs first.", [0]),
        (f"{constraints[1]} Get the correspondence and the registry.", [1, 2, 3]),
        (f"{constraints[2]} Also, {constraints[3]}. The second site next.", [4, 5]),
        (f"And the last registry extract. {constraints[4]}", [6]),
        ("Write it up.", []),
    ]
    return queries, sources, [log, letter, nested, csv], turns, constraints


_CLINIC_FILLER = [
    "The freezer alarm rang {0} times in {1} and was found to be faulty.",
    "Couriers were changed in {1}; {0} parcels went astray before that.",
    "Consent forms were reprinted with a larger margin, {0} copies, in {1}.",
    "It was felt that {0} visits were too many, and so they were halved from {1} on.",
    "Parking at the east wing is limited to {0} cars since {1}.",
    "The statistician left in {1} and {0} tables had to be redone.",
    "Coffee was served; {0} people attended the meeting of {1}.",
    "A second reader looked at {0} scans in {1} without surprises.",
]
