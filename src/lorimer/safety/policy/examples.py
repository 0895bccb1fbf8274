"""Calls written down as text, `tool {"argument": "value"}`: examples in rules, and `explain`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import Assessor, CallFacts, Traits
from lorimer.core.errors import UsageFault
from lorimer.safety.effects import CallAssessor
from lorimer.safety.policy.coverage import Coverage, covers_all
from lorimer.safety.policy.faults import PolicyError
from lorimer.safety.policy.load import Layer
from lorimer.safety.policy.rules import Place, Rule

_CALL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)\s*(\{.*\})?\s*", re.S)
_PATHS = ("path", "paths", "file", "files", "folder", "directory", "source", "target")
_HOSTS = ("url", "urls", "host", "hosts", "hostname")
_COMMANDS = ("command", "cmd")
_READERS = re.compile(r"(read|list|find|grep|search|get|show|view|look|fetch)(_.*)?")


@dataclass(frozen=True, slots=True)
class KnownTool:
    """What is known of a tool when a call is written down as text."""

    effects: Effects
    traits: Traits = field(default_factory=Traits)
    group: str = ""
    category: str = "execution"


def known_tools(tools: Iterable[Any]) -> dict[str, KnownTool]:
    """`KnownTool`s of tools (`lorimer.tools.tool.Tool`)."""
    return {
        t.name: KnownTool(t.effects, t.traits, t.group, str(t.category)) for t in tools
    }  # fmt: skip


def guess(name: str, arguments: Mapping[str, Any]) -> KnownTool:
    """A tool that nobody knows, by the names of its arguments: `command` is shell text, `path` a
    path, `url` a host, everything else plain; it writes, unless its name begins like a reader's."""
    traits = Traits(
        path_arguments=tuple(a for a in arguments if a in _PATHS),
        host_arguments=tuple(a for a in arguments if a in _HOSTS),
        command_argument=next((a for a in arguments if a in _COMMANDS), ""),
        runs_code=name in ("run_python", "code_interpreter"),
    )
    reads = _READERS.fullmatch(name) is not None and not traits.command_argument
    return KnownTool(Effects.READ if reads else Effects.WRITE, traits)


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """Tool and arguments of `tool {"argument": "value"}`.

    Raises:
        UsageFault: when it is not written like that.
    """
    found = _CALL.fullmatch(text)
    try:
        arguments = json.loads(found[2]) if found and found[2] else {}
    except ValueError as fault:
        raise UsageFault(
            f"The arguments of the call {text!r} are not JSON: {fault}.",
            next='Write e.g.: shell_exec {"command": "git status"}',
        ) from fault
    if not found:
        raise UsageFault(
            f"{text!r} is no call.", next='Write e.g.: shell_exec {"command": "git status"}'
        )
    return found[1], arguments


def facts_of_call(
    name: str,
    arguments: Mapping[str, Any],
    place: Place,
    *,
    known: Mapping[str, KnownTool] | None = None,
    assessor: Assessor | None = None,
    principal: str = "user",
    roles: frozenset[str] = frozenset(),
) -> CallFacts:
    """What a decision about this call in the workspace rests on."""
    tool = (known or {}).get(name) or guess(name, arguments)
    paths = []
    for argument in tool.traits.path_arguments:
        given = arguments.get(argument)
        paths += [p for p in (given if isinstance(given, list) else [given]) if isinstance(p, str)]
    facts = CallFacts(
        name, tool.effects, tool.category, dict(arguments), paths, principal, "",
        place.workspace, roots=(place.workspace,), roles=roles, traits=tool.traits,
        group=tool.group,
    )  # fmt: skip
    return replace(facts, touches=(assessor or CallAssessor()).assess(facts))


def check_examples(
    layer: Layer,
    place: Place,
    *,
    known: Mapping[str, KnownTool] | None = None,
    assessor: Assessor | None = None,
) -> int:
    """Try the `match` and `not_match` examples of every rule of `layer`; how many there were. They
    are about the call only: conditions on principal and taint count as met.

    Raises:
        PolicyError: for the first one that fails.
    """
    number = 0
    for rule in layer.rules:
        for text, wanted in [
            *((t, True) for t in rule.match),
            *((t, False) for t in rule.not_match),
        ]:
            number += 1
            key = "match" if wanted else "not_match"
            try:
                name, arguments = parse_call(text)
            except UsageFault as fault:
                raise PolicyError(
                    rule.file, example_line(rule, text),
                    f"{key} example {text!r} of rule {rule.id}: {fault.message}", next=fault.next,
                ) from fault  # fmt: skip
            facts = facts_of_call(name, arguments, place, known=known, assessor=assessor)
            if matches(rule, facts, place) is not wanted:
                does = "does not match" if wanted else "matches"
                raise PolicyError(
                    rule.file, example_line(rule, text),
                    f"rule {rule.id} {does} its {key} example {text!r}{_why(rule, facts, place)}.",
                    next="Correct the rule or the example; `lorimer policy explain` shows what the "
                    "call touches.",
                )  # fmt: skip
    return number


def _why(rule: Rule, facts: CallFacts, place: Place) -> str:
    """What a rule that allows does not speak for in a call that it fits."""
    if not rule.decision.lifts or not rule.fits_call(facts, every=True):
        return ""
    missing = Coverage((rule,), facts, place).missing
    return f": it does not speak for {missing}" if missing else ""


def matches(rule: Rule, facts: CallFacts, place: Place) -> bool:
    """Whether `rule` alone is about this call: a rule that allows must cover all of it."""
    if rule.decision.lifts:
        return rule.fits_call(facts, every=True) and covers_all(rule, facts, place)
    return rule.fits_call(facts, every=False) and rule.meets_parts(facts, place) is True


def example_line(rule: Rule, text: str) -> int:
    """The line of an example in the rule's file, as well as it can be found."""
    try:
        with open(rule.file, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return rule.line
    forms = (text, text.replace("\\", "\\\\").replace('"', '\\"'))
    for number, line in enumerate(lines[rule.line - 1 :], rule.line):
        if any(form in line for form in forms):
            return number
    return rule.line


def default_place(workspace: str | os.PathLike[str]) -> Place:
    return Place(os.path.realpath(workspace), os.path.realpath(os.path.expanduser("~")))
