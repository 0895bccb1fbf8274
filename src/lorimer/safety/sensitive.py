"""Files whose content is a secret: keys, passwords, tokens.

The one table of every hand that reads is `safety/shell/programs/places.toml`; here it is made into
one regular expression, for file tools. Names are compared as the most forgiving file system would
(`lorimer.safety.protected.folded`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal

from lorimer.safety.protected import folded


@lru_cache(maxsize=512)
def kind(path: str, home: str) -> Literal["ask", "forbidden"] | None:
    """`"forbidden"` for what no call has to read, `"ask"` for other secrets, `None` for the rest.

    Args:
        path: absolute, with links resolved or as it was given.
        home: the home folder of the user.
    """
    parts = [folded(part) for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return None
    table = _table()
    if table.allowed.fullmatch(parts[-1]):
        return None
    whole = "/" + "/".join(parts)
    below = home.casefold().rstrip("/") + "/"
    forms = [whole]
    if path.startswith("/") and whole.startswith(below):
        forms.append("~/" + whole[len(below) :])
    if any(map(table.forbidden.match, forms)):
        return "forbidden"
    if any(map(table.paths.match, forms)) or table.names.fullmatch(parts[-1]):
        return "ask"
    return "ask" if any(map(table.dotted.fullmatch, parts)) else None


class _Table:
    """The patterns of `places.toml`, compiled."""

    def __init__(self) -> None:
        from lorimer.safety.shell.places import rules

        found = rules()
        self.allowed = _names(found.allowed_names)
        self.names = _names(found.secret_names)
        self.dotted = _names(n for n in found.secret_names if n.startswith("."))
        self.paths = _paths(found.secret_paths)
        self.forbidden = _paths(found.forbidden_reads)


@cache
def _table() -> _Table:
    return _Table()


def _names(patterns: Iterable[str]) -> re.Pattern[str]:
    return _any_of(patterns, "")


def _paths(patterns: Iterable[str]) -> re.Pattern[str]:
    """Of paths that are, or lie below, one of `patterns`; `*` does not cross `/`."""
    return _any_of(patterns, r"(?:/|\Z)")


def _any_of(patterns: Iterable[str], end: str) -> re.Pattern[str]:
    from lorimer.safety.policy.patterns import glob_regex

    made = [glob_regex(pattern.casefold(), paths=True) for pattern in patterns]
    return re.compile(f"(?:{'|'.join(made)}){end}" if made else r"(?!)", re.S)
