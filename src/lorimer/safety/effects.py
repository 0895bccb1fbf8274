"""What a call would touch, worked out from its checked arguments before it is decided.

A tool's author declares which arguments are paths, hosts and shell text (`Traits`); here each of
them is resolved and looked at. What cannot be worked out is said as such, and asks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, Reason, SimpleCommand

UNASSESSED = "the whole call"
"""`Reason.where` of a call whose effects could not be worked out: it asks in every mode."""

_ORDER = (Effects.READ, Effects.WRITE, Effects.IRREVERSIBLE)
_MOST_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class CallAssessor:
    """The `Assessor` of a session.

    Attributes:
        readable: folders outside the roots whose reading is no concern (large results that the
            session itself keeps).
        readable_now: gives more such folders, those of the moment (skills).
        kept_by: gives those where a session, by its id, keeps its own large results.
        trusted_folder: whether git may obey the configuration of the workspace; `None`: when the
            person has trusted it (`lorimer trust`).
        home: the home folder that `~` stands for; the user's own when it is empty.
    """

    readable: tuple[str, ...] = ()
    trusted_folder: bool | None = None
    home: str = ""
    readable_now: Callable[[], Sequence[str]] | None = None
    kept_by: Callable[[str], Sequence[str]] | None = None

    def _folders(self, facts: CallFacts) -> tuple[str, ...]:
        more = () if self.readable_now is None else tuple(self.readable_now())
        kept = () if self.kept_by is None else tuple(self.kept_by(facts.session))
        return (*self.readable, *more, *kept)

    @property
    def _home(self) -> str:
        return self.home or os.path.expanduser("~")

    def assess(self, facts: CallFacts) -> CallEffects:
        """What the call would touch. Never raises: a fault of the assessment is itself a concern
        (`UNASSESSED`), which asks in every mode."""
        try:
            return self._assess(facts)
        except Exception as fault:  # noqa: BLE001 - whatever it was, the call asks
            return CallEffects(
                strictest_level(facts.effects, Effects.WRITE),
                reasons=(
                    Reason(
                        Concern.UNKNOWN,
                        f"what it would do could not be worked out ({type(fault).__name__}: "
                        f"{fault})",
                        UNASSESSED,
                    ),
                ),
            )

    def _assess(self, facts: CallFacts) -> CallEffects:
        traits, arguments = facts.traits, facts.arguments
        found = _Found(facts.effects)
        if traits.command_argument:
            self._command(facts, arguments.get(traits.command_argument), found)
        if traits.path_arguments:
            access = Access.READ if facts.effects is Effects.READ else Access.WRITE
            roots = [os.path.realpath(root) for root in facts.roots or (facts.cwd,)]
            readable = [os.path.realpath(folder) for folder in self._folders(facts)]
            for name in traits.path_arguments:
                for given in _texts(arguments.get(name), name, found):
                    self._path(facts, given, access, roots, readable, found)
        for name in traits.host_arguments:
            for given in _texts(arguments.get(name), name, found):
                _hosts(given, found)
        if traits.runs_code:
            found.because(Concern.RUNS_CODE, "it runs code that it is given", facts.tool)
        if _mentions_secret(arguments):
            _secrets(arguments, found)
        _look_for_own_files(facts, found)
        return found.effects()

    def _command(self, facts: CallFacts, text: Any, found: _Found) -> None:
        if text is None:
            return
        if not isinstance(text, str):
            found.because(
                Concern.UNKNOWN, f"the command is {type(text).__name__}, not text", repr(text)
            )
            return
        analysed = self._analysed(facts, text)
        found.level = analysed.level
        found.paths += analysed.paths
        found.reasons += analysed.reasons
        found.hosts.update(dict.fromkeys(analysed.hosts))
        found.commands += analysed.commands
        found.secrets.update(dict.fromkeys(analysed.secrets))

    def _analysed(self, facts: CallFacts, text: str) -> CallEffects:
        from lorimer.safety.shell import analyse

        roots, trusted = facts.roots or (facts.cwd,), self._is_trusted(facts, text)

        def look(text: str, roots: Sequence[str]) -> CallEffects:
            return analyse(
                text, cwd=facts.cwd, roots=roots, home=self._home, trusted_folder=trusted
            )

        kept = [folder for folder in self._folders(facts) if folder in text]
        if not kept:
            return look(text, roots)
        found = look(text, (*roots, *kept))
        in_kept = [p for p in found.paths if self._kept(p.path, facts)]
        if not all(p.access is Access.READ for p in in_kept):
            return look(text, roots)
        reasons = _without_secrets_of(in_kept, found.reasons)
        level = found.level
        if len(reasons) < len(found.reasons):  # the level as it is for a folder of the workspace
            for folder in kept:
                text = text.replace(folder, f"{roots[0]}/kept-results")
            level = look(text, roots).level
        return replace(found, level=level, reasons=reasons)

    def _is_trusted(self, facts: CallFacts, text: str) -> bool | Callable[[str], bool]:
        """Whether git may be believed: the root of the folder it works in is trusted. That no
        other repository begins below the root is looked at by the analysis."""
        if self.trusted_folder is not None or "git" not in text:
            return self.trusted_folder is True  # without git it makes no difference
        roots = [os.path.realpath(root) for root in facts.roots or (facts.cwd,)]
        known: dict[str, bool] = {}

        def trusted(folder: str) -> bool:
            root = next((r for r in roots if is_below(folder, r)), None)
            if root is None:
                return False
            if root not in known:
                known[root] = _trusts(root)
            return known[root]

        return trusted

    def _kept(self, path: str, facts: CallFacts) -> bool:
        return any(is_below(path, os.path.realpath(folder)) for folder in self._folders(facts))

    def _path(
        self, facts: CallFacts, given: str, access: Access, roots: Sequence[str],
        readable: Sequence[str], found: _Found,
    ) -> None:  # fmt: skip
        start = given
        if given.startswith("~") and not facts.traits.confined:
            start = os.path.expanduser(given)
        try:
            path = os.path.realpath(os.path.join(facts.cwd, start))
        except (OSError, ValueError) as fault:
            found.because(Concern.UNKNOWN, f"the path cannot be resolved: {fault}", given)
            return
        root = next((r for r in roots if is_below(path, r)), None)
        kept = access is Access.READ and any(is_below(path, r) for r in readable)
        found.paths.append(PathTouch(given, path, access, root is not None or kept))
        if kept:
            return
        look_at_path(given, path, access, root, self._home, found.because)


def _trusts(root: str) -> bool:
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust, FolderTrustError

    try:
        return FolderTrust(home()).is_trusted(Path(root)).state == "trusted"
    except FolderTrustError:
        return False


class _Found:
    """The effects of a call as they are collected."""

    def __init__(self, level: Effects) -> None:
        self.level = level
        self.paths: list[PathTouch] = []
        self.hosts: dict[str, None] = {}
        self.commands: list[SimpleCommand] = []
        self.secrets: dict[str, None] = {}
        self.reasons: list[Reason] = []

    def because(self, concern: Concern, text: str, where: str) -> None:
        reason = Reason(concern, text, where)
        if reason not in self.reasons:
            self.reasons.append(reason)

    def effects(self) -> CallEffects:
        level = self.level
        if any(r.concern not in _READERS for r in self.reasons) or self.hosts:
            level = strictest_level(level, Effects.WRITE)
        return CallEffects(
            level, tuple(self.paths), tuple(self.hosts), tuple(self.commands),
            tuple(self.secrets), tuple(self.reasons),
        )  # fmt: skip


_READERS = (Concern.OUTSIDE, Concern.SECRETS)
"""Concerns that a call which only reads can have."""


def look_at_path(
    given: str,
    path: str,
    access: Access,
    root: str | None,
    home: str,
    because: Callable[[Concern, str, str], None],
) -> None:
    """Say what is of concern about touching `path` (resolved); `root` is the one it lies in."""
    if root is None:
        verb = "reads" if access is Access.READ else "changes"
        because(Concern.OUTSIDE, f"it {verb} {given!r}, outside the workspace", given)
    if access is Access.READ:
        _look_for_secret(given, path, home, because)
        return
    from lorimer.safety import protected

    below = path if root is None else os.path.relpath(path, root)
    why = protected.reason([p for p in below.split("/") if p not in ("", ".")])
    if why is None and root is None:
        from lorimer.safety.shell import places

        if places.persistence(path, home) or places.system(path):
            why = "it belongs to the system, or programs obey it later"
    if why is not None:
        because(Concern.PERSISTENCE, f"{given!r} is protected: {why}", given)


def _look_for_secret(
    given: str, path: str, home: str, because: Callable[[Concern, str, str], None]
) -> None:
    from lorimer.safety import sensitive

    found = {sensitive.kind(path, home), sensitive.kind(given, home)}
    if found == {None}:
        return
    because(Concern.SECRETS, f"it reads {given!r}, which may hold secrets", given)
    if "forbidden" in found:
        because(Concern.FORBIDDEN, f"{given!r} holds secrets that no call has to read", given)


def _without_secrets_of(
    paths: Sequence[PathTouch], reasons: Sequence[Reason]
) -> tuple[Reason, ...]:
    """`reasons` but for those that one of `paths` may be a secret because of where it lies."""
    told = {f"it reads {path.given}, which may hold secrets" for path in paths}
    return tuple(r for r in reasons if r.concern is not Concern.SECRETS or r.text not in told)


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both absolute and resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def strictest_level(*levels: Effects) -> Effects:
    """The one that does most."""
    return max(levels, key=_ORDER.index)


def _texts(value: Any, name: str, found: _Found) -> Iterable[str]:
    """The texts of an argument that is one or a list of them; anything else is a concern."""
    if value is None:
        return
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, str):
            yield one
        elif one is not None:
            found.because(
                Concern.UNKNOWN, f"{name} holds {type(one).__name__}, not text", repr(one)
            )


def _hosts(given: str, found: _Found) -> None:
    from lorimer.safety.network.urls import hosts_of

    host = hosts_of(given)
    if host is None:
        found.because(Concern.UNKNOWN, f"the host of {given!r} cannot be told", given)
    else:
        found.hosts[host] = None
        found.because(Concern.NETWORK, f"it connects to {host}", given)


_OWN_FILES = ("policy.toml", "trusted.json", "skills.json")


def _look_for_own_files(facts: CallFacts, found: _Found) -> None:
    """No call changes what decides about calls: the policy, the trusted folders, the store. Where
    the home folder of lorimer holds the workspace, only its own files in it count."""
    written = [p for p in found.paths if p.access is not Access.READ]
    if not written:
        return
    from lorimer.core.home import home

    own = os.path.realpath(home())
    named = {os.path.join(own, name) for name in _OWN_FILES}
    around = any(is_below(os.path.realpath(r), own) for r in facts.roots or (facts.cwd,))
    for touch in written:
        if touch.path in named or (not around and is_below(touch.path, own)):
            found.because(
                Concern.FORBIDDEN, f"{touch.given!r} belongs to lorimer itself", touch.given
            )


def _mentions_secret(value: Any) -> bool:
    """Whether a text in `value` may hold a secret handle; cheap."""
    pending, seen = [value], 0
    while pending:
        one = pending.pop()
        seen += 1
        if seen > _MOST_VALUES:
            return True
        if isinstance(one, str):
            if "secret:" in one:
                return True
        elif isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
    return False


def _secrets(arguments: Any, found: _Found) -> None:
    from lorimer.safety.secrets.handles import handles_in

    for name in handles_in(arguments):
        found.secrets[name] = None
        found.because(Concern.SECRETS, f"it uses the secret {name}", f"secret:{name}")
