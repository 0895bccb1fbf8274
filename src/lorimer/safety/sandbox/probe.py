"""Running a program once at a level, to know that the level works here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec

_START_S = 20.0


def once(run: Callable[..., Any], folder: Path) -> None:
    """Run `true` in `folder`; call it in a thread without an event loop.

    Raises:
        SandboxUnavailable: with the reason.
    """
    spec = SandboxSpec(workspace=folder, limits=Limits(wall_s=_START_S))

    async def run_true() -> SandboxResult:
        result: SandboxResult = await run(["/usr/bin/env", "true"], spec=spec)
        return result

    result = anyio.run(run_true)
    if result.exit_code != 0:
        raise SandboxUnavailable(
            f"A program in a sandbox here ends with {result.exit_code} {result.killed}: "
            f"{result.stderr.text()}",
            next="Look at what `bwrap --ro-bind / / --unshare-all true` says here.",
        )
