"""Names that a call stands for without naming them: what a pattern matches, what a folder holds,
and the files that plain arguments name.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from lorimer.core.approvals import listed

MOST_SHOWN = 200
"""So many names of a pattern or folder stand in the request itself; of more there is their number
and a digest."""
MOST_IN_ALL = 400
"""So many names stand in one request."""
_MOST_NAMES = 20_000
_MOST_VALUES = 200
_LONGEST = 4_096
_MAGIC = frozenset("*?[")


def is_pattern(word: str) -> bool:
    """Whether a shell would put file names in place of `word`."""
    return len(word) <= _LONGEST and "\n" not in word and not _MAGIC.isdisjoint(word)


def matches(pattern: str) -> list[str] | None:
    """The paths that the absolute `pattern` matches, as a shell matches them, in order; one more
    than `_MOST_NAMES` where there are too many. `None`: the folder cannot be read."""
    base, escaped = _split(pattern)
    if os.path.isdir(base) and not os.access(base, os.R_OK | os.X_OK):
        return None
    try:
        return sorted(islice(glob.iglob(escaped), _MOST_NAMES + 1))
    except (OSError, ValueError):
        return None


def inside(folder: str) -> list[str] | None:
    """Everything below `folder`, as `matches` gives it; links are not followed."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return None if os.path.isdir(folder) else []
    return sorted(islice(_walk(folder), _MOST_NAMES + 1))


def told(names: list[str] | None, where: str, most: int = MOST_SHOWN) -> str:
    """`names` as they stand in a binding; of more than can be listed the folder's own times count.

    Args:
        where: the pattern or folder that they belong to.
        most: so many names are shown.
    """
    if names is None:
        return "unreadable"
    mark = b""
    if len(names) > _MOST_NAMES:
        names = names[:_MOST_NAMES]
        try:
            found = os.stat(_split(where)[0])
            mark = f"more {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}".encode()
        except OSError:
            mark = b"more"
    made = hashlib.sha256(mark)
    for name in names:
        made.update(name.encode("utf-8", "surrogateescape") + b"\0")
    shown = [n.encode("utf-8", "backslashreplace").decode() for n in names[:most]]
    return listed(shown, len(names), "" if len(names) <= most and not mark else made.hexdigest())


def files_in(arguments: Mapping[str, Any], folders: Iterable[str]) -> Iterator[str]:
    """Paths that text anywhere in `arguments` may name, in each of `folders`."""
    places = list(dict.fromkeys(folders))
    for text in islice(_texts(arguments), _MOST_VALUES):
        for folder in places:
            yield os.path.join(folder, os.path.expanduser(text))


def _texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    left: list[Any] = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            left += [*value.values()][::-1]
        elif isinstance(value, list | tuple):
            left += value[::-1]
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST and not {"\n", "\0"} & {*value}:
            yield value


def _split(pattern: str) -> tuple[str, str]:
    """The folder that `pattern` starts from, and the pattern with that folder taken literally: a
    folder may have `*` or `[` in its own name."""
    base, steps = "/", [s for s in pattern.split("/") if s]
    while len(steps) > 1 or (steps and not is_pattern(steps[0])):
        if is_pattern(steps[0]) and not os.path.isdir(os.path.join(base, steps[0])):
            break
        base = os.path.join(base, steps.pop(0))
    rest = "/".join(steps).replace("[^", "[!")
    return base, os.path.join(glob.escape(base), rest) if rest else glob.escape(base)


def _walk(folder: str) -> Iterator[str]:
    left = [folder]
    while left:
        try:
            with os.scandir(left.pop()) as found:
                entries = sorted(islice(found, _MOST_NAMES + 1), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                left.append(entry.path)
