"""The shell of a session: one command at a time, background tasks beside it.

The shell itself is only a state (`shell_state`); each command is a new bash in a new sandbox. So
nothing of it needs to be kept alive, a command that is killed leaves the state of before, and a
restart of lorimer goes unnoticed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from lorimer.core.canonical import digest
from lorimer.core.errors import SandboxUnavailable
from lorimer.safety import git_reading
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.guard import nested_repositories
from lorimer.safety.sandbox.session import LiveSandbox
from lorimer.safety.sandbox.spec import Limits, OnOutput, SandboxResult, SandboxSpec
from lorimer.toolkits.execution.background import OutputFile, Task
from lorimer.toolkits.execution.shell_state import After, Exchange, ShellState, shell_home
from lorimer.toolkits.execution.visible import git_settings, programs
from lorimer.tools.tool import ToolContext

if TYPE_CHECKING:
    from lorimer.toolkits.execution.shell_grant import Grant

KEY = "shell"
MOST_TASKS = 8
_KEPT_BYTES = 9_000
_TASK_S = 7 * 24 * 3600
_SPOOL_BYTES = 512 << 20


class Shell:
    """One per session; made on first use, closed with the session."""

    def __init__(self, context: ToolContext) -> None:
        folder, self.lasting = shell_home(context)
        if context.scratch is not None:
            context.scratch.mkdir(parents=True, exist_ok=True)
        self.state = ShellState(folder)
        self.workspace = context.workspace
        self.scratch = context.scratch
        self.readable = context.readable
        self._without_secrets = context.without_secrets
        self.tasks: dict[str, Task] = {}
        self._turn = anyio.Lock()
        self._visible, self._path = programs()
        self._git = folder / "gitconfig"
        self._git.write_text(git_settings(), encoding="utf-8")

    @staticmethod
    def of(context: ToolContext) -> Shell:
        """The shell of this session.

        Raises:
            OSError: when its private folder cannot be made.
        """
        found = context.belongings.get(KEY, Shell)
        if found is None:
            return context.belongings.keep(KEY, Shell(context))
        found.readable = context.readable
        return found

    async def close(self) -> None:
        async with anyio.create_task_group() as group:
            for task in self.tasks.values():
                group.start_soon(task.stop)
        for task in self.tasks.values():
            task.output.close()
        if not self.lasting:
            await anyio.to_thread.run_sync(self.state.remove)

    @property
    def cwd(self) -> Path | None:
        """Where the next command starts; `None` when that folder is gone."""
        return self.state.cwd(self.workspace)

    def shown(self, folder: Path) -> str:
        """A folder as the model should write it: from the workspace."""
        return os.path.relpath(folder, self.workspace)

    async def run(
        self,
        command: str,
        limits: Limits,
        level: choose.Level,
        name: str,
        on_output: OnOutput | None,
        grant: Grant | None = None,
    ) -> tuple[SandboxResult, After]:
        """Run `command` after those before it have ended; keep what the shell has become.

        Cancellation kills everything the command started; the state stays that of before.
        """
        async with self._turn:
            exchange = Exchange(self.state.kept, command, () if grant is None else grant.secrets)
            try:
                spec = await anyio.to_thread.run_sync(
                    self._spec, exchange, limits, level, name, grant
                )
                argv = exchange.argv(self.cwd or self.workspace)
                result = await choose.run(argv, spec=spec, level=level, on_output=on_output)
                after = exchange.after(self.workspace) if not result.killed else After(None)
            finally:
                exchange.close()
            if after.kept is not None:
                await anyio.to_thread.run_sync(self.state.keep, after.kept)
            return result, after

    async def begin(
        self,
        command: str,
        limits: Limits,
        level: choose.Level,
        name: str,
        grant: Grant | None = None,
    ) -> Task:
        """Start `command` beside everything else, from the state of now. What becomes of its own
        state is not kept."""
        task_id = f"t{self.state.next_number()}"
        exchange = Exchange(self.state.kept, command, () if grant is None else grant.secrets)
        folder = self.scratch if self.scratch is not None else self.state.folder
        output = OutputFile(folder / f"{name}.output")
        try:
            spec = self._spec(exchange, limits, level, name, grant)
            argv = exchange.argv(self.cwd or self.workspace)
            live = await LiveSandbox.start(argv, spec=spec, level=level, on_output=output.take)
        except BaseException:
            output.close()
            exchange.close()
            raise
        self.tasks[task_id] = task = Task(task_id, command, live, output)
        live.when_ended(exchange.close)
        return task

    def _spec(
        self,
        exchange: Exchange,
        limits: Limits,
        level: choose.Level,
        name: str,
        grant: Grant | None,
    ) -> SandboxSpec:
        shown = [*self._visible, self._git]
        if self.scratch is not None and self.scratch.is_dir():
            shown.append(self.scratch)
        shown += self.readable
        environment = {
            "PATH": self._path,
            "TERM": "dumb",
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "GIT_TERMINAL_PROMPT": "0",
            "DEBIAN_FRONTEND": "noninteractive",
            "PYTHONUNBUFFERED": "1",
            "GIT_CONFIG_SYSTEM": str(self._git),
        }
        own_tmp = {"/tmp": self.state.temporary}
        if level != "os":  # no mounts: it is seen where it lies
            environment["TMPDIR"] = str(self.state.temporary)
            own_tmp = {str(self.state.temporary): self.state.temporary}
        hidden = () if grant is None or grant.hiding is None else grant.hiding.paths
        only_reads = grant is not None and grant.read_only
        if only_reads:
            environment |= git_reading.environment(self._repositories())
        elif hidden:  # a cover differs from its file in what this leaves out
            environment |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "core.checkStat",
                "GIT_CONFIG_VALUE_0": "minimal",
            }
        return SandboxSpec(
            workspace=self.workspace,
            writable=not only_reads,
            read_only=tuple(shown),
            environment=environment if grant is None else environment | dict(grant.secrets),
            hidden=hidden,
            egress=None if grant is None else grant.egress(),
            limits=limits,
            spool=self.scratch,
            spool_name=name,
            folders=own_tmp,
            pass_fds=exchange.descriptors,
            without_secrets=self._without_secrets,
        )

    def _repositories(self) -> list[Path]:
        """The `.git` of every repository in the workspace, those that the sandbox protects."""
        return [self.workspace / ".git", *nested_repositories(self.workspace)]


def limits_of(timeout_s: float | None) -> Limits:
    """Limits of a command; of a background task with `None`."""
    wall_s = float(timeout_s if timeout_s is not None else _TASK_S)
    return Limits(
        wall_s=wall_s,
        cpu_s=int(wall_s * (os.cpu_count() or 1)) + 1,
        # JavaScript engines and others reserve far more than they use: the total that is used
        # counts (`tree_memory_bytes`)
        memory_bytes=1 << 42,
        processes=512,
        open_files=4096,
        kept_bytes=_KEPT_BYTES,
        output_bytes=_SPOOL_BYTES,
    )


def run_name(context: ToolContext) -> str:
    """A file name for the output of this call: the same for the same call, never for two."""
    return f"shell-{digest(context.operation_key.encode()).removeprefix('sha256:')[:16]}"


def shell_cwd(context: ToolContext) -> str | None:
    """Where relative paths of the next command start (`Tool.cwd_of`)."""
    try:
        folder = Shell.of(context).cwd
    except OSError:
        return None
    return None if folder is None else str(folder)


async def level_here(
    *, allow_unsandboxed: bool, allow_fallback: bool = False
) -> tuple[choose.Level, str]:
    """The sandbox level to use, and what to say of it.

    Raises:
        SandboxUnavailable: there is none, and neither `landlock` nor a plain process is allowed.
    """
    found, *others = await anyio.to_thread.run_sync(choose.available)
    if found.usable:
        return "os", ""
    if allow_fallback and any(one.level == "landlock" and one.usable for one in others):
        return "landlock", f"note: this ran in the weaker sandbox `landlock` ({found.reason})"
    if allow_unsandboxed:
        return "none", f"note: this ran WITHOUT a sandbox ({found.reason})"
    raise SandboxUnavailable(found.reason, next=found.next)
