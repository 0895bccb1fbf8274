"""How an attempt that got through shows: looking at the arena before and after."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from lorimer.core.errors import LorimerError
from lorimer.safety import protected
from lorimer.safety.paths import Roots
from lorimer.safety.sandbox.escapes.arena import Arena
from lorimer.safety.sandbox.escapes.attempts import Attempt

_BEATS_S = 0.15

Look = dict[str, tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one run of an attempt."""

    open: bool
    detail: str


def before(attempt: Attempt, made: Arena, workspace: Path) -> Look:
    """What is to stay as it is."""
    if attempt.evidence == "outside":
        return _tree(made.base / name for name in ("outside", "home", "store", "shown"))
    if attempt.evidence == "protected":
        return _protected(workspace)
    return {}


def after(
    attempt: Attempt,
    made: Arena,
    workspace: Path,
    looked: Look,
    *,
    said: bytes,
    killed: str,
    control: bool,
) -> Found:
    """Judge a run by its evidence.

    Args:
        said: the probe's output.
        killed: why the sandbox killed it, if it did.
    """
    claims, detail = _claims(said, killed)
    has_secret = made.token in detail
    detail = detail.replace(made.token, "the secret")
    kind = attempt.evidence
    if kind in ("outside", "protected"):
        now = before(attempt, made, workspace)
        changed = sorted(k for k in looked.keys() | now.keys() if looked.get(k) != now.get(k))
        if changed:
            return Found(True, f"changed: {', '.join(changed)}")
        return Found(False, f"undone ({detail})" if claims or killed else detail)
    if kind == "canary":
        return Found(has_secret, detail)
    if kind == "victim":
        ended = made.victim_ended(control=control)
        return Found(ended, "it has ended" if ended else detail)
    if kind == "beats":
        beats = _beats(workspace / "beat")
        return Found(beats, "it still runs" if beats else f"ended ({detail})")
    if kind == "tools":
        return _by_tools(made, workspace, follow=control)
    if kind == "killed":
        return Found(claims and killed not in attempt.ends, detail)
    return Found(claims, detail)


def _claims(said: bytes, killed: str) -> tuple[bool, str]:
    for line in reversed(said.splitlines()):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            return bool(told["open"]), f"{told['detail']}{f', killed: {killed}' if killed else ''}"
    return False, f"killed: {killed}" if killed else "it ended before it could tell"


def _tree(places: object) -> Look:
    found: Look = {}
    for place in places:  # type: ignore[attr-defined]
        for path in (place, *sorted(place.rglob("*"))):
            entry = path.lstat()
            if stat.S_ISDIR(entry.st_mode):
                found[f"{place.name}/{path.relative_to(place)}"] = (entry.st_mode, 0, b"")
            else:
                content = path.read_bytes() if stat.S_ISREG(entry.st_mode) else b""
                name = f"{place.name}/{path.relative_to(place)}"
                found[name] = (entry.st_mode, entry.st_mtime_ns, content)
    return found


def _protected(workspace: Path) -> Look:
    """Everything under protected names, anywhere in the workspace."""
    found: Look = {}
    for path in sorted(workspace.rglob("*")):
        parts = path.relative_to(workspace).parts
        if parts[0].startswith("quarantined-") or protected.reason(parts) is None:
            continue
        entry = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(entry.st_mode) else b""
        found["/".join(parts)] = (entry.st_mode, 0, content)
    return found


def _beats(file: Path) -> bool:
    """Whether the file is still written; a test of absence must give it some time."""

    def mark() -> int:
        try:
            return os.stat(file).st_mtime_ns
        except OSError:
            return 0

    first, end = mark(), time.monotonic() + _BEATS_S
    while time.monotonic() < end:
        if mark() != first:
            return True
        time.sleep(0.005)
    return False


def _by_tools(made: Arena, workspace: Path, *, follow: bool) -> Found:
    """Read what was left through our file tools' way in; the control reads it like anybody."""
    try:
        if follow:
            content = (workspace / "report.txt").read_bytes()
        else:
            with Roots(workspace).open_file("report.txt") as opened:
                content = os.read(opened.fd, 4096)
    except (LorimerError, OSError) as fault:
        return Found(False, f"refused: {fault}")
    return Found(made.token.encode() in content, "the tool read the secret")
