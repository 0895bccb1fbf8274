"""Whether a folder is a skill as the Agent Skills specification wants it.

Rules: https://agentskills.io/specification and its reference validator (`skills-ref` 0.1.1 on
PyPI), with which the verdict agrees. Three rules stand in the specification and are not checked by
the reference: `license` and `allowed-tools` are one text, `metadata` is a map of texts. They are
checked here and marked `beyond_reference`.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorimer.context.skills.front_matter import FrontMatterFault, strict

NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 1024
COMPATIBILITY_CHARACTERS = 500
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
FILE_NAMES = ("SKILL.md", "skill.md")
_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one field. `field` is `SKILL.md` when it is the file itself.

    Attributes:
        beyond_reference: a rule of the specification that the reference validator does not check.
    """

    field: str
    message: str
    next: str = ""
    beyond_reference: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What validation found in one folder.

    Attributes:
        name: as it is in the front matter; empty when there is none.
        remarks: what is allowed, but hardly meant.
    """

    path: str
    name: str
    problems: tuple[Problem, ...]
    remarks: tuple[Problem, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.problems


def validate(folder: Path) -> Verdict:
    """Check one folder (or the `SKILL.md` in it). Never raises."""
    if folder.name.lower() == "skill.md" and os.path.isfile(folder):
        folder = folder.parent
    where = Path(os.path.abspath(folder))
    shown = os.fsencode(where).decode("utf-8", "backslashreplace")
    found = _text(where)
    if isinstance(found, Problem):
        return Verdict(shown, "", (found,))
    try:
        fields = strict(found).fields
    except FrontMatterFault as fault:
        return Verdict(shown, "", (Problem("SKILL.md", fault.message, fault.next),))
    name = fields.get("name")
    return Verdict(
        shown,
        name.strip() if isinstance(name, str) else "",
        tuple(field_problems(fields, where.name)),
        tuple(_remarks(fields)),
    )


def skill_file(folder: Path) -> Path | None:
    """The file with the instructions; `SKILL.md` before `skill.md`."""
    return next((folder / name for name in FILE_NAMES if (folder / name).exists()), None)


def _text(folder: Path) -> str | Problem:
    """The text of the file, with line ends as LF; or why there is none."""
    try:
        if not folder.is_dir():
            what = "is a file, not a folder" if folder.exists() else "does not exist"
            return Problem("SKILL.md", f"{folder} {what}.", "Name a folder with a SKILL.md.")
        file = skill_file(folder)
        if file is None:
            return Problem("SKILL.md", "There is no SKILL.md in the folder.", "Add one.")
        size = file.stat().st_size
        if size > _LARGEST:
            return Problem("SKILL.md", f"{file.name} has {size:,} bytes.", "Make it smaller.")
        if not file.is_file():
            return Problem("SKILL.md", f"{file.name} is not a file.", "Make it a text file.")
        data = file.read_bytes()
    except OSError as fault:
        return Problem(
            "SKILL.md", f"It cannot be read: {fault.strerror or fault}.", "Make it readable."
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        return Problem(
            "SKILL.md", f"It is not UTF-8: byte {fault.start} is 0x{data[fault.start]:02x}.",
            "Save it as UTF-8.",
        )  # fmt: skip
    return text.replace("\r\n", "\n").replace("\r", "\n")


def field_problems(fields: dict[str, Any], folder_name: str) -> Iterator[Problem]:
    """What is wrong with these fields in a folder of this name."""
    for extra in sorted(set(fields) - set(FIELDS)):
        yield Problem(
            extra, f"The specification knows no field {extra!r}.",
            "Move it into metadata, or leave it out.",
        )  # fmt: skip
    if "name" not in fields:
        yield Problem("name", "The field name is missing.", f"Add `name: {folder_name}`.")
    else:
        yield from name_problems(fields["name"], folder_name)
    if "description" not in fields:
        yield Problem(
            "description", "The field description is missing.",
            "Say what the skill does and when to use it.",
        )  # fmt: skip
    else:
        yield from _description(fields["description"])
    if "compatibility" in fields:
        yield from _compatibility(fields["compatibility"])
    yield from _beyond(fields)


def name_problems(name: Any, folder_name: str | None) -> Iterator[Problem]:
    """What is wrong with a name; `folder_name` is what it must equal, `None` for nothing.

    Letters and digits of every script count, compared in Unicode form NFKC.
    """
    if not isinstance(name, str) or not name.strip():
        yield Problem("name", "The name is empty or no text.", "Write a name such as `pdf-forms`.")
        return
    name = unicodedata.normalize("NFKC", name.strip())
    if len(name) > NAME_CHARACTERS:
        yield Problem(
            "name", f"The name has {len(name)} characters; {NAME_CHARACTERS} are allowed.",
            "Shorten it.",
        )  # fmt: skip
    if name != name.lower():
        yield Problem("name", f"The name {name!r} has capital letters.", "Write it in lowercase.")
    if name.startswith("-") or name.endswith("-"):
        yield Problem("name", f"The name {name!r} begins or ends with -.", "Leave that hyphen out.")
    if "--" in name:
        yield Problem("name", f"The name {name!r} has two hyphens in a row.", "Use single hyphens.")
    odd = sorted({c for c in name if not (c.isalnum() or c == "-")})
    if odd:
        yield Problem(
            "name", f"The name {name!r} has other characters than letters, digits and -: "
            f"{', '.join(map(ascii, odd[:5]))}.",
            "Use lowercase letters, digits and single hyphens.",
        )  # fmt: skip
    if folder_name is not None and unicodedata.normalize("NFKC", folder_name) != name:
        yield Problem(
            "name", f"The name {name!r} is not that of the folder, {folder_name!r}.",
            "Rename one of them.",
        )  # fmt: skip


def _description(value: Any) -> Iterator[Problem]:
    if not isinstance(value, str) or not value.strip():
        yield Problem(
            "description", "The description is empty or no text.",
            "Say what the skill does and when to use it.",
        )  # fmt: skip
    elif len(value) > DESCRIPTION_CHARACTERS:
        yield Problem(
            "description", f"The description has {len(value):,} characters; "
            f"{DESCRIPTION_CHARACTERS:,} are allowed.",
            "Shorten it; details belong in the instructions.",
        )  # fmt: skip


def _compatibility(value: Any) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield Problem("compatibility", "It is no text.", "Write one sentence.")
    elif len(value) > COMPATIBILITY_CHARACTERS:
        yield Problem(
            "compatibility", f"It has {len(value)} characters; {COMPATIBILITY_CHARACTERS} are "
            "allowed.",
            "Shorten it.",
        )  # fmt: skip


def _beyond(fields: dict[str, Any]) -> Iterator[Problem]:
    if not isinstance(fields.get("license", ""), str):
        yield Problem("license", "It is no text.", "Name the licence or its file.", True)
    if not isinstance(fields.get("allowed-tools", ""), str):
        yield Problem(
            "allowed-tools", "It is a list, not one text.",
            "Write the tools in one line, with spaces between them.", True,
        )  # fmt: skip
    metadata = fields.get("metadata", {})
    if isinstance(metadata, dict):
        for key, value in metadata.items():
            if not isinstance(value, str):
                yield Problem(
                    "metadata", f"The value of {key!r} is no text.",
                    "Use text only; lists can be written as one text.", True,
                )  # fmt: skip
    elif metadata != "":
        yield Problem("metadata", "It is no map.", "Write `key: value` lines below it.", True)


def _remarks(fields: dict[str, Any]) -> Iterator[Problem]:
    for key in ("license", "compatibility", "metadata", "allowed-tools"):
        if fields.get(key) == "":
            yield Problem(key, "It is there, but empty.", "Fill it in, or leave it out.")
    tools = fields.get("allowed-tools", "")
    if isinstance(tools, str) and "," in _outside_parentheses(tools):
        yield Problem(
            "allowed-tools", "It holds commas.", "Tools are separated by spaces, not commas."
        )


def _outside_parentheses(text: str) -> str:
    depth, out = 0, []
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth <= 0:
            out.append(character)
    return "".join(out)
