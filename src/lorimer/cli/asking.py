"""Showing a request to a person, whole, and asking for the answer at the terminal."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lorimer.cli.execute import STOPPED
from lorimer.cli.terminal import Screen, flat, safe, wrapped
from lorimer.core.approvals import ApprovalRecord, names_count, names_in
from lorimer.core.clock import to_rfc3339
from lorimer.core.decisions import Approval, ApprovalRequest
from lorimer.core.errors import Cancelled

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_WHO = "the person at the terminal"
UNBROKEN = 1 << 30
"""The width of output that no person reads at a terminal."""


def call_lines(
    arguments: Mapping[str, Any],
    *,
    cwd: str,
    paths: Any = (),
    files: Mapping[str, str] | None = None,
    effects: Mapping[str, Any] | None = None,
    preview: str = "",
    news: str = "",
    reason: str = "",
    width: int = UNBROKEN,
) -> Iterator[str]:
    """A call in lines for a person; nothing of it is cut.

    Args:
        reason: what is told of the question already: it is not said again.
        width: columns that a line has at most.
    """

    def field(text: str) -> Iterator[str]:
        yield from wrapped(safe(text), width, "  ", "      ")

    def block(text: str, mark: str = "    ") -> Iterator[str]:
        for row in text.split("\n"):
            yield from wrapped(safe(row), width, mark, "    · ")

    for name, value in arguments.items():
        if isinstance(value, str) and ("\n" in value or len(value) > 60):
            yield from field(f"{name}: ({len(value)} characters)")
            yield from block(value, "    | ")
        else:
            yield from field(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    if cwd:
        yield from field(f"in: {cwd}")
    for path in paths:
        yield from field(f"path: {path}")
    found = effects or {}
    for host in found.get("hosts", ()):
        yield from field(f"host: {host}")
    told = {flat(str(one["text"])): None for one in found.get("reasons", ())}
    for text in told:
        if text not in flat(reason):
            yield from field(f"why asked: {text}")
    deleted = set(found.get("deletes", ()))
    for path, hashed in (files or {}).items():
        yield from field(_file_text(path, hashed, deleted, cwd))
    if preview:
        yield "  would change:"
        yield from block(preview)
    if news:
        rows = news.split("\n")
        yield from field(f"new since the last approved call: {rows[0]}")
        for row in rows[1:]:
            yield from block(row)


def _file_text(path: str, hashed: str, deleted: set[str], cwd: str) -> str:
    """One bound file, or the names that a pattern or a folder stands for."""
    names = names_in(hashed)
    if names is None:
        return f"file: {path} {hashed}"
    count = names_count(hashed)
    word = "deletes" if path.rstrip("/") in deleted or path.endswith("/") else "means"
    shown = ", ".join(
        os.path.relpath(name, cwd) if cwd and name.startswith(f"{cwd}/") else name for name in names
    )
    more = f" and {count - len(names)} more" if count > len(names) else ""
    what = f"what is in {path}" if path.endswith("/") else path
    if not names:
        return f"{word}: {f'{count} names' if count else 'nothing'} ({what})"
    return f"{word}: {shown}{more} ({count}: {what})"


def arguments_of(record: ApprovalRecord) -> Mapping[str, Any]:
    """The arguments that the request shows."""
    bound = record.request.get("bound", {})
    found = bound.get("arguments", record.request.get("arguments", {}))
    return found if isinstance(found, Mapping) else {}


def call_text(record: ApprovalRecord) -> str:
    """The call on one line: with the arguments that a person wrote, where one did; a command as
    it was written."""
    if str(record.kind) == "breaker":
        return f"go on? next would be {flat(record.tool)}"
    edited = record.edited
    arguments = dict(arguments_of(record) if edited is None else edited)
    words = [f"{record.tool}{'' if edited is None else ' (edited)'}:"]
    command = arguments.pop("command", None)
    if isinstance(command, str):
        words.append(command)
    elif command is not None:
        arguments["command"] = command
    words += [f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items()]
    return safe(" ".join(words)).replace("\n", "⏎").replace("\t", " ")


def call_rows(record: ApprovalRecord, width: int, most: int = 3) -> list[str]:
    """`call_text` in at most `most` lines; says how much is left out."""
    text = call_text(record)
    rows = wrapped(text, width, "  ", "    ")
    if len(rows) <= most:
        return rows
    shown = [row.rstrip() for row in rows[:most]]
    left = len(text) - sum(len(r) for r in rows[:most]) + 2 + 4 * (most - 1)
    return [*shown, f"    … {left} more characters"]


def lines_of(record: ApprovalRecord, now: datetime, width: int = UNBROKEN) -> Iterator[str]:
    """A whole stored request, and what became of it."""
    for line in _lines_of(record, now, width):
        yield from [line] if line.startswith(" ") else wrapped(line, width, "", " " * 10)


def _lines_of(record: ApprovalRecord, now: datetime, width: int) -> Iterator[str]:
    bound = record.request.get("bound", {})
    state = record.state_at(now)
    yield f"request   {record.id} · {record.kind} · {state}"
    yield f"session   {record.session} · principal {flat(record.principal)} · call {record.call}"
    yield f"asked     {to_rfc3339(record.asked_at)}" + (
        "" if record.expires_at is None else f" · expires {to_rfc3339(record.expires_at)}"
    )
    if record.digest:
        yield f"digest    {record.digest}"
    yield f"call      {safe(record.tool)} ({record.request.get('effects', '?')})"
    reason = str(record.request.get("reason", ""))
    yield f"reason    {flat(reason)}"
    yield from call_lines(
        arguments_of(record), cwd=str(record.request.get("cwd", "")),
        paths=bound.get("paths", ()), files=bound.get("files", {}),
        effects=bound.get("effects", {}), preview=str(record.request.get("preview", "")),
        news=str(record.request.get("news", "")), reason=reason, width=width,
    )  # fmt: skip
    for name in ("policy", "sandbox"):
        if bound.get(name):
            yield f"  {name}: {safe(str(bound[name]))}"
    rule = record.request.get("remember_rule")
    if rule:
        yield "  --for-session would add this rule:"
        yield from (f"    {safe(row)}" for row in str(rule).split("\n"))
    if record.answer:
        yield f"answer    {summary(record)}"
    if record.closing:
        yield f"closed    {_closing(record)}"
    if str(state) == "open" and str(record.kind) != "confirmation":
        yield f"→ lorimer approvals approve {record.id}   (or reject, or edit)"


def summary(record: ApprovalRecord) -> str:
    """The answer in one line."""
    what = "go on" if str(record.kind) == "breaker" else record.tool
    if "verdict" in record.answer:
        verdict = record.answer["verdict"]
        return f"{flat(record.by)} said {verdict} to {safe(what)}: {flat(record.reason)}"
    word = "approved" if record.answer.get("approved") else "rejected"
    text = f"{record.id}: {word} by {flat(record.by)} ({safe(what)})"
    if record.answer.get("for_session"):
        text += ", and its rule for the session"
    if record.edited is not None:
        text += ", with the arguments " + safe(json.dumps(record.edited, ensure_ascii=False))
    return text + (f": {flat(record.reason)}" if record.reason else "")


def _closing(record: ApprovalRecord) -> str:
    at = "" if record.closed_at is None else to_rfc3339(record.closed_at)
    if "call" in record.closing:
        return f"used by call {record.closing['call']} at {at}"
    return f"{flat(str(record.closing.get('why', record.state)))} at {at}"


def record_json(record: ApprovalRecord, now: datetime, *, whole: bool = False) -> dict[str, Any]:
    """A record for programs; `whole` with everything that was shown and bound."""

    def moment(at: datetime | None) -> str | None:
        return None if at is None else to_rfc3339(at)

    out: dict[str, Any] = {
        "id": record.id, "kind": str(record.kind), "state": str(record.state_at(now)),
        "session": record.session, "call": record.call, "tool": record.tool,
        "arguments": dict(arguments_of(record)), "reason": record.request.get("reason", ""),
        "principal": record.principal, "digest": record.digest,
        "asked_at": moment(record.asked_at), "expires_at": moment(record.expires_at),
        "answered_at": moment(record.answered_at), "answer": dict(record.answer),
        "closed_at": moment(record.closed_at),
    }  # fmt: skip
    if whole:
        out["request"] = dict(record.request)
        out["closing"] = dict(record.closing)
    return out


def ago(seconds: float) -> str:
    """A duration, short: `42 s`, `7 min`, `3 h`, `2 d`."""
    for most, unit, size in ((100, "s", 1), (5_700, "min", 60), (172_800, "h", 3_600)):
        if seconds < most:
            return f"{max(0, round(seconds / size))} {unit}"
    return f"{round(seconds / 86_400)} d"


class TerminalApprover:
    """Asks the person at the terminal about one exact call; the whole call is shown. Enter alone
    decides nothing; Ctrl-C and Ctrl-D are no answer, and stop the run. When somebody answers
    elsewhere the question goes away."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def ask(self, request: ApprovalRequest) -> Approval:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output

        self._show(request)
        _forget_what_was_typed()
        session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
        while True:
            try:
                answer = (
                    await session.prompt_async(_question(request), handle_sigint=False)
                ).strip()
            except (EOFError, KeyboardInterrupt):
                self._screen.line("Stopping. The call was not answered; it is not counted as no.")
                raise Cancelled(STOPPED) from None
            match answer.lower():
                case "":
                    continue
                case "y" | "yes":
                    return Approval(True, _WHO)
                case "n" | "no":
                    return Approval(False, _WHO)
                case "s" | "session" if request.remember_rule:
                    return Approval(True, _WHO, for_session=True)
                case "e" | "edit" if request.kind == "call":
                    edited = await self._edit(session, request)
                    if edited is not None:
                        return Approval(True, _WHO, edited=edited)
                case _:
                    return Approval(False, _WHO, answer)

    def _show(self, request: ApprovalRequest) -> None:
        screen, facts = self._screen, request.facts
        screen.line("")
        width = screen.width()
        if request.kind == "breaker":
            title = f"{flat(request.reason)}: {safe(facts.tool)}"
        else:
            title = f"The model wants to call {safe(facts.tool)} ({facts.level}): " + (
                f"{flat(request.reason)}."
            )
        for line in wrapped(title, width):
            screen.line(line)
        touches = facts.touches
        paths = [] if touches is None else [f"{p.access} {p.path}" for p in touches.paths]
        for line in call_lines(
            facts.arguments, cwd=facts.cwd, paths=paths, files=request.files,
            effects=None if touches is None else touches.to_json(), preview=request.preview,
            news=request.news, reason=request.reason, width=width,
        ):  # fmt: skip
            screen.line(line)
        if request.remember_rule:
            screen.line("  s would add this rule for the session:")
            for row in request.remember_rule.split("\n"):
                for line in wrapped(safe(row), width, "    ", "      "):
                    screen.line(line)
        if request.id:
            until = "" if request.expires_at is None else f", until {_clock(request.expires_at)}"
            text = f"request: {request.id}{until} (lorimer approvals answers it, too)"
            for line in wrapped(text, width, "  "):
                screen.line(line)
        for line in wrapped(_choices(request), width):
            screen.line(line)

    async def _edit(
        self, session: PromptSession[str], request: ApprovalRequest
    ) -> Mapping[str, Any] | None:
        """The arguments as the person changes them; `None` when they leave it."""
        text = json.dumps(dict(request.facts.arguments), ensure_ascii=False)
        while True:
            try:
                text = await session.prompt_async(
                    "Arguments (Ctrl-C goes back): ", default=text, handle_sigint=False
                )
                edited = json.loads(text)
            except (EOFError, KeyboardInterrupt):
                return None
            except ValueError as fault:
                self._screen.line(f"  That is no JSON: {fault}")
                continue
            if isinstance(edited, dict):
                return edited
            self._screen.line("  Write an object: {…}")


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M:%S}"


def _choices(request: ApprovalRequest) -> str:
    if request.kind == "breaker":
        return _together("y = yes, go on; n = no, stop; Ctrl-C = stop the run")
    more = "s = yes, and the rule above for this session; " if request.remember_rule else ""
    return _together(
        f"y = yes, once; {more}e = edit the arguments; n = no, or say why not; "
        "Ctrl-C = stop the run"
    )


def _together(choices: str) -> str:
    """A key stays on one line with what it means."""
    return choices.replace(" = ", "\u00a0=\u00a0")


def _question(request: ApprovalRequest) -> str:
    return "Go on? " if request.kind == "breaker" else "Run it? "


def _forget_what_was_typed() -> None:
    """What was typed before the whole question stood there is no answer to it."""
    from prompt_toolkit.application import get_app_session
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(get_app_session().input)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
