"""What `lorimer tools call` says of the one call it made: its result, and what can be done then."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lorimer.core.calls import Outcome

if TYPE_CHECKING:
    from lorimer.runtime.results import CallReport
    from lorimer.store.sqlite import SqliteStore

BACKGROUND = (
    "What this call started in the background has ended with this command. Run it in the "
    "foreground with a longer timeout_s, or use `lorimer chat` or `lorimer run`."
)


def say(text: str) -> None:
    """A line on stderr."""
    from lorimer.cli.terminal import safe

    print(safe(text), file=sys.stderr, flush=True)


def ending(
    store: SqliteStore, session: str, done: CallReport, tools: str | None, path: Path | None
) -> str:
    """What a person can do now, where that is not what a model is told; or empty."""
    if done.outcome is Outcome.DONE:
        background = done.arguments is not None and done.arguments.get("background") is True
        return BACKGROUND if background and done.name == "shell_exec" else ""
    request = _request_of(store, session, done)
    if request is None:
        return ""
    place = [] if path is None else ["--store", str(path)]
    again = ["lorimer", "tools", "call", done.name, done.raw, "--session", session]
    again += [] if tools is None else ["--tools", tools]
    return (
        f"Approve it: {shlex.join(['lorimer', 'approvals', 'approve', request, *place])}\n"
        f"Then call it again: {shlex.join([*again, *place])}"
    )


def _request_of(store: SqliteStore, session: str, done: CallReport) -> str | None:
    """The request that waits for an answer about this call."""
    from lorimer.core.approvals import ApprovalState

    waiting = store.approvals(session, ApprovalState.OPEN, tool=done.name)
    for record in reversed(waiting):
        asked = (record.request.get("bound") or {}).get("arguments")
        if record.call == done.id or asked == done.arguments:
            return record.id
    return None


def show_result(done: CallReport, then: str) -> None:
    """The result on stdout, as it is unless that is a terminal; then what can be done."""
    from lorimer.cli.terminal import safe

    text = done.result
    if done.outcome is not Outcome.DONE:
        body = json.loads(text)
        if then:
            body["next"] = then
        text = json.dumps(body, indent=2, ensure_ascii=False)
    print(safe(text) if sys.stdout.isatty() else text)
    if then:
        sys.stdout.flush()
        say(then)
