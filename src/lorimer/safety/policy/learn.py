"""Rules that people's approvals suggest. They are shown, never added."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.core.canonical import canonical_json
from lorimer.core.decisions import CallFacts, Verdict
from lorimer.core.effects import Access
from lorimer.safety.policy.coverage import LIFTED_BY_MATCH
from lorimer.safety.policy.examples import KnownTool, facts_of_call, matches
from lorimer.safety.policy.faults import PolicyError
from lorimer.safety.policy.layers import LayeredPolicy
from lorimer.safety.policy.load import parse_layer
from lorimer.safety.policy.patterns import escape
from lorimer.safety.policy.suggest import command_pattern, to_toml

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """One call that a person answered for."""

    tool: str
    arguments: Mapping[str, Any]
    approved: bool
    by: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule that would have spared questions.

    Attributes:
        toml: the rule, with examples from the approvals.
        approved: how many approved calls it would have allowed; `different` of them unlike.
        people: who approved them.
        sessions: in how many sessions.
    """

    toml: str
    tool: str
    approved: int
    different: int
    people: tuple[str, ...]
    sessions: int

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.toml, "tool": self.tool, "approved": self.approved,
            "different": self.different, "people": list(self.people), "sessions": self.sessions,
        }  # fmt: skip


def propose(
    evidence: Iterable[Evidence],
    policy: LayeredPolicy,
    *,
    known: Mapping[str, KnownTool],
    least: int = 3,
) -> list[Proposal]:
    """Rules that `least` or more approved calls suggest, most evidence first.

    A rule is proposed only when `policy` still asks for these calls, when it would allow no call
    that was rejected, and when it needs nothing but what a rule lifts by matching: what changes
    rights, runs later, reads secrets or is not known is approved one by one.
    """
    asked: list[tuple[Evidence, CallFacts]] = []
    rejected: list[CallFacts] = []
    for one in evidence:
        facts = facts_of_call(one.tool, one.arguments, policy.place, known=known)
        if not one.approved:
            rejected.append(facts)
        elif policy.decide(facts).verdict is Verdict.ASK and _may_be_ruled(facts):
            asked.append((one, facts))
    groups: dict[tuple[Any, ...], list[tuple[Evidence, CallFacts]]] = {}
    for item in asked:
        for key in _kinds(item[1], policy.place.workspace):
            groups.setdefault(key, []).append(item)
    found: list[Proposal] = []
    for key, items in groups.items():
        if len(items) >= least:
            proposal = _proposal(key, items, rejected, policy)
            if proposal is not None:
                found.append(proposal)
    return sorted(found, key=lambda p: (-p.approved, p.toml))


def _may_be_ruled(facts: CallFacts) -> bool:
    touches = facts.touches
    assert touches is not None
    return all(r.concern in LIFTED_BY_MATCH for r in touches.reasons)


def _kinds(facts: CallFacts, workspace: str) -> Iterable[tuple[Any, ...]]:
    """The kinds of call that this one is of; a group of one kind may become a rule."""
    touches = facts.touches
    assert touches is not None
    if facts.traits.command_argument:
        for command in touches.commands:
            words = command.words
            if None in words or not words:
                return
        for command in touches.commands:
            yield (facts.tool, "command", _stem(command.words))
        return
    written = [p for p in touches.paths if p.access is not Access.READ or not p.inside]
    if written:
        for path in written:
            yield (facts.tool, "folder", os.path.dirname(path.path))
        return
    for host in touches.hosts:
        yield (facts.tool, "host", host)
    if touches.hosts:
        return
    for name in facts.traits.sinks:
        if isinstance(facts.arguments.get(name), str):
            yield (facts.tool, "sink", name, facts.arguments[name])
    if not facts.traits.sinks:
        yield (facts.tool, "tool")


def _stem(words: Sequence[str | None]) -> tuple[str, ...]:
    """The words that say what kind of command it is: the program, and what follows it up to the
    first option or value."""
    known = [w for w in words if w is not None]
    stem = known[:1]
    for word in known[1:3]:
        if not word.replace("-", "").isalpha() or word.startswith("-"):
            break
        stem.append(word)
        if len(stem) == 2 and stem[0] not in _DEEP:
            break
    return tuple(stem)


_DEEP = ("docker", "kubectl", "gh", "aws", "gcloud", "npm", "pnpm", "yarn", "uv", "poetry", "cargo")
"""Programs whose second word only begins to say what they do."""


def _proposal(
    key: tuple[Any, ...],
    items: list[tuple[Evidence, CallFacts]],
    rejected: Sequence[CallFacts],
    policy: LayeredPolicy,
) -> Proposal | None:
    tool, kind, *rest = key
    rule: dict[str, Any] = {"tool": escape(tool)}
    different = {canonical_json(dict(e.arguments)): e for e, _ in items}
    if kind == "command":
        rule["command"] = _command(rest[0], items)
        if rule["command"] is None:
            return None
    elif kind == "folder":
        rule["paths"] = [_folder(rest[0], items, policy.place.workspace)]
    elif kind == "host":
        rule["hosts"] = [escape(rest[0])]
    elif kind == "sink":
        rule["arguments"] = {rest[0]: {"one_of": [rest[1]]}}
    examples = list(different.values())
    rule["decision"] = "allow"
    parsed = _parse(rule)
    alone = [e for e in examples if matches(parsed, _facts_of(e, items), policy.place)]
    covered = [(e, f) for e, f in items if e in alone or matches(parsed, f, policy.place)]
    if not covered or any(matches(parsed, f, policy.place) for f in rejected):
        return None
    rule["match"] = [written(e.tool, e.arguments) for e in alone[:_EXAMPLES]]
    text = to_toml(rule)
    return Proposal(
        text, tool, len(covered), len({canonical_json(dict(e.arguments)) for e, _ in covered}),
        tuple(sorted({e.by for e, _ in covered if e.by})), len({e.session for e, _ in covered}),
    )  # fmt: skip


def _facts_of(evidence: Evidence, items: list[tuple[Evidence, CallFacts]]) -> CallFacts:
    return next(f for e, f in items if e is evidence)


def _parse(rule: Mapping[str, Any]) -> Any:
    layer = parse_layer(to_toml(rule), name="user", file="proposal")
    if len(layer.rules) != 1:
        raise PolicyError(layer.file, 0, "the proposal is not one rule.")
    return layer.rules[0]


def _command(stem: tuple[str, ...], items: list[tuple[Evidence, CallFacts]]) -> list[str] | None:
    """Patterns for the commands of this kind: the exact one when it was always the same."""
    seen: dict[tuple[str | None, ...], None] = {}
    for _, facts in items:
        assert facts.touches is not None
        for command in facts.touches.commands:
            if _stem(command.words) == stem:
                seen[command.words] = None
    if len(seen) == 1:
        pattern = command_pattern(next(iter(seen)))
    else:
        pattern = command_pattern(stem, rest=True) if len(stem) > 1 else None
    if pattern is not None:
        return [pattern]
    exact = [command_pattern(words) for words in seen]
    return [p for p in exact if p is not None] if len(exact) <= 8 and None not in exact else None


def _folder(folder: str, items: list[tuple[Evidence, CallFacts]], workspace: str) -> str:
    """The pattern of the one file, or of the folder when there were several."""
    files = {
        p.path
        for _, facts in items
        for p in (facts.touches.paths if facts.touches is not None else ())
        if os.path.dirname(p.path) == folder
    }
    pattern = escape(files.pop()) if len(files) == 1 else f"{escape(folder)}/*"
    top = escape(workspace).rstrip("/") + "/"
    return pattern.removeprefix(top) if pattern != top else pattern


def written(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call as an example is written."""
    return f"{tool} {canonical_json(dict(arguments)).decode()}"
