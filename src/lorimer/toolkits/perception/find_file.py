"""`find_file`: files by name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from lorimer.core.calls import Effects
from lorimer.core.trust import Trust
from lorimer.safety.paths import Opened
from lorimer.toolkits.opening import below, nothing_done, page, refusals, roots_of, shown_name
from lorimer.toolkits.perception import ripgrep
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext

_PAGE = 100


@tool(
    description=Description(
        "Find files by name in a folder and all below it.",
        use_when="you know part of the name or the kind of file.",
        not_when="looking for text inside files (grep_file).",
        cost="one line each.",
        returns="paths in order, and the total.",
    ),
    examples=({"pattern": "report"}, {"pattern": "src/**/*.py"}),
    category=Category.PERCEPTION,
    effects=Effects.READ,
    timeout_s=60,
    path_arguments=("path",),
    confined=True,
    trust=Trust.USER_DATA,
    group="files",
    low_value=True,
)
async def find_file(
    pattern: Annotated[
        str,
        Field(description="Part of a path or a glob, e.g. 'src/**/*.py'"),
    ],
    path: Annotated[str, Field(description="Folder to start in, e.g. 'src'")] = ".",
    include_ignored: Annotated[bool, Field(description="Also what .gitignore names: true")] = False,
    offset: Annotated[int, Field(ge=1, description="First file, e.g. 101")] = 1,
    *,
    context: ToolContext,
) -> str:
    fits = matcher(pattern)
    with refusals(), roots_of(context).open_folder(path) as start:
        found, errors = await _find(start, fits, include_ignored=include_ignored)
        note = ""
        if not found and not include_ignored:
            ignored, _ = await _find(start, fits, include_ignored=True)
            if ignored:
                note = f" ({len(ignored):,} among ignored files: use include_ignored=true)"
        prefix = below(start)
    if offset > max(len(found), 1):
        raise nothing_done(
            f"There are {len(found):,} files; there is no file {offset:,}.",
            next=f"Use an offset from 1 to {max(len(found), 1)}.",
            code="past_end",
        )
    shown = found[offset - 1 : offset - 1 + _PAGE]
    head = page(offset, len(shown), len(found), "files") + note
    if errors:
        head += f"; not everything could be read: {errors.splitlines()[0]}"
    return "\n".join([head, *(shown_name(prefix + name) for name in shown)])


async def _find(
    start: Opened, fits: Callable[[str], bool], *, include_ignored: bool
) -> tuple[list[str], str]:
    arguments = ["--files", "--null", *ripgrep.common(include_ignored=include_ignored)]
    found = []
    async with ripgrep.search(arguments, start, is_file=False) as running:
        async for record in running.records(b"\0"):
            name = record.decode("utf-8", "surrogateescape")
            if fits(name):
                found.append(name)
    return found, running.errors


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits `pattern`.

    With `*`, `?` or `[` it is a glob: `*` and `?` stay within a folder, `**/` is any folders, a
    pattern without `/` fits names in every folder. Else the path contains it, in any case. Both
    composed and decomposed letters fit.

    Raises:
        ToolError: when the pattern is empty.
    """
    if not pattern:
        raise nothing_done("The pattern is empty.", next="Give a name, or '*' for every file.")
    wanted = unicodedata.normalize("NFC", pattern.removeprefix("./"))
    if not any(c in wanted for c in "*?["):
        part = wanted.casefold()
        return lambda name: part in unicodedata.normalize("NFC", name).casefold()
    glob = re.compile(("" if "/" in wanted else "(?:.*/)?") + _translate(wanted), re.DOTALL)
    return lambda name: glob.fullmatch(unicodedata.normalize("NFC", name)) is not None


def _translate(glob: str) -> str:
    out, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif glob.startswith("**", at):
            out, at = out + ".*", at + 2
        elif glob[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif glob[at] == "?":
            out, at = out + "[^/]", at + 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            inner = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            negated = inner[:1] in ("!", "^")
            out += f"(?!/)[{'^' if negated else ''}{inner[1:] if negated else inner}]"
            at = end + 1
        else:
            out, at = out + re.escape(glob[at]), at + 1
    return out
