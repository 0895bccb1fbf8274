"""Which mode a session gets: the rule by prices, and the cases that the rule is not asked in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.status.mode import Choice, Measures, choose, price_ratios
from lorimer.models.profiles import Price, Profile, profile_for


def priced(
    cached: str | None = "0.1", write: str | None = None, wire: str = "openai_chat"
) -> Profile:
    def amount(text: str | None) -> Decimal | None:
        return None if text is None else Decimal(text)

    price = Price(Decimal(1), Decimal(5), amount(cached), amount(write), "2026-11-30", "a test")
    return Profile("test", wire, price=price)


def test_ratios_come_from_the_prices() -> None:
    assert price_ratios(priced("0.1", "1.25")) == (0.1, 1.25)
    assert price_ratios(priced("0.1")) == (0.1, 1.0)
    assert price_ratios(priced(None)) == (None, None)
    assert price_ratios(Profile("x", "openai_chat")) == (None, None)
    assert price_ratios(Profile("x", "local")) == (0.0, 1.0)


@given(st.integers(1, 5000), st.integers(1, 20_000), st.floats(1, 200), st.floats(0.01, 0.9))
def test_implicit_caching_follows_the_rule(s: int, r: int, n: float, a: float) -> None:
    made = choose("auto", priced(str(a)), Measures(s, r, n))
    assert made.mode == ("append" if a * s * n / 2 < (1 - a) * r else "replace")


@given(st.integers(50, 2000), st.integers(50, 5000), st.integers(2, 40))
def test_the_rule_is_the_cheaper_of_both_summed_up_request_by_request(
    s: int, r: int, n: int
) -> None:
    """By hand: N updates, each request reads what the ones before left in the cache."""
    a, w = 0.1, 1.0
    append = sum(a * s * k for k in range(n))  # the bars before, read from the cache each time
    replace = n * (w - a) * r  # what stands behind the last breakpoint is not a cache read
    made = choose("auto", priced("0.1"), Measures(s, r, n))
    if abs(append - replace) > a * s * n:  # N/2 for (N-1)/2 is the rule's own rounding
        assert made.mode == ("append" if append < replace else "replace")


def test_a_breakpoint_before_the_bar_makes_replacing_cost_itself_only() -> None:
    made = choose("auto", profile_for("anthropic", "claude-opus-5"), Measures(300, 5000, 20))
    assert (made.mode, made.added_tokens) == ("replace", 0)


@pytest.mark.parametrize("asked", ["auto", "replace"])
@pytest.mark.parametrize(
    "model", ["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]
)
def test_where_reasoning_is_bound_to_the_messages_before_it_a_bar_stays(
    asked: str, model: str
) -> None:
    made = choose(asked, profile_for("anthropic", model), Measures(300))
    assert made.mode == "append" and "void" in made.why and made.asked == asked


def test_unknown_prices_and_local_models_append() -> None:
    assert choose("auto", priced(None), Measures(5000, 10, 500)).mode == "append"
    assert choose("auto", Profile("x", "local"), Measures(5000, 10, 500)).mode == "append"
    assert choose("auto", Profile("x", "bridge"), Measures(5000, 10, 500)).mode == "append"


@pytest.mark.parametrize("asked", ["append", "replace"])
def test_what_was_asked_for_is_done(asked: str) -> None:
    for profile in (priced(), Profile("x", "local"), profile_for("anthropic", "claude-opus-5")):
        assert choose(asked, profile, Measures(10)).mode == asked


def test_a_choice_is_kept_whole() -> None:
    made: Any = choose("auto", priced(), Measures(120, 900, 12.5, 3))
    assert Choice.from_json(made.to_json()) == made
    for part in ("S=120", "R=900", "N=12.5", "a=0.1", "w=1", "3 past"):
        assert part in made.words()
