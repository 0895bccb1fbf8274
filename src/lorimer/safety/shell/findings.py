"""What an analysis collects: concerns, paths, hosts and commands, each once, in order."""

from __future__ import annotations

from lorimer.core.calls import Effects
from lorimer.core.effects import CallEffects, Concern, PathTouch, Reason, SimpleCommand

KEPT_MAX = 400

_RANK = {Effects.READ: 0, Effects.WRITE: 1, Effects.IRREVERSIBLE: 2}


class Findings:
    """Collects, drops doubles, and says when it had to stop keeping."""

    def __init__(self) -> None:
        self.level = Effects.READ
        self._reasons: dict[Reason, None] = {}
        self._paths: dict[PathTouch, None] = {}
        self._hosts: dict[str, None] = {}
        self._commands: list[SimpleCommand] = []
        self._full = False

    def raise_to(self, level: Effects) -> None:
        if _RANK[level] > _RANK[self.level]:
            self.level = level

    def reason(self, concern: Concern, text: str, where: str) -> None:
        """Note a concern; a level goes with it: nothing with a concern is a plain read."""
        found = Reason(concern, text, where)
        final = concern in (Concern.FORBIDDEN, Concern.PRIVILEGE)
        self.raise_to(Effects.IRREVERSIBLE if final else Effects.WRITE)
        if concern is Concern.SECRETS and self.level is Effects.READ:
            self.raise_to(Effects.WRITE)
        if concern is Concern.FORBIDDEN or self._room(len(self._reasons)):
            self._reasons.setdefault(found)

    def path(self, touch: PathTouch) -> None:
        if touch not in self._paths and self._room(len(self._paths)):
            self._paths[touch] = None

    def host(self, name: str) -> None:
        if self._room(len(self._hosts)):
            self._hosts.setdefault(name.lower())

    def command(self, command: SimpleCommand) -> None:
        if self._room(len(self._commands)):
            self._commands.append(command)

    def has(self, concern: Concern) -> bool:
        return any(r.concern is concern for r in self._reasons)

    def effects(self) -> CallEffects:
        if self._full:
            text = f"it touches more than {KEPT_MAX} things; not all of them are listed"
            self._reasons.setdefault(Reason(Concern.UNKNOWN, text))
            self.raise_to(Effects.WRITE)
        return CallEffects(
            level=self.level,
            paths=tuple(self._paths),
            hosts=tuple(self._hosts),
            commands=tuple(self._commands),
            reasons=tuple(self._reasons),
        )

    def _room(self, count: int) -> bool:
        self._full = self._full or count >= KEPT_MAX
        return count < KEPT_MAX
