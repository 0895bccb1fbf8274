"""The compaction bench: what it promises of `layered`, on two generators, and that it can fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import compaction
from compaction_task import make

from lorimer.context.compaction import summary

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@pytest.mark.parametrize("name", ["river", "clinic"])
@pytest.mark.parametrize("seed", [7, 21])
async def test_layered_keeps_what_it_promises(name: str, seed: int) -> None:
    row = await compaction.run_way("layered", make(name, seed))
    assert row["done"] and row["facts"] == 60
    assert row["facts_reachable"] >= 57
    assert row["constraints_verbatim"] and row["invented"] == 0
    assert row["summary_requests"] >= 1 and row["summary_cache_share"] >= 0.95


async def test_without_compaction_the_window_overflows() -> None:
    row = await compaction.run_way("none", make("river"))
    assert not row["done"] and row["ended"] == "error: ContextTooLong"


async def test_an_adversary_is_caught() -> None:
    row = await compaction.run_way("layered_adversary", make("clinic"))
    assert row["lies_told"] > 20 and row["caught"] == row["lies_told"] and row["invented"] == 0


async def test_the_bench_sees_lies_that_are_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_holder", lambda line, sources: sources[0])
    row = await compaction.run_way("layered_adversary", make("clinic"))
    assert row["caught"] < row["lies_told"] and row["invented"] > 0


@pytest.mark.parametrize("name", ["river", "clinic"])
def test_every_planted_fact_stands_once_and_every_rule_in_a_message(name: str) -> None:
    task = make(name)
    text = "\n".join(result.text for result in task.results)
    assert len(task.facts) == 60 and all(text.count(fact.value) == 1 for fact in task.facts)
    assert all(50_000 < len(result.text) < 56_000 for result in task.results)
    assert all(any(rule in words for words, _ in task.turns) for rule in task.constraints)
    assert {result.external for result in task.results} == {True, False}
