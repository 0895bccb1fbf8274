"""What a sandbox costs to start: the time of a program that does nothing, by level, beside a plain
subprocess, taking turns in one run.

    python bench/sandbox.py            a table and a JSON line
    python bench/sandbox.py --json     one JSON object
    python bench/sandbox.py --repeat 200

Each time is from the call to the end of the whole tree. `bwrap` is bubblewrap alone, with all
namespaces and nothing else, for comparison. `ratio` is the p50 beside that of the plain subprocess.
Levels that cannot be had here are named with the reason. Nothing passes or fails on time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.spec import SandboxSpec

PROGRAM = ["/bin/true"]
Start = Callable[[], Awaitable[None]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--repeat", type=int, default=60, help="starts of each (at least 50)")
    options = parser.parse_args()
    if options.repeat < 50:
        parser.error("--repeat is at least 50: a p95 of less says little")
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="lorimer-bench-") as folder:
        starts = _starts(Path(folder), missing)
        times = anyio.run(_take_turns, starts, options.repeat, not options.json)
    report = _report(times, missing, options.repeat)
    if not options.json:
        _table(report)
    print(json.dumps(report))
    return 0


def _starts(workspace: Path, missing: dict[str, str]) -> dict[str, Start]:
    async def plain() -> None:
        await anyio.run_process(PROGRAM, cwd=workspace)

    starts: dict[str, Start] = {"plain subprocess": plain}
    bwrap = shutil.which("bwrap")
    if bwrap is not None:
        line = [bwrap, "--unshare-all", "--ro-bind", "/", "/", *PROGRAM]
        if subprocess.run(line, check=False, capture_output=True).returncode == 0:

            async def bubblewrap() -> None:
                await anyio.run_process(line, cwd=workspace)

            starts["bwrap"] = bubblewrap
    for level in ("none", "os", "landlock"):
        found = next(one for one in choose.available() if one.level == level)
        if not found.usable:
            missing[level] = found.reason
            continue
        for writable in (False, True):
            name = f"{level}, writable" if writable else level
            starts[name] = _sandboxed(level, workspace, writable=writable)
    return starts


def _sandboxed(level: choose.Level, workspace: Path, *, writable: bool) -> Start:
    spec = SandboxSpec(workspace, writable=writable)

    async def start() -> None:
        result = await choose.run(PROGRAM, spec=spec, level=level)
        if result.exit_code != 0 or result.level != level:
            raise SystemExit(f"{level}: exit code {result.exit_code}: {result.stderr.text()}")

    return start


async def _take_turns(
    starts: dict[str, Start], repeat: int, progress: bool
) -> dict[str, list[float]]:
    """Milliseconds of each start; the order is drawn anew in each turn."""
    for start in starts.values():
        await start()
    times: dict[str, list[float]] = {name: [] for name in starts}
    for turn in range(repeat):
        for name in random.sample(list(starts), len(starts)):
            began = time.perf_counter()
            await starts[name]()
            times[name].append((time.perf_counter() - began) * 1000)
        if progress and sys.stderr.isatty():
            print(f"\r{turn + 1} of {repeat} ", end="", file=sys.stderr, flush=True)
    if progress and sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    return times


def _report(
    times: dict[str, list[float]], missing: dict[str, str], repeat: int
) -> dict[str, object]:
    plain = statistics.median(times["plain subprocess"])
    rows = {}
    for name, found in times.items():
        cuts = statistics.quantiles(found, n=20)
        rows[name] = {
            "p50_ms": round(statistics.median(found), 2),
            "p95_ms": round(cuts[18], 2),
            "ratio": round(statistics.median(found) / plain, 2),
        }
    return {
        "starts": repeat,
        "levels": rows,
        "missing": missing,
        "user": os.geteuid(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }


def _table(report: dict[str, object]) -> None:
    rows = report["levels"]
    assert isinstance(rows, dict)
    print(f"{report['starts']} starts of {PROGRAM[0]} each, taking turns\n")
    print(f"{'':<20} {'p50 ms':>8} {'p95 ms':>8} {'ratio':>7}")
    for name, row in rows.items():
        print(f"{name:<20} {row['p50_ms']:>8.2f} {row['p95_ms']:>8.2f} {row['ratio']:>7.2f}")
    missing = report["missing"]
    assert isinstance(missing, dict)
    for name, why in missing.items():
        print(f"{name:<20} not here: {why}")
    print()


if __name__ == "__main__":
    sys.exit(main())
