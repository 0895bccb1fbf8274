"""One rule: what it is about, and whether a call is that.

A rule that restricts (`ask`, `deny`, `review`) is met when every condition it has is met by some
part of the call: one of the commands, one of the paths, one of the hosts. A rule that allows covers
parts of the call, and only a call whose every part is covered is allowed
(`lorimer.safety.policy.coverage`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Verdict
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, SimpleCommand
from lorimer.safety.policy.patterns import CommandGlob, HostTexts, PathGlob, Texts


class Ruling(StrEnum):
    """What a rule decides. `REVIEW`: asked, but a reviewer model's approval is enough."""

    ALLOW = "allow"
    REVIEW = "review"
    ASK = "ask"
    DENY = "deny"

    @property
    def verdict(self) -> Verdict:
        return Verdict.ASK if self is Ruling.REVIEW else Verdict(self.value)

    @property
    def lifts(self) -> bool:
        return self in (Ruling.ALLOW, Ruling.REVIEW)


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What the value of an argument must be: all that is given must hold.

    `own`: whether it must be the session's principal (`True`) or must not be (`False`).
    """

    glob: Texts | None = None
    regex: re.Pattern[str] | None = None
    least: float | None = None
    most: float | None = None
    one_of: tuple[Any, ...] | None = None
    own: bool | None = None

    def holds(self, value: Any, principal: str, *, every: bool) -> bool:
        """Whether `value` passes; of a list every element, or one, must."""
        if isinstance(value, list | tuple):
            if any(_same(list(value), one) for one in self.one_of or () if isinstance(one, list)):
                return True  # the whole list is named
            found = [self._one(v, principal) for v in value]
            return bool(found) and (all(found) if every else any(found))
        return self._one(value, principal)

    def _one(self, value: Any, principal: str) -> bool:
        if self.one_of is not None and not any(_same(value, one) for one in self.one_of):
            return False
        if self.own is not None and (value == principal) is not self.own:
            return False
        if self.least is not None or self.most is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            if self.least is not None and not value >= self.least:
                return False
            if self.most is not None and not value <= self.most:
                return False
        if self.glob is None and self.regex is None:
            return True
        text = _as_text(value)
        if text is None or (self.glob is not None and not self.glob.match(text)):
            return False
        return self.regex is None or self.regex.fullmatch(text) is not None


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b) and isinstance(a, bool) is isinstance(b, bool)


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where relative patterns start."""

    workspace: str
    home: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a layer. A condition that is `None` holds for every call; `session` is the only
    session it holds in, where it is not empty. `other_arguments` `False`: the call has no arguments
    but those that `arguments` names; `True`: it has some."""

    id: str
    decision: Ruling
    layer: str = ""
    file: str = ""
    line: int = 0
    reason: str = ""
    next: str = ""
    tool: Texts | None = None
    group: Texts | None = None
    server: Texts | None = None
    command: tuple[CommandGlob, ...] | None = None
    arguments: Mapping[str, ArgumentTest] | None = None
    paths: tuple[PathGlob, ...] | None = None
    access: frozenset[Access] | None = None
    hosts: HostTexts | None = None
    secrets: Texts | None = None
    effects: frozenset[Effects] | None = None
    concerns: frozenset[Concern] | None = None
    roles: Texts | None = None
    not_roles: Texts | None = None
    principals: Texts | None = None
    tainted: bool | None = None
    taint: Texts | None = None
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    session: str = ""
    other_arguments: bool | None = None

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.file else self.layer

    @property
    def label(self) -> str:
        """What a decision calls it."""
        return f"{self.layer} rule {self.id}"

    def fits(self, facts: CallFacts, *, every: bool) -> bool:
        """Whether the conditions hold that are about the call as a whole. `every`: of a list in the
        arguments every element must fit, as for rules that allow."""
        return self.fits_call(facts, every=every) and self.fits_session(facts)

    def fits_call(self, facts: CallFacts, *, every: bool) -> bool:
        """Tool, level and arguments."""
        if self.tool is not None and not self.tool.match(facts.tool):
            return False
        if self.group is not None and not self.group.match(facts.group):
            return False
        if self.server is not None and not self.server.match(facts.traits.server):
            return False
        if self.effects is not None and facts.level not in self.effects:
            return False
        if self.other_arguments is not None:
            others = any(name not in (self.arguments or ()) for name in facts.arguments)
            if others is not self.other_arguments:
                return False
        if self.arguments is None:
            return True
        return all(
            (found := _argument(facts.arguments, name)) is not _MISSING
            and test.holds(found, facts.principal, every=every)
            for name, test in self.arguments.items()
        )

    def fits_session(self, facts: CallFacts) -> bool:
        """Who it is for, and what the session has read. Never from arguments."""
        if self.session and self.session != facts.session:
            return False
        if self.roles is not None and not any(map(self.roles.match, facts.roles)):
            return False
        if self.not_roles is not None and any(map(self.not_roles.match, facts.roles)):
            return False
        if self.principals is not None and not self.principals.match(facts.principal):
            return False
        sources = facts.conversation.tainted_by if self._about_taint else ()
        if self.tainted is not None and bool(sources) is not self.tainted:
            return False
        return self.taint is None or any(map(self.taint.match, sources))

    @property
    def _about_taint(self) -> bool:
        return self.tainted is not None or self.taint is not None

    @property
    def has_parts(self) -> bool:
        """Whether it is about commands, paths, hosts or secrets of a call."""
        return any(p is not None for p in (self.command, self.paths, self.hosts, self.secrets))

    # --- rules that restrict ---

    def meets_parts(self, facts: CallFacts, place: Place) -> bool | None:
        """Whether each condition on parts is met by some part; `None`: perhaps, it depends on a
        word of a command that is not known."""
        touches = facts.touches
        assert touches is not None
        answer: bool | None = True
        if self.command is not None:
            met = [g.meets(c) for g in self.command for c in touches.commands]
            if True not in met:
                if None not in met:
                    return False
                answer = None
        if self.paths is not None:
            if not any(self._path_met(touch, place) for touch in touches.paths):
                return False
        elif self.access is not None and not any(t.access in self.access for t in touches.paths):
            return False
        if self.hosts is not None and not any(map(self.hosts.may_match, touches.hosts)):
            return False
        if self.secrets is not None and not any(map(self.secrets.match, touches.secrets)):
            return False
        if self.concerns is not None and not touches.has(*self.concerns):
            return False
        return answer

    def _path_met(self, touch: PathTouch, place: Place) -> bool:
        assert self.paths is not None
        if self.access is not None and touch.access not in self.access:
            return False
        deletes = touch.access is Access.DELETE
        return any(
            glob.match(touch.path, place.workspace, place.home)
            or (deletes and glob.lies_below(touch.path, place.workspace, place.home))
            for glob in self.paths
        )

    # --- rules that allow ---

    def speaks_for_whole(self, facts: CallFacts) -> bool:
        """Whether it speaks for a call as a whole. Not when it tests the text of a path, host or
        command: what such a text means is said by `paths`, `hosts` and `command` only."""
        if self.has_parts or self.concerns is not None:
            return False
        traits = facts.traits
        meant = (*traits.path_arguments, *traits.host_arguments, traits.command_argument)
        return not any(name in meant for name in self.arguments or ())

    def has_its_parts(self, touches: CallEffects, place: Place) -> bool:
        """Whether the call has something of every kind of part that it is about."""
        return (
            (self.command is None or any(map(self.covers_command, touches.commands)))
            and (self.paths is None or any(self.covers_path(p, place) for p in touches.paths))
            and (self.hosts is None or any(map(self.covers_host, touches.hosts)))
            and (self.secrets is None or any(map(self.secrets.match, touches.secrets)))
        )

    def covers_command(self, command: SimpleCommand, *, literal: bool = False) -> bool:
        """Whether it speaks for a command of these words; with `literal` by patterns that can only
        mean this one, or by the paths it is bound to."""
        return self.command is not None and any(
            (glob.literal or not literal or self.paths is not None) and glob.covers(command)
            for glob in self.command
        )

    def covers_path(self, touch: PathTouch, place: Place) -> bool:
        if self.paths is None or (self.access is not None and touch.access not in self.access):
            return False
        return any(g.match(touch.path, place.workspace, place.home) for g in self.paths)

    def covers_host(self, host: str) -> bool:
        return self.hosts is not None and self.hosts.match(host)


class _Missing:
    __slots__ = ()


_MISSING = _Missing()


def _argument(arguments: Mapping[str, Any], name: str) -> Any:
    """The argument `name`; with dots, a member of an object in it."""
    if name in arguments:
        return arguments[name]
    found: Any = arguments
    for step in name.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return _MISSING
        found = found[step]
    return found
