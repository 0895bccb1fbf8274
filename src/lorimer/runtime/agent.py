"""An agent: a model with tools, a policy and a context."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lorimer.core.clock import Clock, SystemClock
from lorimer.core.decisions import Approval, ApprovalRequest, Approver, Assessor, Guard, Policy
from lorimer.core.errors import ConfigError
from lorimer.core.specs import ToolSpec
from lorimer.models.protocol import Model, Settings
from lorimer.runtime.loop import Limits
from lorimer.runtime.message import Message
from lorimer.runtime.results import RunResult
from lorimer.runtime.session import Session
from lorimer.safety.policy import ModePolicy
from lorimer.store import open_store
from lorimer.tools.registry import Registry
from lorimer.tools.tool import Principal, Tool

if TYPE_CHECKING:
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
        system: the system prompt; `None` for the default one (short for local models).
        mode: `plan`, `ask`, `auto` or `trusted` (`lorimer.safety.policy`). The default `auto` runs
            the tools you hand over, except irreversible ones, which are asked.
        policy: a policy of your own, instead of `mode`.
        approver: who answers when the policy asks: an `Approver`, or a function of the
            `ApprovalRequest` that returns a bool or an `Approval`. Without one such calls are
            refused.
        guards: voices beside the policy; the strictest voice counts.
        assessor: works out what a call would touch.
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
    """

    def __init__(
        self,
        model: str | Model,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        system: str | None = None,
        mode: str = "auto",
        policy: Policy | None = None,
        approver: Approver | Callable[[ApprovalRequest], Any] | None = None,
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
    ) -> None:
        self.clock = clock or SystemClock()
        self.registry = Registry(tools)
        self.policy: Policy = policy or ModePolicy(mode)
        self.guards = tuple(guards)
        self.assessor = assessor
        self.roots = tuple(Path(root).absolute() for root in roots)
        self.approver = _approver(approver)
        self.principal = Principal(principal) if isinstance(principal, str) else principal
        self.settings = settings or Settings()
        self.limits = limits or Limits()
        self.watch = watch
        self.allow_repair = allow_repair
        self.workspace = Path(workspace or os.getcwd()).absolute()
        if not self.workspace.is_dir():
            raise ConfigError(f"The workspace {self.workspace} is not a folder.")
        self._owns_model = isinstance(model, str)
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        if isinstance(model, str):
            from lorimer.models.registry import resolve

            self.model: Model = resolve(model)
        else:
            self.model = model
        if store is None or isinstance(store, str | os.PathLike):
            self.store = open_store(store, clock=self.clock)
        else:
            self.store = store
        self.scratch = None if self.store.folder is None else self.store.folder / "blobs"
        self.open_sessions: set[Session] = set()
        own = getattr(self.model, "default_system", None)
        default = DEFAULT_SYSTEM if own is None else own(self.registry.specs())
        self.system = default if system is None else system

    def session(self, session_id: str | None = None, *, wait_s: float | None = 1.0) -> Session:
        """A new session, or the one with this id; `wait_s` is how long to wait for another process
        that has it (`None`: for ever). Opened on first use, or by `async with`."""
        return Session(self, session_id, wait_s=wait_s)

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
        return [
            ToolSpec(s["name"], s["description"], s["input_schema"], tuple(s["examples"]))
            for s in stored
        ]

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


def _approver(given: Any) -> Approver | None:
    if given is None or hasattr(given, "ask"):
        return given  # type: ignore[no-any-return]
    return _FunctionApprover(given)
