"""`code_interpreter`: Python that remembers, as in a notebook, in the sandbox."""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency, Outcome
from lorimer.core.canonical import digest
from lorimer.core.errors import MissingExtra, SandboxUnavailable
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.trust import Trust
from lorimer.safety.sandbox.spec import SandboxSpec
from lorimer.toolkits.execution.hiding import Hiding, hiding
from lorimer.toolkits.execution.kernel import Cell, Kernel, KernelDied, Shown, Text, limits
from lorimer.toolkits.execution.shell import level_here
from lorimer.toolkits.execution.visible import interpreter
from lorimer.toolkits.opening import nothing_done
from lorimer.tools.function import tool
from lorimer.tools.tool import Budget, Category, Description, Tool, ToolContext, ToolError

_KEY = "interpreter"
_LONGEST_S = 1800
_TRACE_LINES = 40
_LARGEST_IMAGE = 5 << 20
_MOST_IMAGES = 8
_BUDGET = Budget(lines=2500, characters=12_000)
_FRESH = "[a new interpreter: nothing is defined yet]"
Content = list[TextPart | ImagePart]


class Interpreter:
    """The interpreter of one session, made on first use and closed with the session."""

    def __init__(self) -> None:
        self.turn = anyio.Lock()
        self.kernel = Kernel()
        self.figures = 0
        self.lost = ""
        self.hiding: Hiding | None = None

    @staticmethod
    def of(context: ToolContext) -> Interpreter:
        found = context.belongings.get(_KEY, Interpreter)
        return found if found is not None else context.belongings.keep(_KEY, Interpreter())

    async def close(self) -> None:
        await self.kernel.close()

    async def forget(self, why: str) -> None:
        """End the kernel; the next call starts another and is told why."""
        self.lost = why
        with anyio.CancelScope(shield=True):
            await self.kernel.close()
        self.kernel = Kernel()


def make_code_interpreter(*, allow_unsandboxed: bool = False) -> Tool:
    """The tool `code_interpreter`.

    Args:
        allow_unsandboxed: what a deployment says for machines without a sandbox: run as a plain
            process (and say so) instead of refusing.
    """

    @tool(
        description=Description(
            "Run a cell of Python in an interpreter that keeps its variables; no network.",
            use_when="exploring data step by step, drawing figures.",
            not_when="one piece of code is enough (run_python). input() does not work.",
            cost="the time of the cell; the first one some seconds more.",
            returns="what it printed and displayed, in order; figures as images.",
        ),
        examples=(
            {"code": "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nrows[:2]"},
            {"code": "len(rows)", "timeout_s": 10},
        ),
        category=Category.EXECUTION,
        effects=Effects.WRITE,
        idempotency=Idempotency.NONE,
        timeout_s=_LONGEST_S + 120,
        budget=_BUDGET,
        trust=Trust.USER_DATA,
        runs_code=True,
        group="code",
    )
    async def code_interpreter(
        code: Annotated[str, Field(description="Python, e.g. 'x = 2**10\\nx'")] = "",
        timeout_s: Annotated[
            int, Field(ge=1, le=_LONGEST_S, description="Most seconds, e.g. 300")
        ] = 120,
        reset: Annotated[bool, Field(description="e.g. true to forget everything first")] = False,
        *,
        context: ToolContext,
    ) -> Content:
        """Cancellation ends the interpreter and everything it started, before it is told; its
        variables are lost, what it had written to the workspace stays."""
        context.will_mark()
        one = Interpreter.of(context)
        async with one.turn:
            if reset:
                await one.forget("it was reset")
            notes = await _ready(one, context, allow_unsandboxed=allow_unsandboxed)
            if not code.strip():
                return [TextPart("\n".join([*notes, "[no code was given]"]))]
            try:
                with context.effect():
                    cell = await one.kernel.execute(
                        code, timeout_s, context.on_output or (lambda _: None)
                    )
            except KernelDied as fault:
                await one.forget(f"it ended in the cell before: {fault}")
                raise ToolError(
                    f"The interpreter ended in the middle of this cell: {fault}. Its variables are "
                    "lost; what the cell had written to files stays.",
                    next="Look at what it changed; the next call starts a new interpreter.",
                    code="stopped",
                    outcome=Outcome.UNKNOWN,
                ) from fault
            except BaseException:
                await one.forget("the call before was stopped in its middle")
                raise
            if cell.stopped:
                if not cell.alive:
                    await one.forget("the cell before did not react to an interrupt")
                raise _stopped(cell, timeout_s)
            return await anyio.to_thread.run_sync(_told, cell, one, context, notes)

    return code_interpreter


async def _ready(one: Interpreter, context: ToolContext, *, allow_unsandboxed: bool) -> list[str]:
    """Start a kernel if there is none; what to tell of that."""
    if one.kernel.live is not None and not one.kernel.alive:
        await one.forget("it ended by itself since the call before")
    if one.kernel.alive:
        return []
    try:
        level, note = await level_here(allow_unsandboxed=allow_unsandboxed)
        one.hiding = await hiding(context, level)
        await one.kernel.start(replace(_spec(context), hidden=one.hiding.paths), level)
    except MissingExtra as fault:
        raise _not_run(fault.message, fault.next, "missing_extra") from fault
    except SandboxUnavailable as fault:
        raise _not_run(fault.message, fault.next, "no_sandbox") from fault
    except KernelDied as fault:
        raise nothing_done(
            f"The code was not run: {fault}",
            next="Use run_python instead, or tell the user.",
            code="no_interpreter",
        ) from fault
    notes = [_FRESH if not one.lost else f"{_FRESH[:-1]}, because {one.lost}]"]
    one.lost = ""
    notes += one.hiding.notes(context, "")
    return [*notes, note] if note else notes


def _not_run(message: str, step: str, code: str) -> ToolError:
    return ToolError(
        f"The code was not run: {message}",
        next=f"Use run_python if it is there, or do without code. Tell the user: {step}",
        code=code,
        outcome=Outcome.FAILED_BEFORE_EFFECT,
        retryable=False,
    )


def _spec(context: ToolContext) -> SandboxSpec:
    shown = list(interpreter())
    if context.scratch is not None and context.scratch.is_dir():
        shown.append(context.scratch)
    shown += context.readable
    threads = str(min(os.cpu_count() or 1, 4))
    return SandboxSpec(
        workspace=context.workspace,
        writable=True,
        read_only=tuple(shown),
        environment={
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "IPYTHONDIR": "/tmp/ipython",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "TERM": "dumb",
        },
        limits=limits(),
        without_secrets=context.without_secrets,
    )


def _stopped(cell: Cell, timeout_s: int) -> ToolError:
    printed = "".join(str(item) for item in cell.items if isinstance(item, Text)).rstrip("\n")
    why = f"took longer than {timeout_s} s" if cell.stopped == "timeout" else "printed too much"
    state = (
        "Its variables are still there."
        if cell.alive
        else "It did not react to the interrupt, so the interpreter was ended and its variables "
        "are lost."
    )
    return ToolError(
        f"The cell {why} and was interrupted. {state} What it had written to files stays.",
        next="Look at what it changed, then do less in one cell, or ask for a longer timeout_s.",
        code="timeout" if cell.stopped == "timeout" else "stopped",
        outcome=Outcome.UNKNOWN,
        details={"printed": printed or "nothing"},
    )


def _told(cell: Cell, one: Interpreter, context: ToolContext, notes: list[str]) -> Content:
    out: Content = []
    lines = list(notes)

    def flush() -> None:
        if lines:
            out.append(TextPart(("\n" if out else "") + "\n".join(lines)))
            lines.clear()

    images = 0
    for item in cell.items:
        if isinstance(item, Text):
            text = str(item).rstrip("\n")
            if item.stream == "stderr":
                text = f"[stderr]\n{text}"
            lines.append(text)
            continue
        image = _image(item)
        if image is None or images >= _MOST_IMAGES:
            lines.append(_as_text(item))
            continue
        images += 1
        path = _store(image[1], one, context, image[0])
        lines.append(f"[figure{f' in {path}' if path else ''}]")
        flush()
        out.append(ImagePart(image[0], base64.b64encode(image[1]).decode()))
    if cell.error:
        lines.append(_trimmed(cell.error))
        if one.hiding is not None:
            lines += one.hiding.notes(context, cell.error)
        if "StdinNotImplementedError" in cell.error:
            lines.append("[nobody can type here: put the value into the code]")
    if not cell.items and not cell.error:
        lines.append("[nothing was printed: use print(), or end with an expression]")
    flush()
    return out


def _image(shown: Shown) -> tuple[str, bytes] | None:
    for kind in ("image/png", "image/jpeg"):
        given = shown.forms.get(kind)
        if isinstance(given, str):
            try:
                raw = base64.b64decode(given, validate=False)
            except (binascii.Error, ValueError):
                return None
            return (kind, raw) if 0 < len(raw) <= _LARGEST_IMAGE else None
    return None


def _as_text(shown: Shown) -> str:
    text = str(shown.forms.get("text/plain", ""))
    others = sorted(form for form in shown.forms if form != "text/plain")
    if len(text) > 9_000:
        text = f"{text[:4500]}\n[{len(text) - 9000:,} characters left out here]\n{text[-4500:]}"
    note = f" [also as {', '.join(others)}]" if others else ""
    return (text + note).strip() or "[a value without a text form]"


def _store(raw: bytes, one: Interpreter, context: ToolContext, kind: str) -> Path | None:
    """The figure as a file in the session's scratch folder."""
    if context.scratch is None:
        return None
    context.scratch.mkdir(parents=True, exist_ok=True)
    one.figures += 1
    key = digest(context.operation_key.encode()).removeprefix("sha256:")[:16]
    suffix = "png" if kind == "image/png" else "jpg"
    path = context.scratch / f"figure-{key}-{one.figures}.{suffix}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(raw)
    return path


def _trimmed(trace: str) -> str:
    """The first and last lines of a long traceback."""
    lines = [line for line in trace.splitlines() if not set(line) <= {"-"}]
    if len(lines) > _TRACE_LINES:
        half = _TRACE_LINES // 2
        gap = f"[{len(lines) - 2 * half} lines of the traceback left out here]"
        lines = [*lines[:half], gap, *lines[-half:]]
    return "\n".join(lines)
