"""What a status bar costs: none, appended, replaced, and what `auto` chose, over 20 turns.

    python bench/status.py                     providers by price, then a local model
    python bench/status.py --json              one JSON object
    python bench/status.py --no-local --turns 5 --only claude-opus-5

Providers: a server on 127.0.0.1 speaks the wire and reports as cached what a provider would have in
its cache: the longest beginning that a request before had (`implicit`), or that ended in one of its
breakpoints (`explicit`); four bytes are one token. Costs are those of the prompts, by the prices in
`profiles.toml`. Local: llama.cpp's own counters, each conversation in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

FAMILIES = {
    "gpt-5.6-terra": "openai-responses",
    "deepseek-flash": "deepseek",
    "claude-haiku-4-5": "anthropic",
    "claude-opus-5": "anthropic",
    "claude-opus-5-5": "anthropic",
}
MODES = ("none", "append", "replace", "auto")
LOCAL_MODES = ("none", "append", "replace")
DEFAULT_LOCAL = "qwen2.5-coder-0.5b"
BYTES_A_TOKEN = 4
SYSTEM = "You look things up and pay bills. " * 60


def main() -> int:
    options = _options()
    if options.one:
        print("\n" + json.dumps(asyncio.run(_local(options))))
        return 0
    report: dict[str, Any] = {"turns": options.turns, "result_chars": options.result_chars}
    report["providers"] = {
        model: asyncio.run(_provider(model, options)) for model in options.only or FAMILIES
    }
    if not options.no_local:
        report["local"] = {"model": options.model, **_locals(options)}
    if not options.json:
        _print(report)
    print(json.dumps(report))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=20, help="messages of the user")
    parser.add_argument("--result-chars", type=int, default=2000, help="length of each result")
    parser.add_argument("--only", action="append", default=[], choices=FAMILIES)
    parser.add_argument("--no-local", action="store_true", help="leave the local model out")
    parser.add_argument("--model", default=DEFAULT_LOCAL, help="the local model")
    parser.add_argument("--local-turns", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--one", choices=LOCAL_MODES, help=argparse.SUPPRESS)
    return parser.parse_args()


# --- providers ---


class Cache:
    """What a provider has of the prompts so far."""

    def __init__(self, wire: str, *, explicit: bool) -> None:
        self._wire, self._explicit = wire, explicit
        self._kept: set[tuple[bytes, ...]] = set()

    def take(self, body: bytes) -> tuple[int, int, int]:
        """Tokens of the prompt, of these read from the cache, and of these written to it."""
        from lorimer.context.auditor.segments import split

        parts = split(self._wire, body)
        segments = parts.ordered()
        marks = [segment.digest for segment in segments]
        sizes = [segment.size for segment in segments]
        read = max((n for n in range(len(marks) + 1) if tuple(marks[:n]) in self._kept), default=0)
        end = len(marks)
        if self._explicit:
            whole = b"cache_control" in b"".join(parts.settings.values()) or (
                "cache_control" in parts.settings
            )
            ends = [n for n, s in enumerate(segments, 1) if b'"cache_control"' in parts.raw(s)]
            ends += [len(marks)] if whole else []
            end = max(ends, default=0)
            self._kept.update(tuple(marks[:n]) for n in ends)
        else:
            self._kept.update(tuple(marks[:n]) for n in range(1, len(marks) + 1))
        return (
            sum(sizes) // BYTES_A_TOKEN,
            sum(sizes[:read]) // BYTES_A_TOKEN,
            sum(sizes[read:end]) // BYTES_A_TOKEN,
        )


async def _provider(model: str, options: argparse.Namespace) -> dict[str, Any]:
    from lorimer.models.profiles import profile_for

    profile = profile_for(FAMILIES[model], model)
    rows = {mode: await _conversation(model, profile, mode, options) for mode in MODES}
    for mode in MODES[1:]:
        extra = rows[mode]["dollars"] - rows["none"]["dollars"]
        rows[mode]["over_none"] = round(extra / rows["none"]["dollars"], 4)
    choice = rows["auto"]["choice"]
    explicit = profile.wire == "anthropic"
    added = 0 if explicit else rows["replace"]["added_tokens"]
    return {
        "cache": "explicit" if explicit else "implicit",
        "rows": rows,
        "auto_chose": choice["mode"],
        "why": choice["why"],
        "cheaper": min(("append", "replace"), key=lambda m: rows[m]["dollars"]),
        "replace_possible": rows["replace"]["mode"] == "replace",
        "paper_rule": _paper(
            choice, rows["append"]["bar_tokens"], added, rows["append"]["updates"]
        ),
    }


def _paper(choice: Any, bar: float, added: float, updates: int) -> dict[str, Any]:
    """The rule `a*S*N/2 < (1-a)*R`, with what was really measured."""
    a = choice["cached"] or 0.0
    keep, anew = a * bar * updates / 2, (1 - a) * added
    return {
        "S": round(bar),
        "R": round(added),
        "N": updates,
        "append_when": f"{keep:.0f} < {anew:.0f}",
        "says": "append" if keep < anew else "replace",
    }


async def _conversation(
    model: str, profile: Any, mode: str, options: argparse.Namespace
) -> dict[str, Any]:
    from lorimer import Agent, tool
    from lorimer.context.status import StatusBar
    from lorimer.core.messages import Kind
    from lorimer.tools.tool import Limit
    from wire.answers import Say, SayCall, Usage
    from wire.kit import adapter
    from wire.server import WireServer

    cache = Cache(profile.wire, explicit=profile.wire == "anthropic")
    dollars = Decimal(0)
    totals = [0, 0, 0]
    price = profile.price

    def answer(say: Any) -> Any:
        def made(received: Any) -> Any:
            nonlocal dollars
            prompt, cached, written = cache.take(received.body)
            for at, value in enumerate((prompt, cached, written)):
                totals[at] += value
            write = price.cache_write if price.cache_write is not None else price.input
            plain = prompt - cached - written
            dollars += (plain * price.input + cached * price.cached + written * write) / 1_000_000
            usage = Usage(input=prompt, cached=cached, written=written, output=20, reasoning=0)
            return Say(say.text, say.calls, usage=usage, piece=400)

        return made

    @tool(effects="write", limits=[Limit(options.turns, counter="merchant")], isolation="loop")
    async def pay(merchant: str, amount: int) -> str:
        """Pay a bill."""
        return f"paid {amount} to {merchant}"

    @tool(effects="read")
    def look(word: str) -> str:
        """Look a word up."""
        return f"{word} is known. " * (options.result_chars // 16)

    script: list[Any] = []
    for turn in range(options.turns):
        merchant = ("acme", "bolt", "corner")[turn % 3]
        calls = (
            SayCall(f"c{turn}a", "look", json.dumps({"word": f"w{turn}"})),
            SayCall(f"c{turn}b", "pay", json.dumps({"merchant": merchant, "amount": turn})),
        )
        script += [Say(calls=calls[:1]), Say(calls=calls[1:]), Say(f"Paid bill {turn}.")]
    with (
        tempfile.TemporaryDirectory() as folder,
        WireServer(
            profile.wire, [answer(say) for say in script], status_role=profile.status_role
        ) as server,
    ):
        made = adapter(profile.wire, server.base_url, profile, model=model)
        async with aclosing(made), Agent(
            made, [pay, look], system=SYSTEM, store=Path(folder) / "s.db", mode="trusted",
            status=None if mode == "none" else StatusBar(mode=mode), strict_cache=True,
        ) as agent, agent.session() as session:  # fmt: skip
            for turn in range(options.turns):
                await session.send(f"Bill {turn} has come; look at it and pay it.")
            upkeep = session.status
            bars = [e for e in session.entries if e.kind is Kind.STATUS]
            sizes = [session.tokens.tokens_of(e) for e in bars]
            tally = None if upkeep is None else upkeep.tally
        assert server.faults == [], server.faults
    return {
        "mode": mode if upkeep is None or upkeep.choice is None else upkeep.choice.mode,
        "dollars": float(round(dollars, 6)), "prompt": totals[0], "cached": totals[1],
        "written": totals[2], "share_cached": round(totals[1] / totals[0], 4),
        "bars": len(bars), "bar_tokens": round(sum(sizes) / len(sizes), 1) if sizes else 0,
        "updates": 0 if tally is None else tally.updates,
        "added_tokens": 0 if tally is None else round(tally.mean_added),
        "choice": None if upkeep is None or upkeep.choice is None else upkeep.choice.to_json(),
    }  # fmt: skip


# --- a local model ---


def _locals(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": {}, "failed": {}}
    for mode in LOCAL_MODES:
        ended = subprocess.run(
            [sys.executable, __file__, "--one", mode, "--model", options.model,
             "--local-turns", str(options.local_turns)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ended.returncode == 0:
            found["rows"][mode] = json.loads(ended.stdout.strip().splitlines()[-1])
        else:
            found["failed"][mode] = ended.stderr.strip()[-600:]
    return found


async def _local(options: argparse.Namespace) -> dict[str, Any]:
    """Questions without calls; the list of things to do changes with each, so that each bar is
    another one."""
    from lorimer import Agent, Settings
    from lorimer.context.status import StatusBar
    from lorimer.models.registry import resolve
    from lorimer.testing import ManualClock
    from lorimer.toolkits import toolset
    from lorimer.toolkits.todo import TodoBoard

    model: Any = resolve(options.model)
    clock, spent = ManualClock(), []
    began = 0.0

    def first(*_: object) -> None:
        nonlocal began
        if began:
            spent.append(time.process_time() - began)
            began = 0.0

    model.on_token = first
    status = None if options.one == "none" else StatusBar(mode=options.one)
    async with aclosing(model):
        agent = Agent(
            model, toolset(["todo"]), store=":memory:", status=status, clock=clock,
            settings=Settings(tool_choice="none", max_output_tokens=24), strict_cache=True,
        )  # fmt: skip
        async with agent, agent.session() as session:
            board = session.dispatcher.around.belongings if status else None
            for turn in range(options.local_turns):
                if board is not None:
                    found = board.get("todo", TodoBoard)
                    if found is not None:
                        items = [*({"id": i.id, "text": i.text} for i in found.todo.items)]
                        found.todo = found.todo.rewritten([*items, {"text": f"step {turn}"}])
                clock.advance(90)
                began = time.process_time()
                await session.send(f"Question {turn}: name one thing that is {turn} metres long.")
            counted = [e.meta["usage"] for e in session.entries if "usage" in e.meta][1:]
    cached = sum(int(usage["cached_tokens"]) for usage in counted)
    prompt = sum(int(usage["input_tokens"]) for usage in counted)
    return {
        "prompt": prompt,
        "cached": cached,
        "computed": prompt - cached,
        "share_cached": round(cached / prompt, 4),
        "cpu_s": round(statistics.median(spent[1:]), 3),
    }


def _print(report: dict[str, Any]) -> None:
    print(f"{report['turns']} turns, 2 calls each, results of {report['result_chars']} characters")
    print(f"\n{'':18} {'cache':9} {'none $':>8} {'append':>8} {'replace':>8} {'auto':>8}", end="")
    print("  auto chose · cheaper · rule with what was measured")
    for model, found in report["providers"].items():
        rows = found["rows"]
        cells = [f"+{rows[mode]['over_none']:.1%}" for mode in MODES[1:]]
        if not found["replace_possible"]:
            cells[1] = "–"
        costs = " ".join(f"{cell:>8}" for cell in (f"{rows['none']['dollars']:.4f}", *cells))
        chosen = (found["auto_chose"], found["cheaper"], found["paper_rule"]["says"])
        print(f"{model:18} {found['cache']:9} {costs}  {' · '.join(chosen)}")
    local = report.get("local", {"rows": {}, "failed": {}})
    for mode, row in local["rows"].items():
        print(f"{local['model']}, {mode}: {row['share_cached']:.1%} from the cache, ", end="")
        print(f"{row['computed']} tokens computed, {row['cpu_s']:.2f} CPU s to the first token")
    for mode, why in local["failed"].items():
        print(f"local, {mode}: failed: {why}")
    print()


if __name__ == "__main__":
    sys.exit(main())
