"""The compaction bench on a local model: a smaller task, and summaries that a real model writes.

A model of this size cannot do the task itself, so what it looks up is scripted; every request is
sent to it all the same (one token is written), so that its cache is that of a real session, and
the summaries are its own. The shares are llama.cpp's counters.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import compaction
from compaction_task import ResearchTask, make

from lorimer import Agent
from lorimer.context.compaction import Compaction
from lorimer.context.compaction.instructions import MARK
from lorimer.core.calls import ToolCall
from lorimer.core.messages import Entry, Kind
from lorimer.core.specs import ToolSpec
from lorimer.models.profiles import Profile
from lorimer.models.protocol import (
    CallComplete,
    CallStarted,
    ModelEvent,
    Request,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)
from lorimer.models.registry import resolve
from lorimer.toolkits.recall import recall

WINDOW = 4_000
WAYS = {
    "per_result": Compaction("per_result", entry_characters=1_000),
    "context_aware_cited": Compaction("context_aware_cited", entry_characters=1_000),
    "adaptive": Compaction("adaptive"),
    "layered": Compaction("layered", summary="always"),
    "layered_notes": Compaction("layered", summary="never"),
}


class DrivenModel:
    """A local model whose calls are scripted and whose summaries are its own."""

    def __init__(self, local: Any, task: ResearchTask) -> None:
        self.local, self.task = local, task
        self.profile: Profile = replace(local.profile, context_window=WINDOW)
        self.name: str = local.name
        self.tokens = self.output = self.asked = self.peak = 0
        self.window = WINDOW
        self.shares: list[float] = []
        self.written: list[str] = []
        self.lookups: list[tuple[str, dict[str, Any]]] = []
        self._turn, self._todo = -1, list[int]()

    def render_prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        return bytes(self.local.render_prefix(system, tools))

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        return bytes(self.local.render_entry(entry, earlier))

    async def aclose(self) -> None:
        await self.local.aclose()

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        aside = request.entries[-1].text.startswith(MARK)
        if not aside:
            request = replace(
                request, settings=replace(request.settings, max_output_tokens=1, tool_choice="none")
            )
        text = ""
        async with aclosing(self.local.stream(request)) as events:
            async for event in events:
                if isinstance(event, UsageReport):
                    self._count(event, aside)
                    report = event
                elif aside and isinstance(event, TextDelta):
                    text += event.text
                    yield event
                elif aside and not isinstance(event, Stop):
                    yield event
                elif isinstance(event, Stop):
                    stop = event
        self.asked += 1
        if aside:
            self.written.append(text)
            yield report
            yield stop
            return
        calls = self._calls(request.entries)
        if not calls:
            yield TextDelta("That is what I found.")
        for at, (name, arguments) in enumerate(calls):
            yield CallStarted(at, name)
            yield CallComplete(at, ToolCall(f"call_{self.asked}_{at}", name, json.dumps(arguments)))
        yield report
        yield Stop(StopReason.CALLS if calls else StopReason.END, "end")

    def _count(self, event: UsageReport, aside: bool) -> None:
        usage = event.usage
        self.tokens += usage.input_tokens
        self.output += usage.output_tokens
        self.peak = max(self.peak, usage.input_tokens)
        if aside and usage.input_tokens:
            self.shares.append(usage.cached_tokens / usage.input_tokens)

    def _calls(self, entries: Sequence[Entry]) -> list[tuple[str, dict[str, Any]]]:
        if self.lookups:
            calls, self.lookups = self.lookups, []
            return calls
        if entries[-1].kind is Kind.USER:
            self._turn += 1
            turns = self.task.turns
            self._todo = list(turns[self._turn][1]) if self._turn < len(turns) else []
        if not self._todo:
            return []
        number = self._todo.pop(0)
        return [("search", {"query": f"part {number + 1}: {self.task.results[number].query}"})]


async def local_rows(name: str) -> dict[str, Any]:
    """One row for each way, with the model `name`."""
    rows: dict[str, Any] = {"model": name}
    for way, options in WAYS.items():
        options = replace(options, summary_tokens=300)
        task = make("river", size=1_800, facts=14)
        local: Any = resolve(name)
        model = DrivenModel(local, task)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(
                model, [compaction.search_tool(task), recall], store=Path(folder) / "s.db",
                workspace=folder, compaction=options, strict_cache=True,
            )  # fmt: skip
            async with aclosing(model), agent, agent.session() as session:
                ended = ""
                for words, _ in task.turns:
                    ended = (await session.send(words)).stop
                row = compaction.measured(session, model, task, None)
                row["done"], row["ended"] = ended == "answered", ended
                row["lines_written"] = sum(t.count("\n") + 1 for t in model.written)
                dropped = [e.meta.get("dropped", ()) for e in session.entries]
                row["lines_dropped"] = sum(map(len, dropped))
                row["seconds"] = round(time.monotonic() - began, 1)
                row["facts_reachable"] = await compaction.reachable(session, model, task)
        rows[way] = row
    return rows
