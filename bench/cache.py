"""What habits cost: one conversation on a local model, as lorimer leads it and with each habit that
breaks the prompt cache; the counters are llama.cpp's own (`cache_n`, `prompt_n`).

    python bench/cache.py                       table, and a JSON line
    python bench/cache.py --json                one JSON object
    python bench/cache.py --model smollm2-135m --turns 4 --only lorimer --only shuffled_tools

Each conversation runs in a process of its own, so that none finds what another left in the cache.
`append_only` is the same plain loop without a bad habit, on the same engine. The loops are those
that `tests/guarantees/test_g09_prefix.py` holds the auditor to.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
HABITS = {
    "append_only": "correct",
    "dynamic_system": "dynamic_system",
    "dynamic_profile": "dynamic_profile",
    "shuffled_tools": "shuffled_tools",
    "sliding_window": "sliding_window",
    "flattened_text": "flattened_text",
}
NAMES = ("lorimer", *HABITS)
DEFAULT_MODEL = "qwen2.5-coder-0.5b"


def main() -> int:
    options = _options()
    if options.one:
        work = _lorimer if options.one == "lorimer" else _habit
        turns = asyncio.run(work(options))
        print("\n" + json.dumps(turns))
        return 0
    found: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}
    for name in options.only or NAMES:
        if not options.json:
            print(f"{name} …", file=sys.stderr, flush=True)
        ended = subprocess.run(
            [sys.executable, __file__, "--one", name, "--model", options.model,
             "--turns", str(options.turns), "--words", str(options.words)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ended.returncode == 0:
            found[name] = json.loads(ended.stdout.strip().splitlines()[-1])
        else:
            failed[name] = ended.stderr.strip()[-600:]
    report = _report(found, failed, options)
    if not options.json:
        _print(report)
    print(json.dumps(report))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a local model, or a GGUF file")
    parser.add_argument("--turns", type=int, default=12, help="questions of each conversation")
    parser.add_argument("--words", type=int, default=32, help="tokens of each answer, at most")
    parser.add_argument("--only", action="append", default=[], choices=NAMES)
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--one", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns < 2 or options.words < 1:
        parser.error("--turns is at least 2, --words at least 1")
    return options


def _row(turn: int, timings: dict[str, Any], cpu_s: float, wall_s: float, cause: str) -> Any:
    cached, read = int(timings["cache_n"]), int(timings["prompt_n"])
    return {
        "turn": turn + 1, "prompt": cached + read, "cached": cached, "cpu_s": round(cpu_s, 3),
        "ttft_s": round(wall_s, 3), "cause": cause,
    }  # fmt: skip


class _Stopwatch:
    """CPU and wall time to the first token. The engine's threads are of this process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._cpu, self._wall = time.process_time(), time.monotonic()
        self.spent: tuple[float, float] | None = None

    def first(self, *_: object) -> None:
        if self.spent is None:
            self.spent = (time.process_time() - self._cpu, time.monotonic() - self._wall)


async def _lorimer(options: argparse.Namespace) -> list[Any]:
    """The real agent, with five tools in its prefix."""
    from harness.habits import SYSTEM, TOOLS, question
    from lorimer import Agent, Settings, tool
    from lorimer.models.registry import resolve

    model: Any = resolve(options.model)
    watch = _Stopwatch()
    model.on_token = watch.first
    settings = Settings(tool_choice="none", max_output_tokens=options.words)
    rows = []
    async with aclosing(model):
        agent = Agent(
            model, [tool(effects="read")(made) for made in map(_function, TOOLS)], system=SYSTEM,
            store=":memory:", settings=settings, strict_cache=True,
        )  # fmt: skip
        async with agent, agent.session() as session:
            raw: dict[str, Any] = {}
            for turn in range(options.turns):
                watch.begin()
                await session.send(question(turn), watch=lambda event: _take(event, raw))
                meta = next(e for e in reversed(session.entries) if "cache" in e.meta).meta
                cause = meta["cache"].get("break", {}).get("cause", "none")
                rows.append(_row(turn, raw, *_spent(watch), cause))
    return rows


def _take(event: Any, raw: dict[str, Any]) -> None:
    usage = getattr(event, "usage", None)
    if usage is not None and "cache_n" in usage.raw:
        raw.update(usage.raw)


def _spent(watch: _Stopwatch) -> tuple[float, float]:
    if watch.spent is None:
        raise RuntimeError("the model wrote nothing")
    return watch.spent


def _function(name: str) -> Callable[..., str]:
    def made(what: str, how_many: int = 1) -> str:
        return f"nothing about {what} ({how_many})"

    made.__name__ = made.__qualname__ = name
    made.__doc__ = (
        f"Use it to {name.replace('_', ' ')}.\n\nArgs:\n"
        f"    what: What to {name.replace('_', ' ')}.\n    how_many: How many."
    )
    return made


async def _habit(options: argparse.Namespace) -> list[Any]:
    """A plain loop: its prompt rendered anew each turn, sent to the engine as others would."""
    from harness.habits import Loop, chatml
    from lorimer.context.auditor import Auditor
    from lorimer.models.registry import resolve

    model: Any = resolve(options.model)
    engine = model._engine
    loop, auditor, watch = Loop(HABITS[options.one]), Auditor(), _Stopwatch()
    rows = []
    wanted = {"n_predict": options.words, "temperature": 0.0, "seed": 7}
    async with aclosing(model):
        await engine.start()
        for turn in range(options.turns):
            prompt = chatml(loop.next(turn))
            cause = str(auditor.check("local", prompt).cause)
            watch.begin()
            tokens = await engine.tokenize(prompt.decode())
            said, final = [], {}
            async with engine.turn(), aclosing(engine.complete(tokens, wanted)) as events:
                async for event in events:
                    if event.get("tokens"):
                        watch.first()
                    said.append(event.get("content", ""))
                    final = event if event.get("stop") else final
            rows.append(_row(turn, final["timings"], *_spent(watch), cause))
            loop.answered("".join(said).strip() or "I do not know.")
    return rows


def _report(
    found: dict[str, list[dict[str, Any]]], failed: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    def each(of: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
        return {name: of(rows) for name, rows in found.items()}

    return {
        "prefix_tokens_from_cache": each(_prefix_share),
        "prompt_tokens_from_cache": each(
            lambda rows: _ratio(sum(r["cached"] for r in rows[1:]),
                                sum(r["prompt"] for r in rows[1:]))
        ),
        "cpu_s_to_first_token": each(lambda rows: _median(rows, "cpu_s")),
        "ttft_s": each(lambda rows: _median(rows, "ttft_s")),
        "named": each(_named),
        "model": options.model,
        "turns": options.turns,
        "failed": failed,
        "rows": found,
    }  # fmt: skip


def _median(rows: list[dict[str, Any]], what: str) -> float:
    """Over turns 2 and later; a median, because other work on the machine comes and goes."""
    return round(statistics.median(row[what] for row in rows[1:]), 3)


def _named(rows: list[dict[str, Any]]) -> str:
    return next((row["cause"] for row in rows if row["cause"] != "none"), "none")


def _prefix_share(rows: list[dict[str, Any]]) -> float | None:
    """From turn 2 on: of the tokens that the turn before had sent, how many came from the cache."""
    pairs = list(itertools.pairwise(rows))
    return _ratio(
        sum(min(now["cached"], before["prompt"]) for before, now in pairs),
        sum(before["prompt"] for before, _ in pairs),
    )


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _print(report: dict[str, Any]) -> None:
    print(f"{report['model']}, {report['turns']} turns; turns 2 and later (time: median)\n")
    print(f"{'':16} {'prefix from cache':>18} {'CPU s to first token':>21}  named by the auditor")
    for name in report["prefix_tokens_from_cache"]:
        share = report["prefix_tokens_from_cache"][name]
        cpu = report["cpu_s_to_first_token"][name]
        print(f"{name:16} {share:>18.1%} {cpu:>21.2f}  {report['named'][name]}")
    for name, why in report["failed"].items():
        print(f"{name}: failed: {why}")
    print()


if __name__ == "__main__":
    sys.exit(main())
