"""`lorimer tools`: the tools there are, whether they are well described, and a call by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lorimer.cli.run import ApprovalWait, AsJson, StorePath, Tools, Unsandboxed
from lorimer.cli.setup import MODE_HELP
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
                          "effects": str(one.effects), "category": str(one.category),
                          "trust": str(one.trust), "path_arguments": list(one.path_arguments),
                          "sinks": list(one.sinks),
                          "guessed": {k: list(v) for k, v in one.guessed.items()}},
                         ensure_ascii=False))  # fmt: skip
        return
    print(
        f"{one.name}  ({one.category}, {one.effects}, {one.recovery} idempotency, runs in "
        f"{one.where})"
    )
    print(f"\n{one.spec.description}\n")
    print(json.dumps(one.input_schema, indent=2, ensure_ascii=False))
    print()
    for line in _rests_on(one):
        print(line)
    for example in one.examples:
        print(f"\nexample: {json.dumps(example, ensure_ascii=False)}")


def _rests_on(one: Any) -> Iterator[str]:
    """What decisions about its calls rest on: what its author declared, and what was guessed."""
    for label, option in (
        ("decides where something goes", "sinks"),
        ("paths", "path_arguments"),
        ("its results are", "trust"),
    ):
        found = (str(one.trust),) if option == "trust" else getattr(one, option)
        said = ""
        if option in one.guessed:
            said = f"  (not declared: {'the usual' if option == 'trust' else 'guessed by name'})"
        shown = ", ".join(found) or "none"
        yield f"{label}: {shown}{said}"


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
    mode: Annotated[
        str | None, typer.Option("--mode", help=MODE_HELP + " Default: the session's own, or ask.")
    ] = None,
    as_json: AsJson = False,
    session_id: Annotated[
        str | None, typer.Option("--session", "-s", help="Go on in this session.")
    ] = None,
    approval_wait: ApprovalWait = 0.0,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", "-C", help="The folder. Default: the session's own, or this one."),
    ] = None,
    store: StorePath = None,
    allow_unsandboxed: Unsandboxed = False,
) -> int:
    """Call a tool by hand, through every station and into the record, as a model would.

    Each call is a session of its own, whose id is said on stderr. With --session the call goes on
    in one: the shell is where it was, an approval counts, limits go on. Without a terminal a call
    that needs an approval is kept as a request; approve it and repeat the call with --session, or
    let it wait with --approval-wait. What a call starts in the background ends with this command.

    Into a pipe or file the result is written as it is, byte for byte; on a terminal control
    characters are written out (\\x1b), so that a result cannot play with it.

    Examples:

        lorimer tools call read_file '{"path": "notes.md"}'

        lorimer tools call shell_exec '{"command": "make"}' --approval-wait 300

        lorimer tools call shell_exec '{"command": "cd src; ls"}' --session s_01H…

    Exit code 0 when the call was done, 1 when not.
    """
    from lorimer.cli.asking import TerminalApprover
    from lorimer.cli.by_hand import ending, say, show_result
    from lorimer.cli.execute import emit, existing_store, run_async, with_signals
    from lorimer.cli.session_tools import KEY, kept
    from lorimer.cli.terminal import Screen, can_ask
    from lorimer.core.calls import Outcome
    from lorimer.models.scripted import ScriptedModel
    from lorimer.runtime.agent import Agent
    from lorimer.safety.secrets.stored import StoredVault
    from lorimer.store import open_store

    screen = Screen(quiet=as_json, stream=False)

    async def work() -> int:
        opened = open_store(store) if session_id is None else existing_store(store)
        try:
            own = {} if session_id is None else dict(opened.session(session_id).meta)
            source = tools if tools is not None else own.get(KEY)
            one = _one(name, source, allow_unsandboxed)
            given = _chosen(source, allow_unsandboxed) if one.calls_tools else [one]
            agent = Agent(
                ScriptedModel([{"name": one.name, "arguments": arguments}, "done"]), given,
                mode=mode or str(own.get("mode", "ask")), store=opened,
                workspace=folder or str(own.get("workspace", ".")), system="A call by hand.",
                approver=TerminalApprover(screen) if can_ask() and not as_json else None,
                approval_wait_s=approval_wait, watch=screen, secrets=StoredVault(),
                meta=kept(source),
            )  # fmt: skip
            async with agent, agent.session(session_id) as session:
                say(f"session {session.id}: go on in it with --session {session.id}")
                if approval_wait > 0 and as_json:
                    say("requests that wait are listed by: lorimer approvals list")
                result = await with_signals(
                    session, lambda: session.send(f"lorimer tools call {one.name}"), screen
                )
                done = result.calls[0] if result.calls else None
                then = "" if done is None else ending(opened, session.id, done, source, store)
        finally:
            opened.close()
        if as_json:
            body = None if done is None else done.to_json() | {"session": session.id}
            emit(body if not then or body is None else body | {"then": then})
        elif done is not None:
            show_result(done, then)
        return 0 if done is not None and done.outcome is Outcome.DONE else 1

    return run_async(work, as_json=as_json)
