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


def has_secret_name(name: str) -> bool:
    """Whether a file or folder of this name holds secrets wherever it lies; cheap, for many."""
    plain = name.casefold().rstrip(". ") if name.isascii() and name.isprintable() else folded(name)
    table = _table()
    return bool(table.names.fullmatch(plain)) and not table.allowed.fullmatch(plain)


def may_lie_in(folder: str, home: str) -> bool:
    """Whether something in `folder` could be a secret because of where it lies, not by its own
    name only. A folder that is such a secret itself counts whole, so not what is further below."""
    table, whole = _table(), folder.casefold().rstrip("/") + "/"
    places = [(whole[1:], table.first_at_root)]
    if whole.startswith(start := home.casefold().rstrip("/") + "/"):
        places.append((whole[len(start) :], table.first_at_home))
    for below, firsts in places:
        first, depth = below.split("/", 1)[0], below.count("/") + 1
        if any(depth == far and first.startswith(begin or first) for far, begin in firsts):
            return True
    return table.anywhere.fullmatch(whole.split("/")[-2]) is not None


class _Table:
    """The patterns of `places.toml`, compiled."""

    def __init__(self) -> None:
        from lorimer.safety.shell.places import COPY, rules

        found = rules()
        self.allowed = _names(found.allowed_names)
        self.names = _any_of(found.secret_names, COPY)
        self.dotted = _any_of((n for n in found.secret_names if n.startswith(".")), COPY)
        self.paths = _paths(found.secret_paths)
        self.forbidden = _paths(found.forbidden_reads)
        placed = [
            pattern.casefold()
            for pattern in (*found.secret_paths, *found.forbidden_reads)
            # others count by a name in them anyway
            if not any(map(self.dotted.fullmatch, pattern.casefold().split("/")))
        ]
        self.first_at_home = _firsts((p for p in placed if "**" not in p), "~")
        anywhere = [p.split("/") for p in placed if "**" in p]
        self.anywhere = _names(parts[-2].replace("**", "*") for parts in anywhere)
        self.first_at_root = _firsts((p for p in placed if "**" not in p), "")


def _firsts(patterns: Iterable[str], start: str) -> tuple[tuple[int, str], ...]:
    """Of the paths below `start`: how many names they have, and how the first of them begins, when
    there are more."""
    split = [pattern.split("/")[1:] for pattern in patterns if pattern.split("/")[0] == start]
    found = [(len(p), re.split(r"[*?\[]", p[0])[0] if len(p) > 1 else "") for p in split]
    return tuple(dict.fromkeys(found))


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
