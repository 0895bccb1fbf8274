"""A skill as it was loaded, or why a folder gave none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class Source(StrEnum):
    """Where a skill comes from, the nearest first: its order decides between equal names."""

    PATH = "path"
    PROJECT = "project"
    USER = "user"
    PACKAGE = "package"
    BUNDLED = "bundled"


class State(StrEnum):
    """Whether a skill may be used.

    `NOT_TRUSTED`: a project skill in a folder that nobody trusted. `UNREVIEWED` and `CHANGED`: a
    skill from elsewhere that nobody looked at, or that was changed since. `SHADOWED`: another one
    of the same name is nearer.
    """

    AVAILABLE = "available"
    NOT_TRUSTED = "not_trusted"
    UNREVIEWED = "unreviewed"
    CHANGED = "changed"
    SHADOWED = "shadowed"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that was looked into for skills.

    Attributes:
        folder: a folder of skills, or a skill itself.
        within: a link below `folder` may lead anywhere in here; nowhere outside.
        vouched: whoever named it answers for it: no review is needed.
    """

    source: Source
    folder: Path
    within: Path | None = None
    vouched: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, as it was read.

    Attributes:
        name: as a model calls it; the folder's name where the file has none.
        description: one line, at most `load.DESCRIPTION_CHARACTERS`.
        body: the instructions, without the front matter.
        folder: its real path.
        fields: the front matter.
        files: the other files, relative to the folder.
        forgiven: what is not as the specification wants it, in words.
        signature: changes when a file in the folder does.
    """

    name: str
    description: str
    body: str
    folder: Path
    place: Place
    fields: Mapping[str, Any]
    files: tuple[str, ...]
    forgiven: tuple[str, ...]
    signature: str

    @property
    def source(self) -> Source:
        return self.place.source


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """A folder without a usable skill; `code` names the kind of fault."""

    folder: Path
    place: Place
    code: str
    message: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A skill with what may be done with it.

    Attributes:
        why: in words, when it may not be used.
        changed: file → `added`, `changed` or `removed` since it was reviewed.
    """

    skill: Skill
    state: State
    why: str = ""
    changed: Mapping[str, str] | None = None
