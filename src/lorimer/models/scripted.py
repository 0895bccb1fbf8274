"""A model that answers from a script: for tests, of lorimer and of what is built on it.

    model = ScriptedModel([call("add", a=1, b=2), "The sum is 3."])

The script is read once, in the constructor: what cannot be read is refused there, never guessed at.
The model keeps to the protocol of a real model (streamed deltas, usage, stop reason,
faults) and does no work that grows with the history.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Any, TypeVar, overload

from lorimer.core.canonical import canonical_json
from lorimer.core.errors import ModelError, StreamCut
from lorimer.core.messages import Entry, part_to_json
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
from lorimer.models.rendering import encodable
from lorimer.models.script import (
    WIRE,
    Answer,
    Function,
    Item,
    Ready,
    is_list_of_items,
    made,
    read_item,
)

_PROFILE = Profile(name="scripted", wire=WIRE)
_ONE_REQUEST = Usage(requests=1)
_T = TypeVar("_T")


class ScriptExhausted(ModelError):
    """A scripted model was asked more often than it has answers."""


class ScriptedModel:
    """Answers with one item of the script a request, in order.

    Args:
        items: the script, see `Item`: a list of items, or the items themselves.
        chunk: characters a delta; by default a text is one delta.
        delay_s: seconds between events.

    Attributes:
        requests: every request so far, as it was when it came.

    Raises:
        TypeError, ValueError: for an item that cannot be read, with its index (from 0).
    """

    def __init__(
        self,
        *items: Item | Iterable[Item],
        name: str = "scripted",
        chunk: int | None = None,
        delay_s: float = 0.0,
        profile: Profile = _PROFILE,
    ) -> None:
        self.requests: list[Request] = []
        self._items: list[Ready] = []
        self._given = 0
        self._name = name
        self._chunk = chunk
        self._delay_s = delay_s
        self._profile = profile
        script: Any = items[0] if len(items) == 1 and is_list_of_items(items[0]) else items
        self._append(script)

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
        self._append(items)

    def _append(self, items: Iterable[Any]) -> None:
        first = len(self._items)
        ready = [
            read_item(item, f"Item {at} of the script") for at, item in enumerate(items, first)
        ]
        self._items += ready

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        return canonical_json({"system": system, "tools": [tool.name for tool in tools]})

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        record = {"kind": entry.kind, "parts": [part_to_json(part) for part in entry.parts]}
        try:
            return canonical_json(record)
        except UnicodeEncodeError:  # half a surrogate pair: the record of the session keeps it
            text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            return encodable(text).encode()

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        """See `lorimer.models.protocol.Model.stream`.

        Raises:
            ScriptExhausted: when the script is at its end.
        """
        if request.tap is not None:
            request.tap(b"".join((request.prefix.rendered, *request.fragments)))
        request = Request(
            request.prefix, _Seen(request.entries), _Seen(request.fragments), request.settings,
            transient=request.transient,
        )  # fmt: skip
        self.requests.append(request)
        if self._given >= len(self._items):
            raise self._exhausted(request)
        item = self._items[self._given]
        self._given += 1
        while isinstance(item, Function):
            given = item.function(request) if item.takes_request else item.function()
            if inspect.isawaitable(given):
                given = await _wait_for(given)
            item = read_item(given, f"What item {self._given - 1} of the script gave")
        if isinstance(item, type):
            item = made(item, self._given - 1)
        if isinstance(item, BaseException):
            raise item
        sent = 0
        for event in _events(item, self._chunk):
            if sent == item.cut_after:
                raise _cut()
            if self._delay_s:
                import anyio

                await anyio.sleep(self._delay_s)
            yield event
            sent += 1
        if item.cut_after is not None and sent <= item.cut_after:
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


def _events(answer: Answer, chunk: int | None) -> Iterator[ModelEvent]:
    if answer.reasoning is not None:
        for piece in _pieces(answer.reasoning.text, chunk):
            yield ReasoningDelta(piece)
        yield ReasoningDone(answer.reasoning)
    for piece in _pieces(answer.text, chunk):
        yield TextDelta(piece)
    for index, call in enumerate(answer.calls):
        yield CallStarted(index, call.name)
        for piece in _pieces(call.raw, chunk):
            yield CallDelta(index, piece)
        # As on every wire: of an answer that was cut by length, the last call may be half written.
        if answer.stop is not StopReason.LENGTH or index + 1 < len(answer.calls):
            yield CallComplete(index, call)
    yield UsageReport(answer.usage)
    yield Stop(answer.stop, answer.raw_stop)


def _pieces(text: str, chunk: int | None) -> Iterable[str]:
    if not text:
        return ()
    if chunk is None:
        return (text,)
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]
