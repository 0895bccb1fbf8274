"""`lorimer cache report`, and `--strict-cache`."""

from __future__ import annotations

import asyncio
import importlib.util
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, open_store
from lorimer.models.profiles import profile_for
from wire.answers import Say, Usage
from wire.kit import adapter
from wire.server import WireServer


def recorded(path: Path) -> str:
    """A session of six requests: the fourth misses, the fifth breaks, the sixth is announced."""
    usages = [
        Usage(4000, 0), Usage(4100, 3968), Usage(4200, 4096), Usage(4300, 0), Usage(4400, 2048),
        Usage(4500, 2048),
    ]  # fmt: skip

    async def work(url: str) -> str:
        model = adapter(
            "openai_chat", url, profile_for("openai", "gpt-5.6-terra"), model="gpt-5.6-terra"
        )
        store = open_store(path)
        agent = Agent(model, store=store, system="Be brief.", watch=lambda _: None)
        async with aclosing(model), agent, agent.session() as session:
            for number in range(len(usages)):
                if number >= 4:
                    kept = session.trajectory.fragments
                    kept[2] = kept[2].replace(b"question", b"QUESTION", 1)[: len(kept[2]) + 9]
                    kept[0] = kept[0].replace(b"question", b"query") if number == 5 else kept[0]
                if number == 5:
                    session.expect_break("a rebase")
                await session.send(f"question {number}\x1b[2J of a shop")
            made = session.id
        store.close()
        return made

    with WireServer("openai_chat", [Say("a", usage=usage) for usage in usages]) as server:
        return asyncio.run(work(server.base_url))


@pytest.fixture
def session(tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "s.db"
    return recorded(path), str(path)


def test_the_report_for_programs(cli: Any, session: tuple[str, str]) -> None:
    made, store = session
    told = cli.json("cache", "report", made, "--store", store, "--json")
    rows = told["requests"]
    assert [r["prompt"] for r in rows] == [4000, 4100, 4200, 4300, 4400, 4500]
    assert [r["cached"] for r in rows] == [0, 3968, 4096, 0, 2048, 2048]
    assert [r["expected"] for r in rows[:4]] == [0, 4000, 4100, 4200]
    assert 0 < rows[4]["expected"] < 4300
    assert [r["missed"] for r in rows] == [False, False, False, True, False, False]
    assert [bool(r["broken"]) for r in rows] == [False] * 4 + [True] * 2
    assert rows[4]["broken"]["segment"] == "message 2 (user)"
    assert rows[5]["broken"]["announced"] == "a rebase"
    assert all(r["ttft_s"] > 0 and float(r["cost"]) > 0 for r in rows)
    totals = told["totals"]
    assert totals["breaks"] == totals["announced"] == totals["misses"] == 1
    assert totals["prompt"] == 25_500 and totals["cached"] == 12_160
    assert told["context"] == {"tokens": 4_530, "window": 1_050_000, "share": 0.0043}


def test_the_table_names_what_broke_and_fits_eighty_columns(
    cli: Any, session: tuple[str, str]
) -> None:
    made, store = session
    ended = cli.run("cache", "report", made, "--store", store)
    assert ended.returncode == 0, ended
    shown = ended.stdout.decode()
    table = shown.partition("\n\n")[0]
    assert all(len(line) <= 80 for line in table.splitlines()), table
    assert "request 5 breaks at message 2 (user)" in shown and "announced: a rebase" in shown
    assert "missed" in shown and "\x1b[2J" not in shown
    assert "message_rewritten" in shown.replace("\n", "")


def test_a_session_without_requests_and_one_that_is_not_there(cli: Any, tmp_path: Path) -> None:
    open_store(tmp_path / "s.db").close()
    ended = cli.run("cache", "report", "s_nothing", "--store", str(tmp_path / "s.db"))
    assert ended.returncode == 2 and b"s_nothing" in ended.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the extra `plot` is not installed"
)
def test_the_plot_is_a_picture(cli: Any, session: tuple[str, str], tmp_path: Path) -> None:
    made, store = session
    for ending, head in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        file = tmp_path / f"cache{ending}"
        ended = cli.run("cache", "report", made, "--store", store, "--plot", str(file))
        assert ended.returncode == 0, ended
        assert file.read_bytes().startswith(head) and file.stat().st_size > 5000


def test_the_plot_says_what_is_missing(cli: Any, session: tuple[str, str], tmp_path: Path) -> None:
    made, store = session
    ended = cli.run("cache", "report", made, "--store", store, "--plot", "cache.xyz")
    assert ended.returncode == 2 and b".png" in ended.stderr
    blocked = tmp_path / "blocked"
    (blocked / "matplotlib").mkdir(parents=True)
    (blocked / "matplotlib" / "__init__.py").write_text("raise ImportError('not here')")
    ended = cli.run(
        "cache", "report", made, "--store", store, "--plot", "c.png", PYTHONPATH=str(blocked)
    )
    assert ended.returncode == 2 and b"lorimer[plot]" in ended.stderr


def test_strict_cache_lets_an_ordinary_session_through(cli: Any, serve: Any) -> None:
    served = serve(Say("One."), Say("Two."))
    first = cli.json("run", "--json", "--strict-cache", "-m", served.model, "one?")
    again = cli.json(
        "run", "--json", "--strict-cache", "-s", first["session"], "-m", served.model, "2?"
    )
    assert (first["answer"], again["answer"]) == ("One.", "Two.")
