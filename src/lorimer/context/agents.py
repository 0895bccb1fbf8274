"""Definitions of sub-agents: Markdown files `agents/NAME.md`, front matter and a system prompt.

The fields are those of the form that coding agents share (`name`, `description`, `tools`,
`disallowedTools`, `model`, `maxTurns`, `permissionMode`; https://code.claude.com/docs/en/sub-agents,
read 2026-11). Reading is forgiving, and what was forgiven or is not used is said in
`Definition.notices`; what would give a sub-agent more than its author wanted is never guessed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lorimer.context.skills.front_matter import NO_END, FrontMatterFault, lenient
from lorimer.core.errors import LorimerError

FOLDERS = (".lorimer/agents", ".agents/agents", ".claude/agents")
"""Below a project or the user's home, the first one first: a name that is there twice means its
definition."""

INHERIT = "inherit"
NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 4_000
LARGEST_BYTES = 256 * 1024
MOST_FILES = 500

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LIMITED = re.compile(r"([A-Za-z_]\w*)\((.*)\)", re.DOTALL)
_PIECE = re.compile(r"(?:[^\s,()]|\([^()]*\))+")

TOOL_NAMES = {
    "read": ("read_file",), "notebookread": ("read_file",), "ls": ("list_directory",),
    "glob": ("find_file",), "grep": ("grep_file",), "write": ("write_file",),
    "edit": ("edit_file",), "multiedit": ("edit_file",),
    "bash": ("shell_exec", "shell_output", "shell_stop"), "bashoutput": ("shell_output",),
    "killshell": ("shell_stop",), "webfetch": ("fetch_url",), "skill": ("skill",),
    "task": ("spawn_subagent",), "agent": ("spawn_subagent",),
}  # fmt: skip
"""What the tools that such files name are called here."""

_USED = frozenset(
    {"name", "description", "tools", "disallowedtools", "model", "maxturns", "permissionmode"}
)
_FOR_SHOW = frozenset({"color", "license", "metadata", "version", "author", "tags", "category"})
"""Fields that say nothing about the work."""


class AgentDefinitionFault(LorimerError):
    """A file that cannot be used as a definition."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Definition:
    """What a kind of sub-agent is.

    Attributes:
        tools: names of the tools it may have at most, as they are called here; `None`: those of
            whoever starts it.
        without: tools that it does not get.
        model: a name, or `inherit`.
        max_steps: model requests at most; `None`: not said.
        only_reads: its calls may change nothing (`permissionMode: plan`).
        source: the file, or `bundled`.
        notices: what was forgiven, dropped or is not used, in words.
    """

    name: str
    description: str
    system: str
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    model: str = INHERIT
    max_steps: int | None = None
    only_reads: bool = False
    source: str = ""
    notices: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "description": self.description,
            "tools": None if self.tools is None else list(self.tools),
            "without": list(self.without), "model": self.model, "max_steps": self.max_steps,
            "only_reads": self.only_reads, "source": self.source, "system": self.system,
            "notices": list(self.notices),
        }  # fmt: skip


def parse(text: str, *, file_name: str, source: str) -> Definition:
    """The definition in `text`.

    Args:
        file_name: names the definition when its front matter does not, or not usably.

    Raises:
        AgentDefinitionFault: when it says neither what the agent is for nor what it does, and for a
            text without whole front matter: its tools would be guessed.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        read = lenient(text)
    except FrontMatterFault as fault:
        raise AgentDefinitionFault(f"{source}: {fault.message}", next=fault.next) from fault
    if not read.fields or NO_END in read.forgiven:
        what = "has no end" if read.fields else "is missing or empty"
        raise AgentDefinitionFault(
            f"{source} defines no agent: its front matter {what}.",
            next="Put its name, description and tools at the top, between two lines ---.",
        )
    notices = list(read.forgiven)
    fields = {key.casefold().replace("-", "").replace("_", ""): (key, value)
              for key, value in reversed(read.fields.items())}  # fmt: skip
    name = _name(_text(fields.get("name")), file_name, notices)
    description = _text(fields.get("description")).replace("\\n", "\n").strip()
    body = read.body.strip()
    if not description and not body:
        raise AgentDefinitionFault(
            f"{source} defines no agent: it has neither a description nor instructions.",
            next="Write front matter with name and description, and below it the instructions.",
        )
    if not description:
        description = body.splitlines()[0].lstrip("# ").strip()
        notices.append("there is no description; its first line is used")
    if len(description) > DESCRIPTION_CHARACTERS:
        notices.append(
            f"the description has {len(description):,} characters; the first "
            f"{DESCRIPTION_CHARACTERS:,} are used"
        )
        description = description[:DESCRIPTION_CHARACTERS]
    if not body:
        body = description
        notices.append("there are no instructions below the front matter; the description is used")
    without, _ = _tools(fields.get("disallowedtools"), "disallowedTools", notices, forbids=True)
    tools, told = _tools(fields.get("tools"), "tools", notices, forbids=False)
    mode = _text(fields.get("permissionmode")).strip()
    if mode not in ("", "default", "plan", INHERIT):
        notices.append(f"permissionMode {mode!r} is not used: the mode is that of the session")
    for plain, (key, _) in fields.items():
        if plain not in _USED | _FOR_SHOW:
            notices.append(f"the field {key!r} is not used")
    return Definition(
        name, description, body, tools if told else None, without,
        _text(fields.get("model")).strip() or INHERIT,
        _steps(fields.get("maxturns"), notices), mode == "plan", source, tuple(notices),
    )  # fmt: skip


def read_file(path: Path, *, source: str = "") -> Definition:
    """The definition in the file at `path`.

    Raises:
        AgentDefinitionFault: when it cannot be read, is too large or not UTF-8, or defines nothing.
    """
    where = source or str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise AgentDefinitionFault(f"{where} is no file.")
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as fault:
        raise AgentDefinitionFault(f"{where} cannot be read: {fault.strerror or fault}.") from fault
    if len(raw) > LARGEST_BYTES:
        raise AgentDefinitionFault(
            f"{where} is larger than {LARGEST_BYTES:,} bytes.",
            next="Keep a definition short; put long texts into files that it names.",
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise AgentDefinitionFault(
            f"{where} is not UTF-8: byte {fault.start} is 0x{raw[fault.start]:02x}.",
            next="Save it as UTF-8.",
        ) from fault
    return parse(text, file_name=path.stem, source=where)


def read_folder(folder: Path) -> tuple[list[Definition], list[str]]:
    """The definitions in `folder` and the folders below it, by path; and what could not be read.

    Links that lead out of `folder` are not followed.
    """
    found: list[Definition] = []
    faults: list[str] = []
    top = os.path.realpath(folder)
    if not os.path.isdir(top):
        return found, faults
    for path in _files(Path(top), faults):
        real = os.path.realpath(path)
        if real != str(path) and not real.startswith(top + os.sep):
            faults.append(f"{path} leads out of its folder and was not read.")
            continue
        try:
            found.append(read_file(path))
        except AgentDefinitionFault as fault:
            faults.append(str(fault))
    return found, faults


def _files(top: Path, faults: list[str]) -> list[Path]:
    found = []
    for folder, folders, files in os.walk(top, onerror=lambda e: faults.append(f"{e}.")):
        folders.sort()
        for name in sorted(files):
            if name.casefold().endswith(".md") and name.casefold() not in ("readme.md",):
                found.append(Path(folder) / name)
    if len(found) > MOST_FILES:
        faults.append(f"{top} has {len(found):,} files; the first {MOST_FILES} were read.")
    return found[:MOST_FILES]


def first_of_each(
    groups: Sequence[Sequence[Definition]],
) -> tuple[dict[str, Definition], list[str]]:
    """One definition a name, from the groups in their order; and which were set aside."""
    chosen: dict[str, Definition] = {}
    aside = []
    for one in (one for group in groups for one in group):
        kept = chosen.setdefault(one.name, one)
        if kept is not one:
            aside.append(f"{one.source} is not used: {kept.source} has the name {one.name!r}, too.")
    return chosen, aside


TEMPLATE = """\
---
name: {name}
description: {description}
tools: {tools}
model: inherit
---

Your work: {description_again}

- Do only the task you were given.
- Name where you found what you report: the file and the line, or the address.
- Say what you could not find.
"""


def template(name: str, description: str, tools: str) -> str:
    """A new definition file.

    Raises:
        AgentDefinitionFault: when `name` cannot be a name.
    """
    if not is_name(name):
        raise AgentDefinitionFault(
            f"{name!r} cannot be the name of an agent.",
            next=f"Use up to {NAME_CHARACTERS} small letters, digits and single hyphens.",
        )
    flat = " ".join(description.split())
    again = flat[:1].lower() + flat[1:]
    quoted = flat if re.fullmatch(r"[\w][\w ,.()/-]*", flat) else _quoted(flat)
    return TEMPLATE.format(
        name=name, description=quoted, tools=tools, description_again=again.rstrip(".") + "."
    )


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_name(name: str) -> bool:
    """Whether `name` is one by the common rule: small letters, digits, single hyphens."""
    return len(name) <= NAME_CHARACTERS and _NAME.fullmatch(name) is not None


def _name(given: str, file_name: str, notices: list[str]) -> str:
    wanted = given.strip() or file_name
    if not given.strip():
        notices.append(f"there is no name; the file's is used, {file_name!r}")
    if is_name(wanted):
        return wanted
    made = re.sub(r"[^a-z0-9]+", "-", wanted.casefold()).strip("-")[:NAME_CHARACTERS].strip("-")
    made = made or "agent"
    notices.append(f"the name {wanted!r} was read as {made!r}")
    return made


def _text(found: tuple[str, Any] | None) -> str:
    if found is None:
        return ""
    value = found[1]
    return value if isinstance(value, str) else " ".join(_flat(value))


def _flat(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [piece for one in value for piece in (one,)]
    return [piece for one in value for piece in _flat(one)]


def _tools(
    found: tuple[str, Any] | None, what: str, notices: list[str], *, forbids: bool
) -> tuple[tuple[str, ...], bool]:
    """The tools that a field names, and whether it limits them at all."""
    if found is None:
        return (), False
    value = found[1]
    if isinstance(value, dict):  # `write: false` forbids, `write: true` says nothing more
        off = [key for key, on in value.items() if str(on).casefold() in ("false", "no", "off")]
        notices.append(f"{what} is a map: only what it switches on is given")
        value = [key for key in value if key not in off]
    pieces = _PIECE.findall(value.strip().strip("[]")) if isinstance(value, str) else _flat(value)
    names: dict[str, None] = {}
    for piece in (p.strip().strip("'\"") for p in pieces):
        if piece == "*" and not forbids:
            return (), False
        limited = _LIMITED.fullmatch(piece)
        if limited is not None and not forbids and limited[1].casefold() not in ("task", "agent"):
            notices.append(
                f"{what}: {piece!r} allows a part of a tool, which cannot be held here; it is not "
                "given at all"
            )
            continue
        plain = piece if limited is None else limited[1]
        known = TOOL_NAMES.get(plain.casefold())
        if known is None and "*" in plain:
            notices.append(f"{what}: the pattern {plain!r} is not used")
            continue
        if limited is not None and not forbids:
            notices.append(f"{what}: {piece!r} was read as {plain!r}")
        names.update(dict.fromkeys(known or (plain,)))
    return tuple(names), True


def _steps(found: tuple[str, Any] | None, notices: list[str]) -> int | None:
    if found is None:
        return None
    text = _text(found).strip()
    if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0:
        return int(text)
    shown = text if len(text) <= 60 else text[:60] + "…"
    notices.append(f"{found[0]} is {shown!r}, which is no number of steps; it is not used")
    return None
