"""What a broad search costs whoever asked for it: the task out, a short result back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lorimer.context.tokens import vocabulary
from lorimer.core.messages import Kind, TextPart
from lorimer.models.registry import resolve
from lorimer.testing import call

from .conftest import Pair, answer, spawn

pytestmark = pytest.mark.anyio

FILES = 2_000
MOST = 400


def grow(folder: Path) -> None:
    for n in range(FILES):
        place = folder / f"src/part_{n % 40:02}"
        place.mkdir(parents=True, exist_ok=True)
        words = "import socket\n" if n in (123, 1777) else "import os\n"
        (place / f"module_{n:04}.py").write_text(words + f"# TODO: file {n}\n" * 3)


async def test_a_search_over_2000_files_costs_the_parent_less_than_400_tokens(pair: Pair) -> None:
    grow(pair.folder)
    found = ["src/part_03/module_0123.py:1", "src/part_17/module_1777.py:1"]
    pair.child.add(
        [call("list_directory", path="src"), call("find_file", pattern="*.py")],
        call("find_file", pattern="*.py", offset=101),
        call("grep_file", pattern="TODO", path="src"),
        call("grep_file", pattern="^import socket", path="src"),
        [call("read_file", path=place.split(":")[0]) for place in found],
        answer("Two modules open sockets.", *found),
    )
    task = "Which modules under src/ import socket? Give path and line of each."
    async with pair.agent([spawn(task), "Two."]) as agent, agent.session() as session:
        assert (await session.send("Which modules use sockets?")).ok
        child = session.subagents.children()[0]  # type: ignore[union-attr]
        assert child.value["evidence"] == found
        entries = list(session.entries)
        theirs = [e for e, _ in agent.store.entries(child.id, agent.model.profile.rendering)]
    greps = [r for e in theirs for r in e.results if r.name == "grep_file"]
    text = "".join(p.text for p in greps[-1].content if isinstance(p, TextPart))
    assert all(place in text for place in found), "the tools really found it"
    count = vocabulary().count
    added = [e for e in entries if e.calls or e.kind is Kind.TOOL_RESULT]
    assert len(added) == 2
    spent = sum(len(json.dumps(e.to_json())) for e in theirs)
    for name in ("openai:gpt-5.6-terra", "anthropic:claude-sonnet-5", "gemini:gemini-3-pro"):
        model = resolve(name, api_key="none")
        wire = b"".join(
            model.render_entry(e, entries[: e.seq]) for e in entries if e in added
        ).decode()
        assert count(wire) < MOST, f"{name}: {count(wire)} tokens"
        assert spent > 10 * len(wire), "which is little of what the search has read"
