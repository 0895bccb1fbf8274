"""`lorimer agents`: the kinds of sub-agents that work can be handed to."""

from __future__ import annotations

import functools
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.context.agents import Definition
    from lorimer.runtime.subagents.catalogue import Catalogue

app = typer.Typer(
    no_args_is_help=True,
    help="Kinds of sub-agents: Markdown files with front matter, `.agents/agents/NAME.md`.\n\n"
    "They are looked for in .lorimer/agents, .agents/agents and .claude/agents of this folder "
    "(when it is trusted: `lorimer trust`) and of your home. A model hands them work with the "
    "tools of the group `agents`.",
    epilog='Examples: `lorimer agents list` · `lorimer agents new reviewer "Reviews a change"` · '
    '`lorimer run --tools files,agents "Which modules open sockets?"`',
)
Folder = Annotated[Path, typer.Option("--folder", "-C", help="The project's folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


@app.command("list")
def list_(folder: Folder = Path("."), as_json: AsJson = False) -> None:
    """The agents there are here, and what was noticed while their files were read."""
    from lorimer.cli.terminal import safe

    found = _catalogue(folder)
    if as_json:
        print(
            json.dumps(
                {
                    "agents": [_plain(one) for one in found.definitions.values()],
                    "notices": list(found.notices),
                },
                ensure_ascii=False,
            )
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("agent", no_wrap=True, min_width=10)
    table.add_column("tools", no_wrap=True, overflow="ellipsis", ratio=2)
    table.add_column("what it does", no_wrap=True, overflow="ellipsis", ratio=3)
    for one in found.definitions.values():
        tools = "those of the caller" if one.tools is None else ", ".join(one.tools) or "none"
        table.add_row(safe(one.name), safe(tools), safe(" ".join(one.description.split())))
    Console().print(table)
    for one in found.definitions.values():
        problems, notes = _about_tools(one)
        for text in (*problems, *notes):
            print(f"note: {safe(one.name)}: {safe(text)}")
    for notice in found.notices:
        print(f"note: {safe(notice)}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="Its name, as `lorimer agents list` shows it.")],
    folder: Folder = Path("."),
    as_json: AsJson = False,
) -> None:
    """One agent whole: its tools, its model, its instructions, and where it is defined."""
    from lorimer.cli.terminal import safe

    found = _catalogue(folder)
    one = found.definitions.get(name)
    if one is None:
        raise _absent(name, found, folder)
    problems, notes = _about_tools(one)
    if as_json:
        print(json.dumps(one.to_json() | {"tool_notes": [*problems, *notes]}, ensure_ascii=False))
        return
    tools = "those of whoever starts it" if one.tools is None else ", ".join(one.tools) or "none"
    print(f"{safe(one.name)} · {safe(one.source)}")
    if one.without:
        tools += f", but not {', '.join(one.without)}"
    print(f"tools: {safe(tools)}")
    print(f"model: {safe(one.model)}")
    if one.max_steps is not None:
        print(f"steps: at most {one.max_steps}")
    if one.only_reads:
        print("It may change nothing.")
    print(f"\n{safe(one.description)}\n\n{safe(one.system)}")
    for notice in (*problems, *notes, *one.notices):
        print(f"note: {safe(notice)}")


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Small letters, digits and hyphens.")],
    description: Annotated[
        str, typer.Argument(help="What it does and when it is the right one, in a sentence.")
    ],
    tools: Annotated[
        str, typer.Option("--tools", "-t", help="Its tools, by name, with commas between.")
    ] = "list_directory, find_file, grep_file, read_file",
    folder: Folder = Path("."),
    user: Annotated[
        bool, typer.Option("--user", help="For all projects: into your home, not this folder.")
    ] = False,
) -> None:
    """Write a definition to start from: .agents/agents/NAME.md.

    Example: lorimer agents new reviewer "Reviews a change for mistakes" -t read_file,grep_file
    """
    from lorimer.context.agents import parse, template

    text = template(name, description, ", ".join(t.strip() for t in tools.split(",") if t.strip()))
    parse(text, file_name=name, source=name)
    place = (Path.home() if user else folder) / ".agents" / "agents" / f"{name}.md"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageFault(
            f"{place} exists already.", next="Change it there, or choose another name."
        ) from None
    except OSError as fault:
        raise UsageFault(f"{place} cannot be written: {fault.strerror}.") from fault
    print(f"Written: {place}")
    if not user:
        print("It counts once this folder is trusted: lorimer trust")


@app.command("validate")
def validate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders; without any, the folders of this project."),
    ] = None,
    folder: Folder = Path("."),
    as_json: AsJson = False,
) -> int:
    """Look through definitions: what is wrong, what is not used, which tools do not exist.

    Exit code 1: a file cannot be used at all, a tool's name looks misspelt, or there is no such
    model.
    """
    from lorimer.cli.terminal import safe

    results = [_validated(path) for path in _files(paths, folder)]
    bad = any(one["problems"] for one in results)
    if as_json:
        print(json.dumps({"valid": not bad, "files": results}, ensure_ascii=False))
        return 1 if bad else 0
    if not results:
        print("There are no definitions here. Write one: lorimer agents new NAME DESCRIPTION")
    for one in results:
        mark = "✗" if one["problems"] else "✓"
        print(f"{mark} {safe(one['file'])}" + (f"  ({safe(one['name'])})" if one["name"] else ""))
        for text in one["problems"]:
            print(f"    problem: {safe(text)}")
        for text in one["notices"]:
            print(f"    note: {safe(text)}")
    return 1 if bad else 0


def _files(paths: list[Path] | None, folder: Path) -> list[Path]:
    from lorimer.context.agents import FOLDERS

    if not paths:
        paths = [folder / name for name in FOLDERS if (folder / name).is_dir()]
    out: list[Path] = []
    for path in paths:
        if path.is_dir():
            out += sorted(p for p in path.rglob("*.md") if p.name.casefold() != "readme.md")
        elif path.is_file():
            out.append(path)
        else:
            raise UsageFault(
                f"There is no file or folder {path}.",
                next="Name a definition or a folder of them, or nothing for this project's.",
            )
    return out


def _validated(path: Path) -> dict[str, Any]:
    from lorimer.context.agents import AgentDefinitionFault, read_file

    try:
        one = read_file(path)
    except AgentDefinitionFault as fault:
        told = f"{fault.message} {fault.next}".strip()
        return {"file": str(path), "name": None, "problems": [told], "notices": []}
    problems, notices = _about_tools(one)
    no_model, no_access = _about_model(one.model)
    return {
        "file": str(path), "name": one.name, "problems": [*problems, *no_model],
        "notices": [*one.notices, *notices, *no_access],
    }  # fmt: skip


def _about_tools(one: Definition) -> tuple[list[str], list[str]]:
    """Names of tools that look misspelt, and others that no built-in tool has, in words."""
    from lorimer.tools.registry import near

    problems, notices = [], []
    known = _built_in()
    for name in (*(one.tools or ()), *one.without):
        if name in known:
            continue
        like = near(name, known)
        if like:
            problems.append(f"no tool is called {name!r}; did you mean {' or '.join(like)}?")
        else:
            notices.append(f"{name} is no built-in tool: it is given only where there is one")
    return problems, notices


@functools.lru_cache(maxsize=1)
def _built_in() -> frozenset[str]:
    from lorimer.toolkits import all_tools

    return frozenset({tool.name for tool in all_tools(allow_unsandboxed=True)} | {"skill"})


_TIERS = frozenset({"sonnet", "opus", "haiku"})
"""Short names of models that published definitions use."""


def _about_model(name: str) -> tuple[list[str], list[str]]:
    """Why there is no such model, and why it cannot be used here (a key, a package), in words."""
    import asyncio

    from lorimer.context.agents import INHERIT
    from lorimer.core.errors import ConfigError, LorimerError, UnknownModel
    from lorimer.models.registry import resolve

    if name == INHERIT:
        return [], []
    if name in _TIERS:
        words = f"the model {name!r} is another program's word: give it a model with "
        return [], [words + "SubagentSettings(models=…), or write `model: inherit`"]
    try:
        found = resolve(name)
    except (UnknownModel, ConfigError) as fault:
        told = f"the model {name!r} cannot be found: {fault.message} {fault.next}".strip()
        return [f"{told} Or write `model: inherit`."], []
    except LorimerError as fault:  # a key or a package is missing here
        return [], [f"the model {name!r} cannot be used here: {fault.message}"]
    asyncio.run(found.aclose())
    return [], []


def _absent(name: str, found: Catalogue, folder: Path) -> UsageFault:
    """Why there is no agent of this name here, and the step to it."""
    from lorimer.tools.registry import near

    waiting = found.untrusted.get(name)
    if waiting is not None:
        return UsageFault(
            f"The agent {name!r} is written in {waiting.source}, but it is not used: "
            f"{found.why_untrusted}.",
            next="Read what is in the folder, then trust it: lorimer trust folder "
            + shlex.quote(str(folder)),
        )
    for path in _files(None, folder):
        one = _validated(path) if path.stem == name else None
        if one is not None and one["name"] is None:
            return UsageFault(
                f"{path} is there, but it is no agent.",
                next=f"lorimer agents validate {path}: {one['problems'][0]}",
            )
    names = near(name, found.definitions) or list(found.definitions)
    return UsageFault(
        f"There is no agent {name!r}.",
        next=f"Use one of: {', '.join(names)}. Or write it: lorimer agents new {name} DESCRIPTION",
    )


def _plain(one: Definition) -> dict[str, Any]:
    problems, notes = _about_tools(one)
    plain = {key: value for key, value in one.to_json().items() if key != "system"}
    return plain | {"tool_notes": [*problems, *notes]}


def _catalogue(folder: Path) -> Catalogue:
    from lorimer.runtime.subagents.catalogue import read_catalogue

    if not folder.is_dir():
        raise UsageFault(f"{folder} is not a folder.", next="Choose one with --folder.")
    return read_catalogue(folder.absolute())
