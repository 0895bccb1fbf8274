"""What rules that allow come to for one call.

Such a rule speaks for parts of a call: the commands, paths and hosts that its patterns match, or,
without such patterns, for the whole call. A question of the mode is lifted when every part of the
call is spoken for, and the part that the question is about by a rule that may lift that concern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from lorimer.core.decisions import CallFacts
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, Reason, SimpleCommand
from lorimer.safety.effects import UNASSESSED
from lorimer.safety.policy.patterns import HARMLESS_WRAPPERS
from lorimer.safety.policy.rules import Place, Rule

LIFTED_BY_MATCH = frozenset(
    {Concern.RUNS_CODE, Concern.NETWORK, Concern.DESTRUCTIVE, Concern.OUTSIDE}
)
"""Concerns that a rule without `concerns` lifts. The others must be named; `forbidden` is never
lifted."""

T = TypeVar("T")


def liftable(rule: Rule) -> frozenset[Concern]:
    """The concerns that `rule` may lift."""
    return LIFTED_BY_MATCH if rule.concerns is None else rule.concerns


class Coverage:
    """What `rules`, which fit the call as a whole, speak for in it."""

    def __init__(self, rules: Sequence[Rule], facts: CallFacts, place: Place) -> None:
        assert facts.touches is not None
        self.facts = facts
        self.touches: CallEffects = facts.touches
        self.place = place
        self.rules = [r for r in rules if r.has_its_parts(self.touches, place)]

    @cached_property
    def whole(self) -> Rule | None:
        """A rule that speaks for the whole call."""
        return next((r for r in self.rules if r.speaks_for_whole(self.facts)), None)

    @cached_property
    def missing(self) -> str:
        """The first part that no rule speaks for; empty when every part is spoken for."""
        if self.whole is not None:
            return ""
        touches = self.touches
        paths = [p for p in touches.paths if self.needs_rule(p)]
        if not (touches.commands or paths or touches.hosts):
            return "the whole call"
        for at, command in enumerate(touches.commands):
            if self._command(at, self.rules) is None:
                return f"the command {command.text!r}"
        for path in paths:
            if not self._path(path):
                return f"the path {path.path!r} ({path.access})"
        for host in touches.hosts:
            if not (any(r.covers_host(host) for r in self.rules) or self._by_commands("hosts")):
                return f"the host {host!r}"
        return ""

    @property
    def complete(self) -> bool:
        return not self.missing

    def speaker(self) -> Rule | None:
        """A rule to name when the whole call is covered."""
        if self.whole is not None:
            return self.whole
        touches = self.touches
        for rule in self.rules:
            if (
                any(map(rule.covers_command, touches.commands))
                or any(rule.covers_path(p, self.place) for p in touches.paths)
                or any(map(rule.covers_host, touches.hosts))
            ):
                return rule
        return None

    def lifts(self, reason: Reason) -> Rule | None:
        """The rule that lifts a question about `reason`; `None` when none does."""
        concern = reason.concern
        if concern is Concern.FORBIDDEN or reason.where == UNASSESSED:
            return None
        able = [r for r in self.rules if concern in liftable(r)]
        for rule in able:
            if not rule.has_parts and rule.concerns is not None:
                return rule
        if concern is Concern.SECRETS and reason.where.startswith("secret:"):
            name = reason.where.removeprefix("secret:")
            for rule in self.rules:
                if rule.secrets is not None and rule.secrets.match(name):
                    return rule
        if not able or not self.complete:
            return None
        return self._speaks_for(reason, able)

    def _speaks_for(self, reason: Reason, able: Sequence[Rule]) -> Rule | None:
        touches = self.touches
        if self.whole is not None and self.whole in able:
            return self.whole
        if reason.concern is Concern.OUTSIDE:
            outside = [p for p in touches.paths if not p.inside]
            about = [p for p in outside if reason.where in (p.given, p.path)] or outside
            return self._each(about, able, lambda r, p: r.covers_path(p, self.place))
        places = _at(reason.where, touches.commands)
        if places:
            literal = reason.concern is Concern.DESTRUCTIVE
            if literal:  # an open pattern may mean more than it seems to: `find *`, `sort *`
                named = [r for r in able if r.concerns is not None]
                found = self._all_commands(places, named)
                return found or self._all_commands(places, able, literal=True)
            return self._all_commands(places, able)
        paths = [p for p in touches.paths if reason.where in (p.given, p.path)]
        if paths:
            return self._each(paths, able, lambda r, p: r.covers_path(p, self.place))
        if touches.hosts:
            return self._each(touches.hosts, able, lambda r, h: r.covers_host(h))
        return None

    @staticmethod
    def needs_rule(path: PathTouch) -> bool:
        """Whether a path must be spoken for: reading is a question only where it is a concern."""
        return path.access is not Access.READ

    def _path(self, path: PathTouch) -> bool:
        if any(r.covers_path(path, self.place) for r in self.rules):
            return True
        return path.inside and self._by_commands("paths", path.given)

    def _by_commands(self, part: str, given: str = "") -> bool:
        """Whether the commands that are spoken for account for a path or for the hosts: it stands
        in the words of one of them, so not where the text redirects output."""
        text = self.facts.arguments.get(self.facts.traits.command_argument)
        if not self.touches.commands or not isinstance(text, str):
            return False
        rules = [r for r in self.rules if getattr(r, part) is None]
        if any(self._command(at, rules) is None for at in range(len(self.touches.commands))):
            return False
        if part == "hosts":
            return True
        return ">" not in text and any(
            given in word or given.startswith(f"{word.rstrip('/')}/")
            for command in self.touches.commands
            if any(r.covers_command(command) for r in rules)
            for word in command.words
            if word is not None
        )

    # --- commands, in their wrappers ---

    def _command(self, at: int, rules: Sequence[Rule], *, literal: bool = False) -> Rule | None:
        """The rule that speaks for command number `at`: by its own words, by those of a command
        around it, or, for a harmless wrapper, by those of all commands inside it."""
        commands = self.touches.commands
        found = self._in_full(at, rules, literal)
        if found is not None:
            return found
        inner = [i for i, p in enumerate(self._parents) if p == at]
        if not inner or not all(_is_harmless(commands[i].via[-1]) for i in inner):
            return None
        return self._all_commands(inner, rules, literal=literal)

    def _in_full(self, at: int, rules: Sequence[Rule], literal: bool) -> Rule | None:
        command, parent = self.touches.commands[at], self._parents[at]
        if parent is not None:
            found = self._in_full(parent, rules, literal)
            if found is not None:
                return found
        if not all(map(_is_harmless, command.via)):
            return None
        return next((r for r in rules if r.covers_command(command, literal=literal)), None)

    def _all_commands(
        self, places: Sequence[int], rules: Sequence[Rule], *, literal: bool = False
    ) -> Rule | None:
        """A rule, when each of these commands is spoken for by some rule."""
        found = [self._command(at, rules, literal=literal) for at in places]
        return None if None in found or not found else found[0]

    @cached_property
    def _parents(self) -> list[int | None]:
        """For each command, the one around it: the nearest before it that is wrapped once less."""
        out: list[int | None] = []
        commands = self.touches.commands
        for at, command in enumerate(commands):
            outer = command.via[:-1]
            around = (i for i in range(at - 1, -1, -1) if commands[i].via == outer)
            out.append(next(around, None) if command.via else None)
        return out

    @staticmethod
    def _each(
        parts: Sequence[T], rules: Sequence[Rule], test: Callable[[Rule, T], bool]
    ) -> Rule | None:
        """A rule, when each part passes `test` with some rule."""
        found: Rule | None = None
        for part in parts:
            rule = next((r for r in rules if test(r, part)), None)
            if rule is None:
                return None
            found = found or rule
        return found


def _at(where: str, commands: Sequence[SimpleCommand]) -> list[int]:
    """The numbers of the commands that `where` is about: all, when it does not say."""
    exact = [i for i, c in enumerate(commands) if where and c.text == where]
    near = [i for i, c in enumerate(commands)
            if where and c.text and (where in c.text or c.text in where)]  # fmt: skip
    return exact or near or list(range(len(commands)))


def _is_harmless(wrapper: str) -> bool:
    return wrapper in HARMLESS_WRAPPERS or wrapper.split(" ", 1)[0].rsplit("/", 1)[-1] in _ALONE


_ALONE = frozenset(name for name in HARMLESS_WRAPPERS if " " not in name)


def covers_all(rule: Rule, facts: CallFacts, place: Place) -> bool:
    """Whether `rule` by itself speaks for the whole call."""
    coverage = Coverage((rule,), facts, place)
    if rule.concerns is not None and not rule.has_parts:
        reasons = coverage.touches.reasons
        return bool(reasons) and all(r.concern in rule.concerns for r in reasons)
    others = (rule.command, rule.paths, rule.hosts)
    if rule.secrets is not None and all(part is None for part in others):
        return bool(coverage.touches.secrets) and all(
            map(rule.secrets.match, coverage.touches.secrets)
        )
    return coverage.complete
