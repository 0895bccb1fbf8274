"""What each compaction strategy keeps, on one research task: seven results of about 52,000
characters in a 128,000-token window, sixty facts hidden in them, rules of the user over its turns.

    python bench/compaction.py                  table, and a JSON line
    python bench/compaction.py --json           one JSON object
    python bench/compaction.py --task clinic    the other generator
    python bench/compaction.py --local          a small task on the local model as well

A fact counts as *kept* when its figure stands in what is sent at the end, as *reachable* when it is
kept, or when one read gives it: the reference is chosen by the words of the question alone, and the
read is a real call through the dispatcher. `layered_all` compacts by hand at the end, so that no
result is left whole because it is the newest. `invented` counts lines that a model made up and that
stand in the context all the same; an adversarial summariser is part of every run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compaction_model import Adversary, ResearchModel, honest
from compaction_task import Fact, ResearchTask, make

from lorimer import Agent
from lorimer.context.compaction import Compaction
from lorimer.core.calls import Effects
from lorimer.core.errors import LorimerError
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.runtime.loop import Limits
from lorimer.runtime.session import Session
from lorimer.tools.function import tool
from lorimer.tools.tool import Budget, Tool

WAYS = {
    "none": Compaction("none"),
    "per_result": Compaction("per_result"),
    "combined": Compaction("combined"),
    "context_aware": Compaction("context_aware"),
    "context_aware_cited": Compaction("context_aware_cited"),
    "adaptive": Compaction("adaptive"),
    "layered": Compaction("layered", summary="always"),
    "layered_notes": Compaction("layered", summary="never"),
    "layered_all": Compaction("layered", summary="never"),
    "layered_adversary": Compaction("layered", summary="always"),
}
_CALL = re.compile(r"^\[(call_[\w-]+)\] ([^\n]*)", re.M)
_PAGE = re.compile(r"^  page (\d+): ?([^\n]*)", re.M)
_LITTLE = frozenset(
    [
        "what",
        "which",
        "with",
        "from",
        "that",
        "this",
        "were",
        "under",
        "about",
        "many",
        "does",
        "much",
    ]
)
_WORD = re.compile(r"\w[\w'-]*")


def main() -> int:
    options = _options()
    report = asyncio.run(_all(options))
    if options.local:
        from compaction_local import local_rows

        report["local"] = asyncio.run(local_rows(options.local_model))
    if not options.json:
        _print(report)
    print(json.dumps(report))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="only the JSON object")
    parser.add_argument("--task", default="river", choices=["river", "clinic"])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", action="append", choices=[*WAYS], help="one way; repeatable")
    parser.add_argument("--local", action="store_true", help="a small task on a local model, too")
    parser.add_argument("--local-model", default="qwen2.5-coder-0.5b")
    return parser.parse_args()


async def _all(options: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for name in options.only or WAYS:
        if not options.json:
            print(f"{name} …", file=sys.stderr, flush=True)
        report[name] = await run_way(name, make(options.task, options.seed))
    report["task"] = {"name": options.task, "seed": options.seed}
    return report


def search_tool(task: ResearchTask) -> Tool:
    """The search of `task`; its results are not cut by their own budget."""

    @tool(effects=Effects.READ, budget=Budget(lines=100_000, characters=100_000))
    def search(query: str) -> list[TextPart]:
        """Search the archives."""
        result = task.results[int(re.findall(r"\d+", query)[0]) - 1]
        trust = Trust.EXTERNAL if result.external else Trust.USER_DATA
        return [TextPart(result.text, trust, result.source)]

    return search


async def run_way(name: str, task: ResearchTask) -> dict[str, Any]:
    """One strategy on `task`."""
    adversary = Adversary(task.constraints) if name.endswith("adversary") else None
    model = ResearchModel(task, adversary or honest)
    with tempfile.TemporaryDirectory() as folder:
        agent = Agent(
            model, [search_tool(task)], store=Path(folder) / "s.db", workspace=folder,
            compaction=WAYS[name], strict_cache=True,
        )  # fmt: skip
        async with agent, agent.session() as session:
            ended = ""
            try:
                for words, _ in task.turns:
                    ended = (await session.send(words)).stop
                if name == "layered_all":  # nothing is left whole because it is new
                    await session.compact()
            except LorimerError as fault:
                ended = f"error: {type(fault).__name__}"
            row = measured(session, model, task, adversary)
            row["done"] = ended == "answered"
            row["ended"] = ended
            row["facts_reachable"] = await reachable(session, model, task)
    return row


def measured(
    session: Session, model: Any, task: ResearchTask, adversary: Adversary | None
) -> dict[str, Any]:
    view = list(session.trajectory.view)
    text = "\n".join(map(_text, view))
    original = sum(len(r.text) for r in task.results)
    looked_up = sum(1 for e in session.entries for _ in e.calls)
    now = sum(len(_text(e)) for e in view if e.kind in (Kind.TOOL_RESULT, Kind.COMPACTION))
    users = [_text(e) for e in view if e.kind is Kind.USER]
    sizes = [e.meta["characters"] for e in session.entries if e.kind is Kind.COMPACTION]
    before, after = sum(one[0] for one in sizes), sum(one[1] for one in sizes)
    row: dict[str, Any] = {
        "compacted_to": round(after / before, 4) if before else None,
        "steps": model.asked,
        "calls": looked_up,
        "tokens": model.tokens + model.output,
        "peak_tokens": model.peak,
        "ratio": round(now / original, 4),
        "facts": len(task.facts),
        "facts_kept": sum(fact.value in text for fact in task.facts),
        "constraints_verbatim": all(any(c in u for u in users) for c in task.constraints),
        "invented": _invented(view, task),
        "summary_requests": len(model.shares),
        "summary_cache_share": round(min(model.shares), 4) if model.shares else None,
    }
    if adversary is not None:
        lies = [one for one in adversary.invented if not any(one in r.text for r in task.results)]
        stands = [one for one in lies if one in text]
        row["lies_told"] = len(lies)
        row["caught"] = len(lies) - len(stands)
    return row


def _invented(view: list[Entry], task: ResearchTask) -> int:
    """Lines of summaries that stand in no result, by a comparison of its own: word for word, but
    for the marks “ ” around what is quoted."""
    sources = [re.sub(r"\s+", " ", r.text) for r in task.results]
    count = 0
    for entry in view:
        if entry.kind not in (Kind.COMPACTION, Kind.TOOL_RESULT):
            continue
        for line in _text(entry).splitlines():
            if line.startswith("- "):
                flat = re.sub(r"\s+", " ", re.sub(r" \[[^\]]*\]$", "", line[2:])).strip(" “”")
                count += not any(flat.rstrip(".") in source for source in sources)
    return count


def _text(entry: Entry) -> str:
    texts = [entry.text]
    texts += [p.text for r in entry.results for p in r.content if isinstance(p, TextPart)]
    return "\n".join(texts)


# --- reachable: one read, chosen by the reference alone ---


async def reachable(session: Session, model: Any, task: ResearchTask) -> int:
    text = "\n".join(map(_text, session.trajectory.view))
    missing = [fact for fact in task.facts if fact.value not in text]
    reached = len(task.facts) - len(missing)
    pages = _references(text)
    if not missing or not pages:
        return reached
    chosen = [_best(fact, pages) for fact in missing]
    model.lookups = [("recall", {"call": call, "page": page}) for call, page in chosen]
    model.window = sys.maxsize
    before = len(session.entries)
    session.agent.limits = Limits(max_steps=1)
    await session.send("Look these up.")
    read = {
        result.call_id: "".join(p.text for p in result.content if isinstance(p, TextPart))
        for entry in session.entries[before:]
        for result in entry.results
    }
    texts = list(read.values())
    return reached + sum(f.value in t for f, t in zip(missing, texts, strict=False))


def _references(text: str) -> list[tuple[str, int, Counter[str]]]:
    """Every page that is named in the context: call, page, and the words that are said of it."""
    out = []
    heads = list(_CALL.finditer(text))
    for at, head in enumerate(heads):
        end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        about = _words(head.group(2))
        for page in _PAGE.finditer(text, head.end(), end):
            out.append((head.group(1), int(page.group(1)), _words(page.group(2)) + about))
    return out


def _words(text: str) -> Counter[str]:
    return Counter(word.casefold().removesuffix("'s") for word in _WORD.findall(text))


def _best(fact: Fact, pages: list[tuple[str, int, Counter[str]]]) -> tuple[str, int]:
    """The page whose description shares most with the question; rare words count more."""
    held = Counter(word for _, _, words in pages for word in words)
    asked = [w for w in _words(fact.question) if len(w) > 3 and w not in _LITTLE]

    def shared(page: tuple[str, int, Counter[str]]) -> float:
        return sum(math.log(1 + len(pages) / held[w]) for w in asked if w in page[2])

    call, page, _ = max(pages, key=shared)
    return call, page


def _print(report: dict[str, Any]) -> None:
    head = (
        "",
        "done",
        "steps",
        "tokens",
        "peak",
        "ratio",
        "to",
        "kept",
        "reach",
        "rules",
        "inv.",
        "cache",
    )
    print(("{:20}" + "{:>8}" * 11).format(*head))
    for name, row in report.items():
        if "steps" not in row:
            continue
        share, to = row["summary_cache_share"], row["compacted_to"]
        compacted = "–" if to is None else f"{to:.1%}"
        print(
            f"{name:20}{'yes' if row['done'] else 'no':>8}{row['steps']:>8}{row['tokens']:>8}"
            f"{row['peak_tokens']:>8}{row['ratio']:>8.1%}{compacted:>8}{row['facts_kept']:>8}"
            f"{row['facts_reachable']:>8}{'yes' if row['constraints_verbatim'] else 'no':>8}"
            f"{row['invented']:>8}{'–' if share is None else f'{share:.1%}':>8}"
        )
        if "caught" in row:
            print(f"{'':20}{row['caught']} of {row['lies_told']} lies caught")


if __name__ == "__main__":
    sys.exit(main())
