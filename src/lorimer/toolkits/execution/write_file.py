"""`write_file`: a whole file, new or in place of what the session has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from lorimer.core.calls import Effects, Idempotency
from lorimer.core.trust import Trust
from lorimer.safety.paths import Slot
from lorimer.toolkits.execution import replace
from lorimer.toolkits.execution.checks import check_written
from lorimer.toolkits.execution.compare import diff
from lorimer.toolkits.execution.previews import whole_diff
from lorimer.toolkits.opening import nothing_done, refusals, roots_of
from lorimer.toolkits.text import SAMPLE, Encoding, detect
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext


def path_key(arguments: Mapping[str, Any]) -> list[str]:
    """Writes to files run one after another: two paths can name one file (links, case)."""
    return ["files"]


def preview(arguments: Mapping[str, Any], context: ToolContext) -> str | None:
    """What a call would make of the file, as a whole unified diff; nothing is changed."""
    content = str(arguments["content"])
    return whole_diff(context, str(arguments["path"]), lambda _: content)


@tool(
    description=Description(
        "Write a whole UTF-8 text file, byte for byte; missing folders are made.",
        use_when="it is new, or nearly all of it changes.",
        not_when="changing a part (edit_file). Read an existing file first.",
        cost="all of the text.",
        returns="a small diff.",
    ),
    examples=({"path": "notes/plan.md", "content": "# Plan\n\n1. Measure\n"},),
    category=Category.EXECUTION,
    effects=Effects.WRITE,
    idempotency=Idempotency.NATURAL,
    timeout_s=60,
    resources=path_key,
    path_arguments=("path",),
    confined=True,
    preview=preview,
    verify=check_written,
    trust=Trust.USER_DATA,
    group="files",
)
async def write_file(
    path: Annotated[str, Field(description="File, e.g. 'notes/plan.md'")],
    content: Annotated[str, Field(description="All of it, e.g. 'a,b\\n1,2\\n'")],
    *,
    context: ToolContext,
) -> str:
    """Cancellation before the worker thread begins leaves nothing done; after that the write is
    finished, or undone, and the result is told."""
    context.will_mark()
    return await anyio.to_thread.run_sync(_write, path, content, context)


def _write(path: str, content: str, context: ToolContext) -> str:
    raw = encoded(content, Encoding("utf-8"), "content")
    with refusals(), roots_of(context).slot(path) as slot:
        if slot.found is None:
            return _write_new(slot, raw, context)
        with replace.current(slot) as now:
            name = slot.shown
            if now.content == raw:
                context.views.remember(str(slot.path), now.hash)
                return f"{name} has exactly this content already; nothing was changed."
            unchanged_since_seen(slot, now, context, "overwrite")
            written = replace.overwrite(slot, now, raw, context)
            context.views.remember(str(slot.path), replace.content_hash(raw))
            return _overwritten(name, now.content, content, len(raw), written.notes)


def _write_new(slot: Slot, raw: bytes, context: ToolContext) -> str:
    with replace.absent(slot):
        written = replace.create(slot, raw, context)
    context.views.remember(str(slot.path), replace.content_hash(raw))
    text = f"{slot.shown} was made: {_size(raw)}."
    return "\n".join([text, *(f"note: {note}" for note in written.notes)])


def _overwritten(name: str, before: bytes, content: str, size: int, notes: list[str]) -> str:
    encoding = detect(before[:SAMPLE])
    if encoding is None:
        return f"{name} was overwritten: {len(before):,} bytes that were not text, now {size:,}."
    if encoding != Encoding("utf-8"):
        notes.append(f"it was {encoding.label} before and is UTF-8 now")
    old = before[len(encoding.bom) :].decode(encoding.codec, "backslashreplace")
    if "\r\n" in old and "\n" in content and "\r\n" not in content:
        notes.append("its lines ended in CRLF before and end in LF now")
    text = f"{name} was overwritten: {len(before):,} bytes before, {size:,} now.\n"
    return "\n".join([text + diff(old, content), *(f"note: {note}" for note in notes)])


def unchanged_since_seen(slot: Slot, now: replace.Current, context: ToolContext, what: str) -> None:
    """Refuse to change a file that this session has not seen as it is now.

    Raises:
        ToolError: `not_read` or `stale`.
    """
    seen = context.views.seen(str(slot.path))
    if seen is None:
        raise nothing_done(
            f"{slot.shown!r} exists and was not read in this session; nothing was changed.",
            next=f"Call read_file on it first, then {what} it.",
            code="not_read",
        )
    if seen != now.hash:
        raise nothing_done(
            f"{slot.shown!r} changed since it was read; nothing was changed.",
            next=f"Call read_file on it again, then {what} what it is now.",
            code="stale",
        )


def encoded(text: str, encoding: Encoding, argument: str) -> bytes:
    """`text` as bytes of that encoding.

    Raises:
        ToolError: for half a surrogate pair, which no file can hold.
    """
    try:
        return text.encode(encoding.codec)
    except UnicodeEncodeError as fault:
        raise nothing_done(
            f"{argument}: character {fault.start + 1:,} ({text[fault.start]!r}) is half of a "
            "surrogate pair and cannot be written.",
            next="Send whole characters.",
            code="value",
        ) from None


def _size(raw: bytes) -> str:
    lines = raw.count(b"\n") + bool(raw and not raw.endswith(b"\n"))
    return f"{len(raw):,} bytes, {lines:,} {'line' if lines == 1 else 'lines'}"
