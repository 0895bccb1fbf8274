"""`lorimer models reasoning`: what is done with the reasoning of each provider's models."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Annotated

import typer

_RULES = {
    "keep": "goes back in all later requests, unchanged",
    "turn": "goes back, unchanged; the server reads that of the current turn",
    "drop": "is recorded and never sent back",
}


def rows() -> list[dict[str, object]]:
    """One record a provider: rule, stand-in, binding, sources."""
    from lorimer.models.profiles import families, known_models, profile_for

    out: list[dict[str, object]] = []
    for family in families():
        profile = profile_for(family)
        bound = [m for m in known_models(family) if profile_for(family, m).bound_reasoning]
        out.append(
            {
                "provider": family, "rule": profile.reasoning, "says": _RULES[profile.reasoning],
                "stand_in": profile.reasoning_stand_in, "bound": bound,
                "sources": re.findall(r"https://[^\s)]+", profile.sources["reasoning"]),
            }
        )  # fmt: skip
    return out


def reasoning(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show what is done with the reasoning of each provider's models, and where that is written.

    Reasoning of one model is never sent to another one.

    Examples:

        lorimer models reasoning

        lorimer models reasoning --json
    """
    found = rows()
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for row in found:
        says = f"{row['provider']}: {row['says']}"
        if row["stand_in"]:
            says += f"; where a call has none: {row['stand_in']}"
        bound = row["bound"]
        if isinstance(bound, list) and bound:
            says += f"; bound to what stood before it: {', '.join(bound)}"
        typer.echo(textwrap.fill(says, 80, subsequent_indent="    ", break_on_hyphens=False))
        sources = row["sources"]
        for source in sources if isinstance(sources, list) else ():
            typer.echo(f"    {source}")
