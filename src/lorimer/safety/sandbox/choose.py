"""Which sandbox level can be had here, and running a program in the one that is wanted.

The level that was asked for is used or the call is refused with the reason; never a weaker one.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec

Level = Literal["os", "none"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a level works here; `reason` and `next` say why not and what to do."""

    level: Level
    usable: bool
    reason: str = ""
    next: str = ""


_lock = threading.Lock()
_known: dict[Level, Availability] = {}


def available(*, again: bool = False) -> tuple[Availability, ...]:
    """What can be had on this machine. The first call really runs a program in each level (some
    20 ms); the answer is kept until `again`."""
    with _lock:
        if again:
            _known.clear()
        if "os" not in _known:
            _known["os"] = _look_for_os()
        return (_known["os"], Availability("none", usable=True, reason="no protection at all"))


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    level: Level = "os",
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` at this level. Cancellation kills the whole tree before this raises.

    Raises:
        SandboxUnavailable: the level cannot be had; nothing was run.
    """
    if level == "none":
        from lorimer.safety.sandbox import none

        return await none.run(argv, spec=spec, stdin=stdin, on_output=on_output)
    if not sys.platform.startswith("linux"):
        raise _only_linux()
    from lorimer.safety.sandbox import os_level

    return await os_level.run(argv, spec=spec, stdin=stdin, on_output=on_output)


def _look_for_os() -> Availability:
    try:
        if not sys.platform.startswith("linux"):
            raise _only_linux()
        from lorimer.safety.sandbox import os_level

        os_level.program()
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as own_thread:
            own_thread.submit(os_level.probe, Path(folder)).result()
    except SandboxUnavailable as fault:
        return Availability("os", usable=False, reason=fault.message, next=fault.next)
    return Availability("os", usable=True)


def _only_linux() -> SandboxUnavailable:
    return SandboxUnavailable(
        f"No sandbox for {sys.platform} yet; this level needs Linux with bubblewrap.",
        next="Run on Linux, or allow programs to run without a sandbox in the deployment.",
    )
