"""`grep_file`: lines that match a regular expression."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from lorimer.core.calls import Effects
from lorimer.core.trust import Trust
from lorimer.safety.path_faults import PathRefused
from lorimer.safety.paths import Opened
from lorimer.toolkits.opening import below, nothing_done, page, refusals, roots_of, shown_name
from lorimer.toolkits.perception import ripgrep
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext, ToolError

_MOST_COUNTED = 10_000
_PAGE = 50
_SNIPPET = 200
_MOST_CHARACTERS = 9_000
_SPACES = "[ \\x{a0}\\x{202f}\\x{2007}\\x{2009}\\t]"


@tool(
    description=Description(
        "Show lines that match a pattern, from one file or a whole tree.",
        use_when="you need where something is said or defined.",
        not_when="only a file name is wanted (find_file).",
        cost="one line each.",
        returns="'path:line: text' each, and the total.",
    ),
    examples=({"pattern": "def main\\("}, {"pattern": "1.5", "literal": True, "glob": "*.md"}),
    category=Category.PERCEPTION,
    effects=Effects.READ,
    timeout_s=60,
    path_arguments=("path",),
    confined=True,
    trust=Trust.USER_DATA,
    group="files",
    low_value=True,
)
async def grep_file(
    pattern: Annotated[
        str, Field(description="Regular expression, e.g. 'TODO|FIXME'; (?i) first: any case")
    ],
    path: Annotated[str, Field(description="File or folder, e.g. 'src'")] = ".",
    glob: Annotated[str, Field(description="Only these files, e.g. '*.py'")] = "",
    literal: Annotated[bool, Field(description="Pattern is plain text: true")] = False,
    include_ignored: Annotated[bool, Field(description="Also what .gitignore names: true")] = False,
    offset: Annotated[int, Field(ge=1, description="First match, e.g. 51")] = 1,
    *,
    context: ToolContext,
) -> str:
    if not pattern or "\0" in pattern:
        raise nothing_done(
            f"{pattern!r} cannot be searched for.", next="Give the text to look for."
        )
    options = ["--fixed-strings"] if literal else []
    options += [f"--glob={glob}"] if glob else []
    options += ripgrep.common(include_ignored=include_ignored)
    with refusals():
        roots = roots_of(context)
        try:
            start, is_file = roots.open_folder(path), False
        except PathRefused as fault:
            if fault.code != "not_a_folder":
                raise
            start, is_file = roots.open_file(path), True
    with start:
        found = await _search(pattern, options, start, offset, _PAGE, is_file=is_file)
        hint = "" if found.total else await _hint(pattern, options, start, is_file=is_file,
                                                  literal=literal)  # fmt: skip
    if offset > max(found.total, 1):
        raise nothing_done(
            f"There are {found.total:,} matches; there is no match {offset:,}.",
            next=f"Use an offset from 1 to {max(found.total, 1)}.",
            code="past_end",
        )
    more = "at least " if found.stopped else ""
    head = page(offset, len(found.lines), found.total, "matches", more=more)
    if found.total:
        head += f" (in {found.files:,} {'file' if found.files == 1 else 'files'})"
    if found.binary:
        head += f"; {found.binary:,} binary files match too and are not shown"
    if found.errors:
        head += f"; not everything could be read: {found.errors.splitlines()[0]}"
    return "\n".join([head + hint, *found.lines])


@dataclass(slots=True)
class _Found:
    """The page that was asked for, and counts over everything."""

    first: int
    limit: int
    prefix: str
    total: int = 0
    files: int = 0
    binary: int = 0
    errors: str = ""
    stopped: bool = False
    lines: list[str] = field(default_factory=list)
    _characters: int = 0
    _full: bool = False

    def take(self, match: dict[str, Any], path: str) -> None:
        self.total += 1
        if self.total < self.first or self._full:
            return
        text = f"{shown_name(self.prefix + path)}:{match['line_number']}: {_snippet(match)}"
        if len(self.lines) >= self.limit or self._characters + len(text) > _MOST_CHARACTERS:
            self._full = True
            return
        self.lines.append(text)
        self._characters += len(text) + 1


async def _search(
    pattern: str, options: list[str], start: Opened, offset: int, limit: int, *, is_file: bool
) -> _Found:
    prefix = start.shown if is_file else below(start)
    found = _Found(offset, limit, prefix)
    where = "-" if is_file else "."
    arguments = ["--json", "--crlf", "--binary", *options, "-e", pattern, "--", where]
    waiting: list[tuple[dict[str, Any], str]] = []
    async with ripgrep.search(arguments, start, is_file=is_file) as running:
        async for record in running.records(b"\n"):
            message = json.loads(record)
            if message["type"] == "match":
                name = "" if is_file else _text(message["data"]["path"]).removeprefix("./")
                waiting.append((message["data"], name))
                if found.total + len(waiting) >= _MOST_COUNTED:
                    found.stopped = True
                    running.stop()
                    break
            elif message["type"] == "end":
                if message["data"]["binary_offset"] is not None:
                    found.binary += 1
                else:
                    found.files += bool(waiting)
                    for match, name in waiting:
                        found.take(match, name)
                waiting = []
    for match, name in waiting if found.stopped else ():
        found.take(match, name)
    found.files += bool(waiting)
    if running.exit_code == 2 and not found.total and "regex parse error" in running.errors:
        raise nothing_done(
            f"The pattern is not a regular expression: {_last_line(running.errors)}",
            next="Correct it, or use literal=true to search for it as plain text.",
            code="bad_pattern",
        )
    found.errors = running.errors
    return found


async def _hint(
    pattern: str, options: list[str], start: Opened, *, is_file: bool, literal: bool
) -> str:
    """Nothing was found: whether a near variant of the pattern would have been."""
    plain = [o for o in options if o != "--fixed-strings"]
    escaped = re.sub(r"([\\.+*?()|\[\]{}^$#&\-~])", r"\\\1", pattern) if literal else pattern
    variants = []
    if re.search(r"[ \u00a0\u202f]", pattern):
        spaced = re.sub(r"[ \u00a0\u202f]", lambda _: _SPACES, escaped)
        variants.append((spaced, plain, "with other kinds of space (no-break space, tab)"))
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, pattern)
        if other != pattern:
            variants.append((other, options, f"written in the Unicode form {form}"))
    in_any_case = "in another case (use a pattern that begins with (?i), not literal)"
    if not pattern.startswith("(?i)"):
        variants.append((pattern, [*options, "--ignore-case"], in_any_case))
    if "--no-ignore" not in options and not is_file:
        variants.append(
            (pattern, [*options, "--no-ignore"], "in ignored files (include_ignored=true)")
        )
    hints = []
    for other, with_options, what in variants:
        try:
            found = await _search(other, with_options, start, 1, 1, is_file=is_file)
        except ToolError:
            continue
        if found.total:
            hints.append(f"{found.total:,} {what}: first at {found.lines[0]}")
    return "".join(f"\nbut {hint}" for hint in hints)


def _text(value: dict[str, str]) -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "surrogateescape")


def _snippet(match: dict[str, Any]) -> str:
    """The line, or the part around the first match of a long one, with its length."""
    lines = match["lines"]
    raw = lines["text"].encode() if "text" in lines else base64.b64decode(lines["bytes"])
    line = raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    if len(line) <= 2 * _SNIPPET:
        return line
    places = match["submatches"]
    before = raw[: places[0]["start"]].decode("utf-8", "backslashreplace") if places else ""
    begin = max(0, len(before) - _SNIPPET // 2)
    end = begin + 2 * _SNIPPET
    text = line[begin:end]
    return (
        f"{'…' if begin else ''}{text}{'…' if end < len(line) else ''}"
        f" ⟪characters {begin + 1:,}–{min(end, len(line)):,} of {len(line):,}⟫"
    )


def _last_line(errors: str) -> str:
    return errors.splitlines()[-1] if errors else "it cannot be read"
