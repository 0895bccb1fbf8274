"""Skills of an agent and its sessions: which there are, whether they are trusted, and the list of
them in the conversation."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from lorimer.context.skills.catalogue import MOST_CHARACTERS, catalogue, change, told, whole
from lorimer.context.skills.library import SkillLibrary
from lorimer.context.skills.reviews import Reviews
from lorimer.context.skills.sources import SkillSources
from lorimer.core.home import home
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.trust import Trust
from lorimer.core.watch import Warned
from lorimer.safety.injection.trust_folder import FolderTrust, FolderTrustError

if TYPE_CHECKING:
    from lorimer.runtime.session import Session

Skills = bool | Sequence[str | os.PathLike[str]] | SkillSources | None
"""What `Agent(skills=…)` takes, see `SkillSources.of`."""

TOOL = "skill"
_SHARE_OF_WINDOW = 0.04
_CHARACTERS_A_TOKEN = 3.5
_FEWEST_CHARACTERS = 1_500
_SHOWN = 5


def skill_library(wanted: Skills, workspace: Path) -> SkillLibrary | None:
    """The skills that an option `skills=` asks for, looked at once; `None` when it asks for none.

    Takes some milliseconds: the folders of skills are read.
    """
    sources = SkillSources.of(wanted)
    if sources is None:
        return None
    library = SkillLibrary(sources, workspace, Reviews(home()), TrustedProject(workspace))
    library.refresh()
    return library


class TrustedProject:
    """Whether the workspace is trusted with the skills it has now (`lorimer trust`); asked of the
    disk again only when one of them, or the record of trusted folders, has changed."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._known: tuple[object, bool] | None = None

    def __call__(self, skills: str) -> bool:
        record = FolderTrust(home())
        try:
            found = os.stat(record.path)
        except OSError:
            return False  # nothing was ever trusted
        asked = (skills, found.st_mtime_ns, found.st_size, found.st_ino)
        if self._known is None or self._known[0] != asked:
            try:
                trusted = record.is_trusted(self._workspace).state == "trusted"
            except FolderTrustError as fault:
                logging.getLogger("lorimer").warning("%s", fault)
                trusted = False
            self._known = (asked, trusted)
        return self._known[1]


class SkillCatalogue:
    """Before each request: the list of skills, when the conversation has none, or what is different
    when it changed. Made for a session whose agent has skills; a session that was begun without
    them has not the tool in its prefix, and gets no list either."""

    def __init__(self, session: Session, library: SkillLibrary) -> None:
        self._session = session
        self._library = library
        self._told = False

    async def before_request(self) -> None:
        """Cancellation: the entry is written whole or not at all."""
        session = self._session
        await anyio.to_thread.run_sync(self._library.refresh)
        self._tell()
        if not self._can_load:
            return
        found = catalogue(self._library.listed)
        before = told(session.trajectory.view)
        most = self._most()
        if before is None:
            if not found.lines and not found.waiting:
                return
            text = whole(found, most)
        else:
            text = change(found, before, most)
            if not text:
                return
        meta = {"skills": {"whole": before is None, "digests": found.digests}}
        entry = Entry(
            Kind.SKILLS, (TextPart(text, Trust.USER_DATA, "skills"),), session._now(), meta=meta
        )
        await session.record(entry, "lorimer")

    @property
    def _can_load(self) -> bool:
        return any(spec.name == TOOL for spec in self._session.trajectory.prefix.tools)

    def _most(self) -> int:
        window = self._session.model.profile.context_window
        if not window:
            return MOST_CHARACTERS
        share = int(window * _SHARE_OF_WINDOW * _CHARACTERS_A_TOKEN)
        return max(_FEWEST_CHARACTERS, min(MOST_CHARACTERS, share))

    def _tell(self) -> None:
        """Tell the person once what keeps skills away; the record gets every notice."""
        if self._told:
            return
        self._told = True
        session, library = self._session, self._library
        if not self._can_load:
            session.tell(
                Warned(
                    "This session was begun without skills: its model cannot load any. A new "
                    "session has them, and this one after a rebase."
                )
            )
            return
        for notice in library.notices:
            session.remark("skills.notice", notice)
        kept = [one for one in library.listed if one.why and one.state != "shadowed"]
        for text in _summary([f"{one.skill.name}: {one.why}" for one in kept], "cannot be used"):
            session.tell(Warned(text))
        refused = [one.message for one in library.not_loaded]
        for text in _summary([*library.faults, *refused], "could not be loaded"):
            session.tell(Warned(text))


def _summary(faults: list[str], what: str) -> list[str]:
    if not faults:
        return []
    shown = "; ".join(fault.rstrip(".") for fault in faults[:_SHOWN])
    more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    count = "1 skill" if len(faults) == 1 else f"{len(faults)} skills"
    return [f"{count} {what} (`lorimer skills list`): {shown}{more}."]
