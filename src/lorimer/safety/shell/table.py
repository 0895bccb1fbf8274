"""The table of programs: TOML files of this package, read once.

A file holds `[[program]]` entries; what their keys mean is in `README.md`. An unknown key or tag
stops the load: a rule that is not understood must not pass for a harmless program.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.core.errors import LorimerError

FOLDER = Path(__file__).parent / "programs"
FILES = (
    "readers", "files", "system", "network", "packages", "runners", "interpreters", "git",
)  # fmt: skip

OPERANDS = frozenset(
    {
        "none", "text", "read", "stat", "write", "delete", "copy", "move", "link", "in-out",
        "url", "script", "words",
    }
)  # fmt: skip


class BadTable(LorimerError):
    """A table of programs that cannot be used."""


@dataclass(frozen=True, slots=True)
class Tags:
    """What doing something means: concerns with one sentence, and a level."""

    concerns: tuple[Concern, ...]
    level: Effects
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One option.

    `effect`: none, read, write, at (reads what follows an @), run, ask, or mild: it asks where it
    is written, but a file that happens to have its name would do no harm.
    """

    takes: bool
    effect: str = "none"
    tags: Tags | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """How one program is judged."""

    names: tuple[str, ...]
    judge: str = ""
    operands: str = "none"
    skip: int = 0
    skip_unless: frozenset[str] = frozenset()
    open: bool = False
    style: str = "gnu"
    always: Tags | None = None
    output: str = "any"
    decodes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ("--version", "--help")
    options: Mapping[str, Rule] = field(default_factory=dict)
    sub: Mapping[str, Tags] = field(default_factory=dict)
    bare: Tags | None = None
    plus: Tags | None = None
    here: bool = False
    lists: tuple[str, ...] = ()
    tree: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def any_option_is_harmless(self) -> bool:
        return self.open and all(
            r.effect in ("none", "read", "mild") for r in self.options.values()
        )


def tags(text: str) -> Tags:
    """`"network irreversible: sends mail"` as data.

    Raises:
        BadTable: for a word that is no concern and no level.
    """
    head, _, sentence = text.partition(":")
    concerns = []
    level = Effects.READ
    for word in head.split():
        if word in ("read", "write", "irreversible"):
            level = Effects(word)
        elif word in set(Concern):
            concerns.append(Concern(word))
            level = max(level, Effects.WRITE, key=list(Effects).index)
        else:
            raise BadTable(f"{word!r} in {text!r} is no concern and no level", next="Correct it.")
    if concerns and not sentence.strip():
        raise BadTable(f"{text!r} has no sentence", next="Write `concern: what it does`.")
    return Tags(tuple(concerns), level, sentence.strip())


@cache
def table() -> Mapping[str, Program]:
    """All programs by name.

    Raises:
        BadTable: for an entry that cannot be understood, or a name given twice.
    """
    found: dict[str, Program] = {}
    for name in FILES:
        entries = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))["program"]
        for entry in entries:
            program = _program(entry)
            for alias in program.names:
                if alias in found:
                    raise BadTable(f"{alias!r} stands twice in the tables", next="Remove one.")
                found[alias] = program
    return found


def find(name: str) -> Program | None:
    """The entry for a program's base name; versions of interpreters count as the program."""
    programs = table()
    if name in programs:
        return programs[name]
    stem = name.rstrip("0123456789.").rstrip("-")
    found = programs.get(stem)
    return found if found is not None and found.data.get("versioned") else None


def is_known(name: str) -> bool:
    return find(name) is not None


_PLAIN_KEYS = {f.name for f in fields(Program)} - {
    "options",
    "sub",
    "always",
    "bare",
    "plus",
    "data",
}
_DATA_KEYS = frozenset(
    {
        "versioned", "inline", "scripts", "stdin", "harmless", "wrap", "wrap_values", "modules",
        "code", "shell", "config_keys", "stops",
    }
)  # fmt: skip


def _program(entry: dict[str, Any]) -> Program:
    values: dict[str, Any] = {}
    options: dict[str, Rule] = {}
    data: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("names", "decodes", "versions", "lists", "tree", "hidden"):
            values[key] = tuple(value)
        elif key == "skip_unless":
            values[key] = frozenset(value)
        elif key in _PLAIN_KEYS:
            values[key] = value
        elif key in ("always", "bare", "plus"):
            values[key] = tags(value)
        elif key == "sub":
            values[key] = {name: tags(text) for name, text in value.items()}
        elif key in _DATA_KEYS:
            data[key] = value
        else:
            options.update(_options(key, value))
    program = Program(options=options, data=data, **values)
    if program.operands not in OPERANDS:
        raise BadTable(f"operands = {program.operands!r} is not known", next="Correct it.")
    return program


def _options(key: str, value: Any) -> Iterator[tuple[str, Rule]]:
    if key == "flags":
        for letter in value.replace(" ", ""):
            yield f"-{letter}", Rule(False)
    elif key == "long":
        for name in value:
            yield name, Rule(False)
    elif key == "values":
        for name in value:
            yield name, Rule(True)
    elif key in ("reads", "writes"):
        for name in value:
            yield name, Rule(True, key.removesuffix("s"))
    elif key in ("sends", "uploads"):
        sends = tags("network irreversible: sends data")
        for name in value:
            yield name, Rule(True, "at" if key == "sends" else "read", sends)
    elif key in ("runs", "asks", "mild"):
        for name, text in value.items():
            takes = name.endswith("=")
            found = tags(f"unknown forbidden: {text}" if key == "runs" else text)
            yield name.removesuffix("="), Rule(takes, key.removesuffix("s"), found)
    else:
        raise BadTable(f"{key!r} is no key of a program", next="Correct it.")
