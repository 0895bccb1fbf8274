"""What a shell knows at one place of a text: folders, variables, functions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lorimer.safety.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

FOLDERS_MAX = 4


@dataclass(slots=True)
class State:
    """Attributes:
    folders: where the shell may be now, absolute; `None` when it may be anywhere.
    if_failed: where it still is if the last `cd` failed.
    variables: value by name; `None` for a variable whose value is known only when it runs.
    volatile: names that a function, a trap or a loop may change at any time.
    functions: bodies of the functions defined so far.
    """

    folders: tuple[str, ...] | None
    if_failed: tuple[str, ...] | None = ()
    variables: dict[str, Word | None] = field(default_factory=dict)
    volatile: set[str] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)
    anything: bool = False
    arguments: tuple[Word, ...] | None = None

    def copy(self) -> State:
        return replace(
            self,
            variables=dict(self.variables),
            volatile=set(self.volatile),
            functions=dict(self.functions),
        )

    def assign(self, name: str, value: Word | None) -> None:
        self.variables[name] = None if name in self.volatile or self.anything else value

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
        self.functions = {**other.functions, **self.functions}
        self.anything = self.anything or other.anything


def join(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """All folders of both; `None` (anywhere) when either is, or there are too many."""
    if left is None or right is None:
        return None
    both = tuple(dict.fromkeys([*left, *right]))
    return both if len(both) <= FOLDERS_MAX else None
