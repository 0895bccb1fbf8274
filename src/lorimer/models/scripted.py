"""A model that answers from a script: for tests, of lorimer and of what is built on it.

    model = ScriptedModel([call("add", a=1, b=2), "The sum is 3."])

It keeps to the protocol of a real model (streamed deltas, usage, stop reason, faults) and does no
work that grows with the history.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from lorimer.core.calls import ToolCall
from lorimer.core.canonical import canonical_json
from lorimer.core.errors import ModelError, StreamCut
from lorimer.core.messages import Entry, ReasoningPart, part_to_json
from lorimer.core.specs import ToolSpec
from lorimer.core.usage import Usage
from lorimer.models.profiles import Profile
from lorimer.models.protocol import (
    CallComplete,
    CallDelta,
    CallStarted,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Request,
    Stop,
    StopReason,
    TextDelta,
    UsageReport,
)

WIRE = "scripted"
_PROFILE = Profile(name="scripted", wire=WIRE)
_ONE_REQUEST = Usage(requests=1)
_T = TypeVar("_T")


class ScriptExhausted(ModelError):
    """A scripted model was asked more often than it has answers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the script.

    Attributes:
        text: what is said, before the calls.
        calls: the calls, each `{"name": …, "arguments": …}`; `arguments` is a mapping, or text that
            is used as it is, valid or not; an optional `id` stands for the provider's id.
        reasoning: a thought before everything else; text, or a whole reasoning part.
        stop: why the answer ends; by default `CALLS` after calls, else `END`.
        usage: what is reported as used.
        cut_after: the stream breaks after so many events, whatever they are.
    """

    text: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
    reasoning: str | ReasoningPart = ""
    stop: StopReason | None = None
    usage: Usage | None = None
    cut_after: int | None = None


Item = (
    str
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
    | Reply
    | BaseException
    | type[BaseException]
    | Callable[[Request], Any]
)
"""What a script is made of: text; one call; a list of calls; a `Reply`; an exception, which is
raised; a function of the request (or a coroutine function) that gives one of these."""


class ScriptedModel:
    """Answers with one item of the script a request, in order.

    Args:
        items: the script, see `Item`.
        chunk: characters a delta; by default a text is one delta.
        delay_s: seconds between events.

    Attributes:
        requests: every request so far, as it was when it came.
    """

    def __init__(
        self,
        items: Iterable[Item],
        *,
        name: str = "scripted",
        chunk: int | None = None,
        delay_s: float = 0.0,
        profile: Profile = _PROFILE,
    ) -> None:
        self.requests: list[Request] = []
        self._items: list[Item] = list(items)
        self._given = 0
        self._name = name
        self._chunk = chunk
        self._delay_s = delay_s
        self._profile = profile

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def left(self) -> int:
        """How many items of the script are left."""
        return len(self._items) - self._given

    def add(self, *items: Item) -> None:
        """Append to the script."""
        self._items += items

    def render_prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        return canonical_json({"system": system, "tools": [tool.name for tool in tools]})

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        return canonical_json(
            {"kind": entry.kind, "parts": [part_to_json(part) for part in entry.parts]}
        )

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        """See `lorimer.models.protocol.Model.stream`.

        Raises:
            ScriptExhausted: when the script is at its end.
        """
        request = Request(
            request.prefix, _Seen(request.entries), _Seen(request.fragments), request.settings
        )
        self.requests.append(request)
        if self._given >= len(self._items):
            raise self._exhausted(request)
        item = self._items[self._given]
        self._given += 1
        while callable(item) and not isinstance(item, type):
            item = item(request)
            if inspect.isawaitable(item):
                item = await _wait_for(item)
        if isinstance(item, BaseException) or (
            isinstance(item, type) and issubclass(item, BaseException)
        ):
            raise item
        reply = _as_reply(item)
        sent = 0
        for event in _events(reply, self._chunk):
            if sent == reply.cut_after:
                raise _cut()
            if self._delay_s:
                import anyio

                await anyio.sleep(self._delay_s)
            yield event
            sent += 1
        if reply.cut_after is not None and sent <= reply.cut_after:
            raise _cut()

    async def aclose(self) -> None:
        """Nothing is open."""

    def _exhausted(self, request: Request) -> ScriptExhausted:
        count = len(self._items)
        last = request.entries[-1] if request.entries else None
        if last is None:
            about = "The request had no entries."
        else:
            text = last.text or "; ".join(
                f"{r.name}: {''.join(p.text for p in r.content if hasattr(p, 'text'))}"
                for r in last.results
            )
            about = (
                f"The request had {len(request.entries)} entries; the last is {last.kind}: "
                f"{text[:300]!r}."
            )
        return ScriptExhausted(
            f"The script of {self._name!r} has {count} item{'' if count == 1 else 's'}, and "
            f"request {len(self.requests)} came. {about}",
            next="Add an item for it, or end the run earlier.",
        )


class _Seen(Sequence[_T]):
    """The first items of a list that may grow, without a copy."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[_T]) -> None:
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> _T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[_T]: ...
    def __getitem__(self, at: int | slice) -> _T | Sequence[_T]:
        if isinstance(at, slice):
            return [self._items[i] for i in range(*at.indices(self._length))]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._items[at if at >= 0 else self._length + at]


async def _wait_for(item: Awaitable[Any]) -> Any:
    return await item


def _cut() -> StreamCut:
    return StreamCut("The answer stopped before its end mark (as scripted).")


def _as_reply(item: Any) -> Reply:
    if isinstance(item, Reply):
        return item
    if isinstance(item, str):
        return Reply(text=item)
    if isinstance(item, Mapping):
        return Reply(calls=[item])
    if isinstance(item, Sequence) and all(isinstance(part, Mapping) for part in item):
        return Reply(calls=item)
    raise TypeError(f"a script item cannot be {item!r}; see lorimer.models.scripted.Item")


def _events(reply: Reply, chunk: int | None) -> Iterator[ModelEvent]:
    if reply.reasoning:
        part = reply.reasoning
        if isinstance(part, str):
            part = ReasoningPart(part, WIRE)
        for piece in _pieces(part.text, chunk):
            yield ReasoningDelta(piece)
        yield ReasoningDone(part)
    for piece in _pieces(reply.text, chunk):
        yield TextDelta(piece)
    for index, record in enumerate(reply.calls):
        arguments = record.get("arguments", {})
        raw = arguments if isinstance(arguments, str) else canonical_json(arguments).decode()
        yield CallStarted(index, record["name"])
        for piece in _pieces(raw, chunk):
            yield CallDelta(index, piece)
        # As on every wire: of an answer that was cut by length, the last call may be half written.
        if reply.stop is not StopReason.LENGTH or index + 1 < len(reply.calls):
            yield CallComplete(index, ToolCall(record.get("id", ""), record["name"], raw))
    yield UsageReport(reply.usage or _ONE_REQUEST)
    reason = reply.stop or (StopReason.CALLS if reply.calls else StopReason.END)
    yield Stop(reason, str(reason))


def _pieces(text: str, chunk: int | None) -> Iterable[str]:
    if not text:
        return ()
    if chunk is None:
        return (text,)
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]
