"""`list_directory`: what is in a folder."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from lorimer.core.calls import Effects
from lorimer.core.trust import Trust
from lorimer.toolkits.opening import nothing_done, page, refusals, roots_of, shown_name
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext

_PAGE = 150
_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device",
          stat.S_IFBLK: "device"}  # fmt: skip


@tool(
    description=Description(
        "List one folder, hidden files included.",
        use_when="you need to know what there is.",
        not_when="looking for a name in sub-folders (find_file).",
        cost="one line each.",
        returns="names in order, with size and time; folders end in '/'.",
    ),
    examples=({}, {"path": "src"}),
    category=Category.PERCEPTION,
    effects=Effects.READ,
    timeout_s=30,
    path_arguments=("path",),
    confined=True,
    trust=Trust.USER_DATA,
    group="files",
    low_value=True,
)
def list_directory(
    path: Annotated[str, Field(description="Folder, e.g. 'src'")] = ".",
    offset: Annotated[int, Field(ge=1, description="First entry, e.g. 151")] = 1,
    *,
    context: ToolContext,
) -> str:
    with refusals(), roots_of(context).open_folder(path) as opened:
        names = sorted(os.listdir(opened.fd))
        if offset > max(len(names), 1):
            raise nothing_done(
                f"{path!r} has {len(names):,} entries; there is no entry {offset:,}.",
                next=f"Use an offset from 1 to {max(len(names), 1)}.",
                code="past_end",
            )
        shown = names[offset - 1 : offset - 1 + _PAGE]
        where = shown_name(opened.shown) or "."
        lines = [f"{where}: {page(offset, len(shown), len(names), 'entries')}"]
        lines += [_entry(opened.fd, name) for name in shown]
        return "\n".join(lines)


def _entry(folder: int, name: str) -> str:
    text = shown_name(name)
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return f"{text} -> {shown_name(os.readlink(name, dir_fd=folder))}"
    except OSError as fault:
        return f"{text}  ({fault.strerror})"
    if stat.S_ISDIR(found.st_mode):
        return f"{text}/"
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind is not None:
        return f"{text}  ({kind})"
    when = datetime.fromtimestamp(found.st_mtime, UTC).strftime("%Y-%m-%d %H:%MZ")
    return f"{text}  {found.st_size:,} bytes  {when}"
