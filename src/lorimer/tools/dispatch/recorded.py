"""An ended call as the record has it: its whole result, also where a preview was told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from lorimer.core.errors import SessionNotFound, StoreError
from lorimer.core.messages import ResultPart, TextPart, part_from_json
from lorimer.core.quoting import unwrapped
from lorimer.store.protocol import CallRecord, Store
from lorimer.tools.tool_context import RecordedCall

COPIED: Final = "copied"
"""In the meta of a session that began as a copy: of which `session`, and the calls of which entries
are in it: those `before` a number."""
_LEFT_OUT = re.compile(
    r"\n\[… \d+ of \d+ lines left out here \(\d+ characters in all\)\. The whole text is "
    r"(?:in|kept in) (.*?)(?:; read it|; to see)"
)
"""As `present` writes it into a preview."""
_FILE = re.compile(r"([0-9a-f]{2})[/\\]([0-9a-f]{62})$")


def recorded_call(store: Store, session: str, call_id: str) -> RecordedCall | None:
    """The ended call `call_id` of the session, or of the conversation that it began as a copy of;
    `None` when there is none."""
    record = journaled_call(store, session, call_id)
    if record is None or record.result is None or record.outcome is None:
        return None
    result = part_from_json(record.result)
    assert isinstance(result, ResultPart)
    content = tuple(
        replace(part, text=whole_text(store, record.session, part.text))
        if isinstance(part, TextPart)
        else part
        for part in result.content
    )
    return RecordedCall(record.id, record.tool, record.raw, record.outcome, content)


def journaled_call(store: Store, session: str, call_id: str) -> CallRecord | None:
    """The call `call_id` in the journal of the session; in those of the sessions that it is a copy
    of, as far as they were copied."""
    record = store.call(session, call_id)
    before: int | None = None
    while record is None:
        try:
            copied = store.session(session).meta.get(COPIED)
        except SessionNotFound:
            return None
        if not isinstance(copied, Mapping):
            return None
        session, end = str(copied["session"]), int(copied["before"])
        before = end if before is None else min(before, end)
        record = store.call(session, call_id)
    return record if before is None or record.entry_seq < before else None


def journaled_calls(store: Store, session: str) -> list[CallRecord]:
    """All calls in the journal of the session, after those of the sessions that it is a copy of, as
    far as they were copied."""
    try:
        copied = store.session(session).meta.get(COPIED)
    except SessionNotFound:
        copied = None
    above: list[CallRecord] = []
    if isinstance(copied, Mapping):
        above = journaled_calls(store, str(copied["session"]))
        above = [call for call in above if call.entry_seq < int(copied["before"])]
    return [*above, *store.calls(session)]


def whole_text(store: Store, session: str, text: str) -> str:
    """The text of a result without the tags of outside content, and whole where `text` is a preview
    whose blob is there. A text that names what `session` has not kept itself is no preview of
    ours."""
    plain = unwrapped(text)
    found = _LEFT_OUT.search(plain)
    if found is None:
        return plain
    where = found.group(1)
    file = _FILE.search(where)
    reference = where if file is None else f"sha256:{file.group(1)}{file.group(2)}"
    if not store.kept_by(session, reference):
        return plain
    try:
        return store.get_blob(reference).decode("utf-8", "surrogatepass")
    except (StoreError, UnicodeDecodeError):
        return plain  # the preview still says where it was kept
