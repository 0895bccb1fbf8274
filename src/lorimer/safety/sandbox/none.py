"""The `none` level: a plain process of this user, with limits and a clean end. Not a sandbox.

The program can read and write whatever this user can, and use the network. It gets the same limits
and a minimal environment, and its tree is killed at the end as far as a process without privileges
can see to that (see `reaper`). It is used only where a deployment says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from lorimer.safety.sandbox.quotas import Quota
from lorimer.safety.sandbox.reaped import Reaped
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec, signal_of
from lorimer.safety.sandbox.streams import captures_of
from lorimer.safety.sandbox.supervise import supervise


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` as a plain process. Cancellation kills its tree before this raises.

    Raises:
        SandboxUnavailable: on systems without Linux's process descriptors.
    """
    started = time.monotonic()
    limits = spec.limits
    quota = Quota(limits, written=(spec.workspace,) if spec.workspace and spec.writable else ())
    tree = Reaped(
        argv,
        limits,
        cwd=spec.workspace,
        environment=_environment(spec),
        feeds_stdin=stdin is not None,
        pass_fds=spec.pass_fds,
    )
    captures = captures_of(spec, on_output)
    try:
        try:
            missing = tree.limit_processes(limits)
            quota.pids = tree.pids
            quota.memory_group = tree.group
            tree.release()
            ending = await supervise(
                tree, tree.pipes, captures, limits, stdin=stdin, watch=quota.check
            )
        finally:
            outputs = [c.close() for c in captures]
            quota.close()
        code = tree.process.wait()
    finally:
        tree.close()
    killed = bool(ending.killed)
    faults = [f"the whole output was not stored: {c.fault}" for c in captures if c.fault]
    return SandboxResult(
        exit_code=None if killed else code,
        signal=None if killed else signal_of(code),
        stdout=outputs[0],
        stderr=outputs[1],
        killed=ending.killed,
        duration_s=ending.gone_at - started,
        quiescent_s=ending.quiescent_s,
        not_enforced=("everything but limits: this was no sandbox", *missing, *faults),
        level="none",
        watched=quota.watched(),
    )


def _environment(spec: SandboxSpec) -> dict[str, str]:
    kept = {k: os.environ[k] for k in ("PATH", "HOME", "TMPDIR") if k in os.environ}
    return {"LANG": "C.UTF-8", **kept, **spec.environment}
