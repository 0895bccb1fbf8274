"""Answers of a session: filled for people, checked, and recorded as the model wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, tool
from lorimer.context.answers import ANSWER_GUIDE, AnswerSettings
from lorimer.core.errors import ConfigError
from lorimer.core.messages import FilePart, TextPart
from lorimer.core.watch import Warned
from lorimer.models.protocol import TextDelta
from lorimer.testing import ScriptedModel, call, reply

pytestmark = pytest.mark.anyio

WRITTEN = "Order {{get_order.order_id}}: {{get_order.total|money}}, {{get_order.nope}}."
FILLED = "Order 1042: 1,234.50 EUR, {{get_order.nope}}."


@tool(effects="read")
def get_order(order_id: int) -> dict[str, Any]:
    """Look up one order.

    Use when: the user names an order.

    Args:
        order_id: The number of the order.
    """
    return {"order_id": order_id, "total": 1234.5, "currency": "EUR", "status": "processing"}


@tool(effects="write")
def refund(order_id: int, amount: float) -> str:
    """Give money back.

    Use when: the user asks for it.

    Args:
        order_id: The number of the order.
        amount: How much.
    """
    return "ok"


def agent_of(script: list[Any], *, store: Any = ":memory:", **options: Any) -> Agent:
    return Agent(ScriptedModel(script), [get_order, refund], store=store, **options)


async def test_off_by_default() -> None:
    async with agent_of([call("get_order", order_id=1042), "It is 9.99 {{get_order.total}}."]) as a:
        result = await a.run("?")
    assert result.answer == "It is 9.99 {{get_order.total}}."
    assert (result.flags, result.derived, result.answer_raw) == ((), (), None)
    assert ANSWER_GUIDE not in a.system


@pytest.mark.parametrize("given", ["fil", True, 3])
def test_another_word_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="answers="):
        agent_of([], answers=given)


async def test_filled_for_people_and_recorded_as_written(tmp_path: Path) -> None:
    told: list[Any] = []
    script = [reply("Wait {{x.y}}.", call("get_order", order_id=1042)), WRITTEN, "Done."]
    async with agent_of(script, store=tmp_path / "s.db", answers="fill", watch=told.append) as a:
        assert ANSWER_GUIDE in a.system
        async with a.session() as session:
            result = await session.send("Total of order 1042?")
            assert (result.answer, result.answer_raw) == (FILLED, WRITTEN)
            assert session.entries[-1].text == WRITTEN
            before = b"".join(session.trajectory.fragments)
            await session.send("Thanks.")
            assert b"".join(session.trajectory.fragments).startswith(before)
            assert WRITTEN.encode() in before
        async with a.session(session.id) as again:  # after it was closed as well
            assert (await again.resume()).answer == "Done."
    streamed = "".join(e.text for e in told if isinstance(e, TextDelta))
    assert streamed == f"Wait {{{{x.y}}}}.{FILLED}Done."
    (flag,) = result.flags
    assert flag.kind == "template" and result.answer[slice(*flag.span)] == "{{get_order.nope}}"
    body = json.loads(json.dumps(result.to_json()))
    assert body["answer_raw"] == WRITTEN and body["flags"][0]["kind"] == "template"


async def test_results_of_earlier_runs_count_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    script = [call("get_order", order_id=1042), "ok"]
    async with agent_of(script, store=path) as a, a.session() as session:
        await session.send("Look at 1042.")
    async with (
        agent_of([WRITTEN], store=path, answers="fill") as b,
        b.session(session.id) as again,
    ):
        result = await again.send("And its total?")
    assert result.answer == FILLED


async def test_a_session_that_was_taught_templates_has_them_filled_by_any_agent(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    script = [call("get_order", order_id=1042), "ok"]
    async with agent_of(script, store=path, answers="fill") as a, a.session() as session:
        await session.send("Look at 1042.")
    async with agent_of([WRITTEN], store=path) as b, b.session(session.id) as again:
        result = await again.send("And its total?")
    assert result.answer == FILLED and [f.kind for f in result.flags] == ["template"]


async def test_what_nothing_bears_out_is_flagged_and_audited(tmp_path: Path) -> None:
    answer = "Order 1042 is shipped; it costs 1,243.50 EUR, that is 617.25 each for 2."
    async with (
        agent_of(
            [call("get_order", order_id=1042), answer], store=tmp_path / "s.db", answers="check"
        ) as a,
        a.session() as session,
    ):
        result = await session.send("Is order 1042 shipped?")
        lines = [line for line in a.store.audit() if line.action == "answer.flagged"]
    assert result.answer == answer and result.answer_raw is None
    assert [(f.kind, f.text) for f in result.flags] == [
        ("status", "shipped"), ("money", "1,243.50 EUR"), ("number", "617.25"),
    ]  # fmt: skip
    assert result.flags[1].nearest == "1234.5 (get_order /total)"
    assert len(lines) == 1 and "1,243.50 EUR" in lines[0].why


async def test_what_was_done_counts_with_the_arguments_that_were_used() -> None:
    script = [call("refund", order_id=1042, amount=19.99), "Refunded 19.99 for order 1042."]
    async with agent_of(script, answers="check", mode="trusted") as a:
        assert (await a.run("Give it back.")).flags == ()


async def test_without_any_result_nothing_is_checked_unless_asked() -> None:
    for settings, flags in ((AnswerSettings(), 0), (AnswerSettings(without_results=True), 1)):
        async with agent_of(["It is 8,849 m high."], answers=settings) as a:
            assert len((await a.run("How high?")).flags) == flags


async def test_words_of_the_operator_files_and_allowed_texts_count() -> None:
    script = [call("get_order", order_id=1), "Call 0800 123456 within 30 days; 77.5 is in notes."]
    data = "NzcuNSBpcyBpdA=="
    message = [TextPart("See this."), FilePart("text/plain", "notes.txt", data)]
    async with agent_of(
        script, answers=AnswerSettings(allowed=("0800 123456",)), system="Returns: 30 days."
    ) as a:
        assert (await a.run(message)).flags == ()


async def test_a_check_that_fails_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr("lorimer.runtime.answers.check", broken)
    told: list[Any] = []
    async with agent_of(
        [call("get_order", order_id=1), "It is 5.5."], answers="check", watch=told.append
    ) as a:
        result = await a.run("?")
    assert result.ok and result.answer == "It is 5.5." and "not checked" in result.notes[-1]
    assert any(isinstance(e, Warned) and "a bug" in e.message for e in told)


async def test_a_discarded_answer_leaves_nothing_behind_in_the_stream() -> None:
    told: list[Any] = []
    cut = reply("Half {{get_ord", cut_after=1)
    async with agent_of(
        [call("get_order", order_id=1042), cut, "It is {{get_order.total}}."],
        answers="fill", watch=told.append,
    ) as a:  # fmt: skip
        result = await a.run("?")
    assert result.answer == "It is 1234.5."
    texts = [e.text for e in told if isinstance(e, TextDelta)]
    assert "".join(texts).endswith("It is 1234.5.") and "{{get_ordIt" not in "".join(texts)
