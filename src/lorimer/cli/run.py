"""`lorimer run`: ask once, in this folder, with tools."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from lorimer.cli.setup import MODE_HELP, MODEL_HELP, TOOLS_HELP
from lorimer.core.errors import UsageFault

Model = Annotated[str | None, typer.Option("--model", "-m", help=MODEL_HELP)]
Tools = Annotated[str | None, typer.Option("--tools", "-t", help=TOOLS_HELP)]
Mode = Annotated[str, typer.Option("--mode", help=MODE_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Download a local model without asking.")]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="The store file. Default: in $LORIMER_HOME.")
]
Folder = Annotated[Path, typer.Option("--folder", "-C", help="The folder the tools work in.")]
MaxSteps = Annotated[int, typer.Option("--max-steps", min=1, help="Model requests at most.")]
MaxCost = Annotated[str | None, typer.Option("--max-cost", help="US dollars at most, e.g. 0.50.")]
MaxTime = Annotated[float | None, typer.Option("--max-time", min=0.1, help="Seconds at most.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer.")]
Unsandboxed = Annotated[
    bool,
    typer.Option(
        "--allow-unsandboxed", help="Let programs run without a sandbox where there is none."
    ),
]
PolicyFiles = Annotated[
    list[Path] | None,
    typer.Option("--policy", help="One more policy file (`lorimer policy --help`); repeatable."),
]
ApprovalWait = Annotated[
    float,
    typer.Option(
        "--approval-wait",
        min=0,
        help="Without a terminal: seconds to wait for an answer by `lorimer approvals`.",
    ),
]
StrictCache = Annotated[
    bool,
    typer.Option(
        "--strict-cache",
        help="Refuse to send a request that breaks the prompt cache (`lorimer cache --help`).",
    ),
]
Status = Annotated[
    bool | None,
    typer.Option(
        "--status/--no-status",
        help="A status bar for the model: time, calls left, failures, TODO list, what runs. "
        "Default: yes, except with local models.",
        show_default=False,
    ),
]
Sidecar = Annotated[
    str | None,
    typer.Option(
        "--sidecar", help="A small, fast model that checks calls in mode auto before people do."
    ),
]
Reviewer = Annotated[
    str | None,
    typer.Option(
        "--reviewer",
        help="A model of another family that approves or rejects irreversible calls first.",
    ),
]
ProjectRules = Annotated[
    bool | None,
    typer.Option(
        "--project-rules/--no-project-rules",
        help="Put AGENTS.md and CLAUDE.md of a trusted folder into the prompt of a new session. "
        "Default: yes, but not for local models.",
    ),
]
Skills = Annotated[
    bool | None,
    typer.Option(
        "--skills/--no-skills",
        help="Let the model load skills (`lorimer skills list`). Default: yes, but not for local "
        "models, nor with --tools.",
        show_default=False,
    ),
]
CheckAnswers = Annotated[
    bool,
    typer.Option(
        "--check-answers/--no-check-answers",
        help="Warn of numbers, dates, ids and states in the answer that no result bears out. "
        "Default: yes in `lorimer run`, no in `lorimer chat`.",
        show_default=False,
    ),
]
FillAnswers = Annotated[
    bool,
    typer.Option(
        "--fill-answers",
        help="Let the model name result fields, {{tool.field}}; code fills them. It needs tools "
        "that return objects with fields: texts, as of read_file, have none.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait while another process has the session.")]


def run(
    question: Annotated[
        list[str] | None, typer.Argument(help="The question or task; `-` reads standard input.")
    ] = None,
    model: Model = None,
    tools: Tools = None,
    mode: Mode = "ask",
    policy: PolicyFiles = None,
    as_json: AsJson = False,
    yes: Yes = False,
    session_id: Annotated[
        str | None, typer.Option("--session", "-s", help="Go on in this session.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="The system prompt.")] = None,
    show_tokens: Annotated[
        bool,
        typer.Option("--show-tokens", help="Local models: every token with its id, as written."),
    ] = False,
    folder: Folder = Path("."),
    store: StorePath = None,
    max_steps: MaxSteps = 50,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    quiet: Quiet = False,
    allow_unsandboxed: Unsandboxed = False,
    wait: Wait = False,
    approval_wait: ApprovalWait = 0.0,
    sidecar: Sidecar = None,
    reviewer: Reviewer = None,
    strict_cache: StrictCache = False,
    project_rules: ProjectRules = None,
    check_answers: CheckAnswers = True,
    fill_answers: FillAnswers = False,
    status: Status = None,
    skills: Skills = None,
) -> int:
    """Ask a question or give a task; the model may use tools in the folder.

    Examples:

        lorimer run "Which customer in orders.csv has the largest total?"

        lorimer run --mode auto --json "Write a summary of notes.md to summary.md"

        git diff | lorimer run -m anthropic:claude-sonnet-5 "Review this change" -

    Exit codes: 0 answered, 2 wrong use, 3 no full answer, 4 model failed, 5 store failed, 6 session
    in use, 7 limit reached, 130 stopped.
    """
    from lorimer.cli.asking import TerminalApprover
    from lorimer.cli.execute import run_async, show, with_signals
    from lorimer.cli.session_tools import kept, record_of, tools_of
    from lorimer.cli.setup import checkers, choose_model, choose_tools, for_model, read_message
    from lorimer.cli.terminal import Screen, can_ask

    message = read_message(question or [])
    screen = Screen(quiet=quiet, stream=False if as_json or show_tokens else None)

    async def work() -> int:
        from lorimer.runtime.agent import Agent
        from lorimer.safety.policy import ModePolicy
        from lorimer.safety.secrets.stored import StoredVault

        ModePolicy(mode)
        limits, workspace = make_limits(max_steps, max_cost, max_time), _folder(folder)
        own = None if session_id is None else record_of(store, session_id)
        if own is None:
            chosen_tools = choose_tools(tools, allow_unsandboxed=allow_unsandboxed)
        else:
            chosen_tools = tools_of(
                own, tools, allow_unsandboxed=allow_unsandboxed, say=screen.line
            )  # fmt: skip
        chosen = choose_model(model, yes=yes, say=screen.line)
        if own is None:
            chosen_tools = for_model(
                chosen, chosen_tools, asked=tools, allow_unsandboxed=allow_unsandboxed
            )
        if show_tokens:
            watch_tokens(chosen)
        approver = TerminalApprover(screen) if can_ask() and not as_json else None
        if (
            approver is None
            and mode == "ask"
            and any(str(t.effects) != "read" for t in chosen_tools)
        ):
            screen.line(
                "No terminal to ask at: calls that change something are kept as requests, for "
                "`lorimer approvals` (--mode auto allows them)."
            )
        try:
            async with checkers(sidecar, reviewer, yes=yes, say=screen.line) as more:
                agent = Agent(
                    chosen, chosen_tools, mode=mode, store=store, workspace=workspace,
                    system=system, approver=approver, approval_wait_s=approval_wait, limits=limits,
                    watch=screen, secrets=StoredVault(), policy_files=policy or (),
                    strict_cache=strict_cache, status=wants_status(chosen, status),
                    meta=kept(tools),
                    project_rules=rules_wanted(chosen, project_rules),
                    answers=answers_wanted(check_answers, fill_answers),
                    skills=skills_wanted(chosen, skills, tools=tools, begun=own), **more,
                )  # fmt: skip
                async with agent:
                    async with agent.session(session_id, wait_s=None if wait else 1.0) as session:
                        result = await with_signals(session, lambda: session.send(message), screen)
                    return show(result, screen, as_json=as_json)
        finally:
            await chosen.aclose()

    return run_async(work, as_json=as_json)


def rules_wanted(model: Any, asked: bool | None) -> bool:
    """Whether the project's rules go into the prompt; a local model reads every word here."""
    return model.profile.wire != "local" if asked is None else asked


def skills_wanted(
    model: Any, asked: bool | None, *, tools: str | None = None, begun: Any = None
) -> bool:
    """Whether the model can load skills: as `--skills` says; in a session that was begun before, as
    there; else yes, but for a local model, which reads every word here, and where somebody chose
    the tools."""
    if asked is not None:
        return asked
    if begun is not None:
        return any(one["name"] == "skill" for one in begun.tools)
    return model.profile.wire != "local" and tools is None


def answers_wanted(check: bool, fill: bool) -> Any:
    """The `answers` option of an agent."""
    if not check and not fill:
        return None
    from lorimer.context.answers.records import AnswerSettings

    return AnswerSettings(check=check, fill=fill)


def wants_status(model: Any, asked: bool | None) -> bool:
    """Whether the model gets a status bar. A small local model reads it slowly and makes little of
    it, so it gets one only when asked."""
    return model.profile.wire != "local" if asked is None else asked


def make_limits(max_steps: int, max_cost: str | None, max_time: float | None) -> Any:
    from lorimer.runtime.loop import Limits

    cost = None
    if max_cost is not None:
        try:
            cost = Decimal(max_cost)
        except InvalidOperation:
            cost = Decimal("NaN")
        if not cost.is_finite() or cost < 0:
            raise UsageFault(f"--max-cost {max_cost!r} is no amount.", next="Write e.g. 0.50.")
    return Limits(max_steps=max_steps, max_cost=cost, max_time_s=max_time)


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageFault(f"{folder} is not a folder.", next="Choose one with --folder.")
    return folder


def watch_tokens(model: Any) -> None:
    """Print each token of a local model on stderr: its id, what it is part of, its text."""
    import sys

    from lorimer.cli.terminal import safe

    if not hasattr(model, "on_token"):
        raise UsageFault(
            f"{model.name} is not a local model: its tokens cannot be shown.",
            next="Use a local model with --show-tokens.",
        )

    def show_token(token_id: int, piece: str) -> None:
        text = safe(piece).replace("\n", "\\n")
        print(f"{token_id:>7}  {model.phase!s:<5}  {text}", file=sys.stderr, flush=True)

    model.on_token = show_token
