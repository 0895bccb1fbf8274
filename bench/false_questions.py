"""Questions on a week of ordinary work: a recorded list of calls, replayed through the assessment
and the policy, counted per mode. Nothing is run.

    python bench/false_questions.py            a table and a JSON line
    python bench/false_questions.py --json     one JSON object
    python bench/false_questions.py --show ask the calls that ask in that mode, and why

`bench/data/ordinary_calls.jsonl` holds 241 calls of five days in a repository (a fix, a feature, a
front end, an incident, a release), each marked by hand: `read` only looks, `change` changes the
workspace or runs its code, `question` is what a person wants to be asked about (push, upload,
install, download, delete a tree, read `.env`). A question is false on a `read`, and, except in mode
`ask`, which asks before changes, on a `change`. `missed` are `question`s that would run unasked.
The replay takes place in an empty folder, once as one that the person trusts and once as one that
nobody has looked at: there git may run what its configuration says, so mode `ask` asks about it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

CALLS = Path(__file__).parent / "data" / "ordinary_calls.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--show", metavar="MODE", help="the calls that ask in this mode, and why")
    parser.add_argument("--calls", type=Path, default=CALLS, help="another list of calls")
    options = parser.parse_args()
    calls = [json.loads(line) for line in options.calls.read_text("utf-8").splitlines() if line]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "project"
        workspace.mkdir()
        if options.show:
            return show(calls, workspace, options.show)
        result = replay(calls, workspace)
    if not options.json:
        print_table(result)
    print(json.dumps(result))
    return 0


def decided(calls: list[dict[str, Any]], workspace: Path, mode: str, *, trusted: bool) -> list[Any]:
    """(call, decision, seconds for assessment and decision) of every call."""
    from lorimer.safety.effects import CallAssessor
    from lorimer.safety.policy.examples import facts_of_call, known_tools
    from lorimer.safety.policy.layers import LayeredPolicy
    from lorimer.safety.policy.rules import Place
    from lorimer.toolkits import all_tools

    known = known_tools(all_tools())
    policy = LayeredPolicy(mode, place=Place(str(workspace), str(Path.home())))
    assessor = CallAssessor(trusted_folder=trusted)
    out = []
    for call in calls:
        start = time.perf_counter()
        facts = facts_of_call(
            call["tool"], call["arguments"], policy.place, known=known, assessor=assessor
        )
        decision = policy.decide(facts)
        out.append((call, decision, time.perf_counter() - start))
    return out


def is_false(call: dict[str, Any], mode: str) -> bool:
    """Whether a question about `call` is one too many in `mode`."""
    return call["kind"] == "read" or (call["kind"] == "change" and mode != "ask")


def replay(calls: list[dict[str, Any]], workspace: Path) -> dict[str, Any]:
    from lorimer.safety.policy.modes import MODES

    result: dict[str, Any] = {
        "calls": len(calls),
        "kinds": dict(Counter(c["kind"] for c in calls)),
        "tools": dict(Counter(c["tool"] for c in calls).most_common()),
    }
    for trusted in (True, False):
        modes: dict[str, Any] = {}
        for mode in MODES:
            found = decided(calls, workspace, mode, trusted=trusted)
            asked = [c for c, d, _ in found if d.verdict == "ask"]
            modes[mode] = {
                "runs": sum(d.verdict == "allow" for _, d, _ in found),
                "questions": len(asked),
                "false_questions": sum(is_false(c, mode) for c in asked),
                "refused": sum(d.verdict == "deny" for _, d, _ in found),
                "missed": sum(c["kind"] == "question" and d.verdict == "allow"
                              for c, d, _ in found),
            }  # fmt: skip
            if mode == "auto" and trusted:
                took = [s * 1e6 for _, _, s in found]
                result["microseconds"] = {
                    "p50": round(statistics.median(took)),
                    "p95": round(statistics.quantiles(took, n=20)[-1]),
                }
        result["trusted_folder" if trusted else "unknown_folder"] = modes
    return result


def show(calls: list[dict[str, Any]], workspace: Path, mode: str) -> int:
    for call, decision, _ in decided(calls, workspace, mode, trusted=True):
        if decision.verdict != "allow":
            mark = "FALSE" if is_false(call, mode) else call["kind"]
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            print(f"{mark:<8} {decision.verdict} {call['tool']} {arguments[:90]}")
            print(f"         {decision.reason}")
    return 0


def print_table(result: dict[str, Any]) -> None:
    kinds = ", ".join(f"{number} {kind}" for kind, number in result["kinds"].items())
    print(f"{result['calls']} ordinary calls: {kinds}\n")
    print(f"{'folder':<9} {'mode':<8}   run  asked  false refused missed")
    for name in ("trusted_folder", "unknown_folder"):
        for mode, row in result[name].items():
            print(
                f"{name.split('_')[0]:<9} {mode:<8} {row['runs']:>5} {row['questions']:>6} "
                f"{row['false_questions']:>6} {row['refused']:>7} {row['missed']:>6}"
            )
    took = result["microseconds"]
    print(f"\nassessment and decision: p50 {took['p50']} µs, p95 {took['p95']} µs a call")


if __name__ == "__main__":
    sys.exit(main())
