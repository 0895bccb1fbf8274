"""Ordinary wording: what follows in one step is derived; near misses are told apart from that."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from context.answers.ordinary_answers import rates
from lorimer.context.answers import Evidence, Flag, Source, check
from lorimer.context.answers.results import read_json

ORDER = {"order_id": 1042, "total": 1234.5, "currency": "EUR", "created": "2026-03-14T09:30:00Z",
         "items": [{"sku": "AB-12", "qty": 3, "price": 99.9},
                   {"sku": "CD-7", "qty": 1, "price": 934.8}], "eta_days": 5}  # fmt: skip
WEATHER = {"temp_c": -3.4, "wind_ms": 4.2, "sunset": "2026-12-02T15:05:00Z"}
TESTS = "===== 3 failed, 214 passed, 2 skipped in 41.27s ====="
DISK = "Filesystem Size Used Avail Use%\n/dev/sda1 50G 37G 11G 78%\n/dev/sdb1 932G 120G 812G 13%"


def looked(answer: str, value: Any) -> tuple[Flag, ...]:
    text = value if isinstance(value, str) else json.dumps(value)
    evidence = Evidence()
    evidence.today = date(2026, 12, 1)
    evidence.add(Source("c", "look", text, read_json(text)))
    return check(answer, evidence)[0]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("The CD-7 is about 76% of the total.", ORDER),
        ("Half of 1,234.50 EUR would be 617.25 EUR.", ORDER),
        ("AB-12 is €99.90, so 10 of them are €999.", ORDER),
        ("It should arrive within 5 days, by 19 March 2026.", ORDER),
        ("With 19 % VAT included, the VAT part of 1,234.50 EUR would be 197.11 EUR.", ORDER),
        ("It was created 8 months ago. In 2025 this was different.", ORDER),
        ("Run `pip install requests==2.31.0`, use Python 3.11, and open port 8080.", ORDER),
        ("It's about 26 °F, with wind of about 15 km/h.", WEATHER),
        ("The sun sets shortly after 3 pm.", WEATHER),
        ("That is 219 tests in total, a pass rate of 97.7%.", TESTS),
        ("At this pace 1000 tests would take about 188 seconds.", TESTS),
        ("Together both disks have 823 GB free.", DISK),
        ("You could try 500 next time.", ORDER),
    ],
)
def test_what_follows_in_one_step_or_is_general_knowledge_is_quiet(answer: str, value: Any) -> None:
    assert looked(answer, value) == ()


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("The total is 1,243.50 EUR.", ORDER),
        ("The total of all is 1,224.50 EUR.", ORDER),
        ("Half of it, and order 1024.", ORDER),
        ("It was created on 15 March 2026.", ORDER),
        ("Look at `AB-1O42` or run `get --order 1043`.", {**ORDER, "ref": "AB-1042"}),
        ("In all 241 tests passed.", TESTS),
        ("It sets at 15:50.", WEATHER),
        ("Open port 8081.", {"port": 8080, "host": "db-1"}),
    ],
)
def test_a_near_miss_wins_over_a_way_to_work_it_out(answer: str, value: Any) -> None:
    flags = looked(answer, value)
    assert flags and all(f.severity == "contradicts" and f.nearest for f in flags)
    assert all(f.worth_showing and f.to_json()["severity"] == "contradicts" for f in flags)


def test_what_is_only_unsupported_is_shown_where_it_matters() -> None:
    (number,) = looked("It weighs 7.77 kg.", ORDER)
    (money,) = looked("Shipping is 55.20 EUR.", ORDER)
    assert (number.severity, number.worth_showing) == ("unsupported", False)
    assert (money.severity, money.worth_showing) == ("unsupported", True)


@pytest.mark.parametrize(
    ("held_out", "flagged", "shown_wrongly", "caught", "shown"),
    [(False, 4, 3, 31, 31), (True, 6, 3, 31, 30)],
)
def test_rates_on_ordinary_answers(
    held_out: bool, flagged: int, shown_wrongly: int, caught: int, shown: int
) -> None:
    """Exactly these: the held-out half was measured once the check was done."""
    assert rates(held_out) == {
        "pairs": 32, "flagged": flagged, "shown_wrongly": shown_wrongly, "caught": caught,
        "shown": shown,
    }  # fmt: skip
