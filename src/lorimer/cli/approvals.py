"""`lorimer approvals`: what waits for a person, and the answers."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import StorePath
from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from datetime import datetime

    from lorimer.core.approvals import ApprovalRecord
    from lorimer.store.protocol import AnswerApproval
    from lorimer.store.sqlite import SqliteStore

app = typer.Typer(
    no_args_is_help=True,
    help="Calls that wait for a person: list, show, approve, reject, edit.\n\n"
    "A request is kept in the store, also when the run that asked has ended. The first answer "
    "counts, from whatever terminal. An approval is good for exactly the call that was shown: "
    "once, until it expires, while the files it names are as they were.",
)

Id = Annotated[str, typer.Argument(help="The request; a unique end of its id is enough.")]
By = Annotated[str | None, typer.Option("--by", help="Your name for the record.")]
As = Annotated[
    str | None,
    typer.Option("--as", help="Answer as this principal. Default: the session's own."),
]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; it is kept, and told.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")]


@app.command("list")
def list_approvals(
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Only of this session.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", "-a", help="Also confirmations, sidecar and reviewer opinions."),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="JSON Lines.")] = False,
    store: StorePath = None,
) -> None:
    """The requests: those that wait come first, then the newest."""
    from lorimer.cli.asking import record_json
    from lorimer.cli.execute import existing_store, faults_as_json
    from lorimer.core.approvals import ApprovalKind

    with faults_as_json(as_json), closing(existing_store(store)) as opened:
        if session is not None:
            opened.session(session)
        found = opened.approvals(session)
        now = opened.clock.now()
    asked = (ApprovalKind.CALL, ApprovalKind.BREAKER)
    shown = [r for r in reversed(found) if everything or r.kind in asked]
    shown.sort(key=lambda r: str(r.state_at(now)) != "open")
    if as_json:
        for one in shown[:limit]:
            print(json.dumps(record_json(one, now), ensure_ascii=False))
        return
    if not shown:
        print("Nothing waits for an approval, and nothing ever did.")
        return
    _print_list(shown[:limit], now)
    if len(shown) > limit:
        print(f"\nand {len(shown) - limit} more: --limit {len(shown)} shows all")
    if any(str(one.state_at(now)) == "open" for one in shown):
        print("\nLook before you answer: lorimer approvals show ID")


def _print_list(shown: list[ApprovalRecord], now: datetime) -> None:
    """Each request on a line, and its call below it."""
    from lorimer.cli.asking import ago, call_rows

    width = shutil.get_terminal_size((80, 24)).columns
    for one in shown:
        state = str(one.state_at(now))
        words = [one.id, state, f"asked {ago((now - one.asked_at).total_seconds())} ago"]
        if state in ("open", "approved") and one.expires_at is not None:
            words.append(f"{ago((one.expires_at - now).total_seconds())} left")
        print("  ".join(words))
        for row in call_rows(one, width):
            print(row)


@app.command("show")
def show(approval_id: Id, as_json: AsJson = False, store: StorePath = None) -> None:
    """The whole request: the call, what it would change, what it is bound to, the answer."""
    from lorimer.cli.asking import UNBROKEN, lines_of, record_json
    from lorimer.cli.execute import existing_store, faults_as_json

    with faults_as_json(as_json), closing(existing_store(store)) as opened:
        record = _find(opened, approval_id)
        now = opened.clock.now()
    if as_json:
        print(json.dumps(record_json(record, now, whole=True), ensure_ascii=False))
        return
    at_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((80, 24)).columns if at_terminal else UNBROKEN
    for line in lines_of(record, now, width):
        print(line)


@app.command("approve")
def approve(
    approval_id: Id,
    for_session: Annotated[
        bool,
        typer.Option(
            "--for-session", help="Also the rule that `show` shows, for the rest of the session."
        ),
    ] = False,
    digest: Annotated[
        str, typer.Option("--digest", help="Only if the request has this digest (from `show`).")
    ] = "",
    by: By = None,
    principal: As = None,
    reason: Reason = "",
    as_json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Approve exactly the call that the request shows, once.

    Examples:

        lorimer approvals approve a_01k… --by ada

        lorimer approvals approve a_01k… --for-session

    The files that it shows are looked at again: when one changed, nothing is approved.

    Exit codes: 0 answered, 2 no such request, 5 no such store, 8 not any more: answered, expired,
    closed, changed, or you may not. With --json a fault is an object, too: error, message, next.
    """
    _answer(
        store, approval_id, True, by=by, principal=principal, reason=reason, digest=digest,
        for_session=for_session, as_json=as_json,
    )  # fmt: skip


@app.command("reject")
def reject(
    approval_id: Id,
    by: By = None,
    principal: As = None,
    reason: Reason = "",
    as_json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Reject it. The same in another form is then refused until the user speaks again.

    Example:

        lorimer approvals reject a_01k… --reason "not on a Friday"
    """
    _answer(
        store, approval_id, False, by=by, principal=principal, reason=reason, as_json=as_json
    )  # fmt: skip


@app.command("edit")
def edit(
    approval_id: Id,
    arguments: Annotated[
        str, typer.Option("--arguments", help="All arguments as a JSON object; `-` reads stdin.")
    ],
    by: By = None,
    principal: As = None,
    reason: Reason = "",
    as_json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Approve the call with other arguments. They are checked against the tool's schema now, and
    like the model's own before they run; the model is told.

    Arguments that do not fit are refused (exit code 8), and the request stays open.

    Example:

        lorimer approvals edit a_01k… --arguments '{"to": "ada@example.org", "amount": 5}'
    """
    from lorimer.cli.execute import faults_as_json

    with faults_as_json(as_json):
        edited = _read_object(sys.stdin.read() if arguments == "-" else arguments)
    _answer(
        store, approval_id, True, by=by, principal=principal, reason=reason, edited=edited,
        as_json=as_json,
    )  # fmt: skip


def _read_object(text: str) -> dict[str, Any]:
    from lorimer.tools.dispatch.parse import Fault, read

    try:
        value, _ = read(text)
    except Fault as fault:
        raise UsageFault(f"--arguments: {fault}", next=fault.next) from fault
    if not isinstance(value, dict):
        raise UsageFault(
            f"--arguments is {type(value).__name__}, not an object.",
            next='Write e.g. --arguments \'{"path": "a.txt"}\'.',
        )
    return value


def _answer(
    path: Path | None,
    approval_id: str,
    approved: bool,
    *,
    by: str | None,
    principal: str | None,
    reason: str,
    as_json: bool,
    digest: str = "",
    for_session: bool = False,
    edited: dict[str, Any] | None = None,
) -> None:
    from lorimer.cli.asking import record_json, summary
    from lorimer.cli.execute import existing_store, faults_as_json
    from lorimer.cli.terminal import flat, safe
    from lorimer.store.protocol import AnswerApproval

    with faults_as_json(as_json), closing(existing_store(path)) as opened:
        record = _find(opened, approval_id)
        if for_session and not record.request.get("remember_rule"):
            raise UsageFault(
                "There is no rule that would allow this call for the session.",
                next="Approve it alone: leave out --for-session.",
            )
        change = AnswerApproval(
            record.id, approved, principal or _principal(opened, record), by=flat(by or _user()),
            reason=reason, digest=digest, for_session=for_session, edited=edited,
        )  # fmt: skip
        if approved:
            _still_good(opened, record, change)
        opened.commit_now(change)
        record = opened.approval(record.id)
        now = opened.clock.now()
    if as_json:
        print(json.dumps(record_json(record, now), ensure_ascii=False))
        return
    print(summary(record))
    if record.answer.get("for_session"):
        print(safe(str(record.request["remember_rule"])))


def _still_good(store: SqliteStore, record: ApprovalRecord, change: AnswerApproval) -> None:
    """Whether what the person approves can be used, as far as it can be known here.

    Raises:
        EditUnfit: the arguments do not fit the tool; the request stays open.
        ApprovalVoid: a file that the request shows changed; the request is void.
    """
    from lorimer.core.approvals import ApprovalKind, ApprovalState
    from lorimer.core.errors import ApprovalVoid, EditUnfit
    from lorimer.store.approvals import check_answer
    from lorimer.store.protocol import CloseApproval
    from lorimer.tools.dispatch.edits import changed_since, unfit

    now = store.clock.now()
    check_answer(record, change, now)  # who may not answer learns nothing, and changes nothing
    if change.edited is not None:
        faults = unfit(record.request, change.edited)
        if record.kind is not ApprovalKind.CALL:
            faults = ["this is no call: it has no arguments"]
        if faults:
            raise EditUnfit(
                f"These arguments do not fit {record.tool}: {'; '.join(faults[:20])}.",
                next="Nothing was answered. Correct them and say it again; "
                f"`lorimer approvals show {record.id} --json` has the schema.",
            )
    changes = changed_since(record.request, change.edited)
    if changes:
        why = f"{'; '.join(changes)} since it was asked"
        store.commit_now(CloseApproval(record.id, ApprovalState.VOID, why, only_open=True))
        raise ApprovalVoid(
            f"It was not approved: {why}.",
            next="Look at what changed; when the agent makes the call again, it is asked anew.",
        )


def _find(store: SqliteStore, approval_id: str) -> ApprovalRecord:
    """Raises `UnknownApproval`; also for an end of an id that several have."""
    from lorimer.core.errors import UnknownApproval

    try:
        return store.approval(approval_id)
    except UnknownApproval:
        ends = [r for r in store.approvals() if r.id.endswith(approval_id.lower())]
        if len(ends) == 1 and len(approval_id) >= 4:
            return ends[0]
        raise


def _principal(store: SqliteStore, record: ApprovalRecord) -> str:
    """Whoever owns the store acts for its sessions; others act as themselves."""
    owner = os.stat(store.path).st_uid
    return record.principal if os.getuid() in (owner, 0) else _user()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"
