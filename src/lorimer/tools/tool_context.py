"""What a tool's function may know of where it runs, and the error it fails with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lorimer.core.calls import Outcome
from lorimer.core.clock import Clock, SystemClock
from lorimer.core.effects import CallEffects
from lorimer.core.errors import LorimerError
from lorimer.core.secrets import ByteStream
from lorimer.tools.belongings import Belongings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lorimer.core.messages import TextPart
    from lorimer.tools.subagents import SubagentPort
    from lorimer.tools.tool import Tool


class EffectMark(StrEnum):
    """How far a running call has come with its effect, as far as the tool has said."""

    NOT_MARKED = "not_marked"
    NOT_BEGUN = "not_begun"
    BEGUN = "begun"
    COMPLETE = "complete"


class ToolError(LorimerError):
    """A tool raises this to fail with a message the model can act on.

    Args:
        message: what was wrong, with the value.
        next: one concrete step for the model.
        outcome: what is true of the effect. `None` lets lorimer work it out: before any effect for
            reads; for tools with effects from the marks of `ToolContext.effect`, else `unknown`.
        retryable: whether a corrected call makes sense.
        code: the error code the model sees.
        said: text that is not lorimer's or the tool's own, under its own labels; it is told after
            the error and never in it. From tools that run in this process.
    """

    def __init__(
        self,
        message: str,
        *,
        next: str = "",
        outcome: Outcome | None = None,
        retryable: bool = True,
        code: str = "tool_error",
        details: Mapping[str, Any] | None = None,
        said: Sequence[TextPart] = (),
    ) -> None:
        super().__init__(message, next=next)
        self.said = tuple(said)
        self.outcome = outcome
        self.retryable = retryable
        self.code = code
        self.details = {str(key): _json_or_repr(value) for key, value in (details or {}).items()}


def _json_or_repr(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
    return value


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a session acts. Set by whoever opens the session, never by the model."""

    id: str
    roles: frozenset[str] = frozenset()


class FileViews(Protocol):
    """What this session has seen of files: to refuse an edit of a file that changed since."""

    def seen(self, path: str) -> str | None:
        """The content hash of `path` when this session last read or wrote it."""
        ...

    def remember(self, path: str, content_hash: str) -> None: ...


class ForgetfulViews:
    """`FileViews` in memory; a session gives tools one that it keeps."""

    def __init__(self, views: Mapping[str, str] | None = None) -> None:
        self.views = dict(views or {})

    def seen(self, path: str) -> str | None:
        return self.views.get(path)

    def remember(self, path: str, content_hash: str) -> None:
        self.views[path] = content_hash


@dataclass(slots=True)
class ToolContext:
    """What a tool's function may know of where it runs; the model can write none of it.

    A function gets it by a parameter annotated `ToolContext`; that parameter is not in the schema.

    Attributes:
        operation_key: stable key of this one effect: (session, tool, arguments, occurrence). Hand
            it to the far side as its idempotency key (G2).
        workspace: the folder the session works in; relative paths start here.
        scratch: a folder outside the workspace for large outputs.
        deadline: on `clock.monotonic()`, when the call will be stopped; `None` without a limit.
        views: what the session has seen of files.
        on_output: called with each piece of output as it comes, for people who watch.
        belongings: what outlasts this call in the session: a shell, an interpreter.
        touches: what this very call was found to touch when it was allowed.
        call_tool: call another tool of the session, through every station, as a part of this call;
            only for tools that declare `calls_tools`.
        without_secrets: makes a stream that takes secrets out of output which the tool itself
            writes to disk; what it returns is looked at anyway.
        past: gives the calls of the named tools that this session has ended, oldest first, from the
            journal: what a tool needs to know of its own state after a restart.
        recorded: gives one ended call of this session with its whole result, also where the model
            was only told a part of it; `None` for an id that is none.
        subagents: the sub-agents of the session; `None` when it may have none.
        readable: folders outside the workspace that file tools may read and programs are shown,
            never to be written: those of skills.
    """

    session: str
    call_id: str
    principal: Principal
    operation_key: str
    workspace: Path
    scratch: Path | None = None
    clock: Clock = field(default_factory=SystemClock)
    deadline: float | None = None
    views: FileViews = field(default_factory=ForgetfulViews)
    on_output: Callable[[str], None] | None = None
    mark: EffectMark = EffectMark.NOT_MARKED
    on_mark: Callable[[EffectMark], None] | None = None
    belongings: Belongings = field(default_factory=Belongings)
    call_tool: CallTool | None = None
    touches: CallEffects | None = None
    without_secrets: Callable[[], ByteStream] | None = None
    past: Past | None = None
    recorded: Callable[[str], RecordedCall | None] | None = None
    subagents: SubagentPort | None = None
    readable: tuple[Path, ...] = ()

    @contextmanager
    def effect(self) -> Iterator[None]:
        """Wrap exactly the lines that change the world.

        A call that ends before them ends `failed_before_effect`, one that fails after them
        `failed_after_effect`, and one that is stopped inside them `unknown`.
        """
        self.set_mark(EffectMark.BEGUN)
        yield
        self.set_mark(EffectMark.COMPLETE)

    def will_mark(self) -> None:
        """Say that this function uses `effect()`: until then nothing has happened."""
        if self.mark is EffectMark.NOT_MARKED:
            self.set_mark(EffectMark.NOT_BEGUN)

    def set_mark(self, mark: EffectMark) -> None:
        self.mark = mark
        if self.on_mark is not None:
            self.on_mark(mark)


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that has ended. `arguments` are those it was run with; `entry_seq` is the number of
    the answer that made it; `result` what the model was told, as text."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    entry_seq: int
    result: str


Past = Callable[..., Sequence[PastCall]]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that has ended, whole: `raw` are its arguments as they were written, `content` the
    text and image parts of its result with their labels; what a preview left out is in them, and
    outside content stands without its tags."""

    id: str
    tool: str
    raw: str
    outcome: Outcome
    content: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class InnerEnd:
    """How a call that a tool made ended.

    Attributes:
        value: what it gave, as JSON or text; `None` when it was refused.
        parts: the same as content, with trust labels.
        error: the error object the model would have read; `None` when the call was done.
        changes: whether the tool declares effects.
        started: whether it was begun at all.
    """

    id: str
    tool: str
    outcome: Outcome
    value: Any = None
    parts: tuple[Any, ...] = ()
    error: Mapping[str, Any] | None = None
    changes: bool = False
    started: bool = False


class CallTool(Protocol):
    """Calls tools of the session as parts of a call. A cancelled inner call is stopped and recorded
    before the cancellation goes on."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that may be called."""
        ...

    @property
    def ends(self) -> Sequence[InnerEnd]:
        """How the calls so far have ended, in order."""
        ...

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> InnerEnd: ...
