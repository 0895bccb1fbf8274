"""`lorimer policy`: is the policy right, what does it say of a call, what could it learn."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from lorimer.cli.run import Folder, PolicyFiles, StorePath
from lorimer.cli.setup import MODE_HELP
from lorimer.core.errors import LorimerError, UsageFault

if TYPE_CHECKING:
    from lorimer.safety.policy.examples import KnownTool
    from lorimer.safety.policy.layers import LayeredPolicy
    from lorimer.safety.policy.learn import Evidence

app = typer.Typer(
    no_args_is_help=True,
    help="Check the policy, explain a decision, propose rules. docs/policy.md has the reference.",
)
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Mode = Annotated[str, typer.Option("--mode", help=MODE_HELP)]
_VERDICTS = {"allow": "safe", "ask": "needs-approval", "deny": "deny"}


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(help="More policy files, read as --layer.")
    ] = None,
    mode: Mode = "ask",
    layer: Annotated[
        str, typer.Option("--layer", help="What FILES are: organisation, user, project, session.")
    ] = "session",
    commands: Annotated[
        Path | None,
        typer.Option(
            "--commands",
            help='Judge shell commands: one {"id": …, "cmd": …} a line; `-` reads standard input.',
        ),
    ] = None,
    untrusted: Annotated[
        bool,
        typer.Option("--untrusted", help="With --commands: as in a folder nobody has trusted."),
    ] = False,
    folder: Folder = Path("."),
    as_json: AsJson = False,
) -> int:
    """Read every layer, try the examples in its rules, show what holds.

    Whatever is wrong is named with its file and line, and the exit code is 2. With --commands each
    command is judged as a call of shell_exec in a folder that you trust: `safe` runs without a
    question, `needs-approval` asks, `deny` is refused; one JSON object a line comes out.

    Examples:

        lorimer policy check

        lorimer policy check --layer organisation company-policy.toml

        lorimer policy check --commands commands.jsonl --mode auto

        echo '{"id": 1, "cmd": "make"}' | lorimer policy check --commands -
    """
    with _faults_as_json(as_json):
        return _check(files, mode, layer, commands, untrusted, folder, as_json)


def _check(
    files: list[Path] | None,
    mode: str,
    layer: str,
    commands: Path | None,
    untrusted: bool,
    folder: Path,
    as_json: bool,
) -> int:
    from lorimer.safety.policy import load_policy
    from lorimer.safety.policy.load import LAYERS

    if layer not in LAYERS[1:]:
        raise UsageFault(f"There is no layer {layer!r}.", next=f"Use: {', '.join(LAYERS[1:])}.")
    known = _known()
    policy = load_policy(mode, folder, extra=files or (), extra_layer=layer, known=lambda: known)
    if commands is not None:
        return _judge_file(policy, commands, known, trusted=not untrusted)
    if as_json:
        print(json.dumps(_policy_json(policy), ensure_ascii=False))
    else:
        _show_policy(policy, folder)
    return 0


@contextlib.contextmanager
def _faults_as_json(as_json: bool) -> Iterator[None]:
    """With `as_json` a known fault becomes one JSON object on stdout, with the line of the policy
    where there is one, and the exit code."""
    from lorimer.safety.policy.faults import PolicyError

    try:
        yield
    except LorimerError as fault:
        if not as_json:
            raise
        from lorimer.cli.execute import fault_json

        body = {"ok": False, **fault_json(fault)}
        if isinstance(fault, PolicyError):
            body |= {"file": fault.file, "line": fault.line}
        print(json.dumps(body))
        raise typer.Exit(fault.exit_code) from fault


def _known() -> dict[str, KnownTool]:
    """The built-in tools, as far as decisions need them."""
    from lorimer.safety.policy.examples import known_tools
    from lorimer.toolkits import all_tools

    return known_tools(all_tools())


# --- check ---------------------------------------------------------------------------------------


def _policy_json(policy: LayeredPolicy) -> dict[str, Any]:
    from lorimer.safety.policy.layers import mode_table

    return {
        "ok": True,
        "mode": policy.mode,
        "workspace": policy.place.workspace,
        "allowing": sorted(policy.allowing),
        "layers": [
            {
                "name": layer.name, "file": layer.file,
                "delegate": None if layer.delegate is None else list(layer.delegate),
                "modes": None if layer.modes is None else list(layer.modes),
                "rules": [
                    {"id": r.id, "line": r.line, "decision": str(r.decision),
                     "examples": len(r.match) + len(r.not_match)}
                    for r in layer.rules
                ],
            }
            for layer in policy.layers
        ],
        "notices": list(policy.notices),
        "modes": {row: {m: str(v) for m, v in verdicts.items()} for row, verdicts in mode_table()},
        "digest": policy.digest,
    }  # fmt: skip


def _show_policy(policy: LayeredPolicy, folder: Path) -> None:
    from lorimer.cli.terminal import safe
    from lorimer.safety.policy.layers import mode_table
    from lorimer.safety.policy.modes import MODES

    print(f"Mode {policy.mode}, folder {safe(str(folder))}")
    print("\nlayers, from the top down; the strictest matching rule wins")
    print("  built-in      the table of modes below")
    for layer in policy.layers:
        extra = "" if layer.delegate is None else f"; delegates to: {_list(layer.delegate)}"
        extra += "" if layer.modes is None else f"; modes: {_list(layer.modes)}"
        number = f"{len(layer.rules)} rule{'' if len(layer.rules) == 1 else 's'}"
        print(f"  {layer.name:<13} {safe(layer.file)}: {number}{extra}")
        for rule in layer.rules:
            tried = len(rule.match) + len(rule.not_match)
            examples = f", {tried} example{'' if tried == 1 else 's'} as expected" if tried else ""
            reason = f": {rule.reason}" if rule.reason else ""
            print(f"    line {rule.line:<4} {rule.decision:<6} {safe(rule.id + reason)}{examples}")
    print(f"\nlayers whose rules may allow: {_list(sorted(policy.allowing))}")
    for notice in policy.notices:
        print(f"note: {safe(notice)}")
    print(f"\n{'where no rule says otherwise':<28} " + " ".join(f"{m:<8}" for m in MODES))
    for row, verdicts in mode_table():
        shown = " ".join(f"{verdicts[m]:<8}" for m in MODES)
        print(f"  {row:<26} {shown}".rstrip())


def _list(names: Any) -> str:
    return ", ".join(names) or "none"


def _judge_file(
    policy: LayeredPolicy, file: Path, known: dict[str, KnownTool], *, trusted: bool
) -> int:
    """One verdict a line; 2 when a line was none."""
    from lorimer.safety.effects import CallAssessor
    from lorimer.safety.policy.examples import facts_of_call

    assessor = CallAssessor(trusted_folder=trusted)
    bad = False
    for number, line in _lines(file):
        try:
            given = json.loads(line)
            command = given["cmd"]
            if not isinstance(command, str):
                raise ValueError(f"cmd is {type(command).__name__}, not text")
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
            bad = True
            what = f"there is no key {fault}" if isinstance(fault, KeyError) else str(fault)
            print(
                json.dumps(
                    {"id": None, "line": number,
                     "error": f'line {number} is not {{"id": …, "cmd": …}}: {what}'}
                ),
                flush=True,
            )  # fmt: skip
            continue
        facts = facts_of_call(
            "shell_exec", {"command": command}, policy.place, known=known, assessor=assessor
        )
        decision = policy.decide(facts)
        body = {"id": given.get("id"), "verdict": _VERDICTS[decision.verdict]}
        print(json.dumps({**body, "reason": decision.reason}), flush=True)
    return 2 if bad else 0


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with _opened(file) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line
    except OSError as fault:
        raise UsageFault(
            f"{file} cannot be read: {fault.strerror or fault}.", next="Give a file of JSON lines."
        ) from fault


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    with file.open("rb") as lines:
        yield lines


# --- explain -------------------------------------------------------------------------------------


@app.command()
def explain(
    call: Annotated[str, typer.Argument(help="The call: TOOL {JSON arguments}.")],
    mode: Mode = "ask",
    folder: Folder = Path("."),
    policy_files: PolicyFiles = None,
    tools: Annotated[
        str | None, typer.Option("--tools", "-t", help="Tools of your own, as in lorimer run.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="A role of the principal; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say what would be decided about a call, by which rule, and what would change it.

    Nothing is run. Examples:

        lorimer policy explain 'shell_exec {"command": "git diff | tee out"}'

        lorimer policy explain --mode auto 'write_file {"path": "../x", "content": "y"}'
    """
    with _faults_as_json(as_json):
        return _explain(call, mode, folder, policy_files, tools, role, as_json)


def _explain(
    call: str,
    mode: str,
    folder: Path,
    policy_files: list[Path] | None,
    tools: str | None,
    role: list[str] | None,
    as_json: bool,
) -> int:
    from lorimer.cli.terminal import safe
    from lorimer.safety.policy import load_policy
    from lorimer.safety.policy.examples import facts_of_call, known_tools, parse_call
    from lorimer.safety.policy.explain import as_json as to_json
    from lorimer.safety.policy.explain import lines

    known = _known()
    if tools is not None:
        from lorimer.cli.setup import choose_tools

        known |= known_tools(choose_tools(tools, allow_unsandboxed=False))
    policy = load_policy(mode, folder, extra=policy_files or (), known=lambda: known)
    name, arguments = parse_call(call)
    facts = facts_of_call(name, arguments, policy.place, known=known, roles=frozenset(role or ()))
    judgement = policy.judge(facts)
    guessed = name not in known
    if as_json:
        body = to_json(policy, judgement) | {"known_tool": not guessed}
        print(json.dumps(body, ensure_ascii=False))
        return 0
    for line in lines(policy, judgement):
        print(safe(line))
    if guessed:
        print(
            f"\nnote: {safe(name)} is no built-in tool; what its arguments mean was guessed by "
            "their names. Name your tools with --tools."
        )
    return 0


# --- learn ---------------------------------------------------------------------------------------


@app.command()
def learn(
    least: Annotated[
        int, typer.Option("--least", min=1, help="Approvals that a rule needs at least.")
    ] = 3,
    mode: Mode = "ask",
    folder: Folder = Path("."),
    store: StorePath = None,
    as_json: AsJson = False,
) -> int:
    """Propose rules from what people have approved. Nothing is added: copy what you want.

    Only calls in --folder count. No rule is proposed that would have allowed a rejected call, or
    for what is approved one by one: more rights, secrets, what runs later, what cannot be known.

    Example:

        lorimer policy learn --least 5
    """
    with _faults_as_json(as_json):
        return _learn(least, mode, folder, store, as_json)


def _learn(least: int, mode: str, folder: Path, store: Path | None, as_json: bool) -> int:
    from lorimer.cli.execute import existing_store
    from lorimer.safety.policy import load_policy
    from lorimer.safety.policy.learn import propose

    known = _known()
    policy = load_policy(mode, folder, known=lambda: known)
    opened = existing_store(store)
    try:
        found = list(_evidence(opened, policy.place.workspace))
    finally:
        opened.close()
    proposals = propose(found, policy, known=known, least=least)
    approved = sum(one.approved for one in found)
    if as_json:
        body = {"approved": approved, "rejected": len(found) - approved,
                "proposals": [p.to_json() for p in proposals]}  # fmt: skip
        print(json.dumps(body, ensure_ascii=False))
        return 0
    print(f"{approved} approved and {len(found) - approved} rejected calls in this folder.")
    if not proposals:
        print(f"No rule would have spared {least} questions.")
        return 0
    print("These rules would have spared questions. None was added; copy what you want into the")
    print("policy.toml of your home folder ($LORIMER_HOME), and try it: lorimer policy check")
    for one in proposals:
        from lorimer.cli.terminal import safe

        who = f" by {', '.join(one.people)}" if one.people else ""
        print(
            f"\n# {one.approved} approved calls ({one.different} different), "
            f"{one.sessions} session{'' if one.sessions == 1 else 's'}{safe(who)}"
        )
        print("\n".join(safe(line) for line in one.toml.splitlines()))
    return 0


def _evidence(store: Any, workspace: str) -> Iterator[Evidence]:
    """What people answered for in sessions of this workspace, from approvals and the journal."""
    import os

    from lorimer.safety.policy.learn import Evidence

    for summary in store.sessions(limit=1_000_000):
        meta = store.session(summary.id).meta
        if os.path.realpath(str(meta.get("workspace", ""))) != workspace:
            continue
        seen: set[str] = set()
        for record in store.approvals(summary.id):
            answer, bound = record.answer, record.request.get("bound") or {}
            arguments = bound.get("arguments")
            if str(record.kind) != "call" or "approved" not in answer or arguments is None:
                continue
            seen.add(record.call)
            if answer.get("edited") is not None:
                continue
            yield Evidence(record.tool, arguments, bool(answer["approved"]), record.by, summary.id)
        for call in store.calls(summary.id):
            by = str(call.decision.get("approved_by", ""))
            if by and call.id not in seen and isinstance(call.value, dict):
                yield Evidence(call.tool, call.value, True, by, summary.id)
