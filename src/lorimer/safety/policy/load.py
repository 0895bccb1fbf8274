"""From TOML to rules. Whatever is not understood stops here, with the file and the line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.effects import Access, Concern
from lorimer.core.errors import ConfigError
from lorimer.safety.injection.settings import InjectionSettings
from lorimer.safety.policy.faults import PolicyError, near
from lorimer.safety.policy.lines import Key, find_line, key_lines
from lorimer.safety.policy.modes import MODES
from lorimer.safety.policy.patterns import HostTexts
from lorimer.safety.policy.rules import Rule, Ruling
from lorimer.safety.policy.values import Values

LAYERS = ("built-in", "organisation", "user", "project", "session")
"""From the top down."""

SETTINGS = ("delegate", "modes", "injection", "rule")
INJECTION_LAYERS = ("organisation", "user")
"""Which may say how strict the guard against injected text is; the uppermost that does decides."""
CONDITIONS = (
    "tool",
    "group",
    "server",
    "command",
    "arguments",
    "other_arguments",
    "paths",
    "access",
    "hosts",
    "secrets",
    "effects",
    "concerns",
    "roles",
    "not_roles",
    "principals",
    "tainted",
    "taint",
)
KEYS = ("id", "decision", *CONDITIONS, "reason", "next", "match", "not_match")
_NOT_READING = frozenset(Concern) - {Concern.OUTSIDE, Concern.SECRETS, Concern.FORBIDDEN}


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer as it was read.

    Attributes:
        delegate: the lower layers whose allowing rules count; `None` leaves that as it is.
        modes: the modes that may be used; `None`: all.
        injection: how strict the guard against injected text is; `None`: not said.
        digest: of the text.
    """

    name: str
    file: str = ""
    rules: tuple[Rule, ...] = ()
    delegate: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    digest: str = ""
    lines: Mapping[str, int] | None = None
    injection: InjectionSettings | None = None


def parse_layer(text: str, *, name: str, file: str, whole_file: bool = True) -> Layer:
    """The layer `name` from the TOML `text` of `file`.

    Args:
        whole_file: whether other tables than `[policy]` are faults; not so in a `lorimer.toml`.

    Raises:
        PolicyError: for whatever is not understood or contradicts itself.
    """
    import tomllib

    try:
        parsed = tomllib.loads(text)
    except ValueError as fault:
        found = re.search(r"at line (\d+)", str(fault))
        line = int(found[1]) if found else text.count("\n") + 1
        raise PolicyError(file, line, f"this is not TOML: {fault}.") from fault
    except RecursionError as fault:
        raise PolicyError(file, 0, "this is nested too deep.") from fault
    return _Reader(file, name, key_lines(text)).layer(parsed, text, whole_file=whole_file)


class _Reader(Values):
    """Reads one file; knows where everything stands."""

    def layer(self, parsed: Mapping[str, Any], text: str, *, whole_file: bool) -> Layer:
        for key in parsed:
            if key != "policy" and whole_file:
                raise self.fault(
                    (key,),
                    f"there is no table or key {key!r} in a policy.",
                    "Put settings into [policy] and rules into [[policy.rule]].",
                )
        policy = parsed.get("policy", {})
        if not isinstance(policy, dict):
            raise self.fault(("policy",), "policy is no table.", "Write [policy].")
        for key in policy:
            if key not in SETTINGS:
                raise self.fault(
                    ("policy", key), f"[policy] has no key {key!r}.", near(key, SETTINGS)
                )
        below = LAYERS[LAYERS.index(self.layer_name) + 1 :]
        delegate = self.words(("policy", "delegate"), policy.get("delegate"), below)
        modes = self.modes(("policy", "modes"), policy.get("modes"))
        given = policy.get("rule", [])
        if not isinstance(given, list) or not all(isinstance(r, dict) for r in given):
            raise self.fault(
                ("policy", "rule"),
                "rule is no list of tables.",
                "Begin each rule with [[policy.rule]].",
            )
        rules = [self.rule(number, one) for number, one in enumerate(given)]
        self.contradictions(rules, given)
        kept = {
            key: find_line(self.lines, ("policy", key))
            for key in ("delegate", "modes")
            if key in policy
        }
        return Layer(
            self.layer_name,
            self.file,
            tuple(rules),
            delegate,
            modes,
            digest(canonical_json(_plain(policy))),
            kept,
            self.injection(policy.get("injection")),
        )

    def modes(self, at: Key, given: Any) -> tuple[str, ...] | None:
        """The modes that may be used. Below the organisation only the laxest can be taken away: a
        stranger's folder must not make anybody choose a laxer one."""
        modes = self.words(at, given, MODES)
        if modes == ():
            raise self.fault(
                at,
                "modes is empty: nothing could run.",
                f"Name at least one of: {', '.join(MODES)}.",
            )
        if modes is None or self.layer_name == "organisation":
            return modes
        wanted = MODES[: max(map(MODES.index, modes)) + 1]
        missing = [mode for mode in wanted if mode not in modes]
        if missing:
            raise self.fault(
                at,
                f"modes takes away {', '.join(missing)} and leaves {wanted[-1]}, which is less "
                f"strict: a layer {self.layer_name!r} can only make things stricter.",
                f"Write modes = {list(wanted)!r}, or fewer from its end.".replace("'", '"'),
            )
        return modes

    def injection(self, given: Any) -> InjectionSettings | None:
        if given is None:
            return None
        at: Key = ("policy", "injection")
        if self.layer_name not in INJECTION_LAYERS:
            raise self.fault(
                at, f"a layer {self.layer_name!r} has no say in [policy.injection].",
                f"Put it into a policy of: {', '.join(INJECTION_LAYERS)}.",
            )  # fmt: skip
        if not isinstance(given, dict):
            raise self.fault(at, "injection is no table.", "Write [policy.injection].")
        try:
            return InjectionSettings.read(given, "[policy.injection]")
        except ConfigError as fault:
            raise self.fault(at, fault.message, fault.next) from fault

    # --- one rule ---

    def rule(self, number: int, given: Mapping[str, Any]) -> Rule:
        at: Key = ("policy", "rule", number)
        for key in given:
            if key not in KEYS:
                raise self.fault((*at, key), f"a rule has no key {key!r}.", near(key, KEYS))
        if "decision" not in given:
            raise self.fault(
                at, "this rule has no decision.", f"Add decision = one of: {', '.join(Ruling)}."
            )
        decision = self.one_of((*at, "decision"), given["decision"], Ruling)
        rule = Rule(
            id=self.text((*at, "id"), given.get("id")) or str(number + 1),
            decision=decision,
            layer=self.layer_name,
            file=self.file,
            line=find_line(self.lines, at),
            reason=self.text((*at, "reason"), given.get("reason")),
            next=self.text((*at, "next"), given.get("next")),
            tool=self.globs((*at, "tool"), given.get("tool")),
            group=self.globs((*at, "group"), given.get("group")),
            server=self.globs((*at, "server"), given.get("server")),
            command=self.commands((*at, "command"), given.get("command")),
            arguments=self.arguments((*at, "arguments"), given.get("arguments")),
            other_arguments=self.flag((*at, "other_arguments"), given.get("other_arguments")),
            paths=self.paths((*at, "paths"), given.get("paths")),
            access=self.enums((*at, "access"), given.get("access"), Access),
            hosts=self.made((*at, "hosts"), given.get("hosts"), HostTexts.of),
            secrets=self.globs((*at, "secrets"), given.get("secrets")),
            effects=self.enums((*at, "effects"), given.get("effects"), Effects),
            concerns=self.enums((*at, "concerns"), given.get("concerns"), Concern),
            roles=self.globs((*at, "roles"), given.get("roles")),
            not_roles=self.globs((*at, "not_roles"), given.get("not_roles")),
            principals=self.globs((*at, "principals"), given.get("principals")),
            tainted=self.flag((*at, "tainted"), given.get("tainted")),
            taint=self.globs((*at, "taint"), given.get("taint")),
            match=self.texts((*at, "match"), given.get("match"), empty=True) or (),
            not_match=self.texts((*at, "not_match"), given.get("not_match"), empty=True) or (),
        )
        self.sense(at, rule, given)
        return rule

    def sense(self, at: Key, rule: Rule, given: Mapping[str, Any]) -> None:
        """Refuse a rule that can never match, or says more than anyone means."""
        if not any(key in given for key in CONDITIONS):
            raise self.fault(
                at,
                "this rule has no condition: it would match every call.",
                'Say so with tool = "*", or add a condition.',
            )
        if rule.decision.lifts:
            if rule.tool is None and rule.group is None and rule.server is None:
                raise self.fault(
                    at,
                    f"a rule that says {rule.decision} must say for which tools.",
                    "Add tool, group or server.",
                )
            if rule.access is not None and rule.paths is None:
                raise self.fault(
                    (*at, "access"),
                    f"a rule that says {rule.decision} needs paths beside access.",
                    'Add paths, e.g. paths = "docs/**".',
                )
            if rule.concerns is not None and Concern.FORBIDDEN in rule.concerns:
                raise self.fault(
                    (*at, "concerns"),
                    "what is forbidden cannot be allowed.",
                    "Take forbidden out of concerns.",
                )
        reads = rule.effects == frozenset({Effects.READ})
        if reads and rule.concerns is not None and rule.concerns <= _NOT_READING:
            raise self.fault(
                (*at, "effects"),
                "this rule can never match: a call that only reads has none of these concerns.",
                "Change effects or concerns.",
            )
        if rule.tainted is False and rule.taint is not None:
            raise self.fault(
                (*at, "tainted"),
                "this rule can never match: tainted = false, and taint names sources.",
                "Remove one of them.",
            )

    def contradictions(self, rules: list[Rule], given: list[Mapping[str, Any]]) -> None:
        seen: dict[bytes, Rule] = {}
        ids: dict[str, Rule] = {}
        for rule, one in zip(rules, given, strict=True):
            if (other := ids.setdefault(rule.id, rule)) is not rule:
                raise PolicyError(
                    self.file,
                    rule.line,
                    f"the id {rule.id!r} is used on line {other.line} already.",
                    next="Give each rule its own.",
                )
            same = canonical_json(_plain({k: one[k] for k in CONDITIONS if k in one}, sort=True))
            other = seen.setdefault(same, rule)
            if other.decision is not rule.decision:
                raise PolicyError(
                    self.file,
                    rule.line,
                    f"this rule says {rule.decision}, and the rule on line {other.line} with the "
                    f"same conditions says {other.decision}.",
                    next="Keep one of them.",
                )


def _plain(value: Any, *, sort: bool = False) -> Any:
    """`value` of TOML as JSON; with `sort` one text and a list of it are the same, in any order."""
    if isinstance(value, dict):
        return {k: _plain(v, sort=sort) for k, v in value.items()}
    if isinstance(value, list):
        items = [_plain(v, sort=sort and not isinstance(v, str)) for v in value]
        return sorted(items, key=repr) if sort else items
    if sort and isinstance(value, str):
        return [value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str | int | float | bool) else str(value)
