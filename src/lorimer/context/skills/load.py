"""One folder read as a skill, forgivingly: what published collections contain is loaded, and what
was forgiven is said. What cannot be used has its own outcome (`NotLoaded.code`)."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lorimer.context.skills.files import Files, SkillFilesFault, content, survey
from lorimer.context.skills.front_matter import FrontMatterFault, lenient
from lorimer.context.skills.record import NotLoaded, Place, Skill
from lorimer.context.skills.text import one_line
from lorimer.context.skills.validate import (
    COMPATIBILITY_CHARACTERS,
    DESCRIPTION_CHARACTERS,
    FIELDS,
    FILE_NAMES,
    name_problems,
)

MOST_BYTES = 256 * 1024
"""Of a `SKILL.md`; the specification recommends fewer than 5,000 tokens, about 20,000."""
MOST_DESCRIPTION = 2_048
"""Characters that are kept of a description."""


def load(folder: Path, place: Place, *, found: Files | None = None) -> Skill | NotLoaded:
    """Read the skill in `folder`. Never raises.

    Args:
        found: its files, when they are known already.
    """
    real = Path(os.path.realpath(folder))

    def refused(code: str, message: str, next: str) -> NotLoaded:
        return NotLoaded(folder, place, code, message, next)

    try:
        if leads_out(real, place):
            return refused(
                "link_outside", f"{folder} is a link that leads outside: {real}.",
                "Copy the skill here, or name its own folder.",
            )  # fmt: skip
        if not real.is_dir():
            return refused("no_folder", f"{folder} is no folder.", "Name a folder with a SKILL.md.")
        file = _skill_file(os.listdir(real))
        if file is None:
            what = "has no SKILL.md" if os.listdir(real) else "is empty"
            return refused("no_skill_file", f"The folder {folder} {what}.", "Add a SKILL.md.")
        found = found or survey(real)
        if file not in found.files:
            return refused("special_file", f"{folder / file} is a folder.", "Make it a text file.")
        if found.files[file].size > MOST_BYTES:
            return refused(
                "too_large",
                f"{folder / file} has {found.files[file].size:,} bytes; at most {MOST_BYTES:,} "
                "are loaded.",
                "Move details into files of their own, which are read when they are needed.",
            )
        data = content(found, file, MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            return refused("too_large", f"{folder / file} grew while it was read.", "Look again.")
        text = data.decode("utf-8")
    except SkillFilesFault as fault:
        return refused(fault.code, fault.message, fault.next)
    except UnicodeDecodeError as fault:
        return refused(
            "not_utf8",
            f"{folder / FILE_NAMES[0]} is not UTF-8: byte {fault.start} is "
            f"0x{fault.object[fault.start]:02x}.",
            "Save it as UTF-8.",
        )
    except (OSError, ValueError) as fault:
        return refused("unreadable", f"{folder} cannot be read: {fault}.", "Make it readable.")
    try:
        front = lenient(text.replace("\r\n", "\n").replace("\r", "\n"))
    except FrontMatterFault as fault:
        return refused(fault.code, f"{folder / file}: {fault.message}", fault.next)
    forgiven = list(front.forgiven)
    if file not in FILE_NAMES:
        forgiven.append(f"the file is called {file}, not SKILL.md")
    name = _name(front.fields, real.name, folder.name, forgiven)
    description = _description(front.fields, front.body, forgiven)
    if not description:
        return refused(
            "no_description",
            f"{folder / file} says nowhere what the skill is for.",
            "Add a description to its front matter.",
        )
    _others(front.fields, forgiven)
    others = tuple(one for one in found.files if one != file)
    return Skill(
        name, description, front.body, real, place, front.fields, others, tuple(forgiven),
        found.signature,
    )  # fmt: skip


def leads_out(real: Path, place: Place) -> bool:
    """Whether a skill's real folder lies outside what its place allows."""
    return place.within is not None and not real.is_relative_to(os.path.realpath(place.within))


def _skill_file(names: Sequence[str]) -> str | None:
    for name in FILE_NAMES:
        if name in names:
            return name
    return next((name for name in names if name.lower() == "skill.md"), None)


def _name(
    fields: dict[str, Any], folder: str, linked_as: str, forgiven: list[str]
) -> str:  # fmt: skip
    given = fields.get("name")
    text = one_line(given) if isinstance(given, str) else ""
    if not text:
        forgiven.append("the name is missing or no text; the folder's name is used")
        text = one_line(folder)
    text = unicodedata.normalize("NFKC", text)
    expected = folder if unicodedata.normalize("NFKC", folder) == text else linked_as
    forgiven += [p.message.rstrip(".") for p in name_problems(text, expected)]
    return text[:200]


def _description(fields: dict[str, Any], body: str, forgiven: list[str]) -> str:
    given = fields.get("description")
    if isinstance(given, list):
        given = " ".join(_texts(given))
        forgiven.append("the description is a list")
    elif given is not None and not isinstance(given, str):
        given = "; ".join(f"{key}: {value}" for key, value in given.items())
        forgiven.append("the description is a map")
    text = given or ""
    if len(text) > DESCRIPTION_CHARACTERS:
        forgiven.append(
            f"the description has {len(text):,} characters; the specification allows "
            f"{DESCRIPTION_CHARACTERS:,}"
        )
    text = one_line(text)
    if not text:
        text = one_line(_first_paragraph(body))[:DESCRIPTION_CHARACTERS]
        if text:
            forgiven.append("there is no description; the first paragraph stands for it")
    if len(text) > MOST_DESCRIPTION:
        forgiven.append(f"only the first {MOST_DESCRIPTION:,} characters of it are used")
        text = text[:MOST_DESCRIPTION].rstrip() + "…"
    return text


def _first_paragraph(body: str) -> str:
    paragraphs = [p.strip() for p in body.split("\n\n") if p.strip()]
    plain = [p for p in paragraphs if not p.startswith(("#", "```", "|", "<!--"))]
    return (plain or [p.lstrip("# ") for p in paragraphs] or [""])[0]


def _others(fields: dict[str, Any], forgiven: list[str]) -> None:
    unknown = [one_line(key)[:40] for key in fields if key not in FIELDS]
    if unknown:
        shown = ", ".join(unknown[:8]) + (", …" if len(unknown) > 8 else "")
        forgiven.append(f"the specification does not know these fields: {shown}")
    for key in ("license", "compatibility", "allowed-tools"):
        if key in fields and not isinstance(fields[key], str):
            forgiven.append(f"{key} is no text")
    compatibility = fields.get("compatibility")
    if isinstance(compatibility, str) and len(compatibility) > COMPATIBILITY_CHARACTERS:
        forgiven.append(f"compatibility has {len(compatibility)} characters")
    metadata = fields.get("metadata")
    if metadata and not isinstance(metadata, dict):
        forgiven.append("metadata is no map")
    elif isinstance(metadata, dict) and not all(isinstance(v, str) for v in metadata.values()):
        forgiven.append("metadata holds more than texts")


def _texts(values: list[Any]) -> list[str]:
    return [one if isinstance(one, str) else str(one) for one in values]


def allowed_tools(fields: dict[str, Any]) -> tuple[str, ...]:
    """What `allowed-tools` names, however it is written. Said to people; it allows nothing here."""
    given = fields.get("allowed-tools", "")
    if isinstance(given, list):
        return tuple(one.strip() for one in _texts(given) if one.strip())
    out, depth, word = [], 0, ""
    for character in given if isinstance(given, str) else "":
        depth += (character == "(") - (character == ")")
        if depth <= 0 and (character.isspace() or character == ","):
            out.append(word)
            word = ""
        else:
            word += character
    return tuple(one for one in (*out, word) if one)
