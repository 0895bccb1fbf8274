"""`lorimer sessions`: what was recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import StorePath
from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.core.messages import Entry
    from lorimer.store.sqlite import SqliteStore

app = typer.Typer(no_args_is_help=True, help="List, show and export recorded sessions.")


@app.command("list")
def list_sessions(
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many, newest first.")
    ] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False,
    store: StorePath = None,
) -> None:
    """The newest sessions, with what was first asked."""
    from lorimer.cli.execute import existing_store
    from lorimer.cli.terminal import safe
    from lorimer.core.clock import to_rfc3339

    opened = existing_store(store)
    try:
        found = opened.sessions(limit=limit)
    finally:
        opened.close()
    if as_json:
        for one in found:
            print(
                json.dumps(
                    {
                        "id": one.id, "created_at": to_rfc3339(one.created_at),
                        "updated_at": to_rfc3339(one.updated_at), "principal": one.principal,
                        "model": one.model, "entries": one.entries, "calls": one.calls,
                        "unfinished_calls": one.unfinished_calls, "first_words": one.first_words,
                    },
                    ensure_ascii=False,
                )
            )  # fmt: skip
        return
    if not found:
        print('No sessions yet. Start one: lorimer run "…"')
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("session", no_wrap=True, min_width=28)
    table.add_column("updated", no_wrap=True, min_width=11)
    table.add_column("calls", justify="right", no_wrap=True, min_width=5)
    table.add_column("first words", overflow="ellipsis", no_wrap=True, ratio=1)
    for one in found:
        calls = f"{one.calls}" + (f" ({one.unfinished_calls} open)" if one.unfinished_calls else "")
        table.add_row(
            one.id, f"{one.updated_at.astimezone():%m-%d %H:%M}", calls, safe(one.first_words)
        )
    Console().print(table)


@app.command("show")
def show_session(
    session_id: Annotated[str, typer.Argument(help="The session.")],
    store: StorePath = None,
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
) -> None:
    """What was said and done in a session, with the outcome of every call."""
    from lorimer.cli.execute import existing_store
    from lorimer.cli.terminal import one_line, safe
    from lorimer.core.messages import CallPart, ReasoningPart, ResultPart, TextPart

    def cut(text: str) -> str:
        text = safe(text)
        if full or len(text) <= 600:
            return text
        return f"{text[:600]}\n[… {len(text) - 600} more characters; --full shows them]"

    opened = existing_store(store)
    try:
        record = opened.session(session_id)
        print(
            f"session {record.id} · {record.model} · "
            f"{record.created_at.astimezone():%Y-%m-%d %H:%M}"
        )
        print(
            f"principal {record.principal} · mode {record.meta.get('mode')} · "
            f"{record.meta.get('workspace')}"
        )
        for entry, _ in opened.entries(session_id, record.wire):
            print(f"\n[{entry.seq}] {entry.kind} · {entry.at.astimezone():%H:%M:%S}")
            for line in _of_the_record(entry):
                print(cut(line))
            for part in entry.parts:
                match part:
                    case TextPart(text):
                        print(cut(text))
                    case ReasoningPart(text):
                        print(f"(reasoning) {cut(text)}")
                    case CallPart(call):
                        print(f"→ {safe(call.name)} {cut(call.raw)}   ({call.id})")
                    case ResultPart():
                        text = "".join(p.text for p in part.content if isinstance(p, TextPart))
                        mark = "✗" if part.is_error else "✓"
                        print(f"{mark} {safe(part.name)} [{part.outcome}]  {cut(text)}")
                    case other:
                        print(one_line({"part": type(other).__name__}))
        unfinished = [c for c in opened.calls(session_id) if c.outcome is None]
        if unfinished:
            print(f"\n{len(unfinished)} call(s) without an end: lorimer resume {session_id}")
    finally:
        opened.close()


@app.command("export")
def export(
    session_id: Annotated[str, typer.Argument(help="The session.")],
    form: Annotated[
        str, typer.Option("--as", help="`jsonl` (everything), `openai` or `anthropic` (messages).")
    ] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; default: stdout.")
    ] = None,
    store: StorePath = None,
    sent: Annotated[
        bool,
        typer.Option("--sent", help="Messages as the next request has them, after compactions."),
    ] = False,
) -> None:
    """Export a session: as JSON Lines (session, entries, calls, audit), or as provider messages.

    Messages are everything that was said, also what a compaction left out of later requests; with
    --sent they are what the model would be sent now.
    """
    from lorimer.cli.execute import existing_store

    if form not in ("jsonl", "openai", "anthropic"):
        raise UsageFault(f"There is no form {form!r}.", next="Use jsonl, openai or anthropic.")
    if sent and form == "jsonl":
        raise UsageFault("--sent is for messages.", next="Add --as openai or --as anthropic.")
    opened = existing_store(store)
    try:
        lines = (
            _lines(opened, session_id)
            if form == "jsonl"
            else _messages(opened, session_id, form, sent=sent)
        )
        if output is None:
            for line in lines:
                sys.stdout.write(line + "\n")
        else:
            temporary = output.with_name(output.name + ".part")
            with temporary.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
            temporary.replace(output)
    finally:
        opened.close()


def _lines(store: SqliteStore, session_id: str) -> Iterator[str]:
    from dataclasses import asdict

    from lorimer.cli.asking import record_json
    from lorimer.core.clock import to_rfc3339
    from lorimer.store.rows import to_text

    record = store.session(session_id)
    yield to_text(
        {
            "type": "session", "id": record.id, "created_at": to_rfc3339(record.created_at),
            "principal": record.principal, "model": record.model, "wire": record.wire,
            "system": record.system, "tools": list(record.tools), "meta": dict(record.meta),
        }
    )  # fmt: skip
    for entry, _ in store.entries(session_id, record.wire):
        yield to_text({"type": "entry", "seq": entry.seq, **entry.to_json()})
    for call in store.calls(session_id):
        plain: dict[str, Any] = {}
        for key, value in asdict(call).items():
            plain[key] = to_rfc3339(value) if hasattr(value, "tzinfo") else value
        yield to_text({"type": "call", **plain})
    now = store.clock.now()
    for approval in store.approvals(session_id):
        yield to_text({"type": "approval", **record_json(approval, now, whole=True)})
    for line in store.audit(session_id):
        yield to_text({"type": "audit", **asdict(line)})


def _of_the_record(entry: Entry) -> Iterator[str]:
    """What an entry that is no message changed."""
    from lorimer.context.view import Span
    from lorimer.core.messages import Kind

    if entry.kind is Kind.REBASE:
        yield f"the prefix is another one from here on: {entry.meta.get('reason', '')}"
    elif entry.kind is Kind.COMPACTION:
        for record in entry.meta.get("spans", ()):
            span = Span.from_json(record)
            yield f"entries {span.first} to {span.last} are sent as:"
            for one in span.entries:
                texts = [one.text] if one.text else [r.name for r in one.results]
                yield f"  {one.kind}: {' '.join(texts)}"
    elif entry.kind is Kind.ARCHIVE:
        for name, value in entry.meta.items():
            yield f"{name}: {json.dumps(value, ensure_ascii=False)}"


def _messages(store: SqliteStore, session_id: str, form: str, *, sent: bool) -> Iterator[str]:
    from lorimer.context.trajectory import Trajectory
    from lorimer.core.messages import Kind
    from lorimer.models.anthropic import Anthropic
    from lorimer.models.openai_chat import OpenAIChat
    from lorimer.models.profiles import profile_for
    from lorimer.models.protocol import Prefix

    record = store.session(session_id)
    model: Any = (
        OpenAIChat("export", profile_for("openai"), name=record.model)
        if form == "openai"
        else Anthropic("export", profile_for("anthropic"), name=record.model)
    )
    trajectory = Trajectory(model, Prefix(record.system, (), b""))
    for entry, _ in store.entries(session_id, record.wire):
        if sent or entry.kind not in (Kind.COMPACTION, Kind.REBASE):
            trajectory.load([(replace(entry, seq=trajectory.next_seq), None)])
    parts = [fragment.decode("utf-8") for fragment in trajectory.fragments]
    body = json.loads("[" + ",".join(p for p in parts if p) + "]")
    if form == "openai":
        body.insert(0, {"role": "system", "content": trajectory.prefix.system})
    yield json.dumps(body, ensure_ascii=False, indent=2)
