"""A new skill: a folder with a `SKILL.md` that is valid from the start."""

from __future__ import annotations

import os
from pathlib import Path

from lorimer.context.skills.validate import (
    DESCRIPTION_CHARACTERS,
    Verdict,
    name_problems,
    validate,
)
from lorimer.core.errors import UsageFault

_TEXT = """\
---
name: {name}
description: {description}
---

# {title}

## Steps

1. Say what to do first, and how to see that it worked.
2. Name files of this folder by their path from here (`references/…`): they are read only when
   they are needed.
3. Run scripts of this folder as `python <skill folder>/scripts/… INPUT`; what `<skill folder>` is,
   is told with this text.

## When something goes wrong

- What fails often, and what to do then.
"""
_SCRIPTS = "scripts", "references"


def scaffold(name: str, where: Path, *, description: str | None = None) -> Verdict:
    """Make the skill `name` as a folder in `where`; what validation says of it (it is valid).

    Raises:
        UsageFault: when the name or the description is not allowed, or the folder is there; nothing
            was written then.
    """
    name = name.strip()
    for problem in name_problems(name, None):
        raise UsageFault(problem.message, next=problem.next)
    if description is not None and not 0 < len(description.strip()) <= DESCRIPTION_CHARACTERS:
        raise UsageFault(
            f"The description has {len(description.strip()):,} characters.",
            next=f"Write 1 to {DESCRIPTION_CHARACTERS:,}: what the skill does, and when to use it.",
        )
    folder = where / name
    if os.path.lexists(folder):
        raise UsageFault(
            f"{folder} is there already.", next="Choose another name, or change that one."
        )
    given = description or f"Does {name.replace('-', ' ')}. Use when somebody asks for it."
    text = _TEXT.format(
        name=name, description=_quoted(given), title=name.replace("-", " ").capitalize()
    )
    try:
        where.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        (folder / "SKILL.md").write_text(text, encoding="utf-8", newline="\n")
        for one in _SCRIPTS:
            (folder / one).mkdir()
    except OSError as fault:
        raise UsageFault(
            f"{folder} cannot be made: {fault.strerror or fault}.", next="Choose another --in."
        ) from None
    return validate(folder)


def _quoted(text: str) -> str:
    """As a YAML text in double quotes, whatever is in it; no `---`, which would end the front
    matter for the reference reader."""
    one = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    one = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in one)
    return '"' + one.replace("---", "-\\x2d-") + '"'
