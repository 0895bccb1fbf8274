"""The skills of an agent: found, loaded, and sorted into those that may be used and the others."""

from __future__ import annotations

import difflib
import hashlib
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lorimer.context.skills.files import Files, SkillFilesFault, digests, survey
from lorimer.context.skills.load import leads_out, load
from lorimer.context.skills.record import Listed, NotLoaded, Place, Skill, Source, State
from lorimer.context.skills.reviews import ReviewFault, Reviews, difference
from lorimer.context.skills.sources import (
    Places,
    SkillSources,
    has_skill,
    package_places,
    places_of,
    skill_folders,
)

_ORDER = tuple(Source)

ProjectTrusted = Callable[[str], bool]
"""Whether the workspace is trusted with its skills of now; the text changes when one of them
does."""


class SkillLibrary:
    """Skills of `sources`, seen from `workspace`. `refresh` looks at the disk; everything else says
    what it found. May be used from several threads.

    Args:
        reviews: what a person has reviewed.
        project_trusted: asked about the skills of the workspace; without it none is trusted.
    """

    def __init__(
        self,
        sources: SkillSources,
        workspace: Path,
        reviews: Reviews,
        project_trusted: ProjectTrusted | None = None,
    ) -> None:
        self.sources = sources
        self.workspace = workspace
        self.reviews = reviews
        self.listed: tuple[Listed, ...] = ()
        self.not_loaded: tuple[NotLoaded, ...] = ()
        self.faults: tuple[str, ...] = ()
        self._project_trusted = project_trusted or (lambda _: False)
        self._known: dict[tuple[Path, Place], tuple[str, Skill | NotLoaded]] = {}
        self._digests: dict[tuple[Path, str], dict[str, str]] = {}
        self._packages: Places | None = None
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Look again. What did not change on the disk is not read again. Never raises for what a
        skill is like."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        if self._packages is None:  # what is installed does not change under a running program
            self._packages = package_places() if self.sources.packages else Places()
        places = places_of(self.sources, self.workspace, self._packages)
        faults = list(places.faults)
        skills: list[Skill] = []
        refused: list[NotLoaded] = []
        seen: set[Path] = set()
        known: dict[tuple[Path, Place], tuple[str, Skill | NotLoaded]] = {}
        for place in places.places:
            folders, whole = skill_folders(place)
            if not whole:
                faults.append(f"{place.folder} holds too many folders to look into all of them.")
            for folder in folders:
                one = self._load(folder, place, known)
                if isinstance(one, NotLoaded):
                    refused.append(one)
                elif one.folder not in seen:
                    seen.add(one.folder)
                    skills.append(one)
        self._known = known
        wanted = self.sources.names
        if wanted is not None:
            names = {key(name) for name in wanted}
            faults += self._missing(wanted, skills)
            skills = [
                s for s in skills if key(s.name) in names or s.source is Source.PATH
            ]  # fmt: skip
            refused = [one for one in refused if key(one.folder.name) in names]
        self.listed = tuple(self._sorted(skills, faults))
        self.not_loaded, self.faults = tuple(refused), tuple(faults)
        keep = {(s.folder, s.signature) for s in skills}
        self._digests = {k: v for k, v in self._digests.items() if k in keep}

    def _load(
        self, folder: Path, place: Place,
        known: dict[tuple[Path, Place], tuple[str, Skill | NotLoaded]],
    ) -> Skill | NotLoaded:  # fmt: skip
        found: Files | None = None
        try:
            real = folder.resolve()
            if leads_out(real, place) or not has_skill(real):
                return load(folder, place)  # it says why
            found = survey(real)
        except (SkillFilesFault, OSError, RuntimeError):
            return load(folder, place)  # it says why
        before = self._known.get((folder, place))
        if before is not None and before[0] == found.signature:
            known[folder, place] = before
            return before[1]
        one = load(folder, place, found=found)
        known[folder, place] = (found.signature, one)
        return one

    @staticmethod
    def _missing(wanted: Sequence[str], skills: Sequence[Skill]) -> Iterator[str]:
        there = {key(s.name): s.name for s in skills}
        for name in wanted:
            if key(name) not in there:
                near = difflib.get_close_matches(key(name), there, n=3)
                hint = f"; near it: {', '.join(there[one] for one in near)}" if near else ""
                yield f"There is no skill {name!r}{hint}."

    def _sorted(self, skills: list[Skill], faults: list[str]) -> Iterator[Listed]:
        """Each with its state, the nearest first; of equal names the first usable one counts."""
        told = "".join(s.signature for s in skills if s.source is Source.PROJECT)
        project = hashlib.sha256(told.encode()).hexdigest() if told else ""
        trusted = bool(project) and self._project_trusted(project)
        taken: dict[str, Skill] = {}
        for skill in sorted(skills, key=lambda s: _ORDER.index(s.source)):
            try:
                one = self._judged(skill, trusted)
            except (SkillFilesFault, ReviewFault) as fault:
                if str(fault) not in faults:
                    faults.append(str(fault))
                one = Listed(skill, State.UNREVIEWED, fault.message)
            other = taken.get(key(skill.name))
            if other is not None:
                one = replace(
                    one, state=State.SHADOWED,
                    why=f"the skill of the same name in {other.folder} ({other.source}) is nearer",
                )  # fmt: skip
            elif one.state is State.AVAILABLE:
                taken[key(skill.name)] = skill
            yield one

    def _judged(self, skill: Skill, project_trusted: bool) -> Listed:
        if skill.place.vouched:
            return Listed(skill, State.AVAILABLE)
        if skill.source is Source.PROJECT:
            if project_trusted:
                return Listed(skill, State.AVAILABLE)
            why = "the folder is not trusted, or was changed since: `lorimer trust`"
            return Listed(skill, State.NOT_TRUSTED, why)
        reviews = self.reviews.of(skill.name)
        step = f"`lorimer skills review {skill.name}`"
        if not reviews:
            return Listed(skill, State.UNREVIEWED, f"nobody has reviewed it yet: {step}")
        now = self.contents(skill)
        if any(dict(review.files) == now for review in reviews):
            return Listed(skill, State.AVAILABLE)
        changed = difference(reviews[-1].files, now)
        shown = ", ".join(f"{name} {how}" for name, how in list(changed.items())[:5])
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        why = f"it changed since its review on {reviews[-1].at[:10]} ({shown}{more}): {step}"
        return Listed(skill, State.CHANGED, why, changed)

    def contents(self, skill: Skill) -> dict[str, str]:
        """File → digest of the skill's folder as it was at the last `refresh`.

        Raises:
            SkillFilesFault: when a file cannot be read, or the folder has changed since.
        """
        kept = self._digests.get((skill.folder, skill.signature))
        if kept is None:
            found = survey(skill.folder)
            kept = digests(found)
            if skill.signature not in (found.signature, survey(skill.folder).signature):
                raise SkillFilesFault(
                    "changed", f"{skill.folder} changed while it was read.", next="Look again."
                )
            self._digests[skill.folder, skill.signature] = kept
        return kept

    # --- what was found ---

    @property
    def available(self) -> list[Skill]:
        return [one.skill for one in self.listed if one.state is State.AVAILABLE]

    def find(self, name: str) -> Listed | None:
        """The skill of this name, a usable one before others. Case and Unicode form of the name
        make no difference."""
        found = [one for one in self.listed if key(one.skill.name) == key(name)]
        usable = [one for one in found if one.state is State.AVAILABLE]
        return next(iter(usable or found), None)

    def waiting(self, name: str) -> Listed | None:
        """The nearest skill of this name that waits for a review, whether or not another one of
        this name can be used."""
        wait = (State.UNREVIEWED, State.CHANGED)
        found = (one for one in self.listed if key(one.skill.name) == key(name))
        return next((one for one in found if one.state in wait), None)

    def near(self, name: str) -> list[str]:
        """Names of usable skills that look like `name`."""
        names = {key(s.name): s.name for s in self.available}
        found = difflib.get_close_matches(key(name), names, n=3, cutoff=0.5)
        found += [one for one in names if key(name) and key(name) in one and one not in found]
        return [names[one] for one in found[:3]]

    def readable(self) -> tuple[Path, ...]:
        """The folders of the usable skills that lie outside the workspace."""
        inside = self.workspace.resolve()
        return tuple(s.folder for s in self.available if not s.folder.is_relative_to(inside))

    @property
    def notices(self) -> tuple[str, ...]:
        """What was forgiven, refused or passed over, one sentence each."""
        out = [*self.faults, *(f"{one.message} {one.next}".strip() for one in self.not_loaded)]
        for one in self.listed:
            if one.why:
                out.append(f"Skill {one.skill.name} ({one.skill.source}): {one.why}.")
            out += [f"Skill {one.skill.name}: {what}." for what in one.skill.forgiven]
        return tuple(out)


def key(name: str) -> str:
    """By what two names are the same."""
    return (
        unicodedata.normalize("NFKC", name).strip().casefold().replace("_", "-").replace(" ", "-")
    )
