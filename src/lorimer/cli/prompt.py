"""`lorimer prompt show`: what a local model really reads, and what each part of it costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lorimer.core.specs import ToolSpec
    from lorimer.models.local.model import LocalModel

app = typer.Typer(help="Show the prompt of a local model.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Show the prompt of a local model."""


@app.command()
def show(
    model: Annotated[str, typer.Option(help="A local model.")] = "",
    tools: Annotated[str, typer.Option(help="Tool names, comma-separated; all without it.")] = "",
    system: Annotated[str, typer.Option(help="The system text; the model's default.")] = "",
    question: Annotated[str, typer.Option(help="A user message to show after it.")] = "",
    tokens: Annotated[bool, typer.Option("--tokens", help="Token by token.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Print the rendered prompt and the tokens of its parts, with and without descriptions."""
    import anyio

    from lorimer.models.local import open_local
    from lorimer.models.local.catalogue import DEFAULT

    specs = _specs(tools)
    local = open_local(model or DEFAULT)
    report = anyio.run(_measure, local, specs, system or local.default_system(specs), question)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False))
        return
    if tokens:
        for token, piece in report["pieces"]:
            typer.echo(f"{token:>7}  {piece!r}")
    else:
        typer.echo(report["prompt"])
    counts = report["tokens"]
    typer.echo(
        f"\ntokens: {counts['all']} in all; system text {counts['system']}, "
        f"tools {counts['tools']} ({counts['tools_without_descriptions']} without descriptions), "
        f"template and form {counts['form']}"
    )


async def _measure(
    local: LocalModel, specs: Sequence[ToolSpec], system: str, question: str
) -> dict[str, Any]:
    from datetime import UTC, datetime

    from lorimer.core.messages import Entry, Kind, TextPart
    from lorimer.models.local.prompt import tool_list
    from lorimer.models.local.template import plain

    rendered = local.render_prefix(system, specs).decode("utf-8", "surrogatepass")
    if question:
        entry = Entry(Kind.USER, (TextPart(question),), datetime.now(UTC))
        rendered += local.render_entry(entry, ()).decode("utf-8", "surrogatepass")
    try:
        pieces = await local.token_pieces(rendered)
        described = len(await local.tokenize(tool_list(specs)))
        bare = len(await local.tokenize(tool_list(specs, descriptions=False)))
        own = len(await local.tokenize(system))
        asked = len(await local.tokenize(question))
    finally:
        await local.aclose()
    return {
        "model": local.name,
        "prompt": plain(rendered),
        "tokens": {
            "all": len(pieces),
            "system": own,
            "tools": described,
            "tools_without_descriptions": bare,
            "question": asked,
            "form": len(pieces) - own - described - asked,
        },
        "pieces": pieces,
    }


def _specs(names: str) -> list[ToolSpec]:
    from lorimer.core.errors import UsageFault
    from lorimer.toolkits import all_tools, default_tools

    known = {tool.name: tool.spec for tool in all_tools()}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageFault(
            f"No tool is called {', '.join(unknown)}.", next=f"Use some of: {', '.join(known)}"
        )
    return [known[name] for name in wanted or [tool.name for tool in default_tools()]]
