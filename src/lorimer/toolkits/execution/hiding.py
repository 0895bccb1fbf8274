"""Which secret files the programs of a session are not shown, and what is said of it."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from lorimer.core.effects import Access, CallEffects, Concern
from lorimer.core.home import home
from lorimer.safety import sensitive
from lorimer.safety.sandbox import hidden
from lorimer.safety.sandbox.choose import Level
from lorimer.tools.tool import ToolContext

_KEY = "hidden files"
_LISTED = 8
_DENIED = ("permission denied", "permissionerror", "eacces")


class _Told:
    """What the session was told to be hidden."""

    def __init__(self) -> None:
        self.paths: tuple[Path, ...] = ()

    async def close(self) -> None:
        """There is nothing to end."""


@dataclass(frozen=True, slots=True)
class Hiding:
    """The hidden files of one run.

    Attributes:
        paths: for `SandboxSpec.hidden`; empty where they cannot be hidden.
    """

    workspace: Path
    level: Level
    found: hidden.Hidden

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.found.paths if self._works else ()

    @property
    def _works(self) -> bool:
        return self.level == "os" and sys.platform.startswith("linux")

    def notes(self, context: ToolContext, output: str) -> list[str]:
        """A line when the session does not know of them yet, or when a program wanted one."""
        told = context.belongings.get(_KEY, _Told) or context.belongings.keep(_KEY, _Told())
        new = bool(set(self.found.paths) - set(told.paths))
        if not new and not self._wanted(output):
            return []
        told.paths = tuple({*told.paths, *self.found.paths})
        names = [os.path.relpath(path, self.workspace) for path in self.found.paths]
        shown = ", ".join(names[:_LISTED])
        if len(names) > _LISTED:
            shown += f" and {len(names) - _LISTED} more"
        if not self._works:
            return [f"[programs can read secret files here, in this weaker sandbox: {shown}]"]
        more = "" if self.found.complete else "; the workspace is too large to look everywhere"
        return [
            f"[hidden from programs, because they may hold secrets: {shown}. read_file, and a "
            f"command that names one, ask the person for it{more}]"
        ]

    def _wanted(self, output: str) -> bool:
        low = output.casefold()
        if not self._works or not any(word in low for word in _DENIED):
            return False
        return any(path.name.casefold() in low for path in self.found.paths)


async def hiding(
    context: ToolContext, level: Level, *, approved: CallEffects | None = None
) -> Hiding:
    """What to hide from a program of this call.

    Args:
        approved: what the call was found to touch, when its text was analysed: what it was allowed
            to read of secret files is shown to it.
    """
    found = await anyio.to_thread.run_sync(lambda: hidden.find(context.workspace, own=home()))
    if approved is not None and found.paths:
        keep = _not_approved(found.paths, approved, _own(context.workspace))
        found = hidden.Hidden(keep, found.complete)
    return Hiding(context.workspace, level, found)


def _own(workspace: Path) -> Path:
    """The home folder of lorimer, by the name under which the workspace shows it."""
    real = os.path.relpath(os.path.realpath(home()), os.path.realpath(workspace))
    return Path(os.path.abspath(workspace), real)


def _not_approved(paths: Sequence[Path], touches: CallEffects, own: Path) -> tuple[Path, ...]:
    """`paths` without those that the call was allowed to read.

    Which ones is known from the paths that the call names; a call whose secrets are not known by
    path (`cat "$D/.env"`) was shown to the person as one that reads secrets, and gets all. Our own
    files never.
    """
    secrets = [r for r in touches.reasons if r.concern is Concern.SECRETS]
    if not any(not r.where.startswith("secret:") for r in secrets):
        return tuple(paths)
    named = [touch.path for touch in touches.paths if touch.access is Access.READ]
    left = [path for path in paths if not any(_names(one, path) for one in named)]
    user = os.path.expanduser("~")
    if len(left) == len(paths) and not any(sensitive.kind(one, user) for one in named):
        left = []
    ours = [path for path in paths if path == own and path not in left]
    return tuple(sorted([*left, *ours]))


def _names(touched: str, path: Path) -> bool:
    """Whether a touched path (it may be a pattern) is `path` or lies below it."""
    real = os.path.realpath(path)
    if touched == real or touched.startswith(real + "/"):
        return True
    if not any(c in touched for c in "*?["):
        return False
    return touched.count("/") == real.count("/") and fnmatch.fnmatchcase(real, touched)
