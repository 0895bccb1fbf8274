"""`lorimer trust`: whether a folder's own files may steer the agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lorimer.core.home import home

if TYPE_CHECKING:
    from lorimer.safety.injection.trust_folder import Trusted

_SHOWN = 30


class _FolderFirst(TyperGroup):
    """`lorimer trust FOLDER` is `lorimer trust folder FOLDER`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["folder", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        helps = set(ctx.help_option_names)
        if not args or (args[0].startswith("-") and args[0] not in helps):
            args = ["folder", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_FolderFirst,
    help="Trust a folder's own instructions, servers and skills, by their content.\n\n"
    "AGENTS.md, CLAUDE.md, .mcp.json, lorimer.toml, .lorimer/, skills/ and the like steer the "
    "agent. They are used only when you have trusted the folder; when one of them changes you are "
    "asked again.",
    epilog="Examples: `lorimer trust` shows this folder's files and asks · `lorimer trust ~/work "
    "--yes` · `lorimer trust --check` only looks (exit code 1: not trusted) · `lorimer trust list`",
)
AsJson = Annotated[bool, typer.Option("--json", help="For programs; asks nothing.")]


@app.command("folder")
def folder(
    where: Annotated[Path, typer.Argument(metavar="FOLDER", help="Default: this one.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust it without asking.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only look; change nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show what in FOLDER would steer the agent, and trust it when you say so.

    Exit code 0: it is trusted now; 1: it is not. With --json nothing is asked: add --yes to trust.
    """
    from lorimer.safety.injection.trust_folder import FolderTrust

    record = FolderTrust(home())
    found = record.is_trusted(where)
    if not as_json:
        _show(found)
    if found.state != "trusted" and not check and (yes or (not as_json and _agreed(found))):
        found = record.trust(where, seen=found.digest)
        if not as_json:
            print("Trusted, as these files are now.")
    if as_json:
        print(json.dumps(_plain(found)))
    return 0 if found.state == "trusted" else 1


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """The trusted folders, and since when."""
    from lorimer.cli.terminal import safe
    from lorimer.safety.injection.trust_folder import FolderTrust

    folders = FolderTrust(home()).folders()
    if as_json:
        print(json.dumps([{"folder": name, "since": at} for name, at in folders.items()]))
    elif not folders:
        print("No folder is trusted.")
    else:
        for name, at in folders.items():
            print(f"{at[:16].replace('T', ' ')}  {safe(_text(name))}")


@app.command("forget")
def forget(
    where: Annotated[Path, typer.Argument(metavar="FOLDER", help="Default: this one.")] = Path(),
    as_json: AsJson = False,
) -> int:
    """Trust a folder no more. Exit code 1: it was not trusted."""
    from lorimer.cli.terminal import safe
    from lorimer.safety.injection.trust_folder import FolderTrust

    gone = FolderTrust(home()).forget(where)
    name = _text(str(where.absolute()))
    if as_json:
        print(json.dumps({"folder": name, "forgotten": gone}))
    elif gone:
        print(f"{safe(name)} is trusted no more.")
    else:
        print(f"{safe(name)} was not trusted.")
    return 0 if gone else 1


def _show(found: Trusted) -> None:
    from lorimer.cli.terminal import safe

    words = {
        "trusted": "is trusted, and nothing has changed.",
        "unknown": "is not trusted.",
        "changed": "was trusted, but its files have changed since.",
    }
    print(f"{safe(_text(found.folder))} {words[found.state]}")
    if not found.files and not found.changed:
        print("Nothing in it steers the agent.")
        return
    print("\nWhat in it steers the agent:")
    names = sorted({*found.files, *found.changed})
    for name in names[:_SHOWN]:
        told = found.changed.get(name, "")
        digest = found.files.get(name, "")
        print(f"  {told or 'same' if found.state == 'changed' else '·':8} {safe(name)}"
              f"{_remark(digest)}")  # fmt: skip
    if len(names) > _SHOWN:
        print(f"  … and {len(names) - _SHOWN} more (--json lists them all)")
    if not found.complete:
        print("There are more than are looked at: this folder cannot be trusted.")


def _remark(digest: str) -> str:
    kind, _, rest = digest.partition(":")
    if kind == "link":
        return f"  (a link to {rest.split(' ')[0]})"
    if kind == "unreadable":
        return "  (cannot be read)"
    return "  (large: only its beginning is compared)" if kind == "large" else ""


def _agreed(found: Trusted) -> bool:
    import sys

    if not sys.stdin.isatty():
        print("Nobody is there to ask: read the files, then run it with --yes.")
        return False
    print("\nRead them before you answer: their author then speaks to the agent as you do.")
    return input("Trust this folder? yes / no: ").strip().casefold() in ("y", "yes")


def _plain(found: Trusted) -> dict[str, Any]:
    return {
        "folder": _text(found.folder), "state": found.state, "digest": found.digest,
        "complete": found.complete, "files": dict(found.files), "changed": dict(found.changed),
    }  # fmt: skip


def _text(name: str) -> str:
    """A path that JSON and a terminal can hold: bytes that are not UTF-8 as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
