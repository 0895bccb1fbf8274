"""Answers about made-up results: true ones, and the same with one fact altered. Seeded.

`python tests/context/answers/generated_answers.py` prints the rates, by scenario and by what was
altered, and what was missed or flagged wrongly.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from lorimer.context.answers import AnswerSettings, Evidence, Flag, check
from lorimer.context.answers.records import NOTHING, Source
from lorimer.context.answers.results import read_json

SEED = 20261130
EACH = 28

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


@dataclass
class Fact:
    """A fact in an answer: how it is written, and how it can be wrong."""

    kind: str
    value: Any
    show: Callable[[Any], str]
    wrong: Callable[[random.Random, Any], Any]

    def text(self) -> str:
        return self.show(self.value)


@dataclass
class Case:
    scenario: str
    user: str
    results: list[tuple[str, Any]]
    pieces: list[str | Fact]
    altered: str = ""
    system: str = ""
    answer: str = field(default="", init=False)

    def written(self) -> str:
        return "".join(p if isinstance(p, str) else p.text() for p in self.pieces)


# --- how facts are written -----------------------------------------------------------------------


def euro(v: Decimal) -> str:
    return f"{v:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") + " €"


def money(r: random.Random, v: Decimal, currency: str) -> Fact:
    plain = str(v) if v == v.to_integral_value() and v < 1000 else f"{v:.2f}"
    forms = [lambda x: f"{x:,.2f} {currency}", lambda x: f"{currency} {x:,.2f}"]
    if currency == "EUR":
        forms += [euro, lambda x: f"€{x:,.2f}"]
    if currency == "USD":
        forms += [lambda x: f"${x:,.2f}", lambda x: f"${x:,.2f}"]
    if plain == str(v):
        forms.append(lambda x: f"{x} {currency}")
    return Fact("money", v, r.choice(forms), wrong_number)


def number(r: random.Random, v: int) -> Fact:
    return Fact("number", v, r.choice([str, lambda x: f"{x:,}"]), wrong_number)


def wrong_number(r: random.Random, v: Any) -> Any:
    text = f"{v}"
    places = [n for n, c in enumerate(text) if c.isdigit()]
    while True:
        if len(places) > 1 and r.random() < 0.3:
            a, b = r.sample(places, 2)
            chars = list(text)
            chars[a], chars[b] = chars[b], chars[a]
            made = "".join(chars)
        else:
            at = r.choice(places)
            made = text[:at] + str(r.randint(0, 9)) + text[at + 1 :]
        new = type(v)(made)
        if new != v and (made[0] != "0" or text[0] == "0"):
            return new


def day(r: random.Random, v: date, *, year: bool | None = None) -> Fact:
    long = [
        lambda d: d.isoformat(),
        lambda d: f"{d.day} {MONTHS[d.month - 1]} {d.year}",
        lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
        lambda d: f"{d.day:02}.{d.month:02}.{d.year}",
        lambda d: f"{d:%A}, {d.day} {MONTHS[d.month - 1]} {d.year}",
    ]
    short = [
        lambda d: f"{MONTHS[d.month - 1][:3]} {d.day}",
        lambda d: f"{MONTHS[d.month - 1]} {d.day}",
        lambda d: f"{d.day} {MONTHS[d.month - 1]}",
    ]
    return Fact("date", v, r.choice(long if year else long + short), wrong_day)


def wrong_day(r: random.Random, v: date) -> date:
    return v + timedelta(days=r.choice([-31, -7, -2, -1, 1, 3, 10, 30, 45]))


def clock(r: random.Random, v: datetime) -> Fact:
    forms = [
        lambda t: f"{t:%H:%M}",
        lambda t: f"{t.hour % 12 or 12}:{t.minute:02} {'am' if t.hour < 12 else 'pm'}",
        lambda t: f"{t:%H:%M} UTC",
    ]
    return Fact(
        "time",
        v,
        r.choice(forms),
        lambda r, t: t + timedelta(minutes=r.choice([-60, -15, 5, 30, 90])),
    )


def word(kind: str, v: str) -> Fact:
    return Fact(kind, v, str, wrong_word)


def wrong_word(r: random.Random, v: str) -> str:
    while True:
        at = r.choice([n for n, c in enumerate(v) if c.isalnum()])
        c = v[at]
        pool = "0123456789" if c.isdigit() else "abcdefghijklmnopqrstuvwxyz"
        new = r.choice(pool)
        new = new.upper() if c.isupper() else new
        if new != c:
            return v[:at] + new + v[at + 1 :]


def digits(v: str) -> Fact:
    """An id of which a digit is wrong."""

    def wrong(r: random.Random, given: str) -> str:
        places = [n for n, c in enumerate(given) if c.isdigit()]
        at = r.choice(places)
        return given[:at] + r.choice([c for c in "123456789" if c != given[at]]) + given[at + 1 :]

    return Fact("id", v, str, wrong)


def state(v: str, others: list[str]) -> Fact:
    return Fact("status", v, lambda s: s.replace("_", " "), lambda r, given: r.choice(others))


def count(v: int) -> Fact:
    return Fact("count", v, str, lambda r, n: n + r.choice([1, 2, 3]))


def percent(v: Decimal) -> Fact:
    return Fact("percent", v, lambda p: f"{p} %", wrong_number)


def swapped(fact: Fact, other: Any) -> Fact:
    """A fact that is wrong when it is the other record's."""
    return Fact(f"{fact.kind} of another", fact.value, fact.show, lambda r, given: other)


# --- scenarios -----------------------------------------------------------------------------------


def amount(r: random.Random, top: int = 5000) -> Decimal:
    return Decimal(r.randint(1000, top * 100)) / 100


def some_day(r: random.Random) -> date:
    return date(2026, 1, 1) + timedelta(days=r.randint(0, 360))


def order(r: random.Random) -> Case:
    n = r.randint(1000, 9999)
    status, others = r.choice(
        [
            ("processing", ["shipped", "delivered", "cancelled"]),
            ("shipped", ["delivered", "cancelled", "returned"]),
            ("cancelled", ["shipped", "delivered", "processing"]),
        ]
    )
    currency = r.choice(["EUR", "USD"])
    total, due = amount(r), some_day(r)
    result = {
        "order_id": f"order-{n}",
        "status": status,
        "total": float(total),
        "currency": currency,
        "expected_delivery": due.isoformat(),
        "items": [{"sku": "A1", "qty": 2}],
    }
    pieces: list[str | Fact] = r.choice(
        [
            [
                "Your order ",
                digits(f"order-{n}"),
                " is currently ",
                state(status, others),
                ". The total is ",
                money(r, total, currency),
                " and it should arrive on ",
                day(r, due),
                ".",
            ],
            [
                "**Order ",
                digits(f"#{n}"),
                "**\n\n- Status: ",
                state(status, others),
                "\n- Total: ",
                money(r, total, currency),
                "\n- Expected: ",
                day(r, due),
            ],
        ]
    )
    return Case(
        "order", f"Where is order {r.choice(['', '#'])}{n}?", [("get_order", result)], pieces
    )


def invoices(r: random.Random) -> Case:
    currency = r.choice(["EUR", "USD", "CHF"])
    rows = [
        {
            "number": f"INV-2026-{r.randint(100, 999)}",
            "customer": name,
            "amount": str(amount(r)),
            "due": some_day(r).isoformat(),
            "currency": currency,
        }
        for name in r.sample(["Acme GmbH", "Nordwind AG", "Blue River Ltd", "Kato", "Lindqvist"], 4)
    ]
    rows = [{**row, "amount": row["amount"]} for row in rows]
    raw = json.dumps({"invoices": rows}).replace('"amount": "', '"amount": ')
    raw = _unquoted(rows)
    pick, other = r.sample(rows, 2)
    total = sum((Decimal(x["amount"]) for x in rows), Decimal(0))
    own = money(r, Decimal(pick["amount"]), currency)
    if r.random() < 0.4:
        own = swapped(own, Decimal(other["amount"]))
    pieces: list[str | Fact] = [
        "There are ",
        count(4),
        " invoices. ",
        digits(pick["number"]),
        " (",
        pick["customer"],
        ") is for ",
        own,
        " and is due on ",
        day(r, date.fromisoformat(pick["due"])),
        ".\n\nAll invoices together come to ",
        money(r, total, currency),
        ".",
    ]
    return Case("invoices", "Which invoices are open?", [("list_invoices", raw)], pieces)


def _unquoted(rows: list[dict[str, str]]) -> str:
    """The rows as JSON with their amounts as numbers, digits as they are."""
    made = [{**row, "amount": f"@{row['amount']}@"} for row in rows]
    return json.dumps({"invoices": made}).replace('"@', "").replace('@"', "")


def meeting(r: random.Random) -> Case:
    start = datetime(
        2026, r.randint(1, 12), r.randint(1, 28), r.randint(7, 18), r.choice([0, 15, 30, 45])
    )
    mail = r.choice(["lena.berg@example.org", "j.ortiz@example.com", "sam@team.example"])
    url = f"https://meet.example.com/{r.choice(['abc', 'qrs', 'xyz'])}-{r.randint(1000, 9999)}"
    result = {
        "title": "Quarterly review",
        "start": f"{start:%Y-%m-%dT%H:%M}:00Z",
        "organizer": {"email": mail},
        "link": url,
        "attendees": r.randint(14, 60),
    }
    pieces: list[str | Fact] = [
        "The quarterly review is on ",
        day(r, start.date()),
        " at ",
        clock(r, start),
        ", organised by ",
        word("email", mail),
        ". ",
        number(r, result["attendees"]),
        " people are invited. Join here: ",
        word("url", url),
    ]
    return Case("meeting", "When is my next meeting?", [("next_event", result)], pieces)


def log_lines(r: random.Random) -> Case:
    errors, lines = r.randint(12, 300), r.randint(2000, 90000)
    code = r.randint(200, 599)
    when = datetime(2026, 10, r.randint(1, 28), r.randint(0, 23), r.randint(0, 59))
    text = (
        f"{lines} lines read\n{errors} errors, first at {when:%Y-%m-%d %H:%M:%S}\n"
        f"worker exited with code {code} after {r.randint(11, 99)} retries\nrequest id "
        f"7f3c{r.randint(1000, 9999)}ab\n"
    )
    pieces: list[str | Fact] = [
        "The log has ",
        number(r, lines),
        " lines with ",
        number(r, errors),
        " errors; the first one was on ",
        day(r, when.date(), year=True),
        " at ",
        Fact(
            "time",
            when,
            lambda t: f"{t:%H:%M:%S}",
            lambda r, t: t + timedelta(seconds=r.choice([-61, 7, 3600])),
        ),
        ". The worker stopped with code ",
        number(r, code),
        ".\n\nTwo things to try:\n\n1. Restart the worker.\n2. Look at the first error.",
    ]
    return Case("log", "What is wrong in the log?", [("grep_file", text)], pieces)


def stock(r: random.Random) -> Case:
    share = Decimal(r.randint(20, 900)) / 1000
    stars, sold = Decimal(r.randint(300, 499)) / 100, r.randint(1_000_000, 9_000_000)
    result = {
        "units_sold": sold,
        "conversion": float(share),
        "rating": float(stars),
        "warehouse": {"code": f"WH{r.randint(100000, 999999)}", "free": r.randint(100, 999)},
    }
    rounded = (Decimal(sold) / 1_000_000).quantize(Decimal("0.1"))
    pieces: list[str | Fact] = [
        "About ",
        Fact("rounded", rounded, lambda v: f"{v} million", wrong_number),
        " units were sold, with a conversion of ",
        percent((share * 100).normalize().quantize(Decimal("0.1"))),
        " and a rating of ",
        Fact("number", stars, str, wrong_number),
        " stars. Warehouse ",
        digits(result["warehouse"]["code"]),
        " has ",
        number(r, result["warehouse"]["free"]),
        " places free.",
    ]
    return Case("stock", "How is the product doing?", [("get_stats", result)], pieces)


def tickets(r: random.Random) -> Case:
    states = [
        ("open", ["resolved", "closed"]),
        ("pending", ["resolved", "closed", "rejected"]),
        ("closed", ["open", "pending"]),
    ]
    ids = r.sample(range(100, 999), 3)
    rows = [
        {"id": f"TCK-{n}", "status": s, "owner": o, "opened": some_day(r).isoformat()}
        for n, (s, _), o in zip(ids, states, ["Mia", "Omar", "Yuki"], strict=True)
    ]
    at = r.randrange(3)
    row, (status, _) = rows[at], states[at]
    wrong = [s for s, _ in states if s != status and not (status == "pending" and s == "open")]
    pieces: list[str | Fact] = [
        "Ticket ",
        digits(row["id"]),
        " is ",
        state(status, wrong),
        " and is with ",
        row["owner"],
        "; it was opened on ",
        day(r, date.fromisoformat(row["opened"])),
        ".",
    ]
    return Case(
        "tickets",
        f"What about {row['owner']}'s ticket?",
        [("list_tickets", {"tickets": rows})],
        pieces,
    )


def commits(r: random.Random) -> Case:
    sha = "".join(r.choice("0123456789abcdef") for _ in range(40))
    added, removed = r.randint(20, 2000), r.randint(20, 900)
    result = {
        "sha": sha,
        "author": "dana",
        "stats": {"additions": added, "deletions": removed},
        "files": [f"src/a{n}.py" for n in range(r.randint(12, 30))],
        "date": f"{some_day(r)}T12:00:00Z",
    }
    short = sha[:9] if any(c.isdigit() for c in sha[:9]) and not sha[:9].isdigit() else sha
    pieces: list[str | Fact] = [
        "Commit `",
        word("id", short),
        "` by dana changes ",
        count(len(result["files"])),
        " files: ",
        number(r, added),
        " lines added, ",
        number(r, removed),
        " removed, ",
        number(r, added + removed),
        " in all.",
    ]
    return Case("commit", "Summarise the last commit", [("git_show", result)], pieces)


def transfer(r: random.Random) -> Case:
    iban = f"DE{r.randint(10, 99)} {r.randint(1000, 9999)} {r.randint(1000, 9999)} 0532 0130 00"
    value, fee = amount(r, 900), amount(r, 20)
    ref = f"TX{r.randint(10**7, 10**8 - 1)}"
    result = {
        "reference": ref,
        "iban": iban.replace(" ", ""),
        "amount_cents": int(value * 100),
        "fee": float(fee),
        "currency": "EUR",
        "status": "pending",
        "booked_on": some_day(r).isoformat(),
    }
    pieces: list[str | Fact] = [
        "The transfer ",
        digits(ref),
        " of ",
        money(r, value, "EUR"),
        " to ",
        digits(iban),
        " is ",
        state("pending", ["completed", "rejected", "cancelled"]),
        ". The fee is ",
        money(r, fee, "EUR"),
        ", so ",
        money(r, value + fee, "EUR"),
        " in total.",
    ]
    return Case("transfer", "Did my transfer go through?", [("get_transfer", result)], pieces)


def weather(r: random.Random) -> Case:
    temp, wind, rain = r.randint(12, 38), r.randint(11, 70), r.randint(11, 99)
    result = {
        "city": "Vancouver",
        "temperature_c": temp + 0.4,
        "wind_kmh": wind,
        "rain_probability": rain / 100,
        "sunrise": "06:12",
        "sunset": f"20:{r.randint(10, 59)}",
    }
    sunset = datetime(2026, 1, 1, 20, int(result["sunset"][3:]))
    pieces: list[str | Fact] = [
        "In Vancouver it is about ",
        Fact("rounded", temp, lambda v: f"{v} °C", lambda r, v: v + r.choice([-6, -3, 2, 5])),
        " with wind of ",
        number(r, wind),
        " km/h and a ",
        percent(Decimal(rain)),
        " chance of rain. The sun sets at ",
        clock(r, sunset),
        ".",
    ]
    pieces[-2] = Fact(
        "time",
        sunset,
        lambda t: f"{t:%H:%M}",
        lambda r, t: t - timedelta(minutes=r.choice([3, 9, 120])),
    )
    return Case("weather", "What is the weather in Vancouver?", [("get_weather", result)], pieces)


def refund(r: random.Random) -> Case:
    n, paid = r.randint(10000, 99999), amount(r, 300)
    part = (paid / 2).quantize(Decimal("0.01"))
    result = {
        "refund_id": f"RF-{r.randint(10000, 99999)}",
        "order": n,
        "refunded": float(part),
        "paid": float(paid),
        "currency": "USD",
        "state": "approved",
    }
    pieces: list[str | Fact] = [
        "I looked at order ",
        number(r, n),
        ": of the ",
        money(r, paid, "USD"),
        " paid, ",
        money(r, part, "USD"),
        " can be refunded (",
        digits(result["refund_id"]),
        "). The refund is ",
        state("approved", ["rejected", "expired", "cancelled"]),
        ". ",
        "You get the money within 30 days, as our rules say.",
    ]
    pieces[1] = Fact("number", n, str, wrong_number)
    return Case(
        "refund",
        f"Refund half of order {n}",
        [("refund_quote", result)],
        pieces,
        system="You work for a shop. Money comes back within 30 days.",
    )


def table(r: random.Random) -> Case:
    rows = [(c, amount(r, 90000), r.randint(100, 999)) for c in ("North", "South", "East", "West")]
    text = "region,revenue,orders\n" + "\n".join(f"{c},{v},{n}" for c, v, n in rows)
    lines: list[str | Fact] = ["| Region | Revenue | Orders |\n|---|---|---|\n"]
    for c, v, n in rows:
        lines += [
            f"| {c} | ",
            Fact("number", v, lambda x: f"{x:,.2f}", wrong_number),
            " | ",
            number(r, n),
            " |\n",
        ]
    lines += ["\nThat is ", number(r, sum(n for _, _, n in rows)), " orders."]
    total = lines.pop(-2)
    lines.insert(-1, Fact("sum", sum(n for _, _, n in rows), str, wrong_number))
    assert isinstance(total, Fact)
    return Case("table", "Show the regions.", [("read_file", text)], lines)


def subscription(r: random.Random) -> Case:
    start = some_day(r)
    days = r.choice([30, 45, 60, 90])
    end = start + timedelta(days=days)
    result = {
        "plan": "Team",
        "seats": r.randint(12, 80),
        "price_per_seat": 12.5,
        "active": True,
        "started": start.isoformat(),
        "renews": end.isoformat(),
    }
    pieces: list[str | Fact] = [
        "The Team plan is active with ",
        number(r, result["seats"]),
        " seats at 12.50 each, so ",
        Fact(
            "product",
            Decimal(result["seats"]) * Decimal("12.5"),
            lambda v: f"{v:,.2f}",
            wrong_number,
        ),
        " per period. It started on ",
        day(r, start, year=True),
        " and renews on ",
        day(r, end, year=True),
        ", ",
        Fact("days", days, lambda v: f"{v} days", lambda r, v: v + r.choice([1, 5, 14])),
        " later.",
    ]
    return Case("subscription", "When does my plan renew?", [("get_plan", result)], pieces)


SCENARIOS = (
    order,
    invoices,
    meeting,
    log_lines,
    stock,
    tickets,
    commits,
    transfer,
    weather,
    refund,
    table,
    subscription,
)


def cases(seed: int = SEED, each: int = EACH) -> tuple[list[Case], list[Case]]:
    """True answers, and the same answers with one fact altered."""
    r = random.Random(seed)
    true: list[Case] = []
    altered: list[Case] = []
    for scenario in SCENARIOS:
        for _ in range(each):
            case = scenario(r)
            case.answer = case.written()
            true.append(case)
            facts = [p for p in case.pieces if isinstance(p, Fact)]
            fact = r.choice(facts)
            right = fact.text()
            new = fact.wrong(r, fact.value)
            while fact.show(new) == right:
                new = fact.wrong(r, fact.value)
            text = "".join(
                p if isinstance(p, str) else (p.show(new) if p is fact else p.text())
                for p in case.pieces
            )
            wrong = Case(
                case.scenario, case.user, case.results, case.pieces, fact.kind, case.system
            )
            wrong.answer = text
            altered.append(wrong)
    return true, altered


def flags_of(case: Case) -> tuple[Flag, ...]:
    evidence = Evidence()
    for n, (tool, value) in enumerate(case.results):
        text = value if isinstance(value, str) else json.dumps(value)
        parsed = read_json(text)
        evidence.add(Source(f"call_{n}", tool, text, NOTHING if parsed is NOTHING else parsed))
    evidence.add_text(case.user, "the user")
    if case.system:
        evidence.add_text(case.system, "the operator")
    return check(case.answer, evidence, AnswerSettings())[0]


def rates(seed: int = SEED, each: int = EACH) -> dict[str, Any]:
    """How many true answers were flagged, and how many altered ones were caught, by kind."""
    true, altered = cases(seed, each)
    alarms = [(c, f) for c in true if (f := flags_of(c))]
    missed = [c for c in altered if not flags_of(c)]
    kinds = Counter(c.altered for c in altered)
    lost = Counter(c.altered for c in missed)
    return {
        "true": len(true),
        "false_alarms": len(alarms),
        "altered": len(altered),
        "caught": len(altered) - len(missed),
        "by_kind": {k: [n - lost[k], n] for k, n in sorted(kinds.items())},
        "alarms": alarms,
        "missed": missed,
    }


if __name__ == "__main__":
    for seed in (SEED, 1, 2, 3):
        found = rates(seed)
        print({k: v for k, v in found.items() if k not in ("alarms", "missed")})
        if True:
            for case, flags in found["alarms"][:3]:
                print("ALARM", case.scenario, [(f.kind, f.text, f.why, f.nearest) for f in flags])
                print("   ", case.answer[:300], case.results)
            for case in found["missed"][:6]:
                print("MISSED", case.scenario, case.altered, "|", case.answer, case.results)
