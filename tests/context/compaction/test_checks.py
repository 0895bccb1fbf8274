"""What a model's summary may say: held against its sources."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.context.compaction.anchors import SourceText
from lorimer.context.compaction.constraints import binds, constraints_in
from lorimer.context.compaction.digest import Digest, digest_of
from lorimer.context.compaction.extracts import Extracts
from lorimer.context.compaction.pages import OVERLAP, in_short_lines, pages_of
from lorimer.context.compaction.sentences import sentences_of
from lorimer.context.compaction.summary import (
    INVENTED,
    NOT_TOGETHER,
    REWORDED,
    UNCITED,
    check_summary,
    told,
)
from lorimer.core.calls import Outcome, ToolCall
from lorimer.core.messages import ResultPart, TextPart
from lorimer.core.trust import Trust

SOURCE = """The Harrow mill was rebuilt in 2019 for 12,400 euro. Dr Lenn did not approve the plan.
Kiln 7 runs at 1,180 degrees; the second kiln was sold to Aldous & Sons in March.
| pump | flow | | Ostra | 45.3 | | Velm | 61.9 |
Deliveries must be announced two days ahead. See https://kilns.example/list?id=9 for the rest.
"""


def digest(text: str = SOURCE, call: str = "c1", trust: Trust = Trust.USER_DATA) -> Digest:
    part = TextPart(text, trust, f"https://{call}.example")
    result = ResultPart(call, "look", (part,), False, Outcome.DONE)
    return digest_of(ToolCall(call, "look", "{}"), result)


@pytest.mark.parametrize(
    "line",
    [
        "The Harrow mill was rebuilt in 2019 for 12,400 euro.",
        "Harrow mill was rebuilt in 2019 for 12,400 euro",
        "Dr Lenn did not approve the plan",
        "Kiln 7 runs at 1,180 degrees",
        "Deliveries must be announced two days ahead.",
    ],
)
def test_what_the_source_says_stays(line: str) -> None:
    checked = check_summary(f"- {line}", [digest()])
    assert checked.lines["c1"] == [line] and not checked.dropped


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("The Harrow mill was rebuilt in 2018 for 12,400 euro.", INVENTED),
        ("The Kelmora mill was rebuilt in 2019 for 12,400 euro.", INVENTED),
        ("Kelmora mill was rebuilt in 2019 for 12,400 euro.", INVENTED),
        ("Kiln 7 runs at 12,400 degrees", NOT_TOGETHER),
        ("Kiln 7 was rebuilt in 2019", NOT_TOGETHER),
        ("Dr Lenn did approve the plan", NOT_TOGETHER),
        ("The Harrow mill was not rebuilt in 2019 for 12,400 euro", NOT_TOGETHER),
        ("The Harrow mill was demolished in 2019 for 12,400 euro", NOT_TOGETHER),
        ("Deliveries must be announced three days ahead.", REWORDED),
        ("You have to announce deliveries two days ahead.", REWORDED),
        ("Never use kiln 7.", REWORDED),
        ("See https://kilns.example/list?id=8", INVENTED),
        ('The plan is called "Great Leap"', INVENTED),
        ("The mill was rebuilt in two years", NOT_TOGETHER),
    ],
)
def test_what_no_source_says_is_dropped_and_said(line: str, why: str) -> None:
    checked = check_summary(f"{line}\nKiln 7 runs at 1,180 degrees", [digest()])
    assert [d.why for d in checked.dropped] == [why]
    assert checked.kept == 1 and line not in checked.lines["c1"]
    flat = " ".join(SOURCE.split())
    assert all(one.strip("“”") in flat for one in checked.lines["c1"])
    said = told(checked.dropped)
    assert said[0] == f"1 line(s) of the summary were dropped: {why}."
    assert line not in " ".join(said)
    quotes = sum(one.startswith("“") for one in checked.lines["c1"])
    assert len(said) == 1 + quotes == len(checked.lines["c1"])


def test_a_figure_cut_out_of_a_longer_one_is_no_figure_of_the_source() -> None:
    source = SourceText("It cost 12,400 euro and weighed 9.75 kilos.")
    assert not source.has_words("It cost 12")
    assert not source.has_words("75 kilos")
    assert source.has_words("It cost 12,400 euro")


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("", {}, "empty"),
        ("  \n<context_summary></context_summary>", {}, "empty"),
        ("fine", {"called": ["look"]}, "called_a_tool"),
        ("x " * 4000, {}, "too_long"),
        ("Kiln 7 runs", {"cut_off": True}, "cut_off"),
        ("The moon is 9 cheeses.\nAbsolutely Nothing here.", {}, "nothing_left"),
    ],
)
def test_each_unusable_answer_has_its_own_outcome(text: str, options: dict, code: str) -> None:
    checked = check_summary(text, [digest()], **options)
    assert checked.refused is not None and checked.refused.code == code
    assert not any(checked.lines.values())


def test_lines_come_under_the_result_that_says_them() -> None:
    other = digest("The weir at Osk has 31 gates.", "c2", Trust.EXTERNAL)
    checked = check_summary(
        "The weir at Osk has 31 gates.\nKiln 7 runs at 1,180 degrees", [digest(), other]
    )
    assert checked.lines == {
        "c1": ["Kiln 7 runs at 1,180 degrees"], "c2": ["The weir at Osk has 31 gates."]
    }  # fmt: skip


def test_a_cited_line_needs_a_source_that_holds_it() -> None:
    other = digest("The weir at Osk has 31 gates.", "c2")
    text = (
        "The weir at Osk has 31 gates. [c2]\nThe weir at Osk has 31 gates. [c1]\n"
        "Kiln 7 runs at 1,180 degrees\nKiln 7 runs at 1,180 degrees [source: https://c1.example]"
    )
    checked = check_summary(text, [digest(), other], cited=True)
    assert checked.lines["c2"] == ["The weir at Osk has 31 gates."]
    assert checked.lines["c1"] == ["Kiln 7 runs at 1,180 degrees"]
    assert len(checked.dropped) == 2 and checked.dropped[1].why == UNCITED


def test_a_rule_of_the_user_in_other_words_is_dropped() -> None:
    known = ["Use metric units only. The report must not exceed four pages."]
    checked = check_summary(
        "The report should not be longer than four pages.\nKiln 7 runs at 1,180 degrees\n"
        "The report must not exceed four pages.",
        [digest()], known=known,
    )  # fmt: skip
    assert [d.why for d in checked.dropped] == [REWORDED]  # the other stands there anyway


def test_swapped_figures_of_a_table_are_noticed() -> None:
    rng = random.Random(4)
    rows = [f"| {chr(65 + n)}orvale | {rng.randint(1000, 9999)} | {n + 300} |" for n in range(20)]
    source = Extracts("\n".join(rows))
    for at, row in enumerate(rows):
        assert source.has(row)
        figure = re.findall(r"\d{4}", row)[0]
        other = re.findall(r"\d{4}", rows[(at + 1) % 20])[0]
        assert not source.has(row.replace(figure, other))


@pytest.mark.parametrize(
    "text",
    [
        "Never mention prices.", "please keep it under 200 words", "You mustn't call them",
        "Nothing older than 2019!", "The budget is 40 euro", "do not touch src/old",
        "It has to be ready by Friday", "Höchstens drei Seiten.", "hands off the database",
    ],
)  # fmt: skip
def test_sentences_that_bind_are_found_in_the_users_words(text: str) -> None:
    message = f"Look at the mills. {text}\nThanks a lot."
    assert text in constraints_in(message)
    assert all(one in message for one in constraints_in(message))


def test_plain_statements_do_not_bind() -> None:
    assert not binds("The mill was rebuilt in 2019.")


@given(st.text(max_size=3000), st.integers(20, 400), st.integers(2, 30))
def test_pages_hold_the_whole_text_and_stay_small(text: str, most: int, lines: int) -> None:
    pages = pages_of(text, most, lines)
    assert pages[0].start == 0 and pages[-1].end == len(text)
    for one, following in pairwise(pages):
        assert one.start < following.start <= one.end < following.end
        assert one.end - following.start <= OVERLAP
    assert all(p.end - p.start <= most for p in pages)


@given(st.text(alphabet="ab ,.}{\n", max_size=6000))
def test_short_lines_lose_nothing(text: str) -> None:
    short = in_short_lines(text)
    assert short.replace("↩\n", "") == text
    assert all(len(line) <= 1_800 for line in short.split("\n"))


@given(st.text(max_size=2000))
def test_pieces_are_slices_of_the_text(text: str) -> None:
    for piece in sentences_of(text):
        assert piece in text
