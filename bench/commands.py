"""What judging a shell command costs, beside splitting it into words.

    python bench/commands.py            a table and a JSON line
    python bench/commands.py --json     one JSON object

Every command of the test lists is judged `--repeat` times; a command's time is its least. Beside it
stand `shlex.split` of the standard library, the bare parse by tree-sitter, and bashlex where it is
installed (it is not among our dependencies). `failed` counts commands that a peer cannot read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lorimer.safety.shell import analyse, grammar, verdict

LISTS = Path(__file__).resolve().parent.parent / "tests" / "safety" / "shell"


def commands() -> list[str]:
    """The development corpus and the lists of the tests."""
    lines = (LISTS / "commands_dev.jsonl").read_text("utf-8").split("\n")
    found = [json.loads(line)["cmd"] for line in lines if line]
    for name in ("safe", "ask", "deny"):
        text = (LISTS / f"{name}.txt").read_text("utf-8")
        found += [line.replace("⏎", "\n") for line in text.split("\n") if line]
    return found


def judge(text: str) -> object:
    return verdict(analyse(text, cwd="/srv/project/ws", roots=["/srv/project/ws"], home="/home/me"))


def measure(what: Callable[[str], object], texts: list[str], repeat: int) -> dict[str, Any]:
    """Milliseconds a command: p50, p95, most; and how many it could not read."""
    spent: list[float] = []
    failed = 0
    for text in texts:
        best = float("inf")
        for _ in range(repeat):
            begin = time.perf_counter_ns()
            try:
                what(text)
            except Exception:  # noqa: BLE001 - a peer may refuse a text in any way
                failed += 1
                break
            best = min(best, (time.perf_counter_ns() - begin) / 1e6)
        if best < float("inf"):
            spent.append(best)
    ranks = statistics.quantiles(spent, n=100)
    return {"p50_ms": ranks[49], "p95_ms": ranks[94], "max_ms": max(spent), "failed": failed}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--repeat", type=int, default=5, help="times each command is judged")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat is at least 1")
    texts = commands()
    begin = time.perf_counter_ns()
    judge("ls")
    first_ms = (time.perf_counter_ns() - begin) / 1e6
    subjects: dict[str, Callable[[str], object]] = {
        "lorimer": judge,
        "tree-sitter parse": grammar.parse,
        "shlex.split": shlex.split,
    }
    if importlib.util.find_spec("bashlex") is not None:
        import bashlex  # type: ignore[import-not-found,unused-ignore]

        subjects["bashlex"] = bashlex.parse
    found = {name: measure(what, texts, options.repeat) for name, what in subjects.items()}
    ratios = {
        name: {p: found["lorimer"][p] / found[name][p] for p in ("p50_ms", "p95_ms")}
        for name in found
        if name != "lorimer"
    }
    result = {
        "commands": len(texts),
        "first_call_ms": first_ms,
        "subjects": found,
        "lorimer_times": ratios,
    }
    if not options.json:
        _table(result)
    print(json.dumps(result))
    return 0


def _table(result: dict[str, Any]) -> None:
    print(f"{result['commands']} commands; the first call, with the tables read, took "
          f"{result['first_call_ms']:.0f} ms\n")  # fmt: skip
    print(f"{'':20}{'p50 ms':>10}{'p95 ms':>10}{'most ms':>10}{'failed':>8}")
    for name, row in result["subjects"].items():
        print(f"{name:20}{row['p50_ms']:10.3f}{row['p95_ms']:10.3f}{row['max_ms']:10.3f}"
              f"{row['failed']:8}")  # fmt: skip
    print()


if __name__ == "__main__":
    sys.exit(main())
