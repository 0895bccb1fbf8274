"""`lorimer models`: list, pull, verify and remove the models that run on this machine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.reasoning import reasoning

if TYPE_CHECKING:
    from lorimer.models.local.catalogue import CatalogueModel

app = typer.Typer(
    help="Models that run on this machine: list, pull, verify, remove.", no_args_is_help=True
)
app.command("reasoning")(reasoning)
Name = Annotated[str, typer.Argument(help="A name from `lorimer models list`.", show_default=False)]


@app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Show the known models, which of them are here, and where they come from."""
    from lorimer.models.local.catalogue import DEFAULT
    from lorimer.models.local.pull import listing

    rows = listing()
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {
                        "name": row.name,
                        "title": row.title,
                        "size_bytes": row.size_bytes,
                        "present": row.present,
                        "path": str(row.path),
                        "source": row.source,
                        "default": row.name == DEFAULT,
                    }
                    for row in rows
                ],
                ensure_ascii=False,
            )
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "size", "here", "path", "source"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "size" else "left")
    for row in rows:
        size = f"{row.size_bytes / 1e6:,.0f} MB"
        where = str(row.path) if row.present else "-"
        table.add_row(row.name, size, "yes" if row.present else "no", where, row.source)
    Console().print(table)
    typer.echo("A path of a .gguf file works as a model name, too.")


@app.command()
def pull(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before fetching.")] = False,
) -> None:
    """Fetch a model and check its SHA-256. May be stopped at any time; goes on where it was."""
    from lorimer.core.errors import UsageFault
    from lorimer.models.local.catalogue import find, is_present, model_path

    model = find(name)
    if is_present(model):
        typer.echo(f"{model.name} is here already: {model_path(model)}")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageFault(
                f"Pulling {model.name} fetches {model.size_bytes / 1e6:,.0f} MB.",
                next="Say --yes to do it without a question.",
            )
        typer.confirm(f"Fetch {model.size_bytes / 1e6:,.0f} MB for {model.name}?", abort=True)
    typer.echo(f"{model.name} is here and checked: {fetch(model)}")


def fetch(model: CatalogueModel) -> Any:
    """Pull `model`, with a progress bar on a terminal, plain lines elsewhere; returns its path."""
    from lorimer.models.local.pull import pull as pull_model

    try:
        if sys.stderr.isatty():
            return _with_bar(model)
        return pull_model(model, report=_Lines(model.size_bytes))
    except KeyboardInterrupt:
        typer.echo(
            f"Stopped. What was fetched is kept; go on with: lorimer models pull {model.name}",
            err=True,
        )
        raise


def _with_bar(model: CatalogueModel) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from lorimer.models.local.pull import pull as pull_model

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(model.name, total=model.size_bytes)

        def report(what: str, done: int) -> None:
            bar.update(task, description=what, completed=done)

        return pull_model(model, report=report)


class _Lines:
    """One line for each new kind of work and for each tenth of the bytes."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._last = ("", -1)

    def __call__(self, what: str, done: int) -> None:
        tenth = done * 10 // self._total
        if (what, tenth) != self._last:
            self._last = (what, tenth)
            typer.echo(f"{done / 1e6:7,.0f} of {self._total / 1e6:,.0f} MB  {what}", err=True)


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="One model; all that are here without it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array.")] = False,
) -> None:
    """Hash model files again and compare with what they must be. Exit code 1 when one differs."""
    from lorimer.core.errors import UsageFault
    from lorimer.models.local.catalogue import MODELS, find, model_path
    from lorimer.models.local.pull import verify as verify_model

    chosen = [find(name)] if name else [m for m in MODELS.values() if model_path(m).is_file()]
    verdicts = [verify_model(model) for model in chosen]
    if as_json:
        records = [
            {"name": v.name, "ok": v.ok, "expected": v.expected, "got": v.got, "path": str(v.path)}
            for v in verdicts
        ]
        typer.echo(json.dumps(records))
    elif not verdicts:
        typer.echo("No model is here. Pull one: lorimer models pull NAME")
    for verdict in verdicts if not as_json else []:
        if verdict.ok:
            typer.echo(f"{verdict.name}: right ({verdict.got})")
        elif not verdict.got:
            raise UsageFault(
                f"{verdict.name} is not here.", next=f"Run: lorimer models pull {verdict.name}"
            )
        else:
            typer.echo(
                f"{verdict.name}: WRONG. Expected {verdict.expected}, got {verdict.got}. Run: "
                f"lorimer models remove {verdict.name}, then pull it again.",
                err=True,
            )
    if not all(verdict.ok for verdict in verdicts):
        raise typer.Exit(1)


@app.command()
def remove(name: Name) -> None:
    """Remove a model's file, and what a stopped pull left of it."""
    from lorimer.models.local.catalogue import find
    from lorimer.models.local.pull import remove as remove_model

    freed = remove_model(find(name))
    typer.echo(f"{name} was removed; {freed / 1e6:,.0f} MB are free again.")
