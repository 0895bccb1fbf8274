"""A parent and its sub-agents, each with a script of its own, over real tools and a real store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lorimer import Agent
from lorimer.core.messages import ResultPart, TextPart
from lorimer.core.trust import Trust
from lorimer.runtime.session import Session
from lorimer.runtime.subagents import SubagentSettings
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import default_tools

ANSWER = json.dumps({"answer": "a.txt", "evidence": ["a.txt:1"]})


def answer(text: str = "a.txt", *evidence: str) -> str:
    return json.dumps({"answer": text, "evidence": list(evidence)})


def spawn(task: str = "find the needle", **more: Any) -> dict[str, Any]:
    return call("spawn_subagent", {"task": task, "agent": "explore", **more})


@dataclass
class Pair:
    """An agent whose sub-agents answer from `child`."""

    folder: Path
    child: ScriptedModel = field(default_factory=lambda: ScriptedModel([], name="child"))
    seen: list[Any] = field(default_factory=list)

    def agent(
        self, script: Iterable[Any], *, tools: Any = None, settings: Any = None, **options: Any
    ) -> Agent:
        given = dict(settings or {})
        given.setdefault("models", {"inherit": self.child})
        given.setdefault("files", False)
        options.setdefault("store", self.folder / "store.db")
        return Agent(
            ScriptedModel(list(script), name="parent"),
            default_tools() if tools is None else tools,
            workspace=self.folder,
            subagents=SubagentSettings(**given),
            watch=self.seen.append,
            **options,
        )


def results(session: Session, tool: str = "spawn_subagent") -> list[ResultPart]:
    return [r for e in session.entries for r in e.results if r.name == tool]


def text_of(result: ResultPart) -> str:
    return "".join(p.text for p in result.content if isinstance(p, TextPart))


def error_of(result: ResultPart) -> dict[str, Any]:
    assert result.is_error, text_of(result)
    first = result.content[0]  # what stands beside the error has labels of its own
    assert isinstance(first, TextPart) and first.trust is Trust.TRUSTED
    found: dict[str, Any] = json.loads(first.text)
    return found


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a needle\n")
    return Pair(work)
