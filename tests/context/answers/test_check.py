"""The faithfulness check: what is flagged, what is borne out, what is derived."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context.answers.generated_answers import EACH, SCENARIOS, rates
from lorimer.context.answers import AnswerSettings, Evidence, Source, check
from lorimer.context.answers.results import read_json

ORDER = {
    "order_id": 4711, "status": "processing", "total": 1234.5, "currency": "EUR",
    "due": "2026-11-30", "at": "2026-11-30T14:30:00+02:00", "note": None, "shipped": False,
    "items": [{"sku": "AB-100", "price": 1000.0, "qty": 1}, {"sku": "AB-200", "price": 117.25,
                                                             "qty": 2}],
}  # fmt: skip


def looked(
    answer: str,
    *results: Any,
    user: str = "",
    tool: str = "get_order",
    acted: dict[str, Any] | None = None,
) -> tuple[list[tuple[str, str]], list[str]]:
    """The flags (kind, text) and the derived texts of `answer`."""
    evidence = Evidence()
    for n, value in enumerate(results):
        text = value if isinstance(value, str) else json.dumps(value)
        evidence.add(Source(f"c{n}", tool, text, read_json(text), acted=acted))
    evidence.add_text(user, "the user")
    flags, derived = check(answer, evidence)
    for flag in flags:
        assert answer[slice(*flag.span)] == flag.text and flag.why
    return [(f.kind, f.text) for f in flags], [d.text for d in derived]


BORNE_OUT = [
    "It costs 1,234.50 EUR, or 1.234,50 €, or €1234.5, or 1 234,50 EUR.",
    "Due 30 November 2026, Nov 30, 30.11.2026, 11/30/2026, November 30th, or in November 2026.",
    "On Monday, 30 November 2026 at 14:30, which is 12:30 UTC or 2:30 pm.",
    "Order #4711, order-4711, order 4711, Order 4711.",
    "The status is processing; it has not been shipped yet, and can still be cancelled.",
    "Is it shipped? No. It will be shipped soon. If it is cancelled, you get a refund.",
    "1. First do this.\n2. Then that.\n\nThese are two steps, step 3 is the 4th. See section 6.",
    "There are 2 items.",
    "AB-100 costs 1,000 and two of AB-200 cost 234.50, together 1,234.50.",
    "The encoding is UTF-8, the hash SHA-256, the format ISO 8601.",
    "```python\nx = 99999\n```\nThat is the code.",
    "Here are 3 ways to go on.",
]


@pytest.mark.parametrize("answer", BORNE_OUT)
def test_what_results_say_in_another_form_is_not_flagged(answer: str) -> None:
    assert looked(answer, ORDER, user="Where is order 4711?")[0] == []


FLAGGED = [
    ("It costs 1,243.50 EUR.", "money", "1,243.50 EUR"),
    ("It costs $1,234.50.", "money", "$1,234.50"),
    ("It costs 12.345 EUR.", "money", "12.345 EUR"),
    ("It comes on 1 December 2026.", "date", "1 December 2026"),
    ("It comes on Tuesday, 30 November 2026.", "date", "Tuesday, 30 November 2026"),
    ("It comes on Nov 29.", "date", "Nov 29"),
    ("It comes in December 2026.", "date", "December 2026"),
    ("It comes at 15:30.", "time", "15:30"),
    ("It comes at 14:30 UTC.", "time", "14:30 UTC"),
    ("It is order-4712.", "id", "order-4712"),
    ("It is #4712.", "id", "#4712"),
    ("See invoice-4711.", "id", "invoice-4711"),
    ("See DE89 3704 0044 0532 0130 00.", "id", "DE89 3704 0044 0532 0130 00"),
    ("See 123e4567-e89b-12d3-a456-426614174000.", "id", "123e4567-e89b-12d3-a456-426614174000"),
    ("See https://example.com/track/1.", "url", "https://example.com/track/1"),
    ("Write to help@example.com.", "email", "help@example.com"),
    ("It has been shipped.", "status", "shipped"),
    ("Status: **delivered**", "status", "delivered"),
    ("It is paid.", "status", "paid"),
    ("There are three items.", "number", "three"),
    ("There are 5 items.", "number", "5"),
    ("It takes 4 days.", "number", "4"),
    ("You save 15 %.", "percent", "15 %"),
    ("It was made in 2019.", "number", "2019"),
]


@pytest.mark.parametrize(("answer", "kind", "text"), FLAGGED)
def test_what_nothing_says_is_flagged(answer: str, kind: str, text: str) -> None:
    assert looked(answer, ORDER, user="Has order 4711 been shipped?")[0] == [(kind, text)]


def test_the_nearest_recorded_value_is_named() -> None:
    evidence = Evidence()
    evidence.add(Source("c", "get_order", json.dumps(ORDER), read_json(json.dumps(ORDER))))
    for answer, near in (
        ("1,243.50 EUR", "1234.5 (get_order /total)"),
        ("1 December 2026", "2026-11-30 (get_order /due)"),
        ("AB-101", "AB-100 (get_order /items/0/sku)"),
        ("14:45", "14:30:00+02:00 (get_order /at)"),
    ):
        (flag,) = check(f"It is {answer}.", evidence)[0]
        assert flag.nearest == near


def test_what_the_user_said_counts_but_a_state_that_was_asked_for_does_not() -> None:
    said = "Is order 9999 of 3 May 2025 for 77.70 paid?"
    assert looked("Order 9999 of May 3, 2025 (77.70).", ORDER, user=said)[0] == []
    assert looked("Yes, it is paid.", ORDER, user=said)[0] == [("status", "paid")]


LIST = {"orders": [
    {"id": "ord-101", "status": "shipped", "total": 10.00, "due": "2026-03-01"},
    {"id": "ord-102", "status": "cancelled", "total": 25.50, "due": "2026-04-02"},
    {"id": "ord-103", "status": "shipped", "total": 4.25, "due": "2026-05-03"},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "derived"),
    [
        ("All 3 orders come to 39.75.", ["39.75"]),
        ("The shipped ones come to 14.25.", ["14.25"]),
        ("On average 13.25 each.", ["13.25"]),
        ("They differ by 15.5.", ["15.5"]),
        ("ord-102 is about 26.", ["26"]),
        ("ord-103 is 4.3.", ["4.3"]),
        ("10.00 and 25.50 make 35.50.", ["35.50"]),
        ("32 days lie between.", ["32"]),
        ("Two orders are shipped.", []),
    ],
)
def test_simple_derivations_are_marked_and_not_flagged(answer: str, derived: list[str]) -> None:
    assert looked(answer, LIST) == ([], derived)


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("ord-101 is cancelled.", [("status", "cancelled")]),
        ("ord-101 is shipped and ord-102 is cancelled.", []),
        ("ord-101 is cancelled and ord-102 is shipped.",
         [("status", "cancelled"), ("status", "shipped")]),
        ("- ord-102: cancelled\n- ord-103: shipped", []),
        ("ord-101 costs 25.50.", [("number", "25.50")]),
        ("ord-101 costs 10.00, ord-102 costs 25.50.", []),
        ("ord-101 costs 25.50, ord-102 costs 10.00.",
         [("number", "25.50"), ("number", "10.00")]),
        ("10.00 is for ord-101 and 25.50 is for ord-102.", []),
        ("ord-103 is due on 2 April 2026.", [("date", "2 April 2026")]),
        ("ord-101 is cheaper than ord-102, which costs 25.50.", []),
    ],
)  # fmt: skip
def test_a_recorded_value_of_another_thing_is_flagged(
    answer: str, flagged: list[tuple[str, str]]
) -> None:
    assert looked(answer, LIST)[0] == flagged


def test_what_was_done_is_borne_out_by_the_arguments() -> None:
    acted = {"to": "ann@example.org", "amount": 20}
    result = {"ok": True, "status": "queued"}
    answer = "I refunded 20 to ann@example.org; it is refunded."
    assert looked(answer, result, tool="refund", acted=acted)[0] == []
    assert [k for k, _ in looked(answer, result, tool="get_order")[0]] == [
        "status", "number", "email", "status",
    ]  # fmt: skip


def test_units_and_forms_in_results() -> None:
    result = {"amount_cents": 12345, "share": 0.125, "size": 1_572_864, "created_at": 1764513000,
              "sold": 1_234_567, "paid_at": "2026-01-02"}  # fmt: skip
    answer = (
        "123.45 and 12.5 %, 1.5 MiB, made on 30 November 2025 at 14:30 UTC, 1.2 million sold, "
        "about 1,230,000. It is paid."
    )
    flags, derived = looked(answer, result)
    assert flags == [] and derived == ["12.5 %", "1.5", "1.2 million", "1,230,000"]


def test_text_results_and_tables() -> None:
    csv = "orders.csv: lines 1–3 of 3.\ncountry,orders,total\nNorway,12,100.5\nPeru,30,7\n"
    assert looked("Norway has 12 orders (100.50), Peru 30; 42 orders in all.", csv)[0] == []
    assert looked("Norway has 30 orders.", csv)[0] == [("number", "30")]
    assert looked("Norway has 13 orders.", csv)[0] == [("number", "13")]


OTHERS = [
    ("3 of 214 tests failed in 12.4s; `src/app.py` line 88 raises it. It takes about 12 seconds.",
     "src/app.py:88: KeyError\n3 failed, 211 passed in 12.41s\n[exit code 1]"),
    ("5 invoices are overdue by up to 97 days; A-1 and A-2 come to $12,340.00.",
     [{"no": "A-1", "days": 97, "amount": "10000.00", "currency": "USD"},
      {"no": "A-2", "days": 5, "amount": "2340.00", "currency": "USD"}]),
    ("It moved from 10:00 to 11:30 on Thursday, December 3, and lasts 45 minutes. 8 people come.",
     {"old": "2026-12-03T10:00:00+01:00", "start": "2026-12-03T11:30:00+01:00",
      "end": "2026-12-03T12:15:00+01:00", "accepted": list("abcdefgh")}),
    ("Commit abc1234 was merged on Nov 28; #512 is closed. 12 files changed, +340/−25.",
     {"sha": "abc1234def5678", "merged_at": "2026-11-28T09:00:00Z", "number": 512,
      "state": "closed", "changed_files": 12, "additions": 340, "deletions": 25}),
    ("3°C, feels like -1°C, humidity 81%. Tomorrow 5–7 °C with 20% rain.",
     {"temp": 3.2, "feels_like": -1.4, "humidity": 81, "next": {"min": 5, "max": 7, "rain": 0.2}}),
    ("In Q3 2026 revenue rose 12% to €4.5M (Q2: €4.0M).",
     {"q3": 4480000, "q2": 4000000, "year": 2026}),
    ("The order is on its way. Expect it in 2-3 business days.",
     {"status": "in_transit", "eta": "2026-12-02"}),
    ("Your payment of 50 € was declined. Try again, or pay with another card.",
     {"result": "declined", "status": "failed", "amount": 50, "currency": "EUR"}),
    ("Die Rechnung RE-2026-0815 über 1.190,00 € ist am 15.12.2026 fällig (1.000,00 € zzgl. 19 % "
     "MwSt. 190,00 €).",
     {"nr": "RE-2026-0815", "brutto": 1190.00, "netto": 1000.0, "satz": 0.19,
      "faellig": "2026-12-15", "waehrung": "EUR"}),
    ("`total` ranges from 4.25 to 25.50 with a mean of 13.25 and a median of 10.",
     "id,total\na,10.00\nb,25.50\nc,4.25"),
    ("**Option 1**: 2 GB at $5/month.\n**Option 2**: 4 GB at $10/month.",
     {"plans": [{"ram_gb": 2, "price": 5, "currency": "USD"},
                {"ram_gb": 4, "price": 10, "currency": "USD"}]}),
    ("All 4 checks passed; the build #2281 succeeded.",
     {"checks": [{"name": n, "conclusion": "success"} for n in "abcd"], "build": 2281}),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "result"), OTHERS)
def test_true_answers_of_other_kinds_raise_no_alarm(answer: str, result: Any) -> None:
    assert looked(answer, result)[0] == []


def test_filled_places_are_not_looked_at() -> None:
    evidence = Evidence()
    evidence.add(Source("c", "t", '{"a": 1}', {"a": "1"}))
    assert check("It is 77.", evidence, skip=[(6, 8)])[0] == ()


def test_only_the_kinds_that_are_asked_for() -> None:
    evidence = Evidence()
    evidence.add(Source("c", "t", json.dumps(ORDER), read_json(json.dumps(ORDER))))
    only = AnswerSettings(kinds=frozenset({"status"}))
    flags, _ = check("It is shipped for 9.99 EUR on 2020-01-01.", evidence, only)
    assert [f.kind for f in flags] == ["status"]


def test_rates_on_the_generated_set() -> None:
    """Exactly these: a change of either number is a change of the check, for better or worse."""
    found = rates()
    assert found["true"] == found["altered"] == EACH * len(SCENARIOS) == 336
    assert found["false_alarms"] == 0
    assert found["caught"] == 336


@pytest.mark.parametrize(("seed", "caught"), [(1, 335), (2, 336), (3, 330)])
def test_rates_on_sets_of_other_seeds(seed: int, caught: int) -> None:
    found = rates(seed)
    assert (found["false_alarms"], found["caught"]) == (0, caught)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_answer_and_any_result_are_read(answer: str, result: str) -> None:
    evidence = Evidence()
    evidence.add(Source("c", "t", result, read_json(result)))
    for flag in check(answer, evidence)[0]:
        assert answer[slice(*flag.span)] == flag.text


@given(st.text(alphabet="0123456789.,:- /€$%#abMay\n", max_size=80))
@example("0,0:\n,")
def test_what_a_result_says_word_for_word_is_never_flagged(text: str) -> None:
    evidence = Evidence()
    evidence.add(Source("c", "t", text))
    assert [f for f in check(text, evidence)[0] if f.kind != "status"] == []
