"""`lorimer resume`: go on with an interrupted session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lorimer.cli.run import (
    ApprovalWait,
    AsJson,
    CheckAnswers,
    MaxCost,
    MaxSteps,
    MaxTime,
    Model,
    PolicyFiles,
    Quiet,
    Reviewer,
    Sidecar,
    Status,
    StorePath,
    StrictCache,
    Unsandboxed,
    Wait,
    Yes,
    answers_wanted,
    make_limits,
    skills_wanted,
    wants_status,
)
from lorimer.cli.setup import MODE_HELP, TOOLS_HELP
from lorimer.core.errors import UsageFault

if TYPE_CHECKING:
    from lorimer.store.protocol import SessionRecord
    from lorimer.store.sqlite import SqliteStore


def _stored(store: SqliteStore, session_id: str | None) -> SessionRecord:
    """The record of the session, or of the newest one that is no sub-agent."""
    if session_id is not None:
        return store.session(session_id)
    for one in store.sessions(limit=1_000):
        record = store.session(one.id)
        if "parent" not in record.meta:  # a sub-agent is gone on with by the one that started it
            return record
    raise UsageFault("There is no session yet.", next='Start one: lorimer run "…"')


def resume(
    session_id: Annotated[
        str | None, typer.Argument(help="The session; the newest one when it is left out.")
    ] = None,
    model: Model = None,
    tools: Annotated[
        str | None, typer.Option("--tools", "-t", help=TOOLS_HELP + " Default: the session's own.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help=MODE_HELP + " Default: the session's own.")
    ] = None,
    policy: PolicyFiles = None,
    as_json: AsJson = False,
    yes: Yes = False,
    store: StorePath = None,
    max_steps: MaxSteps = 50,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    quiet: Quiet = False,
    allow_unsandboxed: Unsandboxed = False,
    strict_cache: StrictCache = False,
    wait: Wait = False,
    approval_wait: ApprovalWait = 0.0,
    sidecar: Sidecar = None,
    reviewer: Reviewer = None,
    check_answers: CheckAnswers = True,
    status: Status = None,
) -> int:
    """Go on where a session stopped: by a crash, an error, a limit or Ctrl-C.

    Calls that had started are not repeated unless that is safe: what cannot be known is told to the
    model as unknown. Its tools are those it was begun with, from where they came then; give --tools
    when a file has moved. Use `lorimer run --session ID "…"` to say something new in it.
    """
    from lorimer.cli.asking import TerminalApprover
    from lorimer.cli.execute import existing_store, run_async, show, with_signals
    from lorimer.cli.session_tools import tools_of
    from lorimer.cli.setup import checkers, choose_model
    from lorimer.cli.terminal import Screen, can_ask
    from lorimer.runtime.agent import Agent
    from lorimer.safety.secrets.stored import StoredVault

    screen = Screen(quiet=quiet, stream=False if as_json else None)

    async def work() -> int:
        opened = existing_store(store)
        try:
            record = _stored(opened, session_id)
            workspace = str(record.meta.get("workspace", "."))
            given = tools_of(
                record, tools, allow_unsandboxed=allow_unsandboxed, say=screen.line
            )  # fmt: skip
            chosen = choose_model(model or record.model, yes=yes, say=screen.line)
            try:
                async with checkers(sidecar, reviewer, yes=yes, say=screen.line) as more:
                    agent = Agent(
                        chosen,
                        given,
                        mode=mode or str(record.meta.get("mode", "ask")),
                        store=opened,
                        strict_cache=strict_cache,
                        workspace=workspace,
                        approver=TerminalApprover(screen) if can_ask() and not as_json else None,
                        approval_wait_s=approval_wait,
                        limits=make_limits(max_steps, max_cost, max_time),
                        watch=screen,
                        policy_files=policy or (),
                        secrets=StoredVault(),
                        status=wants_status(chosen, status),
                        answers=answers_wanted(check_answers, False),
                        skills=skills_wanted(chosen, None, begun=record),
                        **more,
                    )
                    async with agent.session(record.id, wait_s=None if wait else 2.0) as session:
                        result = await with_signals(session, session.resume, screen)
                return show(result, screen, as_json=as_json)
            finally:
                await chosen.aclose()
        finally:
            opened.close()

    return run_async(work, as_json=as_json)
