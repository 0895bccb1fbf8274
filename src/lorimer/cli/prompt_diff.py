"""`lorimer prompt diff`: what changed in a prompt, and what that would cost a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import StorePath

if TYPE_CHECKING:
    from lorimer.cli.prompt_sources import Source
    from lorimer.context.prefix.compare import Comparison
    from lorimer.store.sqlite import SqliteStore


def diff(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="A session.")],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION2]", help="Another session; without it, what would be built now."
        ),
    ] = None,
    store: StorePath = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Which parts and tools of a session's stored prompt differ from what would be built now, or
    from another session's; and what the difference costs.

    A stored session goes on with its stored bytes. It costs something only if you rebase it
    (`Session.rebase`). Exit code 1: they differ.

    Examples:

        lorimer prompt diff s_01m8…

        lorimer prompt diff s_01m8… s_01m9… --json | jq '.changes[].name'
    """
    import anyio

    from lorimer.cli.execute import emit, faults_as_json
    from lorimer.cli.prompt_sources import of_session, of_session_now, reading
    from lorimer.context.prefix.compare import compare, pieces_of

    with faults_as_json(as_json), reading(store) as opened:
        before = of_session(opened, session_id)
        if other is None:
            after = anyio.run(of_session_now, opened, session_id, before)
        else:
            after = of_session(opened, other)
        result = compare(
            pieces_of(before.prompt, before.tools, before.wire),
            pieces_of(after.prompt, after.tools, before.wire),
        )
        cost = _cost(opened, session_id, before, result)
        if as_json:
            emit({
                "before": before.what, "after": after.what, "same": result.same,
                "first": result.first,
                "changes": [change.to_json() for change in result.changes],
                "before_bytes": result.before_bytes, "after_bytes": result.after_bytes,
                "kept_bytes": result.kept_bytes, **cost, "notices": list(after.notices),
            })  # fmt: skip
        else:
            _print(before, after, result, cost)
    return 0 if result.same else 1


def _cost(
    store: SqliteStore, session_id: str, before: Source, result: Comparison
) -> dict[str, Any]:
    """What a rebase would cost: tokens that would come from the cache and would be read anew."""
    from lorimer.cli.prompt_sizes import counter, rows_of
    from lorimer.models.profiles import profile_for

    parts, tools, how = rows_of(before)
    prefix = sum(r.tokens for r in parts) + sum(r.tokens for r in tools)
    prompt = _last_prompt(store, session_id)
    if prompt is None:
        count, _ = counter(before.model)
        texts = [p.text for e, _ in store.entries(session_id, "") for p in e.parts
                 if hasattr(p, "text")]  # fmt: skip
        prompt = prefix + sum(map(count, texts))
    kept = round(prefix * result.kept_bytes / result.before_bytes) if result.before_bytes else 0
    lost = 0 if result.same else max(0, prompt - kept)
    family, _, name = before.model.partition(":")
    try:
        price = profile_for(family, name).price
    except KeyError:
        price = None
    dollars = None
    if price is not None and lost:
        cached = price.input if price.cached is None else price.cached
        write = price.input if price.cache_write is None else price.cache_write
        dollars = str(round(lost * (write - cached) / 1_000_000, 6))
    return {
        "prompt_tokens": prompt, "cached_tokens_lost": lost, "dollars": dollars, "counted_by": how,
    }  # fmt: skip


def _last_prompt(store: SqliteStore, session_id: str) -> int | None:
    """The prompt tokens of the last answered request, as its provider counted them."""
    for entry, _ in reversed(store.entries(session_id, "")):
        tokens = int((entry.meta.get("usage") or {}).get("input_tokens", 0))
        if tokens:
            return tokens
    return None


def _print(before: Source, after: Source, result: Comparison, cost: dict[str, Any]) -> None:
    from lorimer.cli.terminal import safe

    for notice in after.notices:
        print(f"! {safe(notice)}")
    print(f"before: {safe(before.what)}\nnow:    {safe(after.what)}\n")
    if result.same:
        print("They are the same: parts, tools and order.")
        return
    for change in result.changes:
        print(f"{change.what:<8} {change.kind} {safe(change.name)}")
    for change in result.changes:
        if change.what != "moved":
            print(f"\n{change.kind} {safe(change.name)}")
            for line in change.diff.split("\n")[2:]:
                print(f"  {safe(line)}")
    print(
        f"\nThe cache would end at {safe(result.first)}: {result.kept_bytes:,} of "
        f"{result.before_bytes:,} bytes of the prefix are the same before it."
    )
    price = "" if cost["dollars"] is None else f", about ${cost['dollars']} once"
    print(
        f"A rebase of this session would read about {cost['cached_tokens_lost']:,} tokens anew"
        f"{price}. Left alone, it goes on with its stored bytes."
    )
