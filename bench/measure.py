"""Measure one subject in this process, in one way; print one JSON object on the last line.

    python bench/measure.py SUBJECT cpu|calls|memory --steps 10,100,1000 --repeat 3

Started by `steps.py`, one process a subject and way, because counting calls and tracing memory
change the time.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import importlib
import importlib.metadata
import json
import os
import resource
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from task import Task

WARM_UP_STEPS = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject")
    parser.add_argument("way", choices=["cpu", "calls", "memory"])
    parser.add_argument("--steps", default="10,100,1000")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    steps = [int(n) for n in options.steps.split(",")]
    _no_network()
    children = _children_cpu()
    module = importlib.import_module(f"subjects.{options.subject}")
    way = {"cpu": _cpu, "calls": _calls, "memory": _memory}[options.way]
    found = asyncio.run(way(module, steps, options.repeat))
    if options.way == "cpu":
        # Of child processes the time is known once they have ended.
        spent = (_children_cpu() - children) * 1000 / found.pop("steps_in_all")
        found["samples"]["cpu_ms_per_step_in_child_processes"] = {"all": [spent]}
    found["version"] = importlib.metadata.version(module.DISTRIBUTION)
    found["note"] = module.NOTE
    print("\n" + json.dumps(found))


def _no_network() -> None:
    """A framework that reaches out would be measured waiting: make it an error instead."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("the benchmark allows no network")

    def connect(self: socket.socket, address: Any) -> Any:
        if self.family == socket.AF_UNIX:
            return plain(self, address)
        return refuse()

    plain = socket.socket.connect
    socket.socket.connect = connect  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = refuse


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _session(run: Any, steps: int, on_request: Callable[[int], None]) -> Any:
    task = Task(steps, on_request)
    found = await run(task)
    if task.requests != steps + 1 or task.calls_done != steps:
        raise RuntimeError(
            f"{task.calls_done} calls ran and {task.requests} requests came, of {steps} steps"
        )
    return found


def _nothing(_: int) -> None:
    pass


def _windows(longest: int) -> list[tuple[int, int]]:
    """First and last step of the parts that are compared: the first and the last hundred steps."""
    width = min(100, max(1, longest // 2))
    return [(1, width), (longest - width + 1, longest)]


# --- CPU time ---


async def _cpu(module: Any, steps: list[int], repeat: int) -> dict[str, Any]:
    """CPU and wall time a step, of whole sessions and of the first and last part of the longest."""
    longest = max(steps)
    samples: dict[int, list[float]] = {n: [] for n in steps}
    walls: dict[int, list[float]] = {n: [] for n in steps}
    parts: dict[str, list[float]] = {f"{a}-{b}": [] for a, b in _windows(longest)}
    others: list[float] = []
    rss: list[float] = []
    proof = None
    async with module.open_subject() as run:
        begun = time.process_time()
        await _session(run, WARM_UP_STEPS, _nothing)
        first = time.process_time() - begun
        for _ in range(repeat):
            for n in steps:
                marks = [0.0] * (n + 1)

                def mark(number: int, marks: list[float] = marks) -> None:
                    marks[number] = time.process_time()

                gc.collect()
                before_rss = _rss_kib()
                cpu, wall, main = time.process_time(), time.perf_counter(), time.thread_time()
                found = await _session(run, n, mark)
                cpu, wall, main = (
                    time.process_time() - cpu,
                    time.perf_counter() - wall,
                    time.thread_time() - main,
                )
                samples[n].append(cpu * 1000 / n)
                walls[n].append(wall * 1000 / n)
                if n == longest:
                    others.append((cpu - main) * 1000 / n)
                    rss.append((_rss_kib() - before_rss) / n)
                    for a, b in _windows(n):
                        parts[f"{a}-{b}"].append((marks[b] - marks[a - 1]) * 1000 / (b - a + 1))
                if n == longest and proof is None and hasattr(run, "proof"):
                    proof = run.proof(found)
    answer: dict[str, Any] = {
        "samples": {
            "cpu_ms_per_step": {str(n): samples[n] for n in steps},
            "wall_ms_per_step": {str(n): walls[n] for n in steps},
            "cpu_ms_per_step_by_part": parts,
            "cpu_ms_per_step_in_other_threads": {str(longest): others},
            # The first only: later sessions use again what the first one freed.
            "rss_kib_per_step": {str(longest): rss[:1]},
            "first_run_cpu_ms": {str(WARM_UP_STEPS): [first * 1000]},
        },
        "steps_in_all": repeat * sum(steps) + WARM_UP_STEPS,
    }
    if proof is not None:
        answer["proof"] = proof
    return answer


def _rss_kib() -> float:
    """Memory the process has now, or the most it ever had where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1024 if sys.platform == "darwin" else float(most)


# --- function calls ---


class _ThreadCounter:
    """Counts calls, Python and C, in every thread that starts from now on."""

    def __init__(self) -> None:
        self._counts: list[list[int]] = []

    def install(self) -> None:
        threading.setprofile(self._begin)

    def remove(self) -> None:
        threading.setprofile(None)  # type: ignore[arg-type]

    @property
    def total(self) -> int:
        return sum(count[0] for count in self._counts)

    def count_here(self) -> None:
        """Count in the calling thread too."""
        sys.setprofile(self._counter())

    def _counter(self) -> Any:
        own = [0]
        self._counts.append(own)

        def count(frame: Any, event: str, argument: Any) -> None:
            if event == "call" or event == "c_call":
                own[0] += 1

        return count

    def _begin(self, frame: Any, event: str, argument: Any) -> None:
        counter = self._counter()
        sys.setprofile(counter)
        counter(frame, event, argument)


class _MainCounter:
    """Counts calls in the main thread: with cProfile up to Python 3.11; from 3.12 on cProfile also
    sees other threads, so there the same events are counted with `sys.setprofile`."""

    def __init__(self) -> None:
        self.name = "cProfile" if sys.version_info < (3, 12) else "sys.setprofile"
        self._profile = cProfile.Profile() if self.name == "cProfile" else None
        self._plain = _ThreadCounter()

    def start(self) -> None:
        if self._profile is not None:
            self._profile.enable(subcalls=False, builtins=True)
        else:
            self._plain.count_here()

    def stop(self) -> None:
        if self._profile is not None:
            self._profile.disable()
        else:
            sys.setprofile(None)

    @property
    def total(self) -> int:
        if self._profile is None:
            return self._plain.total
        return sum(entry.callcount for entry in self._profile.getstats())


async def _calls(module: Any, steps: list[int], repeat: int) -> dict[str, Any]:
    """Function calls a step: in the main thread, and in the others."""
    longest = max(steps)
    others = _ThreadCounter()
    others.install()
    main_calls: dict[str, float] = {}
    other_calls: dict[str, float] = {}
    parts: dict[str, float] = {}
    async with module.open_subject() as run:
        await _session(run, WARM_UP_STEPS, _nothing)
        for n in steps:
            main = _MainCounter()
            wanted = {e for a, b in _windows(n) for e in (a - 1, b)} if n == longest else set()
            marks: dict[int, int] = {}

            def mark(
                number: int,
                wanted: set[int] = wanted,
                marks: dict[int, int] = marks,
                main: _MainCounter = main,
            ) -> None:
                if number in wanted:
                    marks[number] = main.total + others.total

            gc.collect()
            before = others.total
            main.start()
            await _session(run, n, mark)
            main.stop()
            main_calls[str(n)] = main.total / n
            other_calls[str(n)] = (others.total - before) / n
            if n == longest:
                for a, b in _windows(n):
                    parts[f"{a}-{b}"] = (marks[b] - marks[a - 1]) / (b - a + 1)
    others.remove()
    first, last = parts.values()
    return {
        "calls_per_step": main_calls,
        "calls_per_step_in_other_threads": other_calls,
        "calls_per_step_all_threads": {n: main_calls[n] + other_calls[n] for n in main_calls},
        "calls_per_step_by_part": parts,
        "calls_last_to_first_part": last / first,
        "calls_counted_with": main.name,
    }


# --- memory ---


async def _memory(module: Any, steps: list[int], repeat: int) -> dict[str, Any]:
    """What Python objects take, by tracemalloc: growth a step while the session goes on, and the
    most at any time, over what was there before the session."""
    grown: dict[str, float] = {}
    peak: dict[str, float] = {}
    async with module.open_subject() as run:
        await _session(run, WARM_UP_STEPS, _nothing)
        tracemalloc.start()
        for n in steps:
            at: dict[int, int] = {}

            def mark(number: int, n: int = n, at: dict[int, int] = at) -> None:
                if number in (0, n):
                    gc.collect()
                    at[number] = tracemalloc.get_traced_memory()[0]

            gc.collect()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            await _session(run, n, mark)
            most = tracemalloc.get_traced_memory()[1]
            grown[str(n)] = (at[n] - at[0]) / 1024 / n
            peak[str(n)] = (most - before) / 1024 / n
        tracemalloc.stop()
    return {"memory_kib_per_step": grown, "memory_peak_kib_per_step": peak}


if __name__ == "__main__":
    main()
