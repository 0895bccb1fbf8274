"""What the four wire adapters share: how a request body is put together, how an answer is read.

A request body is `prefix + fragments + "]" + settings`, joined as bytes: the prefix ends inside the
open list of messages, each fragment is one or more complete messages, and the settings come last so
that nothing that varies stands before what is stable. No rendered byte is ever parsed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from time import monotonic
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from anyio import move_on_after

from lorimer.core.canonical import canonical_json
from lorimer.core.clock import Clock
from lorimer.core.errors import BadAnswer, InvalidRequest, StreamCut
from lorimer.core.messages import Entry, Kind, Part, ReasoningPart, ResultPart, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.core.trust import Trust
from lorimer.core.usage import Usage
from lorimer.models.faults import Peer
from lorimer.models.foreign import without_foreign
from lorimer.models.http import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, EventSource, Tap
from lorimer.models.profiles import Profile
from lorimer.models.protocol import ModelEvent, Request, UsageReport
from lorimer.models.rendering import NO_MESSAGE, NO_REPLY, encodable
from lorimer.models.served_window import served_window
from lorimer.models.sse import SseEvent

_DRAIN_S = 0.25
_OWN_FIELDS = frozenset(
    {"messages", "input", "contents", "tools", "system", "instructions", "systemInstruction"}
)


class Reader(Protocol):
    """Reads the events of one answer. Pure: no I/O, no clock."""

    done: bool
    """The end mark has been read; nothing behind it counts."""

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        """What `event` says. Raises a `ModelError` for an error event and for what is not this
        protocol."""
        ...

    def finish(self) -> Iterator[ModelEvent]:
        """The last events: `UsageReport`, `Stop`. Raises `StreamCut` when no end mark came (G3)."""
        ...


class WireModel(ABC):
    """A model behind HTTP.

    Args:
        model: the model's name at the provider.
        profile: its message rules.
        name: the name that selects it here, e.g. `openai:gpt-5`.
        base_url, api_key: default to the profile's URL and to no key.
        tap: called with each request body before it is sent.
    """

    wire: ClassVar[str]

    def __init__(
        self,
        model: str,
        profile: Profile,
        *,
        name: str = "",
        base_url: str = "",
        api_key: str = "",
        tap: Tap | None = None,
        clock: Clock | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.model = model
        self._name = name or f"{profile.name}:{model}"
        self._profile = profile
        url = base_url or profile.base_url
        self._peer = Peer(
            profile.name, model, urlsplit(url).netloc.rpartition("@")[2], profile.key_env, api_key
        )
        self._http = EventSource(
            url,
            self._headers(api_key),
            self._peer,
            tap=tap,
            clock=clock,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
            keep_alive=profile.keep_alive,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def tap(self) -> Tap | None:
        """Called with the exact body of each request before it is sent."""
        return self._http.tap

    @tap.setter
    def tap(self, tap: Tap | None) -> None:
        self._http.tap = tap

    @abstractmethod
    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        """The start of every request body, up to and into the open list of messages."""

    def render_entry(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        """`entry` as complete messages, joined by commas. Reasoning of another model stays out."""
        entry = without_foreign(entry, self._name)
        render = self._status if self._in_own_role(entry) else self._messages
        try:
            messages = render(entry)
        except UnicodeEncodeError:
            messages = render(_encodable(entry))
        filler = self._filler(entry, earlier)
        return b",".join([filler, *messages] if filler else messages)

    def _in_own_role(self, entry: Entry) -> bool:
        """Whether `entry` is told in the role that the model has for words of its operator: a
        status bar that was written for that (`meta["apart"]`), without texts from outside."""
        return bool(
            self._profile.status_role and entry.kind is Kind.STATUS and entry.meta.get("apart")
        )

    def _status(self, entry: Entry) -> list[bytes]:
        """A status bar in its own role; the texts it refers to stand before it, in the user's."""
        texts = [p for p in entry.parts if isinstance(p, TextPart)]
        own = [p.text for p in texts if p.trust is Trust.TRUSTED]
        others = [p.text for p in texts if p.trust is not Trust.TRUSTED]
        messages = [self._user_text("\n\n".join(others))] if others else []
        return [*messages, self._role_text(self._profile.status_role, "\n\n".join(own))]

    def _role_text(self, role: str, text: str) -> bytes:
        """A whole message in `role`, for wires that have one beside user and assistant."""
        raise NotImplementedError

    def _filler(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        """A message that must stand before `entry`; empty when none must."""
        if not earlier or not self._profile.alternate:
            return b""
        return self._between(earlier[-1].kind, entry.kind)

    def body(self, request: Request) -> bytes:
        """The request body: frozen bytes joined, settings behind them.

        Raises:
            InvalidRequest: when the settings ask for what this model cannot be asked for.
        """
        tail = canonical_json(self._checked_tail(request))[1:]
        rendered, fragments = request.prefix.rendered, self._fragments(request)
        first = b"," if fragments and not rendered.endswith(b"[") else b""
        last = b"]" if tail == b"}" else b"],"
        return b"".join((rendered, first, b",".join(fragments), last, tail))

    def _fragments(self, request: Request) -> Sequence[bytes]:
        """The renderings as they are sent."""
        return request.fragments

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        """See `lorimer.models.protocol.Model.stream`."""
        body = self.body(request)
        reader = self._reader()
        start = monotonic()
        first_s: float | None = None
        async with aclosing(self._http.events(self._path(), body, request.tap)) as events:
            async for event in events:
                for out in reader.feed(event):
                    if first_s is None:
                        first_s = monotonic() - start
                    yield out
                if reader.done:
                    # Read to the end of the body, so that the connection can be used again.
                    try:
                        with move_on_after(_DRAIN_S):
                            async for _ in events:
                                pass
                    except (StreamCut, BadAnswer):
                        pass  # The answer is complete; what stands behind its end mark is nothing.
                    break
        for out in reader.finish():
            if isinstance(out, UsageReport):
                out = UsageReport(replace(out.usage, ttft_s=first_s))
            yield out

    async def aclose(self) -> None:
        await self._http.aclose()

    async def served_window(self) -> int | None:
        """The context window as the server tells it; `None` when it does not, or the profile knows
        it anyway. Never raises."""
        return await served_window(self._http, self._profile.name, self.model)

    async def disconnect(self) -> None:
        """Close the connections; the next request opens new ones."""
        await self._http.aclose()

    @abstractmethod
    def _headers(self, api_key: str) -> Mapping[str, str]: ...

    @abstractmethod
    def _path(self) -> str: ...

    @abstractmethod
    def _reader(self) -> Reader: ...

    @abstractmethod
    def _messages(self, entry: Entry) -> list[bytes]:
        """`entry` as wire messages, by itself."""

    @abstractmethod
    def _tail(self, request: Request) -> dict[str, Any]:
        """The body fields behind the messages."""

    @abstractmethod
    def _user_text(self, text: str) -> bytes:
        """A whole user message."""

    @abstractmethod
    def _assistant_text(self, text: str) -> bytes:
        """A whole assistant message."""

    def _between(self, before: Kind, now: Kind) -> bytes:
        if now not in (Kind.ASSISTANT, Kind.TOOL_RESULT) and before is not Kind.ASSISTANT:
            return self._assistant_text(NO_REPLY)
        if now is Kind.ASSISTANT and before is Kind.ASSISTANT:
            return self._user_text(NO_MESSAGE)
        return b""

    def _checked_tail(self, request: Request) -> dict[str, Any]:
        tail = {**self._profile.extra, **self._tail(request), **(request.settings.extra or {})}
        clash = _OWN_FIELDS.intersection(tail)
        if clash:
            raise InvalidRequest(
                f"Extra body fields may not replace {', '.join(sorted(clash))}.",
                next="Give system prompt, tools and messages to the session instead.",
            )
        return tail

    def _choice(self, request: Request) -> tuple[str, str]:
        """The form of `tool_choice` and, for the form `tool`, the tool's name."""
        want = request.settings.tool_choice
        form, name = (want, "") if want in ("auto", "required", "none") else ("tool", want)
        tools = request.prefix.tools
        if form == "auto" or (form == "none" and not tools):
            return "auto", ""
        if not tools or (form == "tool" and all(tool.name != name for tool in tools)):
            raise InvalidRequest(f"tool_choice is {want!r}, and the session has no such tool.")
        if form not in self._profile.tool_choice:
            raise InvalidRequest(
                f"{self._name} does not understand tool_choice {want!r}.",
                next=f"It understands: {', '.join(sorted(self._profile.tool_choice))}.",
            )
        return form, name

    def _no_seed(self, request: Request) -> None:
        if request.settings.seed is not None:
            raise InvalidRequest(f"{self._name} takes no seed.", next="Leave the seed out.")


def _encodable(entry: Entry) -> Entry:
    """`entry` with texts that can be written as UTF-8; see `rendering.encodable`."""

    def text(part: Part) -> Part:
        if isinstance(part, TextPart | ReasoningPart):
            return replace(part, text=encodable(part.text))
        if isinstance(part, ResultPart):
            content = tuple(
                replace(p, text=encodable(p.text)) if isinstance(p, TextPart) else p
                for p in part.content
            )
            return replace(part, content=content)
        return part

    return replace(entry, parts=tuple(text(part) for part in entry.parts))


def no_usage() -> Usage:
    """For an answer without a usage object: one request, nothing counted."""
    return Usage(requests=1)


def cut(what: str = "") -> StreamCut:
    """The fault of an answer that ends without its end mark."""
    return StreamCut(
        f"The answer stopped before its end mark{what}.",
        next="Ask again; nothing of this answer was run.",
    )
