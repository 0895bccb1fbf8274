"""`lorimer cache`: what the prompt cache saved in a session, and what broke it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import StorePath

if TYPE_CHECKING:
    from lorimer.runtime.tokens import Fill
    from lorimer.store.sqlite import SqliteStore

app = typer.Typer(no_args_is_help=True, help="Show what the prompt cache did in a session.")


@app.callback()
def _group() -> None:
    """Show what the prompt cache did in a session."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One answered request.

    Attributes:
        number: 1, 2, 3 … in the session; `entry` is the entry that answers it.
        prompt, cached, written: tokens as the provider counted them; `cached` is `None` where it
            says nothing of its cache.
        expected: tokens that were in the request before, byte for byte; `None` for requests that
            were not audited.
        share: cached tokens of all prompt tokens, 0 to 1.
        broken: the cause, segment, excerpts, detail and `announced` of a break.
        missed: the counter stood at zero where a hit was due.
    """

    number: int
    entry: int
    at: str
    model: str
    prompt: int
    cached: int | None
    expected: int | None
    written: int
    output: int
    share: float | None
    ttft_s: float | None
    cost: str | None
    broken: dict[str, Any] | None = None
    missed: bool = False
    notes: list[str] = field(default_factory=list)


@app.command()
def report(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the requests into this file (.png, .svg, .pdf)."),
    ] = None,
    store: StorePath = None,
) -> None:
    """Each model request of a session: prompt tokens, how many came from the cache, how many
    should have, time to the first token, cost, and what broke the cache.

    Expected are the tokens of this request that stood at the start of the one before, byte for
    byte. `?` means that the provider says nothing of its cache.

    Examples:

        lorimer cache report s_01m8…

        lorimer cache report s_01m8… --json | jq '.requests[] | select(.broken)'

        lorimer cache report s_01m8… --plot cache.png
    """
    from lorimer.cli.execute import existing_store

    if plot is not None:
        from lorimer.cli.cache_plot import check_plot

        check_plot(plot)
    opened = existing_store(store)
    try:
        model = opened.session(session_id).model
        rows = rows_of(opened, session_id)
        fill = last_fill(opened, session_id)
    finally:
        opened.close()
    totals = totals_of(rows)
    if plot is not None:
        from lorimer.cli.cache_plot import draw

        draw(rows, plot, f"{session_id} · {model}")
    if as_json:
        print(
            json.dumps(
                {
                    "session": session_id, "model": model, "requests": [asdict(r) for r in rows],
                    "totals": totals, "context": None if fill is None else asdict(fill),
                    "plot": None if plot is None else str(plot),
                },
                ensure_ascii=False,
            )
        )  # fmt: skip
        return
    if not rows:
        print(f"Session {session_id} has no answered request yet.")
        return
    _print(session_id, model, rows, totals)
    if fill is not None:
        print(f"\nThe context holds {fill.words()}.")
    if plot is not None:
        print(f"\nDrawn into {plot}")


def rows_of(store: SqliteStore, session_id: str) -> list[RequestRow]:
    """The answered requests of a session, in order."""
    from lorimer.core.clock import to_rfc3339
    from lorimer.core.usage import Usage

    rows: list[RequestRow] = []
    for entry, _ in store.entries(session_id, ""):
        if "usage" not in entry.meta:
            continue
        usage = Usage.from_json(entry.meta["usage"])
        cache = entry.meta.get("cache")
        told = (cache or {}).get("cached") if cache else usage.cached_tokens or None
        rows.append(
            RequestRow(
                number=len(rows) + 1,
                entry=entry.seq,
                at=to_rfc3339(entry.at),
                model=str(entry.meta.get("model", "")),
                prompt=usage.input_tokens,
                cached=told,
                expected=cache["expected"] if cache else None,
                written=usage.cache_write_tokens,
                output=usage.output_tokens,
                share=round(told / usage.input_tokens, 4)
                if told is not None and usage.input_tokens
                else None,
                ttft_s=None if usage.ttft_s is None else round(usage.ttft_s, 4),
                cost=None if usage.cost is None else str(usage.cost),
                broken=cache.get("break") if cache else None,
                missed=bool(cache and cache.get("miss")),
                notes=list(cache.get("notes", ())) if cache else [],
            )
        )
    return rows


def last_fill(store: SqliteStore, session_id: str) -> Fill | None:
    """How full the context is after the last answered request of a session; after a compaction
    that no request followed yet, how full it was before."""
    from lorimer.runtime.tokens import Fill

    fill = None
    for entry, _ in store.entries(session_id, ""):
        fill = Fill.after(entry.meta) or fill
    return fill


def totals_of(rows: Sequence[RequestRow]) -> dict[str, Any]:
    """Sums over a session. `prefix_from_cache` is the share of the expected tokens that came from
    the cache, from the second request on; `None` where that is not known."""
    known = [row for row in rows if row.cached is not None]
    later = [row for row in known[1:] if row.expected]
    due = sum(row.expected or 0 for row in later)
    got = sum(min(row.cached or 0, row.expected or 0) for row in later)
    costs = [Decimal(row.cost) for row in rows if row.cost is not None]
    return {
        "requests": len(rows),
        "prompt": sum(row.prompt for row in rows),
        "cached": sum(row.cached or 0 for row in known) if known else None,
        "expected": sum(row.expected or 0 for row in rows),
        "prefix_from_cache": round(got / due, 4) if due else None,
        "breaks": sum(1 for row in rows if row.broken and not row.broken["announced"]),
        "announced": sum(1 for row in rows if row.broken and row.broken["announced"]),
        "misses": sum(row.missed for row in rows),
        "cost": str(sum(costs)) if costs else None,
    }


def _print(session_id: str, model: str, rows: Sequence[RequestRow], totals: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from lorimer.cli.terminal import safe
    from lorimer.context.auditor.finding import ADVICE, Cause

    print(f"session {session_id} · {model}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("#", "prompt", "cached", "expected", "share", "first token", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in rows:
        table.add_row(
            str(row.number), f"{row.prompt:,}", _number(row.cached), _number(row.expected),
            "?" if row.share is None else f"{row.share:.0%}",
            "?" if row.ttft_s is None else f"{row.ttft_s:.2f} s",
            "" if row.cost is None else f"${Decimal(row.cost):.4f}", safe(_mark(row)),
        )  # fmt: skip
    Console().print(table)
    share = totals["prefix_from_cache"]
    print(
        f"\n{totals['requests']} requests, {totals['prompt']:,} prompt tokens"
        + ("" if totals["cached"] is None else f", {totals['cached']:,} from the cache")
        + ("" if share is None else f" ({share:.1%} of what was expected from request 2 on)")
        + ("" if totals["cost"] is None else f", ${Decimal(totals['cost']):.4f}")
        + "."
    )
    for row in rows:
        if row.broken:
            detail = f": {row.broken['detail']}" if row.broken["detail"] else ""
            print(f"\nrequest {row.number} breaks at {safe(row.broken['segment'])}{safe(detail)}")
            print(f"  before  {safe(row.broken['was'])}")
            print(f"  now     {safe(row.broken['now'])}")
            if row.broken["announced"]:
                print(f"  It was announced: {safe(row.broken['announced'])}")
            else:
                print(f"  → {ADVICE[Cause(row.broken['cause'])]}")
        for note in row.notes:
            print(f"\nrequest {row.number}: {safe(note)}")
    if totals["misses"]:
        print(
            "\nmissed: the provider read nothing from its cache though the prompt was there before."
            "\n  → Causes there: too long a pause, another server behind the same name, a prompt "
            "under\n    its minimum, or a cache that is off."
        )


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _mark(row: RequestRow) -> str:
    if row.broken:
        what = row.broken["cause"]
        return f"announced: {what}" if row.broken["announced"] else f"✗ {what}"
    return "missed" if row.missed else ""
