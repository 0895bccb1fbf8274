"""What a verdict of the specification does not say: what loading refuses, and what is odd.

The reference validator reads the front matter only. A folder can be valid for it and still be of no
use here, so validation says both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lorimer.context.skills.files import SkillFilesFault, survey
from lorimer.context.skills.lint import hidden
from lorimer.context.skills.load import load
from lorimer.context.skills.record import NotLoaded, Place, Skill, Source
from lorimer.context.skills.validate import Problem, Verdict, skill_file

_MOST = 10
"""Remarks of one kind."""
_SAID_ALREADY = ("no_folder", "no_skill_file", "not_utf8", "unreadable")
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINKED = re.compile(r"\]\(([^()\s<>]{1,300})(?:\s+[\"'][^\n\"']{0,200}[\"'])?\)")
_NAMED = re.compile(r"(?<![\w./~-])(?:<skill folder>/|\./)?"
                    r"((?:scripts|references|assets)/[\w./-]{0,200}\w)(?![*{<…])")  # fmt: skip
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|/|#|\?")


def remarked(verdict: Verdict) -> Verdict:
    """The verdict with further remarks: why loading refuses the folder, links to nothing, files
    that the text names and that are not there, characters that nobody sees. Never raises."""
    folder = Path(verdict.path)
    if any(p.field == "SKILL.md" for p in verdict.problems):
        return verdict
    try:
        more = tuple(_remarks(folder))
    except (OSError, ValueError, SkillFilesFault) as fault:
        more = (Problem("folder", f"It cannot be looked into: {fault}", "Make it readable."),)
    return replace(verdict, remarks=(*verdict.remarks, *more))


def _remarks(folder: Path) -> Iterator[Problem]:
    found = load(folder, Place(Source.PATH, folder))
    if isinstance(found, NotLoaded):
        if found.code not in _SAID_ALREADY:
            yield Problem(
                "loading", f"It is not loaded ({found.code}): {found.message}", found.next
            )
        return
    yield from _links(found)
    yield from _absent(found)
    file = skill_file(folder)
    if file is not None:
        seen = list(hidden(file.name, file.read_bytes().decode("utf-8", "replace")))
        for one in seen[:_MOST]:
            yield Problem(
                f"{one.file}:{one.line}", f"{one.message[0].upper()}{one.message[1:]}.",
                "Remove them: a reviewer cannot see them, a model reads them.",
            )  # fmt: skip
        if len(seen) > _MOST:
            yield Problem(file.name, f"{len(seen) - _MOST} more lines hold such characters.")


def _links(skill: Skill) -> Iterator[Problem]:
    for name, one in survey(skill.folder).files.items():
        if one.link and not os.path.exists(skill.folder / name):
            yield Problem(
                name, f"It is a link to {one.link}, which is not there.",
                "Remove it, or add the file.",
            )  # fmt: skip


def _absent(skill: Skill) -> Iterator[Problem]:
    """Files that its text names as its own, and that do not exist or lie elsewhere."""
    named = dict.fromkeys(_LINKED.findall(_FENCED.sub("", skill.body)))
    named |= dict.fromkeys(_NAMED.findall(skill.body))
    gone = [one for one in named if not _SCHEME.match(one) and not _there(skill.folder, one)]
    for one in gone[:_MOST]:
        if _leads_out(one):
            told, step = "leads out of the folder", "Copy the file into the folder."
        else:
            told, step = "is not in the folder", "Add the file, or correct its name."
        yield Problem("instructions", f"They name {one!r}, which {told}.", step)
    if len(gone) > _MOST:
        yield Problem("instructions", f"They name {len(gone) - _MOST} more that are not there.")


def _leads_out(named: str) -> bool:
    return os.path.normpath(named).split("/")[0] == ".."


def _there(folder: Path, named: str) -> bool:
    from urllib.parse import unquote

    if _leads_out(named):
        return False
    plain = re.split(r"[#?]", named, maxsplit=1)[0]
    try:
        return any(os.path.lexists(folder / one) for one in (plain, unquote(plain)))
    except (OSError, ValueError):
        return False
