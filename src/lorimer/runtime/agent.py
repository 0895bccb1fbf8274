"""An agent: a model with tools, a policy and a context."""

from __future__ import annotations

import copy
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from lorimer.core.clock import Clock, SystemClock
from lorimer.core.decisions import (
    Approval,
    ApprovalRequest,
    Approver,
    Assessor,
    Guard,
    Policy,
    Reviewer,
    Sidecar,
)
from lorimer.core.errors import ConfigError, SessionNotFound
from lorimer.core.specs import ToolSpec
from lorimer.core.watch import Warned
from lorimer.models.protocol import Model, Settings
from lorimer.runtime.alerts import Thresholds
from lorimer.runtime.cache_watch import check_strict
from lorimer.runtime.compaction_setup import compaction_for
from lorimer.runtime.loop import Limits
from lorimer.runtime.message import Message
from lorimer.runtime.prompt import given_parts, prompt_of
from lorimer.runtime.results import RunResult
from lorimer.runtime.session import Session
from lorimer.runtime.subagents.attach import settings_of
from lorimer.safety.effects import CallAssessor
from lorimer.safety.injection.guards import InjectionGuard
from lorimer.safety.injection.settings import InjectionSettings
from lorimer.safety.policy import load_policy
from lorimer.safety.secrets.keeper import SecretKeeper
from lorimer.safety.secrets.logs import guard_logs
from lorimer.store import open_store
from lorimer.tools.registry import Registry
from lorimer.tools.tool import Principal, Tool

if TYPE_CHECKING:
    from lorimer.context.answers.records import AnswerSettings
    from lorimer.context.compaction.options import Compaction
    from lorimer.context.prefix import PromptPart
    from lorimer.context.skills.library import SkillLibrary
    from lorimer.context.status.settings import StatusBar
    from lorimer.runtime.skills import Skills
    from lorimer.runtime.subagents.host import SubagentHost
    from lorimer.runtime.subagents.settings import SubagentSettings
    from lorimer.runtime.telemetry import Telemetry
    from lorimer.safety.secrets.vault import Vault
    from lorimer.store.sqlite import SqliteStore

DEFAULT_SYSTEM = """\
You are an agent that works with tools. You only propose calls; the harness checks, runs and \
records them.
- Use a tool whenever the answer depends on something you have not seen: a file, a value, the \
result of an action. Never invent such a thing.
- Take arguments from what the user said or from earlier results. Ask when one is missing.
- When a call fails, read its error: it says what to do next. When an outcome is unknown, find out \
before you act again.
- Say what is true: what was done, what was not, what is not known."""


class Agent:
    """A model with tools, a policy and a store. One agent may run many sessions at once.

    Args:
        model: a name (`lorimer models list`, `openai:…`, `anthropic:…`) or a `Model`.
        tools: tools, or plain typed functions.
        system: the system prompt, or its parts (`lorimer.context.prefix.PromptPart`); `None` for
            the default one (short for local models). It is built once for each session.
        project_rules: put `AGENTS.md` and `CLAUDE.md` of the workspace into the prompt, when the
            folder is trusted (`lorimer trust`).
        mode: `plan`, `ask`, `auto` or `trusted` (`lorimer.safety.policy`). The default `auto` runs
            the tools you hand over, except irreversible ones, which are asked.
            Rules of the policy files are added (`lorimer.safety.policy.load_policy`).
        policy: a policy of your own, instead of `mode` and the policy files.
        policy_files: more policy files, as the session's layer.
        approver: who answers when the policy asks: an `Approver`, or a function of the
            `ApprovalRequest` that returns a bool or an `Approval`. Without one such calls are
            refused.
        approval_timeout_s: how long a question stays open (default: 10 minutes with an approver; a
            day for a request that waits in the store, `lorimer approvals`). No answer means no.
        approval_wait_s: how long to wait for an answer from elsewhere when there is no approver;
            by default the request is kept and the call is refused at once.
        sidecar: a `Sidecar` (`lorimer.safety.review.ModelSidecar`) that judges each call before it
            runs; in mode `auto` it can spare questions about what can be undone.
        reviewer: a `Reviewer` (`lorimer.safety.review.ModelReviewer`) of another model family that
            approves or rejects what cannot be undone.
        parent: the session that starts this agent's sessions, as a sub-agent of it: what was
            rejected there is rejected here; its approvals do not count here.
        injection: how strict the guard against injected text is (`InjectionSettings`); by default
            as the policy says. It cannot be switched off.
        guards: more voices beside the policy; the strictest voice counts.
        assessor: works out what a call would touch; `CallAssessor` by default.
        roots: folders besides the workspace that tools may work in.
        principal: on whose behalf; never taken from the model.
        store: a path, a store, or `None` for the default one (`lorimer.store.default_path`);
            `:memory:` for one that does not last.
        workspace: the folder that tools work in; the current one by default.
        settings: how the model is to answer (`Settings`).
        limits: bounds of each run (`Limits`).
        watch: called with everything that happens, as it happens.
        allow_repair: whether broken JSON in arguments may be repaired when there is one reading.
        clock: where the time comes from; for tests.
        secrets: the vault that handles (`secret:github`) are resolved from, for the tools that it
            lists or that declare them; without one there are none. Well-known keys are taken out of
            results and records in any case.
        telemetry: OpenTelemetry spans and metrics (`lorimer.runtime.telemetry`): `True`, a
            `Telemetry` of your own, or `None`: as `LORIMER_OTEL` says.
        alerts: when something counts as happening too often (`lorimer.runtime.alerts`).
        strict_cache: refuse to send a request that does not begin with the one before it, unless a
            compaction or `Session.expect_break` announced that. By default it is warned of.
        answers: what is done with answers (`AnswerSettings`): `"check"` flags values that nothing
            recorded bears out (`RunResult.flags`); `"fill"` also fills `{{call.field}}` from
            results, and teaches the model to write that.
        meta: kept with each new session (`SessionRecord.meta`), as JSON; what lorimer keeps there
            itself comes first.
        subagents: whether it may hand work to sub-agents, and how far (`SubagentSettings`): the
            tools for that are added when they are not among `tools`. `None`: when they are.
        status: the status bar (`lorimer.context.status.StatusBar`): `True` for the usual one,
            `None` for none. It tells the time, calls left, failures, the TODO list, what runs.
        skills: the skills the model is told of and can load: `True` for all that are found, a list
            of names and folders, or a `SkillSources`; none by default. Those from outside the
            project must have been reviewed (`lorimer skills review`).
        compaction: how the context is kept small (`lorimer.context.compaction`): a strategy by its
            name, or a `Compaction`. By default `layered`, where the model's window is known;
            `"none"` switches it off. Where it is on and no tool reads a file, the tool `recall` is
            added, which reads what was left out.
    """

    def __init__(
        self,
        model: str | Model,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        system: str | Sequence[PromptPart] | None = None,
        project_rules: bool = False,
        mode: str = "auto",
        policy: Policy | None = None,
        approver: Approver | Callable[[ApprovalRequest], Any] | None = None,
        approval_timeout_s: float | None = None,
        approval_wait_s: float | None = None,
        sidecar: Sidecar | None = None,
        reviewer: Reviewer | None = None,
        parent: str | None = None,
        injection: InjectionSettings | None = None,
        guards: Iterable[Guard] = (),
        assessor: Assessor | None = None,
        roots: Iterable[str | os.PathLike[str]] = (),
        principal: str | Principal = "user",
        store: str | os.PathLike[str] | SqliteStore | None = None,
        workspace: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        limits: Limits | None = None,
        watch: Callable[[Any], None] | None = None,
        allow_repair: bool = False,
        clock: Clock | None = None,
        secrets: Vault | None = None,
        telemetry: bool | Telemetry | None = None,
        alerts: Thresholds | None = None,
        policy_files: Sequence[str | os.PathLike[str]] = (),
        strict_cache: bool = False,
        meta: Mapping[str, Any] | None = None,
        subagents: bool | SubagentSettings | None = None,
        status: bool | StatusBar | None = None,
        skills: Skills = None,
        answers: Literal["check", "fill"] | AnswerSettings | None = None,
        compaction: str | Compaction | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self._noticed: set[str] = set()
        self.registry = Registry(tools)
        self.roots = tuple(Path(root).absolute() for root in roots)
        self.approver = _approver(approver)
        self.approval_timeout_s = _seconds("approval_timeout_s", approval_timeout_s)
        self.approval_wait_s = _seconds("approval_wait_s", approval_wait_s) or 0.0
        self.sidecar = sidecar
        self.reviewer = reviewer
        self.parent = parent
        self.principal = Principal(principal) if isinstance(principal, str) else principal
        self.settings = settings or Settings()
        self.limits = limits or Limits()
        self.watch = watch
        self.allow_repair = allow_repair
        self.workspace = Path(workspace or os.getcwd()).absolute()
        if not self.workspace.is_dir():
            raise ConfigError(f"The workspace {self.workspace} is not a folder.")
        if any(0xD800 <= ord(c) < 0xE000 for c in str(self.workspace)):
            raise ConfigError(
                f"The path of the workspace, {str(self.workspace)!a}, is not UTF-8.",
                next="Rename the folder; the record and the sandbox need a path that is text.",
            )
        self.skills = self._skill_library(skills)
        self.status = _status_bar(status)
        self.subagents = settings_of(subagents, self.registry)
        self.delegated_by: SubagentHost | None = None
        self.borrowed_models: dict[str, Model] = {}
        self.policy: Policy = policy or load_policy(
            mode, self.workspace, extra=policy_files, known=self._known_tools
        )
        strict = injection or getattr(self.policy, "injection", None) or InjectionSettings()
        self.guards: tuple[Guard, ...] = (InjectionGuard(strict), *guards)
        self._owns_model = isinstance(model, str)
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        if isinstance(model, str):
            from lorimer.models.registry import resolve

            self.model: Model = resolve(model)
        else:
            self.model = model
        self.compaction = compaction_for(self, compaction)
        self.meta = dict(meta or {})
        self.strict_cache = strict_cache
        if strict_cache:
            check_strict(self.model)
        check = getattr(reviewer, "check_against", None)
        if check is not None:
            check(self.model)
        if store is None or isinstance(store, str | os.PathLike):
            self.store = open_store(store, clock=self.clock)
        else:
            self.store = store
        self.assessor: Assessor = assessor or CallAssessor(
            readable_now=None if self.skills is None else self._readable_names,
            kept_by=self._kept_folders,
        )
        self.open_sessions: set[Session] = set()
        self._kept: dict[str, tuple[str, ...]] = {}
        self.secrets = SecretKeeper(secrets, on_problem=self._warn)
        guard_logs(self.secrets)
        self.thresholds = alerts or Thresholds()
        self.telemetry = _telemetry(telemetry, self.secrets.redact)
        for notice in getattr(self.policy, "notices", ()):
            self._warn(notice)
        own = getattr(self.model, "default_system", None)
        default = DEFAULT_SYSTEM if own is None else own(self.registry.specs())
        given, self.default_parts = given_parts(system, default)
        self.parts: list[PromptPart] = [*given]
        self.project_rules = project_rules
        self.answers = _answers(answers)
        if self.answers is not None and self.answers.fill:
            from lorimer.context.answers.guide import guide_part

            self.parts.append(guide_part())

    @property
    def system(self) -> str:
        """The system prompt of a session that begins now."""
        return prompt_of(self).text

    def readable(self) -> tuple[Path, ...]:
        """Folders outside the workspace that tools may read: those of the skills in use."""
        return () if self.skills is None else self.skills.readable()

    def _kept_folders(self, session: str) -> tuple[str, ...]:
        """Where what this session keeps lies, and what those above it have handed on."""
        if session not in self._kept:
            from lorimer.runtime.surroundings import handed_on

            own = self.store.results_folder(session)
            folders = [] if own is None else [own]
            with suppress(SessionNotFound):
                folders += handed_on(self, self.store.session(session))
            self._kept[session] = tuple(map(str, folders))
        return self._kept[session]

    def _readable_names(self) -> tuple[str, ...]:
        return tuple(str(folder) for folder in self.readable())

    def _skill_library(self, wanted: Skills) -> SkillLibrary | None:
        """The skills of `wanted`; the tool that loads them is added to the others."""
        if wanted is None or wanted is False:
            return None
        from lorimer.runtime.skills import skill_library
        from lorimer.toolkits.skills import make_skill_tool

        library = skill_library(wanted, self.workspace)
        if library is not None:
            self.registry.add(make_skill_tool(library))
        return library

    def _known_tools(self) -> Mapping[str, Any]:
        from lorimer.safety.policy.examples import known_tools

        return known_tools(self.registry)

    def notice(self, message: str) -> None:
        """Tell a person something about this agent, once."""
        if message not in self._noticed:
            self._noticed.add(message)
            self._warn(message)

    def _warn(self, message: str) -> None:
        logging.getLogger("lorimer").warning(message)
        if self.watch is not None:
            self.watch(Warned(message))

    def session(
        self, session_id: str | None = None, *, wait_s: float | None = 1.0, new: bool = False
    ) -> Session:
        """A new session, or the one with this id; `wait_s` is how long to wait for another process
        that has it (`None`: for ever); `new` makes one with this id. Opened on first use, or by
        `async with`."""
        return Session(self, session_id, wait_s=wait_s, new=new)

    def lend(self) -> Agent:
        """A copy for a sub-agent. It owns nothing, neither model nor store."""
        made = copy.copy(self)
        made._owns_model = made._owns_store = False
        made.open_sessions = set()
        return made

    async def run(
        self, message: Message, *, watch: Callable[[Any], None] | None = None
    ) -> RunResult:
        """Ask once, in a new session.

        Raises and is cancelled like `Session.send`.
        """
        async with self.session() as session:
            return await session.send(message, watch=watch)

    def run_sync(self, message: Message) -> RunResult:
        """`run` for code without an event loop. May be called again; `close()` the agent at the
        end, or leave that to the end of the program."""
        import asyncio

        async def work() -> RunResult:
            try:
                return await self.run(message)
            finally:  # connections belong to this loop, which ends now
                disconnect = getattr(self.model, "disconnect", None)
                if disconnect is not None:
                    await disconnect()

        return asyncio.run(work())

    @staticmethod
    def specs_from(stored: Sequence[Mapping[str, Any]]) -> list[ToolSpec]:
        """The tool list of a stored session, as the model was told it."""
        return [ToolSpec.from_json(record) for record in stored]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the sessions that are open, then what the agent opened itself: model and store.
        Idempotent."""
        for session in tuple(self.open_sessions):
            await session.close()
        if self._owns_model:
            await self.model.aclose()
        while self.delegated_by is None and self.borrowed_models:
            await self.borrowed_models.popitem()[1].aclose()
        if self._owns_store:
            self.store.close()


def run(
    message: Message,
    model: str | Model,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    **options: Any,
) -> RunResult:
    """Ask once, from code without an event loop: `run("…", "openai:gpt-5", [my_tool]).answer`.

    `options` are those of `Agent`; it raises what `Session.send` raises.
    """
    import asyncio

    async def work() -> RunResult:
        async with Agent(model, tools, **options) as agent:
            return await agent.run(message)

    return asyncio.run(work())


def _telemetry(wanted: bool | Telemetry | None, redact: Callable[[str], str]) -> Telemetry | None:
    if wanted is None:
        wanted = os.environ.get("LORIMER_OTEL", "").lower() in ("1", "true", "yes", "on")
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return None
    from lorimer.runtime.telemetry import Telemetry

    return Telemetry(redact=redact)


class _FunctionApprover:
    def __init__(self, function: Callable[[ApprovalRequest], Any]) -> None:
        self._function = function

    async def ask(self, request: ApprovalRequest) -> Approval:
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Approval):
            return answer
        if not isinstance(answer, bool):
            raise ConfigError(
                f"The approver answered {answer!r}.", next="Return True, False or an Approval."
            )
        return Approval(answer, by=getattr(self._function, "__name__", "approver"))


def _status_bar(given: bool | StatusBar | None) -> StatusBar | None:
    if given is None or given is False:
        return None
    from lorimer.context.status.settings import status_bar

    return status_bar(given)


def _answers(given: Any) -> AnswerSettings | None:
    if given is None:
        return None
    from lorimer.context.answers.records import AnswerSettings

    return AnswerSettings.of(given)


def _seconds(option: str, given: float | None) -> float | None:
    if given is not None and (isinstance(given, bool) or not given >= 0):
        raise ConfigError(f"{option}={given!r} is no time.", next="Use seconds, 0 or more.")
    return given


def _approver(given: Any) -> Approver | None:
    if given is None or hasattr(given, "ask"):
        return given  # type: ignore[no-any-return]
    return _FunctionApprover(given)
