"""The linter finds what would change, and is silent about talk of it."""

# ruff: noqa: E501 - tables of cases read better in one line each

from __future__ import annotations

from itertools import chain

import pytest

from lorimer.context.answers.guide import guide_part
from lorimer.context.prefix.finding import Finding, Trouble
from lorimer.context.prefix.lint import Known, lint
from lorimer.context.prefix.parts import PromptPart, Stability
from lorimer.runtime.agent import DEFAULT_SYSTEM
from lorimer.toolkits import all_tools

from . import prompts


def read(text: str, known: Known | None = None) -> list[Finding]:
    return lint(
        [PromptPart("system", "app", Stability.DEPLOYMENT, text)], known=known, template=True
    )


def bad(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(kind, text) for kind, texts in table.items() for text in texts]


STABLE = [*prompts.GOOD, *prompts.MORE_GOOD, *prompts.LATER_GOOD, *prompts.HELD_OUT_GOOD]


def test_there_are_enough_prompts() -> None:
    assert len(STABLE) >= 100
    assert len(bad(prompts.BAD)) + len(bad(prompts.MORE_BAD)) >= 120


@pytest.mark.parametrize("text", STABLE)
def test_a_stable_prompt_has_no_finding(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(("kind", "text"), [*bad(prompts.BAD), *bad(prompts.MORE_BAD)])
def test_what_would_change_is_named(kind: str, text: str) -> None:
    found = read(text)
    assert kind in [str(one.trouble) for one in found], found
    for one in found:
        assert one.excerpt and one.why and one.advice and one.part == "system"
        assert one.line >= 1


@pytest.mark.parametrize(
    ("table", "share"),
    [(prompts.LATER_BAD, 0.8), (prompts.HELD_OUT, 0.75)],
    ids=["later", "held out"],
)
def test_most_other_wordings_are_found_too(table: dict[str, list[str]], share: float) -> None:
    cases = bad(table)
    found = sum(kind in [str(one.trouble) for one in read(text)] for kind, text in cases)
    assert found >= share * len(cases)


@pytest.mark.parametrize("good", [prompts.GOOD[0], prompts.GOOD[8]])
@pytest.mark.parametrize(("kind", "text"), bad(prompts.BAD)[::3])
def test_it_is_found_in_the_middle_of_a_long_prompt_with_its_line(
    kind: str, text: str, good: str
) -> None:
    before = "\n".join(chain(prompts.GOOD[:5], [good]))
    found = read(f"{before}\n\n{text}\n\nAlways answer in whole sentences.")
    assert kind in [str(one.trouble) for one in found]
    assert {one.line for one in found} <= set(
        range(before.count("\n") + 3, before.count("\n") + 4 + text.count("\n"))
    )


def test_a_finding_says_where_why_and_what_to_do() -> None:
    (found,) = read("Be brief.\n\nCurrent date: 2026-11-30. Use tools.")
    assert found.to_json() == {
        "trouble": "clock", "part": "system", "line": 3,
        "excerpt": "Current date: 2026-11-30. Use tools.", "detail": "",
        "why": found.why, "advice": found.advice,
    }  # fmt: skip
    assert "cache" in found.why and "newest message" in found.advice


def test_what_is_known_of_this_machine_is_found_in_any_words() -> None:
    known = Known(
        "ottilie", "workhorse", "/srv/people/ottilie", {"s_01kx": "the id of this session"}
    )
    for text in (
        "ottilie likes tea",
        "see /srv/people/ottilie/x",
        "s_01kx",
        "on workhorse we trust",
    ):
        (found, *_) = read(text, known)
        assert found.trouble is Trouble.USER_DATA and found.detail
    assert read("ottilies workhorses", known) == []
    session = PromptPart("who", "app", Stability.SESSION, "ottilie likes tea")
    assert lint([session], known=known) == []


def test_parts_out_of_order_are_found() -> None:
    def part(name: str, stability: str) -> PromptPart:
        return PromptPart(name, "app", Stability(stability), f"Words of {name}.")

    fine = [
        part("a", "global"),
        part("b", "deployment"),
        part("c", "deployment"),
        part("d", "session"),
    ]
    assert lint(fine) == []
    found = lint([fine[1], fine[0], fine[3], fine[2]])
    assert [(f.trouble, f.part) for f in found] == [
        (Trouble.STABILITY, "a"), (Trouble.STABILITY, "c"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Never delete a file without asking the user first.", "- never delete a file without asking the user first", True),
        ("Answer in short, plain sentences and name your sources.", "Answer in short plain sentences, and name your sources!", True),
        ("Always run the tests before you commit a change.", "Never run the tests before you commit a change.", False),
        ("Stop after 3 failed calls of one tool in a row.", "Stop after 5 failed calls of one tool in a row.", False),
        ("Be brief.", "Be brief.", False),
        ("Use the calculator for every sum that has more than two numbers.", "Quote the passage that a claim rests on, with its page.", False),
    ],
)  # fmt: skip
def test_what_is_said_twice(one: str, other: str, same: bool) -> None:
    across = lint([
        PromptPart("a", "app", Stability.GLOBAL, one),
        PromptPart("b", "app", Stability.GLOBAL, f"Something else.\n{other}"),
    ])  # fmt: skip
    within = read(f"{one}\n\nSomething else here.\n{other}")
    for found, line in ((across, 2), (within, 4)):
        assert [(f.trouble, f.line) for f in found] == ([(Trouble.DUPLICATE, line)] if same else [])


TOOL = {"name": "b", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}


def test_tools() -> None:
    other = {**TOOL, "name": "a"}
    assert lint([], [other, TOOL]) == []
    (found,) = lint([], [TOOL, other])
    assert (found.trouble, found.excerpt) == (Trouble.UNSORTED_TOOLS, "b, a")
    turned = {"input_schema": TOOL["input_schema"], "description": "x", "name": "c"}
    (found,) = lint([], [TOOL, turned])
    assert (found.trouble, found.part) == (Trouble.KEY_ORDER, "tool c")
    for bad_text in ("Look at the mail of anna@web.de.", "Today is Monday, 30 November 2026."):
        (found,) = lint([], [{**TOOL, "description": bad_text}])
        assert found.part == "tool b"
    default = {
        "type": "object",
        "properties": {"at": {"type": "string", "default": "2026-11-30T10:00:00Z"}},
    }
    (found,) = lint([], [{**TOOL, "input_schema": default}])
    assert found.trouble is Trouble.CLOCK
    wrapped = [{"type": "function", "function": {"name": name}} for name in ("z", "y")]
    assert [f.trouble for f in lint([], wrapped)] == [Trouble.UNSORTED_TOOLS]


def test_lorimers_own_prompt_and_tools_are_clean() -> None:
    tools = sorted((tool.spec.to_json() for tool in all_tools()), key=lambda t: t["name"])
    assert lint([PromptPart("i", "lorimer", Stability.GLOBAL, DEFAULT_SYSTEM)], tools) == []
    assert lint([guide_part()]) == []
    from lorimer.models.local import prompt

    specs = [tool.spec for tool in all_tools()]
    assert read(prompt.default_system(specs)) == []


def test_a_very_long_prompt_is_read_in_reasonable_time() -> None:
    text = "\n".join(
        f"- Rule number of the house: keep shelf {n} tidy and clean." for n in range(8000)
    )
    assert len(text) > 300_000
    read(text)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5000,
        "<" * 5000,
        "a" * 20_000,
        "1" * 20_000,
        "- " * 9000,
        "\n" * 9000,
        "\ud800 is now",
        "```\n" * 999,
    ],
)
def test_odd_texts_do_no_harm(text: str) -> None:
    read(text)
