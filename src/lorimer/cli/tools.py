"""`lorimer tools`: the tools there are, whether they are well described, and a call by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lorimer.cli.run import AsJson, Folder, Mode, StorePath, Tools, Unsandboxed
from lorimer.core.errors import UsageFault

app = typer.Typer(no_args_is_help=True, help="List, show, lint and call tools.")
Name = Annotated[str, typer.Argument(help="The tool's name.")]


def _chosen(tools: str | None, allow_unsandboxed: bool = False) -> list[Any]:
    from lorimer.cli.setup import choose_tools

    return choose_tools(tools or "all", allow_unsandboxed=allow_unsandboxed)


def _one(name: str, tools: str | None, allow_unsandboxed: bool = False) -> Any:
    from lorimer.tools.registry import Registry

    registry = Registry(_chosen(tools, allow_unsandboxed))
    found = registry.get(name)
    if found is None:
        near = registry.near(name)
        step = f"Did you mean {', '.join(near)}?" if near else "`lorimer tools list` shows them."
        raise UsageFault(f"There is no tool {name!r}.", next=step)
    return found


@app.command("list")
def list_tools(tools: Tools = None, as_json: AsJson = False) -> None:
    """The tools, what they do and what they may change."""
    from lorimer.tools.registry import Registry

    found = list(Registry(_chosen(tools)))
    if as_json:
        print(
            json.dumps(
                [
                    {
                        "name": t.name,
                        "category": str(t.category),
                        "effects": str(t.effects),
                        "description": t.spec.description,
                    }
                    for t in found
                ],
                ensure_ascii=False,
            )
        )
        return
    width = max((len(t.name) for t in found), default=4)
    for one in found:
        print(f"{one.name:<{width}}  {one.effects:<12}  {one.description.what.splitlines()[0]}")


@app.command("show")
def show_tool(name: Name, tools: Tools = None, as_json: AsJson = False) -> None:
    """What the model is told about a tool, and how it runs."""
    one = _one(name, tools)
    if as_json:
        print(json.dumps({"name": one.name, "description": one.spec.description,
                          "input_schema": one.input_schema, "examples": list(one.examples),
                          "effects": str(one.effects), "category": str(one.category)},
                         ensure_ascii=False))  # fmt: skip
        return
    print(
        f"{one.name}  ({one.category}, {one.effects}, {one.recovery} idempotency, runs in "
        f"{one.where})"
    )
    print(f"\n{one.spec.description}\n")
    print(json.dumps(one.input_schema, indent=2, ensure_ascii=False))
    for example in one.examples:
        print(f"\nexample: {json.dumps(example, ensure_ascii=False)}")


@app.command("lint")
def lint_tools(tools: Tools = None, as_json: AsJson = False) -> int:
    """Judge the descriptions: do they say when, when not, the cost, what comes back, with examples?

    Exit code 1 when there is a finding.
    """
    from lorimer.tools.lint import lint

    found = lint(_chosen(tools))
    if as_json:
        print(json.dumps([{"tool": f.tool, "rule": f.rule, "message": f.message} for f in found]))
    elif not found:
        print("Nothing to say against these descriptions.")
    for one in () if as_json else found:
        print(f"{one.tool}: {one.message}  [{one.rule}]")
    return 1 if found else 0


@app.command("call")
def call_tool(
    name: Name,
    arguments: Annotated[str, typer.Argument(help="The arguments as a JSON object.")] = "{}",
    tools: Tools = None,
    mode: Mode = "ask",
    as_json: AsJson = False,
    folder: Folder = Path("."),
    store: StorePath = None,
    allow_unsandboxed: Unsandboxed = False,
) -> int:
    """Call a tool by hand, through every station and into the record, as a model would.

    Exit code 0 when the call was done, 1 when not.
    """
    from lorimer.cli.asking import TerminalApprover
    from lorimer.cli.execute import emit, run_async, with_signals
    from lorimer.cli.terminal import Screen, can_ask
    from lorimer.core.calls import Outcome
    from lorimer.models.scripted import ScriptedModel
    from lorimer.runtime.agent import Agent
    from lorimer.safety.secrets.stored import StoredVault

    one = _one(name, tools, allow_unsandboxed)
    screen = Screen(quiet=as_json, stream=False)

    async def work() -> int:
        given = _chosen(tools, allow_unsandboxed) if one.calls_tools else [one]
        by_hand = ScriptedModel([{"name": one.name, "arguments": arguments}, "done"])
        agent = Agent(
            by_hand, given, mode=mode, store=store, workspace=folder, system="A call by hand.",
            approver=TerminalApprover(screen) if can_ask() and not as_json else None, watch=screen,
            secrets=StoredVault(),
        )  # fmt: skip
        async with agent, agent.session() as session:
            result = await with_signals(
                session, lambda: session.send(f"lorimer tools call {one.name}"), screen
            )
        done = result.calls[0] if result.calls else None
        if as_json:
            emit(None if done is None else done.to_json())
        elif done is not None and done.outcome is Outcome.DONE:
            print(done.result)
        elif done is not None:
            print(json.dumps(json.loads(done.result), indent=2, ensure_ascii=False))
        return 0 if done is not None and done.outcome is Outcome.DONE else 1

    return run_async(work, as_json=as_json)
