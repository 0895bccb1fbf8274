"""`lorimer compact`: make the context of a session smaller now, or see what that would do."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from lorimer.cli.run import AsJson, Model, Quiet, StorePath, Unsandboxed, Wait, Yes
from lorimer.core.messages import Kind

if TYPE_CHECKING:
    from lorimer.runtime.compaction_report import Report
    from lorimer.runtime.session import Session

STRATEGY_HELP = (
    "none, per_result, combined, context_aware, context_aware_cited, adaptive or layered. All but "
    "none ask the model; layered only when its notes are not enough."
)


def compact(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session.")],
    strategy: Annotated[str, typer.Option("--strategy", "-s", help=STRATEGY_HELP)] = "layered",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be kept and left out.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the text that would stand in the context.")
    ] = False,
    model: Model = None,
    as_json: AsJson = False,
    yes: Yes = False,
    store: StorePath = None,
    quiet: Quiet = False,
    allow_unsandboxed: Unsandboxed = False,
    wait: Wait = False,
) -> int:
    """Replace the old tool results of a session by short summaries.

    What the user said, answers, failures and loaded skills stay word for word. Nothing is lost:
    results stay in the record, and each summary says how its pages are read again. A line that the
    model writes and no result holds is dropped.

    Exit codes: 0 done or shown, 1 not done, 4 model failed, 6 session in use, 130 stopped.

    Examples:

        lorimer compact s_01m8… --dry-run

        lorimer compact s_01m8… --dry-run --show | less

        lorimer compact s_01m8… --strategy context_aware_cited
    """
    from lorimer.cli.execute import emit, existing_store, run_async
    from lorimer.cli.session_tools import tools_of
    from lorimer.cli.setup import choose_model
    from lorimer.cli.terminal import Screen
    from lorimer.context.compaction import Compaction
    from lorimer.runtime.agent import Agent
    from lorimer.safety.secrets.stored import StoredVault

    Compaction(strategy)
    screen = Screen(quiet=quiet or as_json, stream=False)

    async def work() -> int:
        opened = existing_store(store)
        try:
            record = opened.session(session_id)
            given = tools_of(record, None, allow_unsandboxed=allow_unsandboxed, say=screen.line)
            chosen = choose_model(model or record.model, yes=yes, say=screen.line)
            try:
                agent = Agent(
                    chosen, given, mode=str(record.meta.get("mode", "ask")), store=opened,
                    workspace=str(record.meta.get("workspace", ".")), watch=screen,
                    secrets=StoredVault(),
                )  # fmt: skip
                async with agent.session(record.id, wait_s=None if wait else 2.0) as session:
                    before = _calls(session)
                    compactions = _compactions(session)
                    try:
                        report = await session.compact(strategy, dry_run=dry_run)
                    except asyncio.CancelledError:
                        done = _compactions(session) > compactions
                        return _stopped(session_id, done=done, as_json=as_json)
                    fault = session.compaction.fault
                    if fault is not None and not report.done and not dry_run:
                        raise fault
            finally:
                await chosen.aclose()
        finally:
            opened.close()
        if as_json:
            body = asdict(report) | {"session": session_id, "dry_run": dry_run}
            emit(body if show else {**body, "texts": len(report.texts)})
        else:
            _print(report, before, dry_run=dry_run, show=show)
        return 0 if report.done or dry_run else 1

    return run_async(work, as_json=as_json)


def _compactions(session: Session) -> int:
    return sum(entry.kind is Kind.COMPACTION for entry in session.trajectory.entries)


def _stopped(session_id: str, *, done: bool, as_json: bool) -> int:
    """Say what a compaction that was stopped has left; the exit code."""
    from lorimer.cli.execute import emit

    words = (
        "Stopped, but the compaction was recorded before."
        if done
        else "Stopped: nothing was replaced, the context is as it was."
    )
    again = f"Again: lorimer compact {session_id}"
    if as_json:
        emit({"session": session_id, "done": done, "stop": "cancelled", "message": words,
              "next": "" if done else again, "exit_code": 130})  # fmt: skip
    else:
        print(words if done else f"{words}\n{again}", file=sys.stderr)
    return 130


def _calls(session: Session) -> dict[str, tuple[str, str, int]]:
    """By call id: tool, arguments, characters of the result as it was told."""
    raw = {c.id: c.raw for e in session.entries for c in e.calls}
    return {
        r.call_id: (
            r.name,
            raw.get(r.call_id, ""),
            sum(len(getattr(part, "text", "")) for part in r.content),
        )
        for e in session.entries
        for r in e.results
    }


def _print(
    report: Report, calls: dict[str, tuple[str, str, int]], *, dry_run: bool, show: bool
) -> None:
    from lorimer.cli.terminal import safe

    would = "Would be" if dry_run else "Were" if report.done else "Were not"
    if not report.calls:
        print(f"Nothing was compacted: {report.why}.")
        return
    print(f"{would} replaced by summaries ({report.strategy}, {report.level}):")
    for one in report.calls:
        name, raw, size = calls.get(one, ("?", "", 0))
        words = safe(f"{name} {raw}")
        print(f"  {size:>9,} characters  {words[:50]}{'…' if len(words) > 50 else ''}")
    for names, why in report.kept:
        print(f"  stays whole: {safe(names)} ({why})")
    print("  stay word for word: what the user said, answers, notes, failures")
    print(
        f"characters  {report.characters_before:>11,} → {report.characters_after:,}\n"
        f"tokens      {report.tokens_before:>11,} → {report.tokens_after:,} (estimated)"
    )
    if report.dropped:
        print(f"dropped     {report.dropped:>11,} lines of the summary: no result holds them")
    if report.why:
        print(f"It is not done: {report.why}.")
    if show:
        for text in report.texts:
            print(f"\n{safe(text)}")
