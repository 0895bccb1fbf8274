"""`run_python`: a piece of Python in the sandbox, with the workspace as its folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency, Outcome
from lorimer.core.canonical import digest
from lorimer.core.errors import SandboxUnavailable
from lorimer.core.trust import Trust
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec
from lorimer.toolkits.execution.hiding import hiding
from lorimer.toolkits.execution.write_file import encoded
from lorimer.toolkits.opening import nothing_done
from lorimer.toolkits.text import Encoding
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, Tool, ToolContext, ToolError

_HARNESS = Path(__file__).with_name("harness.py")
_LONGEST_S = 600
_PRINTED = 4000
_KILLED = {
    "timeout": "It was stopped: it took longer than {limits.wall_s:g} s.",
    "output": "It was stopped: it printed more than {limits.output_bytes:,} bytes.",
    "processes": "It was stopped: it started more than {limits.processes} processes.",
    "protected": "It was stopped: it made a file that no tool may make.",
}
_INSTEAD = {
    "timeout": "run shorter code, or ask for a longer timeout_s",
    "output": "print less",
    "processes": "start fewer processes",
    "protected": "go on without that file",
}


def make_run_python(*, allow_unsandboxed: bool = False) -> Tool:
    """The tool `run_python`.

    Args:
        allow_unsandboxed: what a deployment says for machines without a sandbox: run as a plain
            process (and say so in every result) instead of refusing.
    """

    @tool(
        description=Description(
            "Run Python 3 code in a fresh process in the workspace; no network.",
            use_when="computing, reading tables and other formats, checking.",
            not_when="only reading or editing text. Variables are not kept.",
            cost="the time of the code.",
            returns="what it printed, a last expression's value, errors.",
        ),
        examples=(
            {"code": "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nlen(rows)"},
        ),
        category=Category.EXECUTION,
        effects=Effects.WRITE,
        idempotency=Idempotency.NONE,
        runs_code=True,
        timeout_s=_LONGEST_S + 30,
        trust=Trust.USER_DATA,
        group="files",
    )
    async def run_python(
        code: Annotated[str, Field(description="Code, e.g. 'print(2**10)'")],
        timeout_s: Annotated[
            int, Field(ge=1, le=_LONGEST_S, description="Most seconds, e.g. 120")
        ] = 60,
        *,
        context: ToolContext,
    ) -> str:
        """Cancellation kills everything the code started, and waits for it, before it is told;
        what the code had written to the workspace by then stays."""
        return await _run(code, timeout_s, context, allow_unsandboxed=allow_unsandboxed)

    return run_python


async def _run(code: str, timeout_s: int, context: ToolContext, *, allow_unsandboxed: bool) -> str:
    context.will_mark()
    source = encoded(code, Encoding("utf-8"), "code")
    level: choose.Level = "os"
    note = ""
    if allow_unsandboxed:
        found = (await anyio.to_thread.run_sync(choose.available))[0]
        if not found.usable:
            level, note = "none", f"note: this ran WITHOUT a sandbox ({found.reason})"
    hide = await hiding(context, level)
    limits = Limits(wall_s=float(timeout_s), cpu_s=timeout_s * (os.cpu_count() or 1) + 1)
    spec = SandboxSpec(
        workspace=context.workspace,
        writable=True,
        read_only=_visible(context),
        environment=_environment(),
        limits=limits,
        spool=_spool(context),
        spool_name=f"run-{digest(context.operation_key.encode())[:16]}",
        without_secrets=context.without_secrets,
        hidden=hide.paths,
    )
    argv = [sys.executable, "-I", "-B", "-X", "utf8", "-u", str(_HARNESS)]

    def watch(_: str, piece: bytes) -> None:
        if context.on_output is not None:
            context.on_output(piece.decode("utf-8", "replace"))

    try:
        with context.effect():
            result = await choose.run(argv, spec=spec, level=level, stdin=source, on_output=watch)
    except SandboxUnavailable as fault:
        raise ToolError(
            f"The code was not run: {fault.message}",
            next=f"Do without code. Tell the user: {fault.next}",
            code="no_sandbox",
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            retryable=False,
        ) from fault
    wanted = result.stderr.text() + result.stdout.text() if result.exit_code else ""
    note = "\n".join([*hide.notes(context, wanted), *([note] if note else [])])
    if result.killed:
        raise _stopped(result, limits, note)
    return _told(result, note)


def _stopped(result: SandboxResult, limits: Limits, note: str) -> ToolError:
    """The code did not come to its end: what it had changed by then is not known to us."""
    printed = "\n".join(
        text.rstrip("\n") for text in (result.stdout.text(), result.stderr.text()) if text
    )
    details: dict[str, Any] = {"printed": printed or "nothing"}
    if len(printed) > _PRINTED:
        details["printed"] = printed[-_PRINTED:]
        details["left_out"] = f"{len(printed) - _PRINTED} characters before this"
    details["stopped_in_s"] = round(result.quiescent_s or 0.0, 3)
    if result.quarantined:
        details["renamed, because no tool may write it"] = list(result.quarantined)
    if note:
        details["note"] = note
    why = result.killed
    return ToolError(
        f"{_KILLED[why].format(limits=limits)} Everything it had started has "
        "ended; what it had written to files by then stays.",
        next=f"Look at what it changed, then {_INSTEAD[why]}.",
        code="timeout" if result.timed_out else "stopped",
        outcome=Outcome.UNKNOWN,
        details=details,
    )


def _told(result: SandboxResult, note: str) -> str:
    parts = []
    for name, output in (("", result.stdout), ("stderr", result.stderr)):
        text = output.text()
        if text:
            parts.append((f"[{name}]\n" if name else "") + text.rstrip("\n"))
    if result.exit_code:
        by = f" ({result.signal.name})" if result.signal else ""
        parts.append(f"[exit code {result.exit_code}{by}]")
    elif not parts:
        parts.append("[exit code 0; nothing was printed: use print(), or end with an expression]")
    if result.quarantined:
        parts.append(f"[renamed, because no tool may write it: {', '.join(result.quarantined)}]")
    if note:
        parts.append(note)
    return "\n".join(parts)


def _visible(context: ToolContext) -> tuple[Path, ...]:
    """The running interpreter with its packages, the harness, the session's scratch folder, and the
    folders of its skills."""
    interpreter = Path(os.path.realpath(sys.executable))
    found = [Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.base_prefix))]
    if not any(interpreter.is_relative_to(p) for p in found):
        found.append(interpreter.parent)
    found += [_HARNESS]
    if context.scratch is not None and context.scratch.is_dir():
        found.append(context.scratch)
    found += context.readable
    system = {Path("/usr"), Path("/usr/local"), Path("/")}
    return tuple(dict.fromkeys(p for p in found if p not in system))


def _environment() -> dict[str, str]:
    threads = str(min(os.cpu_count() or 1, 4))
    return {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MPLBACKEND": "Agg",
    }


def _spool(context: ToolContext) -> Path | None:
    if context.scratch is None:
        return None
    try:
        context.scratch.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise nothing_done(
            f"The session's scratch folder {context.scratch} cannot be used: {fault.strerror}.",
            next="Tell the user.",
            code="no_scratch",
        ) from fault
    return context.scratch
