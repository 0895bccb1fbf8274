"""Runs the suite in a mount namespace of its own; `lorimer sandbox check` starts it.

Usage: `python -m lorimer.safety.sandbox.escapes LEVEL USER SCRATCH [NAME …]`, `USER` a number to
become, or `-`, `SCRATCH` an empty folder. It prints JSON lines: first how it runs, then each
outcome, or a fault.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast


def main(level: str, user: str, scratch: Path, names: list[str]) -> int:
    from lorimer.safety.sandbox.escapes import arena

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C: whoever started this says so
    own_mounts = arena.enter_own_mounts()  # first: it needs a process with one thread
    if user == "-":
        return _run(level, names, scratch, own_mounts=own_mounts, mounted=False)
    if own_mounts:
        arena.mount_scratch(scratch)
    arena.make_reachable(scratch)
    scratch = scratch / "of-user"
    scratch.mkdir()
    os.chown(scratch, int(user), int(user))
    arena.become(int(user))
    os.environ.update(HOME=str(scratch), TMPDIR=str(scratch))
    tempfile.tempdir = str(scratch)
    return _run(level, names, scratch, own_mounts=own_mounts, mounted=True)


def _run(level: str, names: list[str], scratch: Path, *, own_mounts: bool, mounted: bool) -> int:
    import anyio

    from lorimer.core.errors import LorimerError
    from lorimer.safety.sandbox import choose
    from lorimer.safety.sandbox.escapes import arena
    from lorimer.safety.sandbox.escapes.attempts import ATTEMPTS
    from lorimer.safety.sandbox.escapes.check import check

    wanted = [a for a in ATTEMPTS if not names or a.name in names]
    _say({"user": os.geteuid(), "own_mounts": own_mounts, "attempts": len(wanted)})
    try:
        with arena.arena(scratch, own_mounts=own_mounts and not mounted) as made:
            anyio.run(check, wanted, made, cast(choose.Level, level), lambda o: _say(o.record()))
    except LorimerError as fault:
        _say({"fault": fault.message, "next": fault.next})
        return 2
    return 0


def _say(record: Mapping[str, object]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
