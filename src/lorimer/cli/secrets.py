"""`lorimer secrets`: keep keys and passwords that tools use and the model never sees."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.safety.secrets.stored import StoredVault
    from lorimer.safety.secrets.vault import Secret

app = typer.Typer(
    no_args_is_help=True,
    help="Keep keys and passwords that tools use and the model never sees.",
    epilog="Example: lorimer secrets set github --tool fetch   ·   the model then writes "
    "secret:github, and fetch gets the value.",
)
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Name = Annotated[
    str, typer.Argument(help="A small letter, then small letters, digits, - or _ (64 at most).")
]
_MOST_BYTES = 64 * 1024


def open_vault() -> StoredVault:
    """The secrets of this user; nothing is opened yet."""
    from lorimer.safety.secrets.stored import StoredVault

    return StoredVault()


@app.command("set", context_settings={"allow_extra_args": True})
def set_secret(
    context: typer.Context,
    name: Name,
    from_stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the value from standard input.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="With --stdin: keep a line end at the end, too.")
    ] = False,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", "-t", help="A tool that may use it; repeat it for more."),
    ] = None,
) -> None:
    """Keep a secret, instead of an older one of this name. The value is asked for, unseen.

    Examples:

        lorimer secrets set github --tool fetch

        pass show deploy-key | lorimer secrets set deploy --stdin

    It goes to the system keyring where there is one, else into an encrypted file in $LORIMER_HOME;
    LORIMER_SECRETS_BACKEND=file or =keyring decides otherwise. No tool may use it until you say so,
    with --tool or `lorimer secrets allow`.
    """
    from lorimer.safety.secrets.handles import check_name
    from lorimer.safety.secrets.vault import SHORTEST_REDACTED

    check_name(name)
    if context.args:
        raise UsageFault(
            "A value on the command line stays in the history of the shell and is seen in the "
            "list of processes; it was not kept.",
            next=f"Type it when asked: lorimer secrets set {name} (or pipe it, with --stdin).",
        )
    text = _piped(exact) if from_stdin else _typed(name)
    kept = open_vault().set(name, text, tools=tool)
    _say(f"Kept {name} in {_place(kept)}.")
    _say(_tools_words(kept))
    if len(text) < SHORTEST_REDACTED:
        _say(
            f"! It has fewer than {SHORTEST_REDACTED} characters: it cannot be taken out of "
            "results and logs, because it could stand anywhere. Use a longer one if you can."
        )


@app.command("list")
def list_secrets(as_json: AsJson = False) -> None:
    """The names, where each is kept, since when, and for which tools. Never a value."""
    from lorimer.cli.terminal import safe

    vault = open_vault()
    found = vault.listed()
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    if not found:
        print("No secrets. Keep one with: lorimer secrets set NAME")
        return
    width = max(len(one["name"]) for one in found)
    for one in found:
        tools = ", ".join(one["tools"]) or "no tool yet"
        print(
            f"{one['name']:<{width}}  {one['backend']:<7}  {one['set_at'][:10]}  for {safe(tools)}"
        )
    if any(one["backend"] == "file" for one in found):
        print(_protection_words(vault))


@app.command("remove")
def remove(
    name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Forget a secret for good."""
    vault = open_vault()
    vault.tools_of(name)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageFault(
                f"Nobody can be asked whether {name} is to be removed.", next="Add --yes."
            )
        print(f"Remove {name} for good? y = yes, anything else = no: ", end="", file=sys.stderr)
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            _say("Nothing was removed.")
            raise typer.Exit(1)
    vault.remove(name)
    _say(f"Removed {name}.")


@app.command("allow")
def allow(
    name: Name,
    tools: Annotated[list[str], typer.Argument(help="Names of tools.")],
    take_away: Annotated[
        bool, typer.Option("--remove", help="They may not use it any more.")
    ] = False,
) -> None:
    """Say which tools may use a secret.

    Examples:

        lorimer secrets allow github fetch shell_exec

        lorimer secrets allow --remove github shell_exec
    """
    vault = open_vault()
    secret = vault.get(name)
    given = set(secret.tools)
    given = given - set(tools) if take_away else given | set(tools)
    _say(_tools_words(vault.set(name, secret.value, tools=sorted(given))))


def _typed(name: str) -> str:
    import getpass

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageFault(
            "There is no terminal to ask for the value at.", next="Pipe it, with --stdin."
        )
    return getpass.getpass(f"Value of {name} (it is not shown): ")


def _piped(exact: bool) -> str:
    data = sys.stdin.buffer.read(_MOST_BYTES + 2)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UsageFault(
            f"The value is not UTF-8 (byte {fault.start}).", next="Encode it, e.g. with base64."
        ) from None
    if not exact and text.endswith("\n"):
        text = text[:-2] if text.endswith("\r\n") else text[:-1]
        _say("The line end at the end was left out (--exact keeps it).")
    return text


def _place(secret: Secret) -> str:
    return "the system keyring" if secret.backend == "keyring" else "the encrypted file"


def _tools_words(secret: Secret) -> str:
    if not secret.tools:
        return f"No tool may use it yet: lorimer secrets allow {secret.name} TOOL"
    if "*" in secret.tools:
        return "Every tool may use it, also one that sends it away. Name tools instead if you can."
    return f"It may be used by: {', '.join(secret.tools)}."


def _protection_words(vault: StoredVault) -> str:
    if vault.protection == "passphrase":
        return (
            f"{vault.file} is encrypted with LORIMER_SECRETS_PASSPHRASE: without it nobody can "
            "read it."
        )
    return (
        f"{vault.file} is encrypted with the key file beside it (mode 0600): a copy of it alone is "
        "of no use, but whoever can read your files can read both."
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)
