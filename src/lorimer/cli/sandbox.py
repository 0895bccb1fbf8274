"""`lorimer sandbox`: what can be had on this machine, and whether it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lorimer.core.errors import SandboxUnavailable, UsageFault

app = typer.Typer(
    help="What sandboxes can be had on this machine, and whether they hold.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    epilog="Examples: lorimer sandbox levels   ·   lorimer sandbox check",
)
_MARKS = {"stopped": "✓", "open": "✗", "not provable": "?", "not enforced": "–"}
_NOBODY = 65534


@app.command("levels")
def levels(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> int:
    """Say which sandbox levels can be had here, and why not the others.

    `os` is the default: bubblewrap on Linux, Seatbelt on macOS. `landlock` is weaker and used only
    where it was allowed. `container` needs Podman or Docker, `microvm` a provider's package. `none`
    is no sandbox.
    """
    from lorimer.safety.sandbox import choose

    found = choose.all_levels()
    if as_json:
        print(json.dumps([
            {"level": a.level, "usable": a.usable, "reason": a.reason, "next": a.next}
            for a in found
        ]))  # fmt: skip
        return 0
    from textwrap import fill

    for a in found:
        print(f"{'✓' if a.usable else '✗'} {a.level:<10} {'works here' if a.usable else 'no'}")
        for text in (a.reason, f"→ {a.next}" if a.next else ""):
            if text:
                print(fill(text, 80, initial_indent=" " * 13, subsequent_indent=" " * 13))
    return 0


@app.command("check")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these attempts, e.g. read-home fork-bomb.")
    ] = None,
    level: Annotated[str, typer.Option("--level", help="The level: os or landlock.")] = "os",
    as_user: Annotated[
        bool,
        typer.Option("--as-user", help="As root: drop to a user without privileges first."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> int:
    """Try to get out of the sandbox, in more than a hundred ways, and say what was stopped.

    Each attempt is made inside the sandbox, and once outside as a user without privileges (the
    control). ✓ stopped. ✗ OPEN: it got through. ? not provable: the control was stopped too, by the
    machine itself, so this says nothing about the sandbox. – not enforced: the sandbox says itself
    that it cannot do this here. What would harm the machine outside (bombs) has no control.

    It runs in a mount namespace of its own, on a small file system of its own, in under a minute.
    Exit code 0: nothing open. 1: something is. 2: the level cannot be had.

    Examples:

        lorimer sandbox check

        lorimer sandbox check --level landlock

        sudo lorimer sandbox check --as-user --json
    """
    if not sys.platform.startswith("linux"):
        raise UsageFault("The attempts are made for Linux.", next="Run this on Linux.")
    if level not in ("os", "landlock"):
        raise UsageFault(
            f"There is no check for the level {level!r}.", next="Use --level os or landlock."
        )
    _known(names or [])
    user = str(_NOBODY) if as_user and os.geteuid() == 0 else "-"
    outcomes: list[dict[str, Any]] = []
    head: dict[str, Any] = {}
    for record in _records(level, user, names or []):
        if "fault" in record:
            raise _cannot(record["fault"], record["next"])
        if "result" not in record:
            head = record
            if not as_json:
                _begin(level, head)
            continue
        outcomes.append(record)
        if not as_json:
            _row(record)
        elif sys.stderr.isatty():
            print(f"\r{len(outcomes)} of {head['attempts']} ", end="", file=sys.stderr, flush=True)
    if not head or len(outcomes) != head["attempts"]:
        raise _cannot(f"The check ended after {len(outcomes)} attempts.", "See what it said above.")
    count = Counter(str(o["result"]) for o in outcomes)
    if as_json:
        if sys.stderr.isatty():
            print("\r", end="", file=sys.stderr)
        print(json.dumps({
            "level": level, "user": head["user"], "own_mounts": head["own_mounts"],
            "stopped": count["stopped"], "open": count["open"],
            "not_provable": count["not provable"], "not_enforced": count["not enforced"],
            "attempts": outcomes,
        }))  # fmt: skip
    else:
        _summary(outcomes, count)
    return 1 if count["open"] or count["not enforced"] else 0


def _cannot(what: str, then: str) -> SandboxUnavailable:
    fault = SandboxUnavailable(what, next=then)
    fault.exit_code = 2  # 1 means that something is open
    return fault


def _known(names: list[str]) -> None:
    from lorimer.safety.sandbox.escapes.attempts import ATTEMPTS

    there = {a.name for a in ATTEMPTS}
    for name in names:
        if name not in there:
            raise UsageFault(
                f"There is no attempt called {name!r}.",
                next="Their names are in the first column of `lorimer sandbox check`.",
            )


def _records(level: str, user: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """The lines of the program that makes the attempts; it ends when this is left."""
    with tempfile.TemporaryDirectory(prefix="lorimer-check-", dir=_open_to_all()) as scratch:
        Path(scratch).chmod(0o755)
        command = [
            sys.executable,
            "-P",
            "-m",
            "lorimer.safety.sandbox.escapes",
            level,
            user,
            scratch,
        ]
        suite = subprocess.Popen(
            [*command, *names], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        assert suite.stdout is not None
        try:
            for line in suite.stdout:
                yield json.loads(line)
            suite.wait()
        finally:
            suite.kill()
            suite.wait()
            suite.stdout.close()


def _open_to_all() -> str:
    """A folder for temporary files that every user can get into: root's own may be closed."""
    usual = Path(tempfile.gettempdir()).resolve()
    if os.geteuid() == 0 and not all(p.stat().st_mode & 0o001 for p in (usual, *usual.parents)):
        return "/tmp"
    return str(usual)


_WIDE = 80


def _columns() -> tuple[int, int]:
    """Widths of the names and of what is tried: no row is shifted by a long one."""
    from lorimer.safety.sandbox.escapes.attempts import ATTEMPTS

    return max(len(a.name) for a in ATTEMPTS), max(len(a.what) for a in ATTEMPTS)


def _line(mark: str, name: str, what: str, by: str) -> str:
    """A row of the table; its last column goes on below itself, within 80 characters."""
    from textwrap import wrap

    wide, wider = _columns()
    start = f"{mark} {name:<{wide}} {what:<{wider}} "
    first, *more = wrap(by, max(12, _WIDE - len(start))) or [""]
    return "\n".join([start + first, *(" " * len(start) + rest for rest in more)])


def _begin(level: str, head: dict[str, Any]) -> None:
    from textwrap import fill

    who = "root" if head["user"] == 0 else f"user {head['user']}"
    print(f"{head['attempts']} attempts at the level {level} as {who}")
    if not head["own_mounts"]:
        print(fill("(no mount namespace of its own could be had: files are made in a folder in "
                   "/tmp)", _WIDE))  # fmt: skip
    print("\n" + _line(" ", "attempt", "what", "stopped by"))


def _row(one: dict[str, Any]) -> None:
    by = {"stopped": one["by"], "open": "OPEN", "not provable": "not provable",
          "not enforced": "not enforced"}[one["result"]]  # fmt: skip
    print(_line(_MARKS[one["result"]], one["name"], one["what"], by), flush=True)


def _summary(outcomes: list[dict[str, Any]], count: Counter[str]) -> None:
    from textwrap import fill

    print()
    for one in outcomes:
        if one["result"] in ("open", "not enforced"):
            why = f" Documented: {one['known']}." if one["known"] else ""
            print(fill(f"{_MARKS[one['result']]} {one['name']}: {one['detail']}.{why}", _WIDE,
                       subsequent_indent="  "))  # fmt: skip
    provable = len(outcomes) - count["not provable"]
    more = count["not provable"]
    rest = f"; {more} more not provable here (stopped, and outside, too)" if more else ""
    print(fill(f"{count['stopped']} of {provable} stopped{rest}", _WIDE))
