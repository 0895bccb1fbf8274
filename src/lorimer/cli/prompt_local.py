"""What a local model really reads, token by token: `lorimer prompt show --model NAME`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from lorimer.core.specs import ToolSpec
    from lorimer.models.local.model import LocalModel


def show_local(
    model: str, tools: str, system: str, question: str, *, tokens: bool, as_json: bool
) -> None:
    """Print the rendered prompt and the tokens of its parts, with and without descriptions."""
    import anyio

    from lorimer.models.local import open_local
    from lorimer.models.local.catalogue import DEFAULT

    specs = specs_of(tools)
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


def specs_of(names: str) -> list[ToolSpec]:
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
