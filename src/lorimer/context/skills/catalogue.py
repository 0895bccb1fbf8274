"""Level one: the list of skills that stands in the context, names and descriptions.

It is an entry of the trajectory like any other: written once, never moved. When skills come, go or
change, a further entry says only that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorimer.context.skills.record import Listed, Skill, State
from lorimer.context.skills.text import escaped, is_plain_name
from lorimer.core.messages import Entry, Kind

MOST_CHARACTERS = 16_000
"""Of a whole list; descriptions are shortened above it."""
_SHORTENED = (300, 120, 0)
_MOST_NAMES = 30

INTRODUCTION = (
    "Skills are folders with instructions for particular tasks. When a task fits one of these, "
    "call skill(name) first and follow what it says."
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A list, ready to be told.

    Attributes:
        lines: skill → its line, with the whole description.
        waiting: names of skills that are there but may not be used yet.
    """

    lines: Mapping[str, str]
    waiting: tuple[str, ...] = ()

    @property
    def digests(self) -> dict[str, str]:
        """Skill → digest of its line, and of the waiting ones under an empty name."""
        out = {name: _digest(line) for name, line in self.lines.items()}
        if self.waiting:
            out[""] = _digest(_waiting(self.waiting))
        return out


def catalogue(listed: Iterable[Listed]) -> Catalogue:
    """The list of these skills. A stranger's description never enters it, his name only when it is
    a plain word."""
    lines, waiting = {}, []
    for one in listed:
        if one.state is State.AVAILABLE:
            lines[one.skill.name] = _line(one.skill)
        elif one.state in (State.UNREVIEWED, State.CHANGED):
            waiting.append(one.skill.name)
    return Catalogue(lines, tuple(waiting))


def whole(found: Catalogue, most: int = MOST_CHARACTERS) -> str:
    """The list as text, at most about `most` characters long; what was shortened is said."""
    lines = list(found.lines.values())
    note = ""
    for length in _SHORTENED:
        if sum(map(len, lines)) + len(lines) <= most:
            break
        lines = [_cut(name, line, length) for name, line in found.lines.items()]
        note = "Descriptions are shortened here; skill(name) gives the rest."
    left_out = 0
    while lines and sum(map(len, lines)) + len(lines) > most:
        lines.pop()
        left_out += 1
    if left_out:
        note += (
            f" {left_out} more skills do not fit into this list: {_first(found, left_out)}. "
            "skill(name) loads them, too."
        )
    return _block([INTRODUCTION, *lines, note.strip(), _waiting(found.waiting)])


def change(found: Catalogue, before: Mapping[str, str], most: int = MOST_CHARACTERS) -> str:
    """What is different from the list with the digests `before`; empty when nothing is."""
    now = found.digests
    if dict(before) == now:
        return ""
    fresh = [name for name in found.lines if name not in before]
    other = [name for name in found.lines if name in before and before[name] != now[name]]
    gone = [name for name in before if name and name not in found.lines]
    out = ["The list of skills has changed."]
    for title, names in (("New:", fresh), ("Changed:", other)):
        if names:
            out.append(title)
            lines = [found.lines[name] for name in names]
            if sum(map(len, lines)) > most:
                lines = [_cut(name, found.lines[name], _SHORTENED[1]) for name in names]
                out.append("Descriptions are shortened here; skill(name) gives the rest.")
            out += lines
    if gone:
        out.append(f"Not there any more: {', '.join(map(escaped, gone))}.")
    if before.get("") != now.get(""):
        out.append(_waiting(found.waiting))
    return _block(out)


def told(view: Sequence[Entry]) -> dict[str, str] | None:
    """The digests of what the entries in this view say of skills; `None` when no whole list stands
    in it."""
    known: dict[str, str] | None = None
    for entry in view:
        if entry.kind is not Kind.SKILLS:
            continue
        meta: Mapping[str, Any] = entry.meta.get("skills") or {}
        if meta.get("whole") or known is not None:
            known = {str(k): str(v) for k, v in (meta.get("digests") or {}).items()}
    return known


def _line(skill: Skill) -> str:
    return f"- {escaped(skill.name)} ({skill.source}): {escaped(skill.description)}"


def _cut(name: str, line: str, length: int) -> str:
    head = f"- {escaped(name)}"
    if not length:
        return head
    kept = line[: len(head) + length]
    if len(kept) == len(line):
        return line
    start = kept.rfind("&", len(kept) - 5)
    if start >= 0 and ";" not in kept[start:]:  # in the middle of an escape
        kept = kept[:start]
    return kept.rstrip() + "…"


def _first(found: Catalogue, left_out: int) -> str:
    names = [escaped(name) for name in list(found.lines)[-left_out:]]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _waiting(names: Sequence[str]) -> str:
    if not names:
        return ""
    plain = sorted({name for name in names if is_plain_name(name)})
    shown = plain[:_MOST_NAMES]
    rest = len(set(names)) - len(shown)
    if rest:
        shown.append(f"{rest} more")
    return (
        f"Not available until the person has reviewed them (`lorimer skills review NAME`): "
        f"{', '.join(shown)}."
    )


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["<skills>", *(line for line in lines if line), "</skills>"])


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:16]
