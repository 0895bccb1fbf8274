"""`lorimer prompt`: what stands before every message, what it costs, and what would break its
cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli import prompt_diff, prompt_lint
from lorimer.cli.run import Folder, ProjectRules, StorePath

if TYPE_CHECKING:
    from rich.table import Table

    from lorimer.cli.prompt_sources import Source

app = typer.Typer(
    help="Show the prompt of a session, compare it, and find what would break its cache.",
    no_args_is_help=True,
)
app.command("diff")(prompt_diff.diff)
app.command("lint")(prompt_lint.lint_prompt)


@app.callback()
def _group() -> None:
    """Show the prompt of a session, compare it, and find what would break its cache."""


@app.command()
def show(
    session_id: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="A session; without it, a new one here."),
    ] = None,
    model: Annotated[str, typer.Option(help="The model of a new session.")] = "",
    tools: Annotated[str, typer.Option(help="Tools of a new session, comma-separated.")] = "",
    system: Annotated[str, typer.Option(help="The system text of a new session.")] = "",
    question: Annotated[
        str, typer.Option(help="Local models: a user message to show after it.")
    ] = "",
    tokens: Annotated[bool, typer.Option("--tokens", help="Local models: token by token.")] = False,
    text: Annotated[bool, typer.Option("--text", help="The system text itself, too.")] = False,
    folder: Folder = Path("."),
    project_rules: ProjectRules = None,
    store: StorePath = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """The parts of a prompt in the order of their stability, and the tools: bytes, tokens, owners,
    and where the cache may end.

    With a local --model: what it really reads, with its template, and the tokens of each part.

    Examples:

        lorimer prompt show

        lorimer prompt show s_01m8… --text

        lorimer prompt show --model anthropic:claude-sonnet-5-5 --tools files

        lorimer prompt show --model qwen2.5-coder-0.5b --tokens
    """
    from lorimer.cli.execute import emit, faults_as_json
    from lorimer.cli.prompt_sizes import report_of
    from lorimer.cli.prompt_sources import of_now, of_session, reading

    local = bool(model) and ":" not in model and session_id is None
    if local or ((question or tokens) and session_id is None):
        from lorimer.cli.prompt_local import show_local

        show_local(model, tools, system, question, tokens=tokens, as_json=as_json)
        return
    import anyio

    async def built(opened: Any) -> Source:
        return await of_now(
            opened, model=model or None, tools=tools or None, system=system or None,
            folder=folder, project_rules=project_rules,
        )  # fmt: skip

    with faults_as_json(as_json), reading(store) as opened:
        source = anyio.run(built, opened) if session_id is None else of_session(opened, session_id)
        report = report_of(source)
        if as_json:
            emit({**report, **({"text": source.prompt.text} if text else {})})
            return
        _print(source, report)
        if text:
            from lorimer.cli.terminal import safe

            print("\n" + "\n".join(safe(line) for line in source.prompt.text.split("\n")))


def _print(source: Source, report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from lorimer.cli.terminal import safe

    for notice in source.notices:
        print(f"! {safe(notice)}")
    print(f"{safe(source.what)} · {safe(source.model)}\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in (("part", False), ("owner", False), ("stability", False), ("bytes", True),
                        ("tokens", True)):  # fmt: skip
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    if source.wire == "anthropic":
        _add_tools(table, report)
    for row in report["parts"]:
        table.add_row(
            row["name"], safe(row["owner"]), row["stability"], f"{row['bytes']:,}",
            f"{row['tokens']:,}",
        )  # fmt: skip
        if row["boundary_after"]:
            table.add_row("  ── cache boundary", "", "", "", "")
    if source.wire != "anthropic":
        _add_tools(table, report)
    Console().print(table)
    if source.wire == "anthropic":
        print("\nThis provider reads the tools before the system text, and caches them with it.")
    elif report["tools"]:
        print("\nThe tools are part of what the provider can cache, too.")
    sent = ""
    if source.rendered:
        sent = f"; {report['bytes']:,} bytes as they are sent, sha256 {report['sha256'][:12]}…"
    print(f"\n{report['tokens']:,} tokens (by {report['counted_by']}){sent}")
    stored = source.stored
    if stored is None:
        print("Nothing of this is stored yet: a new session keeps its own copy.")
    elif stored["rebases"]:
        print(f"Stored with the session, and sent since its rebase at entry "
              f"{stored['rebased_at_entry']}.")  # fmt: skip
    else:
        print("Stored with the session: these bytes are sent for as long as it lasts.")


def _add_tools(table: Table, report: dict[str, Any]) -> None:
    from lorimer.cli.terminal import safe

    for row in report["tools"]:
        table.add_row(
            f"tool {safe(row['name'])}", "", "", f"{row['bytes']:,}", f"{row['tokens']:,}"
        )
