"""Hand-over to sub-agents (X-17): the same questions over a tree of 2,000 files, handed to one in
four ways: tokens of both sides, what a prefix cache reads, requests, and right answers.

    python bench/handover.py                  table, and a JSON line
    python bench/handover.py --json           one JSON object
    python bench/handover.py --local          also the local 0.5B model, as it is

`minimal`: the task alone. `written_out`: the same, and the agent writes what binds it into the
task. `distilled`: one more request over the conversation says what binds, quoted. `inherit`: the
whole conversation, byte for byte.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from handover_task import (  # noqa: E402
    BESIDE,
    FILES,
    SCHEMA,
    Obedient,
    Question,
    complete,
    distils,
    grow,
    searches,
    tokens,
    words_of,
)

from lorimer import Agent  # noqa: E402
from lorimer.core.canonical import canonical_json  # noqa: E402
from lorimer.core.messages import Kind  # noqa: E402
from lorimer.core.usage import Usage  # noqa: E402
from lorimer.models.protocol import Request  # noqa: E402
from lorimer.runtime.loop import Limits  # noqa: E402
from lorimer.runtime.subagents import Budget, SubagentSettings  # noqa: E402
from lorimer.testing import call  # noqa: E402
from lorimer.toolkits import default_tools, toolset  # noqa: E402

WAYS = ("minimal", "written_out", "distilled", "inherit")
LOCAL = "qwen2.5-coder-0.5b"


@dataclass
class Row:
    """What one way came to, over all questions.

    `parent_added`: tokens that the call and its result add to the parent's conversation, at most.
    """

    way: str
    right: int = 0
    asked: int = 0
    parent_tokens: int = 0
    child_tokens: int = 0
    parent_cached: float = 0.0
    child_cached: float = 0.0
    parent_requests: int = 0
    child_requests: int = 0
    parent_added: int = 0
    dropped: int = 0
    failed: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--local", action="store_true", help=f"also {LOCAL}, if it is here")
    parser.add_argument("--questions", type=int, default=6, help="how many of the six are asked")
    parser.add_argument("--local-questions", type=int, default=2)
    options = parser.parse_args()
    report = asyncio.run(_measure(options))
    if not options.json:
        _print(report)
    print(json.dumps(report))
    return 0


async def _measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "tree"
        questions = complete(grow(folder), folder)
        report: dict[str, Any] = {"files": FILES, "rows": [], "local": None}
        for way in WAYS:
            cache: list[list[bytes]] = []
            row = Row(way)
            for question in questions[: options.questions]:
                await _ask(question, way, folder, Obedient("rules", cache), row, Path(name))
            report["rows"].append(asdict(row))
        if options.local:
            report["local"] = await _local(questions, folder, options, Path(name))
        return report


async def _ask(
    question: Question, way: str, folder: Path, model: Any, row: Row, place: Path
) -> None:
    """One conversation, up to the answer of the sub-agent."""
    row.asked += 1
    brain = _Brain(question, way)
    scripted = isinstance(model, Obedient)
    if scripted:
        model.add(*[lambda request: model.answer(request, brain.next(request))] * 40)
        lead = model
    else:
        lead = _Led(model, brain)
    few = [t for t in default_tools() if t.name in ("grep_file", "read_file")]
    settings = SubagentSettings(
        budget=Budget(max_steps=8 if scripted else 4, max_time_s=None), files=False, max_depth=3,
        retries=2 if scripted else 1,
    )  # fmt: skip
    agent = Agent(
        lead, [*few, *toolset(["spawn_subagent"])] if not scripted else few, workspace=folder,
        store=place / f"{way}-{row.asked}-{model.name}.db", subagents=settings,
        limits=Limits(max_steps=30),
    )  # fmt: skip
    async with agent, agent.session() as session:
        usage, delegated = [], []
        for words in (question.before, "Now answer my question by a sub-agent."):
            result = await session.send(words)
            usage.append(result.usage)
            delegated.append(result.delegated)
        assert session.subagents is not None
        children = session.subagents.children()
        row.failed += not children
        for child in children:
            found = child.value.get("files") if isinstance(child.value, dict) else None
            row.right += found is not None and sorted(found) == sorted(question.expected)
            row.failed += child.status != "done"
            row.dropped += sum("stand nowhere" in note for note in child.notes)
        call_id = next(c.id for c in agent.store.calls(session.id) if c.tool == "spawn_subagent")
        for entry in session.entries:
            names = [c.id for c in entry.calls] + [r.call_id for r in entry.results]
            if call_id in names:
                row.parent_added += tokens(canonical_json(entry.to_json()["parts"]))
    of_all, theirs = _total(usage), _total(delegated)
    own = {key: of_all[key] - theirs[key] for key in of_all}
    row.parent_cached = _share(row.parent_cached, own, row.asked)
    row.child_cached = _share(row.child_cached, theirs, row.asked)
    row.child_tokens += theirs["read"] + theirs["written"]
    row.parent_tokens += own["read"] + own["written"]
    row.child_requests += theirs["requests"]
    row.parent_requests += own["requests"]


def _total(usages: list[Usage]) -> dict[str, int]:
    return {
        "read": sum(one.input_tokens for one in usages),
        "cached": sum(one.cached_tokens for one in usages),
        "written": sum(one.output_tokens for one in usages),
        "requests": sum(one.requests for one in usages),
    }


def _share(before: float, used: dict[str, int], count: int) -> float:
    """The mean over `count` questions of the share of tokens that were read from the cache."""
    return (before * (count - 1) + used["cached"] / max(used["read"], 1)) / count


class _Brain:
    """What the model does next: as the agent that talks with the user, as a sub-agent, or asked
    beside the conversation."""

    def __init__(self, question: Question, way: str) -> None:
        task = question.task
        if way == "written_out" and question.bind:
            task = f"{' '.join(question.bind)} {task}"
        arguments = {
            "task": task, "agent": "general", "output_schema": SCHEMA,
            "handover": "minimal" if way == "written_out" else way,
        }  # fmt: skip
        self._own = [
            call("read_file", path=question.reads), "Noted.", call("spawn_subagent", arguments),
            "That is what was found.",
        ]  # fmt: skip

    def is_own(self, request: Request) -> bool:
        """Whether the agent that talks with the user is asked for its next step."""
        return not self.is_beside(request) and not any(
            entry.kind is Kind.USER and "speaker" in entry.meta for entry in request.entries
        )

    def is_beside(self, request: Request) -> bool:
        return BESIDE in words_of(request.entries[-1])

    def own(self) -> Any:
        return self._own.pop(0)

    def next(self, request: Request) -> Any:
        if self.is_beside(request):
            return distils(request)
        return self.own() if self.is_own(request) else searches(request)


class _Led:
    """A local model whose part as the agent that talks with the user is written down; the hand-over
    and the work of the sub-agent are its own."""

    def __init__(self, model: Any, brain: _Brain) -> None:
        self._model, self._brain = model, brain
        self._script = Obedient("written", [])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if not self._brain.is_own(request):
            async for event in self._model.stream(request):
                yield event
            return
        self._script.add(self._brain.own())
        async for event in self._script.stream(request):
            yield event


async def _local(
    questions: list[Question], folder: Path, options: argparse.Namespace, place: Path
) -> dict[str, Any]:
    from lorimer.models.local.catalogue import is_present
    from lorimer.models.registry import resolve

    if not is_present(LOCAL):
        return {"model": LOCAL, "skipped": f"not on this machine: lorimer models pull {LOCAL}"}
    rows = []
    for way in WAYS:
        model = resolve(LOCAL)
        row = Row(way)
        try:
            for question in questions[1 : 1 + options.local_questions]:
                print(f"{LOCAL} {way} {question.name} …", file=sys.stderr, flush=True)
                await _ask(question, way, folder, model, row, place)
        finally:
            await model.aclose()
        rows.append(asdict(row))
    return {"model": LOCAL, "rows": rows}


def _print(report: dict[str, Any]) -> None:
    groups = [("model that follows its request", report["rows"])]
    if report["local"] and "rows" in report["local"]:
        groups.append((report["local"]["model"], report["local"]["rows"]))
    for name, rows in groups:
        print(f"{name}\n{'hand-over':12} {'right':>7} {'parent':>8} {'child':>8} {'cached':>11} "
              f"{'requests':>9} {'added':>6} {'dropped':>8}")  # fmt: skip
        for row in rows:
            cached = f"{row['parent_cached']:.0%}/{row['child_cached']:.0%}"
            requests = f"{row['parent_requests']}+{row['child_requests']}"
            print(
                f"{row['way']:12} {row['right']}/{row['asked']:<5} {row['parent_tokens']:>8,} "
                f"{row['child_tokens']:>8,} {cached:>11} {requests:>9} "
                f"{row['parent_added'] / row['asked']:>6,.0f} {row['dropped']:>8}"
            )
        print()


if __name__ == "__main__":
    os.environ.setdefault("LORIMER_OTEL", "0")
    raise SystemExit(main())
