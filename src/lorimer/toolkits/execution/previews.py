"""What a call would make of a file, as a diff for whoever is asked; nothing is cut or changed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from lorimer.safety.path_faults import PathRefused
from lorimer.toolkits.opening import roots_of
from lorimer.toolkits.text import SAMPLE, Encoding, detect, read_all
from lorimer.tools.tool import ToolContext

_MOST_LINES = 40_000


def whole_diff(context: ToolContext, path: str, change: Callable[[str], str]) -> str:
    """The unified diff of the file at `path` against `change(its text)`; a file that is not there
    is empty.

    Raises:
        PathRefused: when the path may not be used; then the call will fail with it, too.
        Exception: what `change` raises.
    """
    name = path
    try:
        with roots_of(context).open_file(path) as opened:
            name, raw = opened.shown, read_all(opened.fd)
    except PathRefused as fault:
        if fault.code != "not_found":
            raise
        return _diff("", change(""), "/dev/null", name)
    encoding = detect(raw[:SAMPLE])
    if encoding is None:
        after = change("")
        return f"{name} is no text ({len(raw):,} bytes); it would become {len(after):,} characters"
    return _diff(_text(raw, encoding), change(_text(raw, encoding)), name, name)


def _text(raw: bytes, encoding: Encoding) -> str:
    return raw[len(encoding.bom) :].decode(encoding.codec, "backslashreplace")


def _diff(before: str, after: str, old_name: str, new_name: str) -> str:
    a, b = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    if before == after:
        return f"{new_name} has exactly this content already"
    if len(a) + len(b) > _MOST_LINES:
        return f"{new_name}: {len(a):,} lines become {len(b):,} lines (too many for a diff)"
    out = []
    for line in difflib.unified_diff(a, b, old_name, new_name, n=3):
        ended = line.endswith("\n")
        mark = "" if ended or line.startswith("@@") else "\n\\ no newline at the end"
        out.append(line.removesuffix("\n").replace("\r", "\\r") + mark)
    return "\n".join(out)
