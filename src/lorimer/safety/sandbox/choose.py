"""Which sandbox level can be had here, and running a program in the one that is wanted.

The level that was asked for is used or the call is refused with the reason; never a weaker one,
unless the caller allows it by name (`allow_fallback`), and then the result says which it was.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec

Level = Literal["os", "landlock", "container", "none"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a level works here; `reason` and `next` say why not and what to do."""

    level: str
    usable: bool
    reason: str = ""
    next: str = ""


_lock = threading.Lock()
_known: dict[str, Availability] = {}


def available(*, again: bool = False) -> tuple[Availability, ...]:
    """What can be had on this machine: `os` first, then `landlock`, and `none` last. The first call
    really runs a program in each (some 60 ms); the answer is kept until `again`. Containers and
    machines are not looked for: see `all_levels`."""
    with _lock:
        if again:
            _known.clear()
        for level, probe in (("os", _probe_os), ("landlock", _probe_landlock)):
            if level not in _known:
                _known[level] = _look(level, probe)
        return (
            _known["os"],
            _known["landlock"],
            Availability("none", usable=True, reason="no protection at all"),
        )


def all_levels() -> tuple[Availability, ...]:
    """Every level, also those that take seconds to look for (a container engine may be slow)."""
    from lorimer.safety.sandbox import container, microvm

    os_level, landlock, none = available(again=True)
    names = microvm.providers()
    machines = Availability(
        "microvm",
        usable=bool(names),
        reason=f"providers: {', '.join(names)}" if names else "no provider is installed",
        next="" if names else f"Install a package with an entry point in {microvm.GROUP}.",
    )
    return (os_level, landlock, _look("container", container.usable), machines, none)


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    level: Level = "os",
    allow_fallback: bool = False,
    image: str | None = None,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` at this level. Cancellation kills the whole tree before this raises.

    Args:
        allow_fallback: whether `landlock` may be used where `os` cannot be had.
        image: for the level `container`.

    Raises:
        SandboxUnavailable: the level cannot be had; nothing was run.
    """
    if level == "none":
        from lorimer.safety.sandbox import none

        return await none.run(argv, spec=spec, stdin=stdin, on_output=on_output)
    if spec.egress is not None and (level != "os" or not sys.platform.startswith("linux")):
        raise SandboxUnavailable(
            f"Hosts cannot be granted at the level {level!r} on {sys.platform}.",
            next="Use the level 'os' on Linux, or run the program without network.",
        )
    if level == "container":
        from lorimer.safety.sandbox import container

        return await container.run(argv, spec=spec, image=image, stdin=stdin, on_output=on_output)
    if level == "os" and sys.platform == "darwin":
        from lorimer.safety.sandbox import seatbelt

        return await seatbelt.run(argv, spec=spec, stdin=stdin, on_output=on_output)
    if not sys.platform.startswith("linux"):
        raise _not_here()
    if level == "os" and allow_fallback and spec.egress is None:
        os_here = (await anyio.to_thread.run_sync(available))[0]
        level = "os" if os_here.usable else "landlock"
    if level == "landlock":
        from lorimer.safety.sandbox import landlock

        return await landlock.run(argv, spec=spec, stdin=stdin, on_output=on_output)
    from lorimer.safety.sandbox import os_level

    return await os_level.run(argv, spec=spec, stdin=stdin, on_output=on_output)


def _look(level: str, probe: Callable[[], object]) -> Availability:
    try:
        probe()
    except SandboxUnavailable as fault:
        return Availability(level, usable=False, reason=fault.message, next=fault.next)
    return Availability(level, usable=True)


def _probe_os() -> None:
    if sys.platform == "darwin":
        from lorimer.safety.sandbox import seatbelt

        return _run_once(seatbelt.run)
    if not sys.platform.startswith("linux"):
        raise _not_here()
    from lorimer.safety.sandbox import os_level

    os_level.program()
    return _run_once(os_level.run)


def _probe_landlock() -> None:
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(
            f"Landlock is a part of Linux; this is {sys.platform}.", next="Use another level."
        )
    from lorimer.safety.sandbox import landlock

    landlock.usable()
    _run_once(landlock.run)


def _run_once(run_at_level: Callable[..., object]) -> None:
    """Run `true`, to know that the level works here; in a thread and event loop of its own."""
    from lorimer.safety.sandbox import probe

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as own_thread:
        own_thread.submit(probe.once, run_at_level, Path(folder)).result()


def _not_here() -> SandboxUnavailable:
    return SandboxUnavailable(
        f"No sandbox for {sys.platform} yet; this level needs Linux or macOS.",
        next="Run there, or allow programs to run without a sandbox in the deployment.",
    )
