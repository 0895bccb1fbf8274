"""What importing costs: the CPU time of `import lorimer` beside `import asyncio, json, sqlite3`,
and of `lorimer --version` beside `import typer`, each in fresh interpreters, taking turns.

    python bench/imports.py            a table and a JSON line
    python bench/imports.py --json     one JSON object
    python bench/imports.py --peers    with the other frameworks, from their own environment

`*_cpu_ms` is user and system time of the child, the least of all turns, less that of a bare
`python -c pass` in the same environment: the start of the interpreter is in both numbers and would
pull their ratio towards 1. The plain numbers, with nothing taken off, stand in `plain`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from peers import prepare, quiet_environment

BARE = "pass"
BASELINE = "import asyncio, json, sqlite3"
LORIMER = "import lorimer"
FIRST_USE = "from lorimer import Agent, tool"
TYPER = "import typer"
IMPORTS = (BARE, BASELINE, LORIMER, FIRST_USE, TYPER)
COMMANDS = ("lorimer --version", "lorimer --help")
PEERS = {
    "from pydantic_ai import Agent": "pydantic-ai-slim",
    "from agents import Agent, function_tool": "openai-agents",
    "from langchain.agents import create_agent": "langchain",
    "from smolagents import ToolCallingAgent, tool": "smolagents",
    "from strands import Agent, tool": "strands-agents",
}
BARE_OF_PEERS = "pass (environment of the peers)"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and no table")
    parser.add_argument("--peers", action="store_true", help="import the other frameworks too")
    parser.add_argument("--repeat", type=int, default=25, help="turns")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat is at least 1")
    cases = {case: [sys.executable, "-c", case] for case in IMPORTS}
    missing: dict[str, str] = {}
    program = _program()
    for case in COMMANDS:
        if program is None:
            missing[case] = "the command lorimer is not beside this interpreter"
        else:
            cases[case] = [program, *case.split()[1:]]
    if options.peers:
        peers = prepare()
        cases[BARE_OF_PEERS] = [peers.python, "-c", BARE]
        for case, distribution in PEERS.items():
            if distribution in peers.missing:
                missing[case] = f"cannot be installed: {peers.missing[distribution]}"
            else:
                cases[case] = [peers.python, "-c", case]
    samples = _measure(cases, options.repeat, missing)
    found = _summary(samples, missing, options.repeat)
    if not options.json:
        _print_table(found)
    print(json.dumps(found))
    return 0 if LORIMER in samples and BASELINE in samples else 1


def _program() -> str | None:
    beside = Path(sys.executable).with_name("lorimer")
    return str(beside) if beside.is_file() else shutil.which("lorimer")


def _measure(
    cases: dict[str, list[str]], repeat: int, missing: dict[str, str]
) -> dict[str, list[float]]:
    """CPU milliseconds of every turn. The first turn is not counted: it writes the byte code."""
    with tempfile.TemporaryDirectory(prefix="lorimer-bench-") as folder:
        environment = {**quiet_environment(), "LORIMER_HOME": folder}
        samples: dict[str, list[float]] = {}
        for case, command in cases.items():
            try:
                _cpu_ms(command, environment)
                samples[case] = []
            except OSError as fault:
                missing[case] = str(fault)
        for _ in range(repeat):
            for case, taken in samples.items():
                taken.append(_cpu_ms(cases[case], environment))
    return samples


def _cpu_ms(command: list[str], environment: dict[str, str]) -> float:
    """User and system time of one process.

    Raises:
        OSError: when it cannot be started or does not end well.
    """
    with tempfile.TemporaryFile() as errors, open(os.devnull, "wb") as nowhere:
        child = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
            ],
        )
        _, status, used = os.wait4(child, 0)
        if status != 0:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
            code = os.waitstatus_to_exitcode(status)
            raise OSError(f"exit code {code}: {said[-1] if said else 'no message'}")
    return (used.ru_utime + used.ru_stime) * 1000


def _summary(
    samples: dict[str, list[float]], missing: dict[str, str], repeat: int
) -> dict[str, Any]:
    plain = {
        case: {"min_ms": min(taken), "median_ms": statistics.median(taken)}
        for case, taken in samples.items()
    }
    least = {case: numbers["min_ms"] for case, numbers in plain.items()}
    net = {
        case: value - least[BARE_OF_PEERS if case in PEERS else BARE]
        for case, value in least.items()
        if case not in (BARE, BARE_OF_PEERS)
    }

    def ratio(case: str, to: str, of: dict[str, float]) -> float | None:
        return of[case] / of[to] if case in of and of.get(to, 0) > 0 else None

    return {
        "lorimer_cpu_ms": net.get(LORIMER),
        "baseline_cpu_ms": net.get(BASELINE),
        "ratio": ratio(LORIMER, BASELINE, net),
        "ratio_plain": ratio(LORIMER, BASELINE, least),
        "first_use_cpu_ms": net.get(FIRST_USE),
        "first_use_ratio": ratio(FIRST_USE, BASELINE, net),
        "first_use_ratio_plain": ratio(FIRST_USE, BASELINE, least),
        "typer_cpu_ms": net.get(TYPER),
        "version_cpu_ms": net.get("lorimer --version"),
        "version_ratio_to_typer": ratio("lorimer --version", TYPER, net),
        "version_ratio_to_typer_plain": ratio("lorimer --version", TYPER, least),
        "help_ratio_to_typer_plain": ratio("lorimer --help", TYPER, least),
        "bare_cpu_ms": least.get(BARE),
        "net": net,
        "plain": plain,
        "not_measured": missing,
        "turns": repeat,
        "versions": _versions(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": [round(n, 2) for n in os.getloadavg()],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _versions() -> dict[str, str]:
    out = {}
    for name in ("lorimer", "pydantic", "typer"):
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out


def _print_table(found: dict[str, Any]) -> None:
    base = found["baseline_cpu_ms"]
    width = max(map(len, [*found["plain"], *found["not_measured"]]))
    print(f"{'':{width}}  least ms  median ms  less bare start  × baseline")
    for case, numbers in found["plain"].items():
        net = found["net"].get(case)
        cells = [f"{numbers['min_ms']:8.1f}", f"{numbers['median_ms']:9.1f}"]
        cells.append("–".rjust(15) if net is None else f"{net:15.1f}")
        cells.append("–".rjust(10) if net is None or not base else f"{net / base:10.2f}")
        print(f"{case:{width}}  " + "  ".join(cells))
    for case, why in found["not_measured"].items():
        print(f"{case:{width}}  NOT MEASURED: {why}")
    print(
        f"\nCPU of fresh processes, user and system, {found['turns']} turns. × baseline: both less "
        f"the bare start.\nWith nothing taken off, {LORIMER!r} is "
        f"{found['ratio_plain']:.2f} and {FIRST_USE!r} {found['first_use_ratio_plain']:.2f} times "
        "the baseline.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
