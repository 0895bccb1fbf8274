"""What a shell knows at one place of a text: folders, variables, functions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lorimer.safety.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

FOLDERS_MAX = 4
_OF_THE_SHELL = re.compile(
    r"_|RANDOM|SRANDOM|SECONDS|LINENO|EPOCH\w+|BASH\w*|DIRSTACK|GROUPS|FUNCNAME|PIPESTATUS|U?E?UID"
    r"|PPID|HISTCMD|COMP_\w+|OPTARG|OPTIND|MAPFILE|COPROC\w*|PWD|OLDPWD|READLINE_\w+"
)
"""Variables that the shell itself sets: what a text gives them may not last."""


@dataclass(slots=True)
class State:
    """Attributes:
    folders: where the shell may be now, absolute; `None` when it may be anywhere.
    if_failed: where it still is if the last `cd` failed.
    variables: value by name; `None` for a variable whose value is known only when it runs.
    volatile: names that a function, a trap or a loop may change at any time.
    functions: bodies of the functions defined so far.
    exported: variables that this text gives to the programs it starts, of no known meaning.
    all_exported: every variable set from here on is exported (`set -a`).
    deeper: it may be in a folder somewhere below `folders`.
    arrays: variables that may be arrays: a text given to one of them by `declare` is evaluated.
    associative: arrays whose subscripts are only texts.
    """

    folders: tuple[str, ...] | None
    if_failed: tuple[str, ...] | None = ()
    variables: dict[str, Word | None] = field(default_factory=dict)
    volatile: set[str] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    all_exported: bool = False
    deeper: bool = False
    arrays: set[str] = field(default_factory=set)
    associative: set[str] = field(default_factory=set)
    anything: bool = False
    arguments: tuple[Word, ...] | None = None

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            volatile=set(self.volatile),
            functions=dict(self.functions),
            exported=set(self.exported),
            arrays=set(self.arrays),
            associative=set(self.associative),
        )

    def assign(self, name: str, value: Word | None) -> None:
        doubtful = name in self.volatile or self.anything or bool(_OF_THE_SHELL.fullmatch(name))
        self.variables[name] = None if doubtful else value
        if self.all_exported:
            self.exported.add(name)

    def lookup(self, name: str) -> Word | None:
        return None if self.anything else self.variables.get(name)

    def forget(self) -> None:
        """After code that may set any variable and change the folder."""
        self.anything = True
        self.folders = None

    def enter(self, targets: tuple[str, ...] | None) -> None:
        """A `cd`: the old folder stays possible until `succeeded`."""
        self.if_failed = join(self.folders, self.if_failed)
        self.folders = targets

    def settle(self) -> None:
        """The next command runs whether or not the last `cd` succeeded."""
        self.folders = join(self.folders, self.if_failed)
        self.if_failed = ()

    def merge(self, other: State) -> None:
        """Either this or `other` has happened."""
        self.folders = join(self.folders, other.folders)
        self.if_failed = join(self.if_failed, other.if_failed)
        for name in {*self.variables, *other.variables}:
            if self.variables.get(name) != other.variables.get(name):
                self.variables[name] = None
        self.volatile |= other.volatile
        self.deeper = self.deeper or other.deeper
        self.exported |= other.exported
        self.arrays |= other.arrays
        self.associative &= other.associative
        self.all_exported = self.all_exported or other.all_exported
        self.functions = {**other.functions, **self.functions}
        self.anything = self.anything or other.anything


def join(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """All folders of both; `None` (anywhere) when either is, or there are too many."""
    if left is None or right is None:
        return None
    both = tuple(dict.fromkeys([*left, *right]))
    return both if len(both) <= FOLDERS_MAX else None
