"""`lorimer prompt lint`: what in a prompt would break its cache."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import Folder, ProjectRules, StorePath

if TYPE_CHECKING:
    from lorimer.cli.prompt_sources import Source
    from lorimer.context.prefix.finding import Finding
    from lorimer.context.prefix.lint import Known
    from lorimer.context.prefix.parts import PromptPart

_NOBODY = frozenset(
    ["root", "user", "admin", "ubuntu", "debian", "runner", "test", "guest", "node", "agent",
     "localhost", "build", "docker", "vagrant", "home", "nobody"]
)  # fmt: skip
"""Names of users and machines that are words of their own."""


def lint_prompt(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|SESSION]…",
            help="Texts, JSON with parts or tools, request bodies, sessions; `-` reads standard "
            "input. Without any: a new session here.",
        ),
    ] = None,
    system: Annotated[str, typer.Option(help="Look at this text.")] = "",
    build: Annotated[
        bool,
        typer.Option(
            "--build",
            help="Build the prompt several times, with another clock, folder, hash seed and user, "
            "and name what differs.",
        ),
    ] = False,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="With --build: what to build, `FILE.py:NAME` or `module:NAME`: an Agent, a text, "
            "PromptParts, or a function that gives one.",
        ),
    ] = "",
    model: Annotated[str, typer.Option(help="The model of a new session.")] = "",
    tools: Annotated[str, typer.Option(help="Tools of a new session, comma-separated.")] = "",
    folder: Folder = Path("."),
    project_rules: ProjectRules = None,
    store: StorePath = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Find what would break a prompt cache: clocks, counters, random ids, user data, values of one
    request, tools and keys without order, parts in the wrong order, what is said twice.

    The rules read words and can miss a wording; --build finds whatever really changes. Exit code 1:
    something was found.

    Examples:

        lorimer prompt lint prompts/support.md

        lorimer prompt lint s_01m8… --json | jq '.findings[].excerpt'

        lorimer prompt lint --system "Today is Monday, 30 November 2026."

        lorimer prompt lint --build --from my_agent.py:make_agent
    """
    from lorimer.cli.execute import emit, faults_as_json
    from lorimer.core.errors import UsageFault

    with faults_as_json(as_json):
        if source and not build:
            raise UsageFault("--from needs --build.", next="Add --build.")
        if build:
            if what:
                raise UsageFault(
                    "--build builds a prompt; it reads no file or session.",
                    next="Leave one of them out, or say what to build with --from.",
                )
            from lorimer.cli.prompt_builds import compare_builds

            request = {
                "from": _absolute(source), "model": model, "tools": tools, "system": system,
                "folder": str(folder.absolute()), "project_rules": project_rules,
            }  # fmt: skip
            differences, runs = compare_builds(request)
            if as_json:
                emit({"builds": runs, "differences": [one.to_json() for one in differences]})
            else:
                _print_builds(differences, runs)
            return 1 if differences else 0
        found = _findings(
            what or [], system, store,
            {"model": model or None, "tools": tools or None, "folder": folder,
             "project_rules": project_rules},
        )  # fmt: skip
    if as_json:
        emit({"findings": [{"source": where, **one.to_json()} for where, one in found]})
    else:
        _print(found)
    return 1 if found else 0


def _absolute(source: str) -> str:
    """`--from`, with the whole path of a file: it is loaded from other folders too."""
    where, colon, name = source.rpartition(":")
    return f"{Path(where).absolute()}{colon}{name}" if where.endswith(".py") else source


def _findings(
    what: list[str], system: str, store: Path | None, options: dict[str, Any]
) -> list[tuple[str, Finding]]:
    import anyio

    from lorimer.cli.prompt_sources import of_now, of_session, reading
    from lorimer.context.prefix.lint import lint

    known = _known()
    out: list[tuple[str, Finding]] = []
    if system:
        given = [_text_part("system", system)]
        out += [("--system", f) for f in lint(given, known=known, template=True)]
    for one in what:
        if one == "-" or Path(one).is_file():
            name, data = ("standard input", sys.stdin.buffer.read()) if one == "-" else (
                one, Path(one).read_bytes())  # fmt: skip
            parts, tools, written = _read(name, data)
            found = lint(parts, tools, known=known, written=written, template=True)
            out += [(name, f) for f in found]
            continue
        with reading(store) as opened:
            source = of_session(opened, one)
            record = opened.session(one)
            own = _known(
                {
                    record.id: "the id of this session",
                    str(record.meta.get("workspace", "")): "the folder of this session",
                }
            )
        out += [(one, f) for f in _of_source(source, own)]
    if not what and not system:

        async def build(opened: Any) -> Source:
            return await of_now(opened, system=None, **options)

        with reading(store) as opened:
            source = anyio.run(build, opened)
        out += [("a new session here", f) for f in _of_source(source, known)]
    return out


def _of_source(source: Source, known: Known) -> list[Finding]:
    from lorimer.context.prefix.lint import lint
    from lorimer.context.prefix.parts import PromptPart, Stability

    parts = [
        PromptPart(
            p.name, p.owner, Stability.DEPLOYMENT if p.owner == "unknown" else p.stability,
            source.prompt.rendered(p),
        )
        for p in source.prompt.placed
    ]  # fmt: skip
    return lint(parts, source.tools, known=known)


def _text_part(name: str, text: str) -> PromptPart:
    from lorimer.context.prefix.parts import text_prompt

    return text_prompt(text, name=name)


def _read(name: str, data: bytes) -> tuple[list[PromptPart], list[Any], str]:
    """Parts, tools and the tools' own JSON of a file: a text, or JSON: parts, tools, or the body of
    a request on any wire.

    Raises:
        UsageFault: when it is not UTF-8, or JSON without any of these.
    """
    from lorimer.core.errors import UsageFault

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise UsageFault(f"{name} is not UTF-8: byte {fault.start}.") from fault
    try:
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except ValueError as fault:
        if name.endswith(".json"):
            raise UsageFault(f"{name} is not JSON: {fault}.") from fault
        value = None
    if not isinstance(value, dict | list):
        return [_text_part("system", text)], [], ""
    tools = value if isinstance(value, list) else value.get("tools") or []
    tools = [t for one in tools for t in _declared(one)]
    parts = [] if isinstance(value, list) else list(_parts_in(name, value))
    if not parts and not tools:
        raise UsageFault(
            f"{name} has no prompt in it.",
            next='Give a text, {"parts": […]}, a list of tools, or the body of a request.',
        )
    return parts, tools, json.dumps(tools)


def _declared(tool: Any) -> list[Any]:
    if not isinstance(tool, dict):
        return []
    inner = tool.get("functionDeclarations") or tool.get("function_declarations")
    return [t for t in inner if isinstance(t, dict)] if isinstance(inner, list) else [tool]


def _parts_in(name: str, value: dict[str, Any]) -> list[PromptPart]:
    from lorimer.context.prefix.parts import PromptPart
    from lorimer.core.errors import UsageFault

    if isinstance(value.get("parts"), list):
        try:
            return [
                PromptPart(p["name"], p.get("owner", "app"), p["stability"], str(p["text"]))
                for p in value["parts"]
            ]
        except (KeyError, TypeError) as fault:
            raise UsageFault(
                f"A part in {name} cannot be read: {fault!r}.",
                next='Each is {"name": …, "stability": "global|deployment|session", "text": …}.',
            ) from fault
    texts = [value.get(key) for key in ("system", "instructions", "systemInstruction",
                                        "system_instruction")]  # fmt: skip
    messages = value.get("messages") or value.get("input")
    for message in messages if isinstance(messages, list) else ():
        if not (isinstance(message, dict) and message.get("role") in ("system", "developer")):
            break
        texts.append(message.get("content"))
    found = [text for one in texts if (text := _plain(one)).strip()]
    return [_text_part("system" if n == 0 else f"system_{n}", t) for n, t in enumerate(found)]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_plain, value))
    if isinstance(value, dict):
        return _plain(value.get("text") or value.get("parts") or value.get("content") or "")
    return ""


def _known(values: dict[str, str] | None = None) -> Known:
    import getpass
    import socket

    from lorimer.context.prefix.lint import Known

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # no such user in this container
        user = ""
    host = socket.gethostname()
    home = str(Path.home())
    return Known(
        "" if user.casefold() in _NOBODY else user, "" if host.casefold() in _NOBODY else host,
        "" if home == "/" else home, values,
    )  # fmt: skip


def _print(found: list[tuple[str, Finding]]) -> None:
    from lorimer.cli.terminal import safe

    if not found:
        print("Nothing was found that would break a cache.")
        return
    for where, one in found:
        line = f", line {one.line}" if one.line else ""
        detail = f" ({safe(one.detail)})" if one.detail else ""
        print(f"{safe(where)}: {safe(one.part)}{line}: {one.trouble}{detail}")
        print(f"  {safe(one.excerpt)}")
        print(f"  Why: {one.why}.")
        print(f"  → {one.advice}")
    print(f"\n{len(found)} finding{'s' if len(found) != 1 else ''}.")


def _print_builds(differences: list[Any], runs: list[str]) -> None:
    from lorimer.cli.terminal import safe

    if not differences:
        print(f"Built {len(runs) + 1} times ({', '.join(runs)}): the same bytes each time.")
        return
    for one in differences:
        print(f"{safe(one.piece)} differs: {one.words}")
        print(f"  once   {safe(one.was)}\n  then   {safe(one.now)}")
        print(f"  → {one.advice}")
    print(f"\n{len(differences)} differences in {len(runs) + 1} builds ({', '.join(runs)}).")
