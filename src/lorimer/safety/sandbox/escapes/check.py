"""Runs the attempts at one level, each beside its control, and says which were stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.escapes import evidence
from lorimer.safety.sandbox.escapes.arena import INSIDE, Arena
from lorimer.safety.sandbox.escapes.attempts import Attempt
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

Verdict = Literal["stopped", "open", "not provable", "not enforced"]
_CONTROL_S = 15.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt.

    Attributes:
        result: `stopped`; `open`; `not provable` (its control was stopped as well, so this says
            nothing); `not enforced` (the sandbox itself said that it cannot do it here).
        by: what stopped it.
        detail: what the attempt met; `control`: what it met outside, or why it was not tried.
        known: why it is documented as open at this level; else empty.
    """

    name: str
    what: str
    result: Verdict
    by: str
    detail: str
    control: str
    known: str = ""

    def record(self) -> dict[str, str]:
        return asdict(self)


async def check(
    attempts: Iterable[Attempt],
    made: Arena,
    level: choose.Level,
    report: Callable[[Outcome], None],
) -> None:
    """Run them one after the other; `report` is called after each.

    Raises:
        SandboxUnavailable: the level cannot be had.
    """
    leaked = os.open(made.base / "outside" / "secret", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    for attempt in attempts:
        report(await _one(attempt, made, level))
    os.close(leaked)


async def _one(attempt: Attempt, made: Arena, level: choose.Level) -> Outcome:
    control = _control(attempt, made) if not attempt.no_control else None
    made.fill()
    workspace = made.workspace(repository=attempt.repository, control=False)
    victim = made.victim(control=False, heeds=_heeds(attempt))
    looked = evidence.before(attempt, made, workspace)
    limits = Limits(**{"wall_s": 20.0, "processes": 256, "tree_memory_bytes": 2 << 30,
                       **attempt.limits})  # fmt: skip
    spec = SandboxSpec(
        workspace,
        writable=True,
        read_only=(Path(sys.prefix), Path(sys.base_prefix), INSIDE, made.base / "shown"),
        limits=limits,
    )
    result: SandboxResult = await choose.run(
        [*_command(attempt), _parameters(attempt, made, workspace, victim.pid)],
        spec=spec,
        level=level,
    )
    told_nothing = b'"open"' not in result.stdout.head and not result.killed
    if told_nothing and result.signal not in (signal.SIGXCPU, signal.SIGKILL):
        raise SandboxUnavailable(
            f"The attempt {attempt.name} could not be made: exit code {result.exit_code}, "
            f"{result.stderr.text()[-300:]}",
            next="Check that this Python can be read inside the sandbox.",
        )
    found = evidence.after(
        attempt, made, workspace, looked,
        said=result.stdout.head, killed=result.killed, control=False,
    )  # fmt: skip
    by = (attempt.alone or attempt.by) if level == "landlock" else attempt.by
    told = attempt.no_control and f"none: {attempt.no_control}"
    verdict: Verdict = "open" if found.open else "stopped"
    if found.open and attempt.evidence == "killed" and result.not_enforced:
        verdict = "not enforced"
    if control is not None:
        told = control.detail
        if not control.open and not found.open:
            verdict = "not provable"
    return Outcome(
        attempt.name, attempt.what, verdict, by, found.detail, told or "",
        attempt.known.get(level, "") if found.open else "",
    )  # fmt: skip


def _heeds(attempt: Attempt) -> bool:
    return attempt.probe == "processes.signal_all"


def _command(attempt: Attempt) -> list[str]:
    return [sys.executable, "-I", "-S", str(INSIDE), attempt.probe]


def _parameters(attempt: Attempt, made: Arena, workspace: Path, victim: int) -> str:
    return json.dumps(
        {
            **made.facts,
            **attempt.parameters,
            "path": str(made.base / attempt.place),
            "workspace": str(workspace),
            "beat": str(workspace / "beat"),
            "victims": [victim],
            "runner": os.getpid(),
        }
    )


def _control(attempt: Attempt, made: Arena) -> evidence.Found:
    """The same, outside, as a user without privileges."""
    made.fill()
    workspace = made.workspace(repository=attempt.repository, control=True)
    victim = made.victim(control=True, heeds=_heeds(attempt))
    looked = evidence.before(attempt, made, workspace)
    user = made.control_user
    try:
        done = subprocess.run(
            [*_command(attempt), _parameters(attempt, made, workspace, victim.pid)],
            capture_output=True, stdin=subprocess.DEVNULL, cwd=workspace, close_fds=False,
            timeout=_CONTROL_S, check=False,
            user=user, group=user, extra_groups=[] if user is not None else None,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return evidence.Found(False, "no answer in time")
    return evidence.after(
        attempt, made, workspace, looked, said=done.stdout, killed="", control=True
    )
