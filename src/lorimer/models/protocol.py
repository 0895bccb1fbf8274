"""The model protocol: one streaming method, and pure rendering beside it.

A model adapter knows one wire protocol. It renders each entry of a trajectory once
(`render_entry`); the bytes are frozen, stored with the session and joined unchanged into every
later request. `stream` sends a request and yields what the model writes, as it writes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from lorimer.core.calls import ToolCall
from lorimer.core.messages import Entry, ReasoningPart
from lorimer.core.specs import ToolSpec
from lorimer.core.usage import Usage

if TYPE_CHECKING:
    from lorimer.models.profiles import Profile


class StopReason(StrEnum):
    """Why the model stopped. Calls may run after `END` and `CALLS` only (G3)."""

    END = "end"
    CALLS = "calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of readable reasoning; for display only."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDone:
    """A whole reasoning block, as it must be recorded and handed back. Its place among the other
    events is its place in the message."""

    part: ReasoningPart


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model has begun to write a call. `index` counts calls in this answer from 0."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the argument text of call `index`."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallComplete:
    """Call `index` is written to its end. `call.id` is the provider's id, or empty."""

    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsageReport:
    usage: Usage


@dataclass(frozen=True, slots=True)
class Progress:
    """Work before the first token: e.g. prompt tokens read so far, of all (local models)."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The end mark: always the last event of a stream that was not cut. `raw` is the provider's
    own word for the reason."""

    reason: StopReason
    raw: str


@dataclass(frozen=True, slots=True)
class Discarded:
    """The answer so far is void: the request failed in the middle and is asked again. Whoever shows
    or keeps what came must drop it. `attempt` of `of` is the one that failed. Only
    `lorimer.models.retry` yields this; no call of a discarded answer may run (G3)."""

    reason: str
    attempt: int
    of: int


ModelEvent = (
    TextDelta
    | ReasoningDelta
    | ReasoningDone
    | CallStarted
    | CallDelta
    | CallComplete
    | UsageReport
    | Progress
    | Discarded
    | Stop
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to answer. `None` means: the provider's own default, not sent.

    Attributes:
        tool_choice: `auto`, `required`, `none`, or the name of one tool.
        parallel_calls: whether several calls may stand in one answer.
        max_output_tokens: hard bound on what is written.
        extra: further body fields, passed on as they are.
    """

    tool_choice: str = "auto"
    parallel_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """The static part of every request of a session. `rendered` is made by `Model.render_prefix`
    once and stored with the session."""

    system: str
    tools: tuple[ToolSpec, ...]
    rendered: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `fragments[i]` is the frozen rendering of `entries[i]`. `tap` is called with
    the exact bytes of the prompt before they are sent; what it raises stops the request.
    `transient`: so many of the last entries are in this request only."""

    prefix: Prefix
    entries: Sequence[Entry]
    fragments: Sequence[bytes]
    settings: Settings
    tap: Callable[[bytes], None] | None = None
    transient: int = 0


class Model(Protocol):
    """Anything that can answer a request."""

    @property
    def name(self) -> str:
        """The name that selects this model, e.g. `anthropic:claude-…` or `qwen2.5-coder-0.5b`."""
        ...

    @property
    def profile(self) -> Profile:
        """The message rules, prices and field names of this model."""
        ...

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        """The system prompt and the tool list, as this wire wants them. Pure.

        `boundaries`: after so many characters of `system` something ends that other sessions share;
        a wire that lets a prompt say where its cache ends says it there, the others ignore them.
        """
        ...

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        """One entry as complete wire messages, joined as they stand in the request. Pure: depends
        on the entry and on what stood before it only."""
        ...

    def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        """Send `request`, yield what comes.

        Ends with `Stop`, or raises a `ModelError`; closing the iterator early (also by
        cancellation) closes the connection. Never retries: the caller decides.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; the model cannot be used afterwards."""
        ...
