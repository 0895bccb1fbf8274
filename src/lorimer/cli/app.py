"""The command tree, and how errors end it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from lorimer.cli import (
    agents,
    approvals,
    audit,
    cache,
    chat,
    compact,
    guarantees,
    models,
    policy,
    prompt,
    resume,
    run,
    sandbox,
    secrets,
    sessions,
    skills,
    tools,
    trust,
)
from lorimer.core.errors import LorimerError

app = typer.Typer(
    name="lorimer",
    help="The harness between a language model and the world: checked tool calls, a true record.",
    epilog='Start with: lorimer run "What is in this folder?"   ·   Each command has --help.',
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("chat")(chat.chat)
app.command("resume")(resume.resume)
app.add_typer(sessions.app, name="sessions")
app.add_typer(tools.app, name="tools")
app.add_typer(skills.app, name="skills")
app.add_typer(agents.app, name="agents")
app.add_typer(models.app, name="models")
app.add_typer(prompt.app, name="prompt")
app.add_typer(cache.app, name="cache")
app.command("compact")(compact.compact)
app.add_typer(policy.app, name="policy")
app.add_typer(audit.app, name="audit")
app.add_typer(approvals.app, name="approvals")
app.add_typer(secrets.app, name="secrets")
app.add_typer(trust.app, name="trust")
app.add_typer(sandbox.app, name="sandbox")
app.command("guarantees")(guarantees.guarantees)


def _version(wanted: bool) -> None:
    if wanted:
        from lorimer import __version__

        print(f"lorimer {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """The harness between a language model and the world: checked tool calls, a true record."""


def run_app() -> int:
    """Run the command of `sys.argv`; its exit code. Known faults become one clear message, with
    `--json` one JSON object on stdout."""
    as_json = wants_json(sys.argv[1:])
    try:
        result = app(prog_name="lorimer", standalone_mode=False)
    except LorimerError as fault:
        if as_json:
            from lorimer.cli.execute import emit, fault_json

            emit(fault_json(fault))
            return fault.exit_code
        return report(fault)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    except typer.Abort:
        print("Stopped.", file=sys.stderr)
        return 130
    except Exception as fault:
        shown = getattr(fault, "show", None)
        if shown is None:
            raise
        code = int(getattr(fault, "exit_code", 2))
        if as_json:
            _emit_usage(fault, code)
        else:
            shown()  # a usage error of the command line library
        return code
    return result if isinstance(result, int) else 0


def wants_json(words: Sequence[str]) -> bool:
    """Whether these words ask for JSON: `--json` before a `--`."""
    words = list(words)
    return "--json" in words[: words.index("--") if "--" in words else len(words)]


def _emit_usage(fault: Exception, code: int) -> None:
    """A usage error of the command line library, in the form of every other fault."""
    from lorimer.cli.execute import emit, fault_json
    from lorimer.core.errors import UsageFault

    told = getattr(fault, "format_message", None)
    message = (str(told()) if told is not None else "") or "A command is missing."
    context = getattr(fault, "ctx", None)
    path = getattr(context, "command_path", "lorimer")
    step = f"`{path} --help` shows how it is used."
    emit(fault_json(UsageFault(message, next=step)) | {"exit_code": code})


def report(fault: LorimerError) -> int:
    """Print a known fault for a person; its exit code."""
    from lorimer.cli.terminal import safe

    print(f"lorimer: {safe(fault.message)}", file=sys.stderr)
    if fault.next:
        print(f"  → {safe(fault.next)}", file=sys.stderr)
    if fault.run is not None:
        print(f"  → Go on with: lorimer resume {fault.run.session}", file=sys.stderr)
    return fault.exit_code
