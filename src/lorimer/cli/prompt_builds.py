"""A prompt built several times in processes of their own, each with one thing changed: the clock,
the folder, the hash seed, the user. What differs from the first build is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorimer.core.errors import ConfigError

_LATER_S = 400 * 86_400 + 5 * 3600 + 7 * 60 + 11
_TIMEOUT_S = 120
RUNS: Mapping[str, str] = {
    "again": "it is another one each time it is built",
    "clock": "it depends on the time",
    "folder": "it depends on the folder that the program runs in",
    "hash seed": "it depends on an order that Python draws anew for each process",
    "user": "it depends on the user, the machine or the time zone",
}
_ADVICE = {
    "again": "Leave random ids and counters out of the prompt, or make them once a session.",
    "clock": "Say the time in the newest message (the status bar does), or give a tool for it.",
    "folder": "Say the folder in the status bar, or in a `session` part at the end.",
    "hash seed": "Sort sets and the like before they are written.",
    "user": "Put what is of one user or machine into a `session` part at the end.",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One piece of the prompt that was another one. `cause` is the key in `RUNS`."""

    piece: str
    cause: str
    was: str
    now: str

    @property
    def words(self) -> str:
        return RUNS[self.cause]

    @property
    def advice(self) -> str:
        return _ADVICE[self.cause]

    def to_json(self) -> dict[str, str]:
        return {
            "piece": self.piece, "cause": self.cause, "why": self.words, "was": self.was,
            "now": self.now, "advice": self.advice,
        }  # fmt: skip


def compare_builds(request: Mapping[str, Any]) -> tuple[list[Difference], list[str]]:
    """What differs between the first build and the others; the names of the others.

    Args:
        request: what `prompt_child` builds.

    Raises:
        ConfigError: when a build fails; says how.
    """
    with tempfile.TemporaryDirectory(prefix="lorimer-prompt-") as elsewhere:
        jobs = [("first", request, _environ(), os.getcwd())]
        for name in RUNS:
            changed, environ, folder = dict(request), _environ(), os.getcwd()
            if name == "clock":
                changed["shift_s"] = _LATER_S
            elif name == "folder":
                folder = elsewhere
            elif name == "hash seed":
                environ["PYTHONHASHSEED"] = "4177"
            elif name == "user":
                changed["host"] = "another-machine"
                environ |= {
                    "USER": "somebodyelse", "LOGNAME": "somebodyelse", "USERNAME": "somebodyelse",
                    "HOSTNAME": "another-machine", "HOME": elsewhere, "TZ": "Pacific/Auckland",
                }  # fmt: skip
            jobs.append((name, changed, environ, folder))
        with ThreadPoolExecutor(max_workers=2) as pool:
            built = list(pool.map(lambda job: _build(*job), jobs))
    first, others = built[0], dict(zip(RUNS, built[1:], strict=True))
    found: list[Difference] = []
    for name, other in others.items():
        known = {one.piece for one in found}
        found += [one for one in _differences(first, other, name) if one.piece not in known]
    return found, list(RUNS)


def _environ() -> dict[str, str]:
    from lorimer.core.home import home

    return {
        **os.environ, "LORIMER_HOME": str(home().absolute()), "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(str(Path(p or ".").absolute()) for p in sys.path),
    }  # fmt: skip


def _build(
    name: str, request: Mapping[str, Any], environ: Mapping[str, str], folder: str
) -> dict[str, Any]:
    command = [sys.executable, "-c", "from lorimer.cli.prompt_child import main; main()"]
    try:
        ended = subprocess.run(
            command, input=json.dumps(request).encode(), capture_output=True, cwd=folder,
            env=dict(environ), check=False, timeout=_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as fault:
        raise ConfigError(f"The build ({name}) did not end in {_TIMEOUT_S} s.") from fault
    if ended.returncode != 0:
        words = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(
            f"The build ({name}) failed: {words[-1] if words else 'it said nothing'}",
            next="" if name == "first" else f"The first build went well: {RUNS[name]}.",
        )
    built: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return built


def _differences(
    first: Mapping[str, Any], other: Mapping[str, Any], cause: str
) -> Iterator[Difference]:
    from lorimer.context.auditor.texts import excerpts

    for group in ("parts", "tools"):
        was, now = dict(first[group]), dict(other[group])
        if list(was) != list(now) and sorted(was) == sorted(now):
            yield Difference(f"the order of the {group}", cause, ", ".join(was), ", ".join(now))
        for name in dict.fromkeys([*was, *now]):
            one, two = was.get(name), now.get(name)
            if one == two:
                continue
            piece = f"{group[:-1]} {name}"
            if one is None or two is None:
                there = "it is there", "it is not there"
                yield Difference(piece, cause, *(there if two is None else there[::-1]))
                continue
            yield Difference(piece, cause, *excerpts(one.encode(), two.encode()))
