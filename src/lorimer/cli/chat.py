"""`lorimer chat`: a conversation in the terminal."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorimer.cli.run import (
    CheckAnswers,
    FillAnswers,
    Folder,
    MaxCost,
    MaxSteps,
    MaxTime,
    Mode,
    Model,
    PolicyFiles,
    ProjectRules,
    Reviewer,
    Sidecar,
    Skills,
    Status,
    StorePath,
    StrictCache,
    Tools,
    Unsandboxed,
    Wait,
    Yes,
    answers_wanted,
    make_limits,
    rules_wanted,
    skills_wanted,
    wants_status,
)
from lorimer.core.errors import LorimerError, UsageFault

if TYPE_CHECKING:
    from lorimer.cli.terminal import Screen
    from lorimer.runtime.session import Session

_HELP = """\
Enter sends · Alt-Enter (or Esc, Enter) starts a new line · Ctrl-C stops an answer · Ctrl-D leaves
/tools    the tools of this session        /session  its id
/resume   go on with an interrupted answer /help     this text        /exit  leave
/status   the status bar as the model would see it now"""


def chat(
    session_id: Annotated[
        str | None, typer.Option("--session", "-s", help="Go on in this session.")
    ] = None,
    model: Model = None,
    tools: Tools = None,
    mode: Mode = "ask",
    policy: PolicyFiles = None,
    yes: Yes = False,
    folder: Folder = Path("."),
    store: StorePath = None,
    max_steps: MaxSteps = 50,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    allow_unsandboxed: Unsandboxed = False,
    sidecar: Sidecar = None,
    reviewer: Reviewer = None,
    strict_cache: StrictCache = False,
    status: Status = None,
    wait: Wait = False,
    project_rules: ProjectRules = None,
    check_answers: CheckAnswers = False,
    fill_answers: FillAnswers = False,
    skills: Skills = None,
) -> int:
    """Talk with the model in this terminal; it may use tools in the folder.

    Everything is recorded as it happens: leave at any time and come back with --session ID.
    """
    from lorimer.cli.asking import TerminalApprover
    from lorimer.cli.execute import run_async
    from lorimer.cli.session_tools import kept, record_of, tools_of
    from lorimer.cli.setup import checkers, choose_model, choose_tools, for_model
    from lorimer.cli.terminal import Screen, can_ask
    from lorimer.runtime.agent import Agent
    from lorimer.safety.secrets.stored import StoredVault

    if not can_ask():
        raise UsageFault(
            "chat needs a terminal.", next='Use: lorimer run "…" (with --session ID to go on).'
        )
    screen = Screen()

    async def work() -> int:
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
        try:
            async with checkers(sidecar, reviewer, yes=yes, say=screen.line) as more:
                agent = Agent(
                    chosen, chosen_tools, mode=mode, store=store, workspace=folder,
                    approver=TerminalApprover(screen), watch=screen,
                    limits=make_limits(max_steps, max_cost, max_time), secrets=StoredVault(),
                    policy_files=policy or (), strict_cache=strict_cache,
                    status=wants_status(chosen, status), meta=kept(tools),
                    project_rules=rules_wanted(chosen, project_rules),
                    answers=answers_wanted(check_answers, fill_answers),
                    skills=skills_wanted(chosen, skills, tools=tools, begun=own), **more,
                )  # fmt: skip
                waits = None if wait else 1.0
                async with agent, agent.session(session_id, wait_s=waits) as session:
                    screen.line(f"{chosen.name} · mode {mode} · session {session.id} · /help")
                    await _converse(session, screen)
                    screen.line(f"Come back with: lorimer chat --session {session.id}")
        finally:
            await chosen.aclose()
        return 0

    return run_async(work, as_json=False)


async def _converse(session: Session, screen: Screen) -> None:
    from lorimer.cli.execute import show, with_signals
    from lorimer.cli.typed_ahead import is_command, next_messages, typed_ahead

    prompt = _prompt()
    waiting: deque[str] = deque()
    while True:
        if waiting:
            texts = next_messages(waiting)
            screen.line(f"Typed meanwhile, taken now: {len(texts)} of {len(texts) + len(waiting)}.")
        else:
            try:
                texts = [(await prompt.prompt_async("> ", handle_sigint=False)).strip()]
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
        text = texts[0]
        if not text:
            continue
        send: Any = None
        match text:
            case "/exit" | "/quit":
                return
            case "/help":
                screen.line(_HELP)
            case "/session":
                screen.line(session.id)
            case "/status":
                await session.open()
                bar = session.status
                screen.line("There is none: --no-status." if bar is None else bar.now())
            case "/tools":
                for one in session.agent.registry:
                    screen.line(
                        f"{one.name} ({one.effects}): {one.description.what.splitlines()[0]}"
                    )
            case "/resume":
                send = session.resume
            case _ if is_command(text):
                screen.line(f"There is no command {text}. /help lists them.")
            case _:

                async def send(words: list[str] = texts) -> Any:
                    return await session.send_batch(words)

        if send is None:
            continue
        screen.streamed = ""
        try:
            show(await with_signals(session, send, screen), screen, as_json=False)
        except LorimerError as fault:
            screen.line(f"lorimer: {fault}")
        waiting.extend(typed_ahead())


def _prompt() -> Any:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings

    from lorimer.core.home import home

    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _newline(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    folder = home()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return PromptSession(
        history=FileHistory(str(folder / "chat-history")), multiline=True, key_bindings=keys,
        prompt_continuation="  ",
    )  # fmt: skip
