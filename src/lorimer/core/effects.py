"""What one call would touch, as data: policy, review, approvals and audit all rest on it.

Worked out before the call is decided (`lorimer.safety.effects`), from the checked arguments only:
never from the model's prose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lorimer.core.calls import Effects


class Access(StrEnum):
    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class Concern(StrEnum):
    """Why a call may need a person. A mode maps each to allow, ask or deny.

    `RUNS_CODE`: runs code of the workspace (`make`, `npm test`, inline Python): contained by the
    sandbox, but what it does is not known. `OUTSIDE`: touches paths outside the session's roots.
    `PERSISTENCE`: changes what runs later (start-up files, cron, hooks). `UNKNOWN`: something in it
    cannot be resolved. `FORBIDDEN`: refused in every mode, whatever the intent.
    """

    RUNS_CODE = "runs_code"
    NETWORK = "network"
    DESTRUCTIVE = "destructive"
    PRIVILEGE = "privilege"
    PERSISTENCE = "persistence"
    SECRETS = "secrets"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class Reason:
    """One concern: what about which part of the call (`where`: the command or value itself)."""

    concern: Concern
    text: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class PathTouch:
    """A path that the call would touch.

    Attributes:
        given: as it was written.
        path: absolute, with symlinks and `..` resolved as far as the path exists.
        inside: whether it lies in a root of the session.
    """

    given: str
    path: str
    access: Access
    inside: bool


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command of a shell text, out of its wrappers (`env`, `xargs`, `sh -c`, …).

    `words` are the resolved words; a word that cannot be known before it runs is `None`. `text` is
    the command as it stands in the source. `via` are the wrappers around it, outermost first.
    """

    words: tuple[str | None, ...]
    text: str
    via: tuple[str, ...] = ()

    @property
    def program(self) -> str | None:
        return self.words[0] if self.words else None


@dataclass(frozen=True, slots=True)
class CallEffects:
    """What a call would do.

    Attributes:
        level: as a whole: `read` only if nothing in it writes, runs code, connects or is unknown.
        secrets: names of the secret handles it uses.
        hosts: `host` or `host:port` that it would connect to, lower case.
    """

    level: Effects
    paths: tuple[PathTouch, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[SimpleCommand, ...] = ()
    secrets: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()

    def has(self, *concerns: Concern) -> bool:
        return any(reason.concern in concerns for reason in self.reasons)

    def to_json(self) -> dict[str, Any]:
        """For the record and for people; keys that are empty are left out."""
        out: dict[str, Any] = {"level": str(self.level)}
        for access in Access:
            found = [p.path for p in self.paths if p.access is access]
            if found:
                out[f"{access}s" if access is not Access.DELETE else "deletes"] = found
        if self.hosts:
            out["hosts"] = list(self.hosts)
        if self.commands:
            out["commands"] = [c.text for c in self.commands]
        if self.secrets:
            out["secrets"] = list(self.secrets)
        if self.reasons:
            out["reasons"] = [
                {"concern": str(r.concern), "text": r.text, "where": r.where} for r in self.reasons
            ]
        return out
