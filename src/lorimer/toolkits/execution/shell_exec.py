"""`shell_exec`, `shell_output`, `shell_stop`: a bash that remembers, in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency, Outcome, Refusal
from lorimer.core.errors import SandboxUnavailable
from lorimer.core.trust import Trust
from lorimer.safety.network import NetworkRules
from lorimer.safety.sandbox.spec import SandboxResult
from lorimer.safety.shell.environment import obeyed
from lorimer.toolkits.execution.background import Task
from lorimer.toolkits.execution.hiding import hiding
from lorimer.toolkits.execution.shell import (
    KEY,
    MOST_TASKS,
    Shell,
    level_here,
    limits_of,
    run_name,
    shell_cwd,
)
from lorimer.toolkits.execution.shell_grant import Grant
from lorimer.toolkits.execution.shell_state import After
from lorimer.toolkits.opening import nothing_done
from lorimer.tools.function import tool
from lorimer.tools.tool import Budget, Category, Description, Tool, ToolContext, ToolError

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_HANDLE = re.compile(r"secret:[a-z][a-z0-9_-]{0,63}")
_LONGEST_S = 1800
_LONGEST_WAIT_S = 600
_BUDGET = Budget(lines=2500, characters=12_000)
_KILLED = {
    "timeout": "It was stopped: it took longer than {limits.wall_s:g} s.",
    "output": "It was stopped: it printed more than {limits.output_bytes:,} bytes.",
    "processes": "It was stopped: it started more than {limits.processes} processes.",
    "memory": "It was stopped: it used more than {limits.tree_memory_bytes:,} bytes of memory.",
    "disk": "It was stopped: it wrote more than {limits.disk_bytes:,} bytes.",
    "inodes": "It was stopped: it made more than {limits.inodes:,} files.",
    "protected": "It was stopped: it made a file that no tool may make.",
}
_INSTEAD = {
    "timeout": "ask for a longer timeout_s, use background=true, or do less at a time",
    "output": "print less, e.g. into a file",
    "protected": "go on without that file",
}


def make_shell_tools(
    *,
    allow_unsandboxed: bool = False,
    allow_fallback: bool = False,
    network: NetworkRules | None = None,
) -> list[Tool]:
    """The tools `shell_exec`, `shell_output` and `shell_stop`, which belong together.

    Args:
        allow_unsandboxed: what a deployment says for machines without a sandbox: run as a plain
            process (and say so in every result) instead of refusing.
        allow_fallback: let commands run in the level `landlock` (and say so) where `os` cannot be
            had.
        network: what a deployment lets commands reach at all; of that, a call reaches the hosts
            that it names and that were allowed with it. Public hosts by default.
    """
    rules = network or NetworkRules()

    @tool(
        description=Description(
            "Run a bash command in the workspace. Folder, variables and functions last from call "
            "to call. Network: only to hosts that stand in the command.",
            use_when="running programs: tests, builds, git, searches over many files.",
            not_when="a file tool does it. Nothing can be typed in; sudo fails.",
            cost="the time of the command.",
            returns="what it printed (both streams, in order), exit code.",
        ),
        examples=(
            {"command": "python -m pytest -q tests", "timeout_s": 300},
            {"command": "npm run dev", "background": True},
        ),
        category=Category.EXECUTION,
        effects=Effects.WRITE,
        idempotency=Idempotency.NONE,
        timeout_s=_LONGEST_S + 30,
        budget=_BUDGET,
        trust=Trust.USER_DATA,
        command_argument="command",
        checks=(_only_secrets,),
        cwd_of=shell_cwd,
        group="shell",
    )
    async def shell_exec(
        command: Annotated[str, Field(min_length=1, description="e.g. 'git diff --stat'")],
        timeout_s: Annotated[
            int, Field(ge=1, le=_LONGEST_S, description="Most seconds, e.g. 300")
        ] = 120,
        background: Annotated[
            bool, Field(description="e.g. true for a server: return at once, it runs on beside you")
        ] = False,
        env: Annotated[
            dict[str, str],
            Field(description='Secrets for this command only, e.g. {"TOKEN": "secret:github"}'),
        ] = {},  # noqa: B006 - never changed
        *,
        context: ToolContext,
    ) -> str:
        """Cancellation kills everything the command started, and waits for it, before it is told;
        what it had written to the workspace by then stays, and the shell is as before."""
        context.will_mark()
        _check(command)
        shell = await _shell(context)
        try:
            level, note = await level_here(
                allow_unsandboxed=allow_unsandboxed, allow_fallback=allow_fallback
            )
            grant = Grant(context.touches, rules, env)
            grant.hiding = await hiding(context, level, approved=context.touches)
            if background:
                return await _begin(shell, command, context, level, note, grant)
            return await _run(shell, command, timeout_s, context, level, note, grant)
        except SandboxUnavailable as fault:
            raise ToolError(
                f"The command was not run: {fault.message}",
                next=f"Do without commands. Tell the user: {fault.next}",
                code="no_sandbox",
                outcome=Outcome.FAILED_BEFORE_EFFECT,
                retryable=False,
            ) from fault

    return [shell_exec, shell_output, shell_stop]


def _only_secrets(arguments: Mapping[str, Any], _: ToolContext) -> Refusal | None:
    """`env` is for secrets: what else a program obeys stands in the command, where it is seen."""
    for name, value in (arguments.get("env") or {}).items():
        fault = ""
        if not _VARIABLE.fullmatch(name):
            fault = "is no name of a variable (capital letters, digits, _)"
        elif obeyed(name):
            fault = "is a variable that programs obey"
        elif not _HANDLE.fullmatch(value):
            fault = f"is given {value!r}, which is no secret"
        if fault:
            return Refusal(
                "value",
                f"env holds secrets only; {name!r} {fault}.",
                next='Write env={"TOKEN": "secret:name"}; put other variables into the command '
                "(NAME=value program …).",
                retryable=True,
            )
    return None


def _check(command: str) -> None:
    if "\0" in command:
        raise nothing_done(
            f"The command holds a NUL character at position {command.index(chr(0))}; no shell can "
            "take it.",
            next="Leave it out; printf '\\0' makes one.",
            code="value",
        )
    try:
        command.encode("utf-8")
    except UnicodeEncodeError as fault:
        raise nothing_done(
            f"The command holds half a surrogate pair at position {fault.start}.",
            next="Send whole characters; for other bytes use $'\\xNN'.",
            code="value",
        ) from None


async def _shell(context: ToolContext) -> Shell:
    try:
        return await anyio.to_thread.run_sync(Shell.of, context)
    except OSError as fault:
        raise nothing_done(
            f"The shell's own folder cannot be made: {fault}.",
            next="Tell the user.",
            code="no_scratch",
        ) from fault


async def _run(
    shell: Shell, command: str, timeout_s: int, context: ToolContext, level: Any, note: str,
    grant: Grant,
) -> str:  # fmt: skip
    limits = limits_of(timeout_s)
    notes = _lost_folder(shell)

    def watch(_: str, piece: bytes) -> None:
        if context.on_output is not None:
            context.on_output(piece.decode("utf-8", "replace"))

    with context.effect():
        result, after = await shell.run(command, limits, level, run_name(context), watch, grant)
    notes += grant.notes_after(context, level, result)
    if note:
        notes.append(note)
    if result.killed:
        why = result.killed
        printed = result.stdout.text().rstrip("\n")
        details: dict[str, Any] = {
            "printed": printed or "nothing",
            "stopped_in_s": round(result.quiescent_s or 0.0, 3),
        }
        if result.quarantined:
            details["renamed, because no tool may write it"] = list(result.quarantined)
        if notes:
            details["notes"] = notes
        words = _KILLED.get(why, f"It was stopped for its limit of {why}.").format(limits=limits)
        raise ToolError(
            f"{words} Everything it had started has ended; what it had written to files by then "
            "stays. The shell's folder and variables are those of before.",
            next=f"Look at what it changed, then {_INSTEAD.get(why, 'do less at a time')}.",
            code="timeout" if result.timed_out else "stopped",
            outcome=Outcome.UNKNOWN,
            details=details,
        )
    return _told(shell, result, after, notes)


def _lost_folder(shell: Shell) -> list[str]:
    if shell.cwd is not None:
        return []
    return [f"the shell's folder {shell.state.kept.cwd} is gone: this ran in the workspace"]


def _told(shell: Shell, result: SandboxResult, after: After, notes: list[str]) -> str:
    parts = []
    text = result.stdout.text()
    if text:
        parts.append(text.rstrip("\n"))
    if result.exit_code:
        by = f" ({result.signal.name})" if result.signal else ""
        parts.append(f"[exit code {result.exit_code}{by}]")
    elif not text:
        parts.append("[exit code 0; nothing was printed]")
    if after.kept is None:
        parts.append(
            "[the shell ended before it could be kept (exec, a signal, or a trap on EXIT): its "
            "folder and variables are those of before this command]"
        )
    elif after.left_cwd:
        parts.append(
            f"[it ended in {after.left_cwd}, outside the workspace: the next command starts in the "
            "workspace]"
        )
    elif after.kept.cwd:
        parts.append(f"[folder: {after.kept.cwd}]")
    if after.jobs:
        parts.append(
            f"[{_count(len(after.jobs), 'job')} that it left running with & ended with it: for "
            "such use background=true]"
        )
    if result.quarantined:
        parts.append(f"[renamed, because no tool may write it: {', '.join(result.quarantined)}]")
    parts += notes
    running = _tasks_line(shell)
    if running:
        parts.append(running)
    return "\n".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _tasks_line(shell: Shell, besides: str = "") -> str:
    """The background tasks that run, and those whose end nobody has been told."""
    lines = [
        f"{task.status()}: {task.words}"
        for task in shell.tasks.values()
        if task.id != besides and (task.running or not task.told)
    ]
    return f"[background: {'; '.join(lines)}]" if lines else ""


async def _begin(
    shell: Shell, command: str, context: ToolContext, level: Any, note: str, grant: Grant
) -> str:
    running = [task.id for task in shell.tasks.values() if task.running]
    if len(running) >= MOST_TASKS:
        raise nothing_done(
            f"{len(running)} background tasks are running ({', '.join(running)}); more are not "
            "started.",
            next="End one with shell_stop first.",
            code="limit",
        )
    notes = _lost_folder(shell)
    with context.effect():
        task = await shell.begin(command, limits_of(None), level, run_name(context), grant)
    notes += grant.notes_after(context, level)
    parts = [
        f"[{task.id} was started; shell_output(id={task.id!r}) gives what it prints, "
        f"shell_stop(id={task.id!r}) ends it. It ends with this session.]",
        *notes,
    ]
    if note:
        parts.append(note)
    others = _tasks_line(shell, besides=task.id)
    if others:
        parts.append(others)
    return "\n".join(parts)


def _find(context: ToolContext, task_id: str) -> tuple[Shell, Task]:
    shell = context.belongings.get(KEY, Shell)
    tasks = {} if shell is None else shell.tasks
    if shell is None or task_id not in tasks:
        known = ", ".join(tasks) or "none"
        raise nothing_done(
            f"There is no background task {task_id!r} in this session; there are: {known}. (Tasks "
            "end when the session is closed.)",
            next="Start one with shell_exec(background=true)."
            if not tasks
            else f"Use one of: {known}.",
            code="not_found",
        )
    return shell, tasks[task_id]


def _report(task: Task) -> str:
    text = task.output.unread()
    status = task.status()
    task.told = not task.running
    parts = [text.rstrip("\n")] if text else []
    parts.append(f"[{status}{'' if text else '; nothing new was printed'}]")
    if task.output.fault is not None:
        parts.append(f"[its output could not all be stored: {task.output.fault}]")
    return "\n".join(parts)


_Id = Annotated[str, Field(description="The task, e.g. 't1'")]


@tool(
    description=Description(
        "What a background task has printed since the last look.",
        use_when="a task started by shell_exec(background=true) should have something to say.",
        not_when="the command was not started in the background.",
        cost="the time waited.",
        returns="new output; whether it still runs, or its exit code.",
    ),
    examples=({"id": "t1"}, {"id": "t1", "wait_s": 60, "until": "Listening on"}),
    category=Category.EXECUTION,
    effects=Effects.READ,
    timeout_s=_LONGEST_WAIT_S + 30,
    budget=_BUDGET,
    trust=Trust.USER_DATA,
    group="shell",
)
async def shell_output(
    id: _Id,
    wait_s: Annotated[
        int, Field(ge=0, le=_LONGEST_WAIT_S, description="Seconds to wait for its end, e.g. 60")
    ] = 0,
    until: Annotated[str, Field(description="Wait only for this text, e.g. 'ready'")] = "",
    *,
    context: ToolContext,
) -> str:
    """Cancellation leaves the task running."""
    _, task = _find(context, id)
    if wait_s:
        await task.wait(wait_s, until)
    return _report(task)


@tool(
    description=Description(
        "End a background task, with everything it started.",
        use_when="a task is not needed any more.",
        not_when="it should go on; look with shell_output.",
        cost="nothing.",
        returns="its last output.",
    ),
    examples=({"id": "t1"},),
    category=Category.EXECUTION,
    effects=Effects.WRITE,
    idempotency=Idempotency.NATURAL,
    timeout_s=60,
    budget=_BUDGET,
    trust=Trust.USER_DATA,
    group="shell",
)
async def shell_stop(id: _Id, *, context: ToolContext) -> str:
    """Cancellation goes on only after the task has ended."""
    _, task = _find(context, id)
    await task.stop()
    return _report(task)
