"""What is wrong with a policy, and on which line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from lorimer.core.errors import ConfigError


class PolicyError(ConfigError):
    """A policy cannot be used; nothing runs with it.

    Attributes:
        file, line: where it is wrong; 0 when it is no line's fault.
    """

    def __init__(self, file: str, line: int, what: str, *, next: str = "") -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__(f"{where}: {what}", next=next)
        self.file = file
        self.line = line


def near(given: str, allowed: Iterable[str]) -> str:
    """`Did you mean …? Allowed are …`, for a key or value that is not known."""
    known = list(allowed)
    close = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"{hint}Allowed: {', '.join(known)}."
