"""Showing a request to a person, whole, and asking for the answer at the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lorimer.cli.terminal import Screen, safe
from lorimer.core.approvals import ApprovalRecord
from lorimer.core.clock import to_rfc3339
from lorimer.core.decisions import Approval, ApprovalRequest

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_WHO = "the person at the terminal"


def call_lines(
    arguments: Mapping[str, Any],
    *,
    cwd: str,
    paths: Any = (),
    files: Mapping[str, str] | None = None,
    effects: Mapping[str, Any] | None = None,
    preview: str = "",
    news: str = "",
) -> Iterator[str]:
    """A call in lines for a person; nothing of it is cut."""
    for name, value in arguments.items():
        if isinstance(value, str) and ("\n" in value or len(value) > 60):
            yield f"  {safe(name)}: ({len(value)} characters)"
            for row in value.split("\n"):
                yield f"    | {safe(row)}"
        else:
            yield f"  {safe(name)}: {safe(json.dumps(value, ensure_ascii=False))}"
    if cwd:
        yield f"  in: {safe(cwd)}"
    for path in paths:
        yield f"  path: {safe(str(path))}"
    found = effects or {}
    for host in found.get("hosts", ()):
        yield f"  host: {safe(str(host))}"
    for reason in found.get("reasons", ()):
        yield f"  why asked: {safe(str(reason['text']))}"
    for path, hashed in (files or {}).items():
        yield f"  file: {safe(path)} {safe(hashed)}"
    if preview:
        yield "  would change:"
        for row in preview.split("\n"):
            yield f"    {safe(row)}"
    if news:
        rows = news.split("\n")
        yield f"  new since the last approved call: {safe(rows[0])}"
        for row in rows[1:]:
            yield f"    {safe(row)}"


def arguments_of(record: ApprovalRecord) -> Mapping[str, Any]:
    """The arguments that the request shows."""
    bound = record.request.get("bound", {})
    found = bound.get("arguments", record.request.get("arguments", {}))
    return found if isinstance(found, Mapping) else {}


def lines_of(record: ApprovalRecord, now: datetime) -> Iterator[str]:
    """A whole stored request, and what became of it."""
    bound = record.request.get("bound", {})
    state = record.state_at(now)
    yield f"request   {record.id} · {record.kind} · {state}"
    yield f"session   {record.session} · principal {safe(record.principal)} · call {record.call}"
    yield f"asked     {to_rfc3339(record.asked_at)}" + (
        "" if record.expires_at is None else f" · expires {to_rfc3339(record.expires_at)}"
    )
    if record.digest:
        yield f"digest    {record.digest}"
    yield f"call      {safe(record.tool)} ({record.request.get('effects', '?')})"
    yield f"reason    {safe(str(record.request.get('reason', '')))}"
    yield from call_lines(
        arguments_of(record), cwd=str(record.request.get("cwd", "")),
        paths=bound.get("paths", ()), files=bound.get("files", {}),
        effects=bound.get("effects", {}), preview=str(record.request.get("preview", "")),
        news=str(record.request.get("news", "")),
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
        return f"{safe(record.by)} said {verdict} to {safe(what)}: {safe(record.reason)}"
    word = "approved" if record.answer.get("approved") else "rejected"
    text = f"{record.id}: {word} by {safe(record.by)} ({safe(what)})"
    if record.answer.get("for_session"):
        text += ", and its rule for the session"
    if record.edited is not None:
        text += ", with the arguments " + safe(json.dumps(record.edited, ensure_ascii=False))
    return text + (f": {safe(record.reason)}" if record.reason else "")


def _closing(record: ApprovalRecord) -> str:
    at = "" if record.closed_at is None else to_rfc3339(record.closed_at)
    if "call" in record.closing:
        return f"used by call {record.closing['call']} at {at}"
    return f"{safe(str(record.closing.get('why', record.state)))} at {at}"


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
    decides nothing. When somebody answers elsewhere the question goes away."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def ask(self, request: ApprovalRequest) -> Approval:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output

        self._show(request)
        session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
        while True:
            try:
                answer = (
                    await session.prompt_async(_question(request), handle_sigint=False)
                ).strip()
            except (EOFError, KeyboardInterrupt):
                return Approval(False, _WHO, "no answer")
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
        if request.kind == "breaker":
            screen.line(f"{safe(request.reason)}: {safe(facts.tool)}")
        else:
            screen.line(
                f"The model wants to call {safe(facts.tool)} ({facts.level}): "
                f"{safe(request.reason)}."
            )
        touches = facts.touches
        paths = [] if touches is None else [f"{p.access} {p.path}" for p in touches.paths]
        for line in call_lines(
            facts.arguments, cwd=facts.cwd, paths=paths, files=request.files,
            effects=None if touches is None else touches.to_json(), preview=request.preview,
            news=request.news,
        ):  # fmt: skip
            screen.line(line)
        if request.remember_rule:
            screen.line("  s would add this rule for the session:")
            for row in request.remember_rule.split("\n"):
                screen.line(f"    {safe(row)}")
        if request.id:
            until = "" if request.expires_at is None else f", until {_clock(request.expires_at)}"
            screen.line(f"  request: {request.id}{until} (lorimer approvals answers it, too)")

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


def _question(request: ApprovalRequest) -> str:
    if request.kind == "breaker":
        return "Go on? y = yes, n = no, stop: "
    more = "s = yes, for this session by the rule above, " if request.remember_rule else ""
    return f"Run it? y = yes, {more}e = edit, n = no, or say why not: "
