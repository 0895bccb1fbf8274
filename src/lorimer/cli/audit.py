"""`lorimer audit`: is the record what it was?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lorimer.cli.run import StorePath

app = typer.Typer(no_args_is_help=True, help="Check and show the tamper-evident audit chain.")
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]


@app.command()
def verify(
    expect: Annotated[
        str | None,
        typer.Option("--expect", help="A head hash noted earlier; it must be in the chain."),
    ] = None,
    as_json: AsJson = False,
    store: StorePath = None,
) -> int:
    """Check the whole store against its audit chain; exit code 1 when something does not fit.

    Found: a changed, missing or re-ordered line, and any changed or lost session, entry, call or
    blob. Against someone who can rewrite the whole file, note the head elsewhere (`lorimer audit
    head`) and pass it with --expect.
    """
    from lorimer.cli.execute import existing_store
    from lorimer.store.verify import verify as check

    opened = existing_store(store, empty=False)
    try:
        report = check(opened, expected_head=expect)
        path = opened.path
    finally:
        opened.close()
    if as_json:
        print(
            json.dumps(
                {"ok": not report.faults, "store": path, "lines": report.lines, "rows": report.rows,
                 "head": report.head, "faults": list(report.faults)}
            )
        )  # fmt: skip
    elif report.faults:
        print(
            f"{path}: {len(report.faults)} fault(s) in {report.lines} audit lines, "
            f"{report.rows} rows:"
        )
        for fault in report.faults:
            print(f"  ✗ {fault}")
    else:
        print(
            f"{path}: {report.lines} audit lines and {report.rows} rows are as they were recorded."
        )
        print(f"head {report.head}")
    return 1 if report.faults else 0


@app.command()
def head(store: StorePath = None) -> None:
    """The hash of the newest audit line; note it elsewhere."""
    from lorimer.cli.execute import existing_store
    from lorimer.store.verify import verify as check

    opened = existing_store(store, empty=False)
    try:
        print(check(opened).head)
    finally:
        opened.close()


@app.command("show")
def show_lines(
    session_id: Annotated[
        str | None, typer.Option("--session", "-s", help="Only this session.")
    ] = None,
    as_json: AsJson = False,
    store: StorePath = None,
) -> None:
    """The audit lines: when, who, what, which call or entry, why."""
    from dataclasses import asdict

    from lorimer.cli.execute import existing_store
    from lorimer.cli.terminal import safe

    opened = existing_store(store)
    try:
        for line in opened.audit(session_id):
            if as_json:
                print(json.dumps(asdict(line), ensure_ascii=False))
            else:
                print(
                    f"{line.n:>6} {line.at[:19]} {safe(line.actor)} {line.action} {line.target} "
                    f"{safe(line.why)}".rstrip()
                )
    finally:
        opened.close()
