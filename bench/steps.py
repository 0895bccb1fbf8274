"""What a step costs: CPU time, function calls and memory a step, over sessions of 10, 100 and 1,000
steps, of lorimer and of other frameworks, in one run.

    python bench/steps.py                       all, as a table and a JSON line
    python bench/steps.py --only lorimer --json one JSON object; needs lorimer only

A step is one model request and one call of `add`. The model is a fake in the same process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from peers import HERE, Peers, prepare, quiet_environment

OURS = {
    "lorimer": "lorimer_agent",
    "lorimer-sync-read": "lorimer_sync_read",
    "lorimer-sync-write": "lorimer_sync_write",
}
PEERS = {
    "pydantic-ai": ("pydantic_ai_agent", "pydantic-ai-slim"),
    "openai-agents": ("openai_agents_agent", "openai-agents"),
    "langchain": ("langchain_agent", "langchain"),
    "smolagents": ("smolagents_agent", "smolagents"),
    "strands": ("strands_agent", "strands-agents"),
}
WAYS = ("cpu", "calls", "memory")


def main() -> int:
    options = _options()
    names = options.only or [*OURS, *PEERS]
    peers = prepare() if any(name in PEERS for name in names) else None
    subjects = [_Subject(name, peers, options) for name in names]
    try:
        _measure_all(subjects, options)
    except KeyboardInterrupt:
        for subject in subjects:
            subject.faults.append("the benchmark was interrupted; what is missing was not measured")
    results = {subject.name: subject.summary() for subject in subjects}
    if len(options.only) == 1 and options.json:
        (found,) = results.values()
        print(json.dumps({**found, **_about(options)}))
    elif options.json:
        print(json.dumps({"subjects": results, **_about(options)}))
    else:
        _print_table(results, options)
        print(json.dumps({"subjects": results, **_about(options)}))
    return 1 if any("failed" in results[name] for name in names if name in OURS) else 0


def _measure_all(subjects: list[_Subject], options: argparse.Namespace) -> None:
    # Other work on the machine comes and goes: the time is measured in rounds over all subjects.
    for round_number in range(options.rounds if "cpu" in options.ways else 0):
        for subject in subjects:
            subject.measure("cpu", f"round {round_number + 1}")
    for way in ("calls", "memory"):
        if way in options.ways:
            for subject in subjects:
                subject.measure(way)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], choices=[*OURS, *PEERS])
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--steps", default="10,100,1000", help="steps of the sessions")
    parser.add_argument("--rounds", type=int, default=2, help="processes a subject for CPU time")
    parser.add_argument(
        "--repeat", type=int, default=3, help="sessions of each length in each, for ours"
    )
    parser.add_argument("--peer-repeat", type=int, default=1, help="the same for the peers")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one process")
    parser.add_argument(
        "--no-shorter", dest="shorter", action="store_false",
        help="when a subject fails, do not try it again without the longest session",
    )  # fmt: skip
    parser.add_argument("--ways", default=",".join(WAYS), help="of cpu, calls, memory")
    options = parser.parse_args()
    try:
        lengths = [int(n) for n in options.steps.split(",")]
    except ValueError:
        parser.error(f"--steps {options.steps!r} is not a list of numbers such as 10,100,1000")
    if min(lengths) < 1 or max(lengths) < 2:
        parser.error("--steps: a session has at least one step, the longest at least two")
    options.lengths = sorted(set(lengths))
    if min(options.rounds, options.repeat, options.peer_repeat) < 1:
        parser.error("--rounds, --repeat and --peer-repeat are at least 1")
    options.ways = [way for way in options.ways.split(",") if way]
    if not options.ways or not set(options.ways) <= set(WAYS):
        parser.error(f"--ways: choose of {', '.join(WAYS)}")
    return options


class _Subject:
    """One framework, and what was found of it."""

    def __init__(self, name: str, peers: Peers | None, options: argparse.Namespace) -> None:
        self.name = name
        self.found: dict[str, Any] = {"subject": name}
        self.faults: list[str] = []
        self._samples: dict[str, dict[str, list[float]]] = {}
        self._options = options
        self._lengths: list[int] = options.lengths
        self._repeat = options.repeat if name in OURS else options.peer_repeat
        if name in OURS:
            self._python, self._module = sys.executable, OURS[name]
        else:
            assert peers is not None
            self._module, distribution = PEERS[name]
            self._python = peers.python
            if distribution in peers.missing:
                self.faults.append(f"cannot be installed: {peers.missing[distribution]}")
                self._lengths = []

    def measure(self, way: str, which: str = "") -> None:
        """Measure in a process of its own. When that fails, the longest session is left out and it
        is tried again; what failed is kept."""
        while self._lengths:
            steps = ",".join(map(str, self._lengths))
            print(f"{self.name}: {way} {which} ({steps} steps) …", file=sys.stderr, flush=True)
            answer = _ask(
                [self._python, str(HERE / "measure.py"), self._module, way,
                 "--steps", steps, "--repeat", str(self._repeat)],
                self._options.timeout,
            )  # fmt: skip
            if "failed" not in answer:
                for key, by_length in answer.pop("samples", {}).items():
                    kept = self._samples.setdefault(key, {})
                    for length, values in by_length.items():
                        kept.setdefault(length, []).extend(values)
                self.found.update(answer)
                return
            self.faults.append(f"{way} with {steps} steps: {answer['failed']}")
            if not self._options.shorter:
                return
            self._lengths = self._lengths[:-1]

    def summary(self) -> dict[str, Any]:
        """Everything that was found: of times the least and the median of all samples."""
        out = dict(self.found)
        for key, by_length in self._samples.items():
            out[key] = {length: min(values) for length, values in by_length.items()}
            if key == "cpu_ms_per_step":
                out[f"{key}_median"] = {n: statistics.median(v) for n, v in by_length.items()}
                out["cpu_samples"] = {n: len(v) for n, v in by_length.items()}
        children = out.get("cpu_ms_per_step_in_child_processes", {}).get("all")
        if children:
            for key in ("cpu_ms_per_step", "cpu_ms_per_step_median"):
                out[key] = {n: value + children for n, value in out[key].items()}
        if self.faults:
            out["failed"] = self.faults
        return out


def _ask(command: list[str], timeout_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="lorimer-bench-") as folder:
        environment = {**quiet_environment(), "LORIMER_HOME": folder}
        try:
            ended = subprocess.run(
                command, env=environment, cwd=folder, capture_output=True, text=True,
                timeout=timeout_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"failed": f"took more than {timeout_s:g} s"}
    lines = [line for line in ended.stdout.splitlines() if line.strip()]
    if ended.returncode == 0 and lines:
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer
    reasons = [line for line in ended.stderr.splitlines() if line.strip()]
    return {"failed": reasons[-1][:300] if reasons else f"exit code {ended.returncode}"}


def _about(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": [round(n, 2) for n in os.getloadavg()],
        "fsync_ms": round(_fsync_ms(), 3),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _fsync_ms() -> float:
    """What it takes here to have 4 KiB on disk: the median of 50 writes with fsync."""
    took = []
    with tempfile.TemporaryFile(prefix="lorimer-bench-", buffering=0) as file:
        for _ in range(50):
            begun = time.perf_counter()
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begun)
    return sorted(took)[len(took) // 2] * 1000


# --- the table ---


def _print_table(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    lengths = [str(n) for n in options.lengths]
    longest = lengths[-1]
    base = results.get("lorimer", {}).get("cpu_ms_per_step", {}).get(longest)
    rows = [
        ["", *(f"CPU ms @{n}" for n in lengths), "× lorimer", "last/first",
         *(f"calls @{n}" for n in lengths), "other threads", "last/first", "wall ms",
         "KiB", "version"],
    ]  # fmt: skip
    for name, found in results.items():
        cpu, parts = found.get("cpu_ms_per_step", {}), found.get("cpu_ms_per_step_by_part", {})
        calls = found.get("calls_per_step", {})
        complete = longest in cpu
        rows.append([
            name,
            *(_number(cpu.get(n), 2) for n in lengths),
            _number(_quotient(cpu.get(longest), base), 1),
            _number(_quotient(*reversed(parts.values())) if complete else None, 2),
            *(_number(calls.get(n), 0) for n in lengths),
            _number(found.get("calls_per_step_in_other_threads", {}).get(longest), 0),
            _number(found.get("calls_last_to_first_part") if longest in calls else None, 2),
            _number(found.get("wall_ms_per_step", {}).get(longest), 2),
            _number(found.get("memory_kib_per_step", {}).get(longest), 1),
            found.get("version", "–"),
        ])  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    print("\nAll numbers are per step.")
    for name, found in results.items():
        for fault in found.get("failed", ()):
            print(f"{name}: NOT MEASURED: {fault}")
        if "note" in found:
            print(f"{name}: {found['note']}")
    print(
        "\nCPU: whole process, all threads and ended child processes; the least of all sessions.\n"
        "Calls: Python and C, main thread, counted in a process of their own; beside it what the\n"
        f"other threads did, at {longest} steps.\n"
        "last/first: the last hundred steps of the longest session over its first hundred.\n"
        "KiB: growth of Python objects (tracemalloc).\n"
    )


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
