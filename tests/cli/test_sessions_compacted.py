"""`lorimer sessions` on a session whose entries are sent in another form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lorimer import Agent
from lorimer.cli.app import app
from lorimer.context.view import Span
from lorimer.core.clock import SystemClock
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.testing import ScriptedModel


@pytest.fixture
def compacted(tmp_path: Path) -> tuple[str, str]:
    """The store and the id of a session whose first two entries are sent as a summary."""
    import asyncio

    async def make() -> str:
        model = ScriptedModel(["An answer.", "Another."])
        async with Agent(model, store=tmp_path / "s.db") as agent, agent.session() as session:
            await session.send("the first question")
            await session.send("the second question")
            now = SystemClock().now()
            words = "<context_summary>it was asked and answered</context_summary>"
            span = Span(0, 1, (Entry(Kind.COMPACTION, (TextPart(words),), now),))
            meta = {"spans": [span.to_json()]}
            await session.record(Entry(Kind.COMPACTION, (), now, meta=meta))
            await session.rebase("a new version")
            return session.id

    return str(tmp_path / "s.db"), asyncio.run(make())


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show_says_what_is_sent_in_place_of_what(compacted: tuple[str, str]) -> None:
    store, session = compacted
    shown = run("sessions", "show", session, "--store", store)
    assert "the first question" in shown
    assert "entries 0 to 1 are sent as:" in shown
    assert "it was asked and answered" in shown
    assert "the prefix is another one from here on: a new version" in shown


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_an_export_has_everything_or_what_is_sent(compacted: tuple[str, str], form: str) -> None:
    store, session = compacted
    command = ("sessions", "export", session, "--as", form, "--store", store)
    everything, sent = json.loads(run(*command)), json.loads(run(*command, "--sent"))
    assert "the first question" in json.dumps(everything)
    assert "context_summary" not in json.dumps(everything)
    assert "the first question" not in json.dumps(sent)
    assert "context_summary" in json.dumps(sent)
    assert [m["role"] for m in sent if m["role"] != "system"] == ["user", "user", "assistant"]


def test_sent_is_for_messages(compacted: tuple[str, str]) -> None:
    store, session = compacted
    done = CliRunner().invoke(app, ["sessions", "export", session, "--sent", "--store", store])
    assert done.exit_code != 0
