"""The built-in tools by category. `default_tools`, `usual_tools` and `toolset` are the way in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.tools.tool import Tool


def default_tools(*, allow_unsandboxed: bool = False) -> list[Tool]:
    """The tools for work on files, in the order in which a model should see them.

    Args:
        allow_unsandboxed: let `run_python` run as a plain process where there is no sandbox.
    """
    from lorimer.toolkits.execution.edit_file import edit_file
    from lorimer.toolkits.execution.run_python import make_run_python
    from lorimer.toolkits.execution.write_file import write_file
    from lorimer.toolkits.perception.find_file import find_file
    from lorimer.toolkits.perception.grep_file import grep_file
    from lorimer.toolkits.perception.list_directory import list_directory
    from lorimer.toolkits.perception.read_file import read_file

    return [
        list_directory,
        find_file,
        grep_file,
        read_file,
        write_file,
        edit_file,
        make_run_python(allow_unsandboxed=allow_unsandboxed),
    ]


GROUPS = {
    "files": ("list_directory", "find_file", "grep_file", "read_file", "write_file", "edit_file"),
    "shell": ("shell_exec", "shell_output", "shell_stop"),
    "web": ("fetch_url",),
    "code": ("run_python", "code_interpreter", "run_script"),
    "todo": ("rewrite_todo_list", "update_todo_status"),
    "context": ("recall",),
    "agents": (
        "spawn_subagent", "send_message_to_subagent", "cancel_subagent", "get_subagent_status",
        "list_agents",
    ),
}  # fmt: skip
"""Names that stand for several tools."""


def usual_tools(*, allow_unsandboxed: bool = False) -> list[Tool]:
    """What a model with a large context gets when nobody chose: `default_tools`, the shell,
    pages of the web, and a TODO list."""
    from lorimer.toolkits.execution.shell_exec import make_shell_tools
    from lorimer.toolkits.perception.fetch_url import make_fetch_url
    from lorimer.toolkits.todo import rewrite_todo_list, update_todo_status

    return [
        *default_tools(allow_unsandboxed=allow_unsandboxed),
        *make_shell_tools(allow_unsandboxed=allow_unsandboxed),
        make_fetch_url(),
        rewrite_todo_list,
        update_todo_status,
    ]


def all_tools(*, allow_unsandboxed: bool = False) -> list[Tool]:
    """Every built-in tool; some need an extra when they are called."""
    from lorimer.toolkits.collaboration.subagents import agent_tools
    from lorimer.toolkits.execution.code_interpreter import make_code_interpreter
    from lorimer.toolkits.execution.run_script import run_script
    from lorimer.toolkits.recall import recall

    return [
        *usual_tools(allow_unsandboxed=allow_unsandboxed),
        make_code_interpreter(allow_unsandboxed=allow_unsandboxed),
        run_script,
        recall,
        *agent_tools(),
    ]


def toolset(names: Iterable[str], *, allow_unsandboxed: bool = False) -> list[Tool]:
    """The built-in tools with these names or of these groups, each once, in the order given.

    Raises:
        UsageFault: when a name is not known; says which are near it.
    """
    known = {tool.name: tool for tool in all_tools(allow_unsandboxed=allow_unsandboxed)}
    chosen: dict[str, Tool] = {}
    for name in names:
        if name not in known and name not in GROUPS:
            every = [*known, *GROUPS]
            near = difflib.get_close_matches(name, every, n=3) or sorted(every)
            raise UsageFault(f"No tool is called {name!r}.", next=f"Use one of: {', '.join(near)}.")
        for one in GROUPS.get(name, (name,)):
            chosen[one] = known[one]
    return list(chosen.values())
