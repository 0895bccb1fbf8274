"""Real sessions over HTTP against a server that counts with a tokenizer of its own."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent, Budget, tool
from lorimer.context.tokens import Ratios, TokenEstimate
from lorimer.context.view import Span
from lorimer.core.clock import SystemClock
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.watch import Warned
from lorimer.models.anthropic import Anthropic
from lorimer.models.profiles import profile_for
from lorimer.runtime.session import Session
from lorimer.runtime.tokens import shared_ratios
from wire.answers import Say, SayCall, Usage
from wire.server import KEY, Received, WireServer

pytestmark = pytest.mark.anyio

MODEL = "claude-opus-5-5"
WORDS = "harbour customs quay certificates manifest phytosanitary insurance tonnage berth pilotage"
_OWN = re.compile(r"[A-Za-z]{1,4}|\s+|.", re.S)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "home"))


@tool(effects="read", budget=Budget(characters=100_000))
def read_notes(part: int) -> str:
    """Read one part of the notes."""
    words = WORDS.split()
    return " ".join(f"{words[n * part % 10]} {words[n % 10]} {n}," for n in range(900))


def tokens_of(body: Any) -> int:
    """The server's own tokenizer: four letters, a run of blanks or any other character are one."""
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            for one in value.values():
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    walk([body.get("system"), body.get("tools"), body["messages"]])
    return 120 + sum(len(_OWN.findall(text)) for text in texts)


class Server:
    """Answers with calls of `read_notes` until `steps` are done, and counts what it was sent."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.sizes: list[int] = []

    def __call__(self, request: Received) -> Say:
        size = tokens_of(request.json)
        self.sizes.append(size)
        if len(self.sizes) % (self.steps + 1) == 0:
            return Say("Done.", usage=Usage(input=size, cached=0, output=5))
        part = len(self.sizes)
        call = SayCall(f"c{part}", "read_notes", json.dumps({"part": part}))
        return Say(calls=(call,), usage=Usage(input=size, cached=0, output=26))


class Watching:
    """Asks for the size before each request, as compaction does."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seen: list[TokenEstimate] = []

    async def before_request(self) -> None:
        self.seen.append(self.session.tokens.before_request())


@asynccontextmanager
async def open_session(
    server: WireServer, store: Path, session_id: str | None = None,
    watch: Callable[[Any], None] | None = None, **more: Any,
) -> AsyncIterator[Session]:  # fmt: skip
    profile = replace(profile_for("anthropic", MODEL), **more)
    model = Anthropic(MODEL, profile, base_url=server.base_url, api_key=KEY)
    try:
        async with (
            Agent(
                model, [read_notes], store=store, mode="auto", watch=watch, compaction="none"
            ) as agent,
            agent.session(session_id) as session,
        ):
            yield session
    finally:
        await model.aclose()


async def run(
    server: WireServer, store: Path, session_id: str | None = None,
    act: Callable[[Session], Any] | None = None, **more: Any,
) -> tuple[str, list[TokenEstimate]]:  # fmt: skip
    async with open_session(server, store, session_id, **more) as session:
        watching = Watching(session)
        session.preparations.append(watching)
        if act is not None:
            await act(session)
        assert (await session.send("Read all parts.")).ok
        return session.id, watching.seen


SMALL = {"context_window": 100_000, "max_output_tokens": 10_000}


async def test_estimates_are_near_what_the_server_counts_also_after_a_restart(
    tmp_path: Path,
) -> None:
    counts = Server(steps=6)
    with WireServer("anthropic", [counts] * 14) as server:
        name, seen = await run(server, tmp_path / "s.db", **SMALL)
        pairs = list(zip(seen, counts.sizes, strict=True))
        for found, real in pairs[1:]:
            assert found.basis.startswith("measured")
            assert abs(found.tokens - real) <= 0.3 * found.estimated
        exact = [(found, real) for found, real in pairs if found.basis.endswith("o200k")]
        assert len(exact) >= 3
        for found, real in exact[2:]:  # by then the ratio is learned
            assert abs(found.tokens - real) <= 0.02 * real
        first, done = counts.sizes[-1], len(counts.sizes)
        _, seen = await run(server, tmp_path / "s.db", name, **SMALL)
        assert seen[0].measured == first + 5
        assert abs(seen[0].tokens - counts.sizes[done]) <= 0.02 * counts.sizes[done]
    assert not server.faults


async def test_what_was_learned_is_kept_for_the_next_session(tmp_path: Path) -> None:
    counts = Server(steps=6)
    with WireServer("anthropic", [counts] * 7) as server:
        await run(server, tmp_path / "s.db", **SMALL)
    kept = Ratios(tmp_path / "home" / "tokens" / "ratios.json").of(f"anthropic:{MODEL}")
    assert kept.samples >= 1
    assert kept.value != 1.6


async def test_a_session_far_from_its_bound_loads_and_keeps_nothing(tmp_path: Path) -> None:
    counts = Server(steps=3)
    with WireServer("anthropic", [counts] * 4) as server:
        _, seen = await run(server, tmp_path / "s.db")
    assert {found.basis for found in seen} == {"characters", "measured + characters"}
    assert not (tmp_path / "home" / "tokens").exists()


async def test_the_budget_is_the_window_without_what_is_kept_for_the_answer(
    tmp_path: Path,
) -> None:
    for more, window, budget in (
        (SMALL, 100_000, 90_000),
        ({"context_window": 100_000, "max_output_tokens": 80_000}, 100_000, 75_000),
        ({"context_window": None}, None, None),
    ):
        with WireServer("anthropic", [Say("Yes.", usage=Usage(input=45_000))]) as server:
            async with open_session(server, tmp_path / "s.db", **more) as session:
                await session.send("?")
                assert (session.tokens.window, session.tokens.budget) == (window, budget)
                share = session.tokens.share()
                assert share is None if budget is None else share == 45_030 / budget


async def test_a_compaction_takes_the_anchor_and_the_next_answer_gives_a_new_one(
    tmp_path: Path,
) -> None:
    counts = Server(steps=3)

    async def compacted(session: Session) -> None:
        await session.send("Read all parts.")
        answers = [entry.seq for entry in session.entries if entry.kind is Kind.ASSISTANT]
        last = answers[-1] - 1  # the answer stays, with the size of the old request
        now = SystemClock().now()
        inside = Entry(
            Kind.COMPACTION, (TextPart("<context_summary>Read.</context_summary>"),), now
        )
        span = Span(0, last, (inside,)).to_json()
        before = session.tokens.before_request().tokens
        await session._append(Entry(Kind.COMPACTION, (), now, meta={"spans": [span]}), "lorimer")
        after = session.tokens.before_request()
        assert (after.measured, after.tokens < before / 5) == (0, True)

    with WireServer("anthropic", [counts] * 8) as server:
        _, seen = await run(server, tmp_path / "s.db", act=compacted, **SMALL)
    assert seen[4].measured == 0
    assert abs(seen[4].tokens - counts.sizes[4]) < 400
    assert seen[5].measured == counts.sizes[4] + 26


async def test_a_bar_in_this_request_only_is_not_counted_into_the_next(tmp_path: Path) -> None:
    bar = "<agent_status>" + WORDS * 40 + "</agent_status>"
    counts = Server(steps=2)

    class Bar:
        def __init__(self, session: Session) -> None:
            self.session = session

        async def before_request(self) -> None:
            now = SystemClock().now()
            self.session.tail = Entry(Kind.STATUS, (TextPart(bar),), now)

    async def with_bar(session: Session) -> None:
        session.preparations.insert(0, Bar(session))

    with WireServer("anthropic", [counts] * 3) as server:
        name, seen = await run(server, tmp_path / "s.db", act=with_bar, **SMALL)
        async with open_session(server, tmp_path / "s.db", name, **SMALL) as session:
            told = [e.meta["tail_tokens"] for e in session.entries if "usage" in e.meta]
            size = tokens_of({"messages": bar}) - 120
            assert all(abs(one - size) < 0.25 * size for one in told)
            without = session.tokens.before_request()
    for found, real in list(zip(seen, counts.sizes, strict=True))[1:]:
        assert abs(found.tokens - real) <= 0.3 * found.estimated
    assert abs(without.measured - (counts.sizes[-1] + 5 - size)) < 0.25 * size


async def test_a_damaged_file_of_ratios_is_told_to_who_watches(tmp_path: Path) -> None:
    file = tmp_path / "home" / "tokens" / "ratios.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    told: list[str] = []

    def watch(event: Any) -> None:
        if isinstance(event, Warned):
            told.append(str(event.message))

    shared_ratios.cache_clear()
    counts = Server(steps=2)
    with WireServer("anthropic", [counts] * 3) as server:
        async with open_session(server, tmp_path / "s.db", watch=watch, **SMALL) as session:
            session.preparations.append(Watching(session))
            assert (await session.send("Read all parts.")).ok
    assert [words for words in told if "is damaged" in words]
