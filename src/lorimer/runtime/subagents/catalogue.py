"""Which kinds of sub-agents there are: bundled ones, the user's, and a trusted project's."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

from lorimer.context import agents
from lorimer.context.agents import Definition
from lorimer.core.home import home
from lorimer.runtime.subagents.settings import SubagentSettings
from lorimer.safety.injection.trust_folder import FolderTrust, FolderTrustError


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Definitions by name, and what a person should know of how they were read.

    Attributes:
        untrusted: those of the project by name when its folder is not trusted; `why_untrusted`
            says in words what keeps them from being used.
    """

    definitions: dict[str, Definition]
    notices: tuple[str, ...] = ()
    untrusted: dict[str, Definition] = field(default_factory=dict)
    why_untrusted: str = ""


@functools.lru_cache(maxsize=1)
def bundled() -> tuple[Definition, ...]:
    """Those that come with lorimer."""
    folder = Path(agents.__file__).parents[1] / "agents"
    found, _ = agents.read_folder(folder)
    return tuple(
        Definition(
            one.name, one.description, one.system, one.tools, one.without, one.model,
            one.max_steps, one.only_reads, "bundled", one.notices,
        )
        for one in found
    )  # fmt: skip


def read_catalogue(workspace: Path, settings: SubagentSettings | None = None) -> Catalogue:
    """All definitions that count in `workspace`. Those of a project count only when its folder is
    trusted (`lorimer trust`), with the content that was trusted."""
    notices: list[str] = []
    groups: list[list[Definition]] = []
    untrusted: dict[str, Definition] = {}
    why = ""
    if settings is not None:
        groups.append(list(settings.definitions))
    if settings is None or settings.files:
        user = Path.home()
        if workspace.resolve() != user.resolve():
            own, why = _project(workspace, notices)
            if why:
                untrusted, _ = agents.first_of_each(own)
            else:
                groups += own
        groups += _below(user, notices)
    groups.append(list(bundled()))
    chosen, aside = agents.first_of_each(groups)
    for one in chosen.values():
        notices += [f"{one.source}: {notice}." for notice in one.notices]
    return Catalogue(dict(sorted(chosen.items())), (*notices, *aside), untrusted, why)


def _project(workspace: Path, notices: list[str]) -> tuple[list[list[Definition]], str]:
    """The definitions of the project, and why they may not be used; empty when they may."""
    faults: list[str] = []
    groups = _below(workspace, faults)
    count = sum(map(len, groups)) + len(faults)
    if not count:
        return [], ""
    try:
        trusted = FolderTrust(home()).is_trusted(workspace)
    except FolderTrustError as fault:
        notices.append(f"The agents of {workspace} are not used: {fault}")
        return groups, f"it cannot be said whether the folder is trusted: {fault}"
    if trusted.state != "trusted":
        new = trusted.state == "unknown"
        why = "is not trusted yet" if new else "has changed since it was trusted"
        notices.append(
            f"{count} agent file{'' if count == 1 else 's'} of {workspace} "
            f"{'is' if count == 1 else 'are'} not used: the folder {why} (`lorimer trust`)."
        )
        return groups, f"the folder {workspace} {why}"
    notices += faults
    return groups, ""


def _below(folder: Path, notices: list[str]) -> list[list[Definition]]:
    groups = []
    for name in agents.FOLDERS:
        found, faults = agents.read_folder(folder / name)
        groups.append(found)
        notices += faults
    return groups
