"""`edit_file`: replace a text that stands exactly once in a file, and nothing else.

Every byte outside the replaced text stays as it is: line ends, byte order mark, encoding, bytes
that are not valid text. The old text must match byte for byte; when it does not, the error shows
where it nearly does and what differs, and nothing is edited.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.trust import Trust
from lorimer.safety.path_faults import PathRefused
from lorimer.safety.paths import Slot
from lorimer.toolkits.execution import replace
from lorimer.toolkits.execution.checks import check_written
from lorimer.toolkits.execution.compare import around, diff, nearest
from lorimer.toolkits.execution.previews import whole_diff
from lorimer.toolkits.execution.write_file import encoded, path_key, unchanged_since_seen
from lorimer.toolkits.opening import nothing_done, refusals, roots_of
from lorimer.toolkits.text import SAMPLE, Encoding, detect, read_all
from lorimer.tools.function import tool
from lorimer.tools.tool import NOT_FOUND, Category, Description, ToolContext, ToolError

_MOST_PLACES = 20
_MOST_SHOWN = 3


def find_outcome(operation_key: str, context: ToolContext) -> Any:
    """What became of an edit whose end is not known, from the hashes it noted before it wrote.

    Returns:
        The result when the file has the new content, `NOT_FOUND` when it has the old content or
        nothing was noted.

    Raises:
        ToolError: when the file is neither, or there is no scratch folder to have noted it in.
    """
    if context.scratch is None:
        raise ToolError("There is no note of this edit.", next="Read the file to see what it is.")
    try:
        note = json.loads(_note_path(context.scratch, operation_key).read_bytes())
    except FileNotFoundError:
        return NOT_FOUND
    try:
        with roots_of(context).open_file(note["path"]) as opened:
            now = replace.content_hash(read_all(opened.fd))
    except PathRefused as fault:
        raise ToolError(fault.message, next="Read the file to see what it is.") from fault
    if now == note["after"]:
        return f"{note['path']} was edited: it has the content this edit made."
    if now == note["before"]:
        return NOT_FOUND
    raise ToolError(
        f"{note['path']} was changed by something else since; the edit may be in it or not.",
        next="Read the file to see what it is.",
    )


def preview(arguments: Mapping[str, Any], context: ToolContext) -> str | None:
    """What a call would make of the file, as a whole unified diff; nothing is changed."""
    old, new = str(arguments["old_text"]), str(arguments["new_text"])
    count = -1 if arguments.get("replace_all") else 1

    def edited(before: str) -> str:
        if not old or old not in before:
            raise ToolError("old_text does not stand in the file as it is now")
        return before.replace(old, new, count)

    return whole_diff(context, str(arguments["path"]), edited)


@tool(
    description=Description(
        "Replace old_text, which must stand exactly once in the file, by new_text, byte for byte.",
        use_when="changing a part of a file that you have read.",
        not_when="most of the file changes (write_file).",
        cost="the changed text.",
        returns="a small diff, or why old_text does not fit.",
    ),
    examples=({"path": "app.py", "old_text": "retries = 3\n", "new_text": "retries = 5\n"},),
    category=Category.EXECUTION,
    effects=Effects.WRITE,
    idempotency=Idempotency.QUERYABLE,
    find_outcome=find_outcome,
    timeout_s=60,
    resources=path_key,
    path_arguments=("path",),
    confined=True,
    preview=preview,
    verify=check_written,
    trust=Trust.USER_DATA,
    group="files",
)
async def edit_file(
    path: Annotated[str, Field(description="File, e.g. 'app.py'")],
    old_text: Annotated[str, Field(description="Text as it stands there, e.g. 'retries = 3'")],
    new_text: Annotated[str, Field(description="Text instead, e.g. 'retries = 5'; '' deletes")],
    replace_all: Annotated[bool, Field(description="Replace every occurrence: true")] = False,
    *,
    context: ToolContext,
) -> str:
    """Cancellation before the worker thread begins leaves nothing done; after that the edit is
    finished, or undone, and the result is told."""
    context.will_mark()
    return await anyio.to_thread.run_sync(_edit, path, old_text, new_text, replace_all, context)


def _edit(path: str, old_text: str, new_text: str, replace_all: bool, context: ToolContext) -> str:
    if not old_text:
        raise nothing_done(
            "old_text is empty.", next="Give the text to replace, or use write_file.", code="value"
        )
    if old_text == new_text:
        raise nothing_done(
            "old_text and new_text are the same.", next="Give the changed text.", code="value"
        )
    with refusals(), roots_of(context).slot(path) as slot:
        if slot.found is None:
            raise nothing_done(
                f"{path!r} does not exist.",
                next="Use write_file to make it, or find_file to find it.",
                code="not_found",
            )
        with replace.current(slot) as now:
            unchanged_since_seen(slot, now, context, "edit")
            encoding = detect(now.content[:SAMPLE]) or Encoding("utf-8")
            old = encoded(old_text, encoding, "old_text")
            new = encoded(new_text, encoding, "new_text")
            places = _places(now.content, old, encoding.unit)
            _check_places(slot, now.content, old, places, old_text, encoding, every=replace_all)
            content = _replaced(now.content, old, new, places)
            _note(slot, now, content, context)
            written = replace.overwrite(slot, now, content, context)
            context.views.remember(str(slot.path), replace.content_hash(content))
            shown = _diffs(now.content, old, new, places, encoding)
    count = f" ({len(places)} places)" if len(places) > 1 else ""
    notes = [f"note: {note}" for note in written.notes]
    return "\n".join([f"{slot.shown} was edited{count}.", *shown, *notes])


def _places(content: bytes, old: bytes, unit: int) -> list[int]:
    """Where `old` stands, overlapping places included, on whole code units."""
    places, at = [], content.find(old)
    while at >= 0:
        if at % unit == 0:
            places.append(at)
        at = content.find(old, at + 1)
    return places


def _check_places(
    slot: Slot,
    content: bytes,
    old: bytes,
    places: list[int],
    old_text: str,
    encoding: Encoding,
    *,
    every: bool,
) -> None:
    name = slot.shown
    if not places:
        near = nearest(content.decode(encoding.codec, "backslashreplace"), old_text)
        raise nothing_done(
            f"old_text does not stand in {name!r}; nothing was edited. {near}".rstrip(),
            next="Copy the text exactly as the file has it"
            + (" (in JSON, write CR LF as \\r\\n)." if "CRLF" in near else "."),
            code="no_match",
        )
    newline = "\n".encode(encoding.codec)
    if any(b - a < len(old) for a, b in pairwise(places)):
        raise nothing_done(
            f"old_text overlaps with itself in {name!r}; what to replace is not clear.",
            next="Give a longer text that stands there only once.",
            code="ambiguous",
        )
    if len(places) > 1 and not every:
        lines = [str(content.count(newline, 0, at) + 1) for at in places[:_MOST_PLACES]]
        more = "" if len(places) <= _MOST_PLACES else f" and {len(places) - _MOST_PLACES} more"
        raise nothing_done(
            f"old_text stands {len(places)} times in {name!r}, at lines {', '.join(lines)}{more}; "
            "nothing was edited.",
            next="Add lines before or after so that it is unique, or use replace_all=true.",
            code="ambiguous",
        )


def _replaced(content: bytes, old: bytes, new: bytes, places: list[int]) -> bytes:
    out, at = [], 0
    for place in places:
        out += [content[at:place], new]
        at = place + len(old)
    return b"".join([*out, content[at:]])


def _diffs(
    content: bytes, old: bytes, new: bytes, places: list[int], encoding: Encoding
) -> list[str]:
    """A small diff for each of the first places."""
    out = []
    grown = 0
    for place in places[:_MOST_SHOWN]:
        before = content[:place].decode(encoding.codec, "backslashreplace")
        gone = old.decode(encoding.codec)
        after = content[place + len(old) :].decode(encoding.codec, "backslashreplace")
        text = before + gone + after
        begin, end = around(text, len(before), len(before) + len(gone))
        first = text.count("\n", 0, begin) + 1
        tail = text[len(before) + len(gone) : end]
        changed = before[begin:] + new.decode(encoding.codec) + tail
        out.append(diff(text[begin:end], changed, first))
        grown += 1
    if len(places) > grown:
        out.append(f"… and {len(places) - grown} more places like these")
    return out


def _note(slot: Slot, now: replace.Current, content: bytes, context: ToolContext) -> None:
    """Write down, before the effect, what this edit makes of the file; for `find_outcome`."""
    if context.scratch is None:
        return
    path = _note_path(context.scratch, context.operation_key)
    note: Mapping[str, str] = {
        "path": slot.shown, "before": now.hash, "after": replace.content_hash(content)
    }  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, canonical_json(note))
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as fault:
        raise nothing_done(
            f"The edit could not be noted in {context.scratch}: {fault.strerror}.",
            next="Tell the user that the session's scratch folder cannot be written.",
            code="not_written",
        ) from fault


def _note_path(scratch: Path, operation_key: str) -> Path:
    return scratch / "edits" / f"{digest(operation_key.encode())}.json"
