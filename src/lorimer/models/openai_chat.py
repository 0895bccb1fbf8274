"""OpenAI Chat Completions, the wire that most servers speak.

https://developers.openai.com/api/reference/resources/chat (request and chunk objects). Servers that
differ are told apart by their profile: DeepSeek, Moonshot, xAI, Mistral, OpenRouter, Groq, vLLM,
Ollama, llama.cpp.

Reasoning: the wire of OpenAI itself carries none. `reasoning_content` (DeepSeek, Moonshot, vLLM,
llama.cpp), `reasoning` (vLLM, Groq, Ollama), `reasoning_details` (OpenRouter) and `thinking` chunks
(Mistral) are read; they go back in the form they came in where the profile says `keep`. Sources
stand in `profiles.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lorimer.core.calls import ToolCall
from lorimer.core.canonical import canonical_json
from lorimer.core.errors import ProviderFailed
from lorimer.core.messages import Entry, FilePart, ImagePart, Kind, ReasoningPart, TextPart
from lorimer.core.specs import ToolSpec
from lorimer.models.faults import Peer, told_fault
from lorimer.models.pairs import PairJoiner
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
from lorimer.models.rawjson import event_object, slice_at
from lorimer.models.rendering import (
    NO_MESSAGE,
    NO_REPLY,
    allows_strict,
    arguments_json,
    data_url,
    described,
    has_media,
    joined_text,
    not_shown,
    told_text,
    wire_id,
    wire_name,
)
from lorimer.models.sse import SseEvent
from lorimer.models.usage_fields import read_usage
from lorimer.models.wire_model import Reader, WireModel, cut, no_usage

WIRE = "openai_chat"
_CHUNK = "thinking_chunk"
"""Where Mistral's `thinking` chunk is kept in a reasoning part: its text, and its other fields."""
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
_STOPS = {
    "stop": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}


class OpenAIChat(WireModel):
    """A model behind the Chat Completions wire."""

    wire: ClassVar[str] = WIRE

    def _headers(self, api_key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def _path(self) -> str:
        return "/chat/completions"

    def _reader(self) -> Reader:
        return ChatReader(self._profile, self._peer)

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        start = b"{"
        if tools:
            start += b'"tools":' + canonical_json([self._tool(spec) for spec in tools]) + b","
        start += b'"messages":['
        return start + canonical_json({"role": "system", "content": system}) if system else start

    def _tool(self, spec: ToolSpec) -> dict[str, Any]:
        function: dict[str, Any] = {
            "name": spec.name,
            "description": described(spec),
            "parameters": spec.input_schema,
        }
        if self._profile.strict and allows_strict(spec.input_schema):
            function["strict"] = True
        return {"type": "function", "function": function}

    def _tail(self, request: Request) -> dict[str, Any]:
        settings = request.settings
        tail: dict[str, Any] = {"model": self.model, "stream": True}
        form, name = self._choice(request)
        if form == "tool":
            tail["tool_choice"] = {"type": "function", "function": {"name": name}}
        elif form != "auto":
            tail["tool_choice"] = form
        if (
            settings.parallel_calls is not None
            and self._profile.parallel_switch
            and request.prefix.tools
        ):
            tail["parallel_tool_calls"] = settings.parallel_calls
        if settings.max_output_tokens is not None:
            tail[self._profile.max_tokens_field] = settings.max_output_tokens
        if settings.temperature is not None:
            tail["temperature"] = settings.temperature
        if settings.seed is not None:
            tail["seed"] = settings.seed
        return tail

    def _messages(self, entry: Entry) -> list[bytes]:
        match entry.kind:
            case Kind.USER:
                return [_user(_content(entry.parts))]
            case Kind.ASSISTANT:
                return [self._assistant(entry)]
            case Kind.TOOL_RESULT:
                return self._results(entry)
            case _:
                return [_user(told_text(entry))]

    def _assistant(self, entry: Entry) -> bytes:
        message: dict[str, Any] = {"role": "assistant"}
        text = joined_text(entry.parts, "")
        calls = [
            {
                "id": wire_id(call.id, self._profile.id_pattern),
                "type": "function",
                "function": {
                    "name": wire_name(call.name),
                    "arguments": arguments_json(call.raw),
                },
            }
            for call in entry.calls
        ]
        if calls:
            message["tool_calls"] = calls
        if text or not calls:
            message["content"] = text if text.strip() else NO_REPLY
        if self._profile.reasoning != "drop":
            for part in entry.parts:
                if isinstance(part, ReasoningPart) and part.wire == WIRE and part.opaque:
                    message |= {k: v for k, v in part.opaque.items() if k in _REASONING_FIELDS}
                    if _CHUNK in part.opaque:
                        message["content"] = _chunks(part.opaque[_CHUNK], text)
            stand_in = self._profile.reasoning_stand_in
            if calls and stand_in and not message.keys() & set(_REASONING_FIELDS):
                message["reasoning_content"] = stand_in
        return canonical_json(message)

    def _results(self, entry: Entry) -> list[bytes]:
        messages = []
        shown: list[Any] = []
        for result in entry.results:
            call_id = wire_id(result.call_id, self._profile.id_pattern)
            text = joined_text(result.content)
            if has_media(result.content):
                # The wire has no images in tool messages: they follow in a message of their own.
                shown.append(
                    TextPart(f"Images in the result of {wire_name(result.name)} ({call_id}):")
                )
                shown += [p for p in result.content if isinstance(p, ImagePart)]
                text = text or "[the images follow]"
            messages.append(
                canonical_json({"role": "tool", "tool_call_id": call_id, "content": text})
            )
        if shown:
            if self._profile.alternate:
                messages.append(self._assistant_text(NO_REPLY))
            messages.append(_user(_content(shown)))
        return messages

    def _user_text(self, text: str) -> bytes:
        return _user(text)

    def _role_text(self, role: str, text: str) -> bytes:
        return canonical_json({"role": role, "content": text})

    def _assistant_text(self, text: str) -> bytes:
        return canonical_json({"role": "assistant", "content": text})


def _chunks(thought: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    """Content with a thought, as Mistral gives it and takes it back
    (https://docs.mistral.ai/studio-api/conversations/reasoning#multi-turn-conversations)."""
    others = {k: v for k, v in thought.items() if k != "text"}
    inside = [{"type": "text", "text": thought["text"]}]
    chunk = {"type": "thinking", "thinking": inside, "closed": True, **others}
    return [chunk, {"type": "text", "text": text}] if text.strip() else [chunk]


def _user(content: Any) -> bytes:
    return canonical_json({"role": "user", "content": content})


def _content(parts: Sequence[object]) -> str | list[dict[str, Any]]:
    if not has_media(parts):
        return joined_text(parts) or NO_MESSAGE
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case TextPart(text=text) if text:
                blocks.append({"type": "text", "text": text})
            case ImagePart(media_type, data, url) if data or url:
                link = url or data_url(media_type, data)
                blocks.append({"type": "image_url", "image_url": {"url": link}})
            case FilePart(media_type, name, data):
                link = data_url(media_type, data)
                blocks.append({"type": "file", "file": {"filename": name, "file_data": link}})
            case ImagePart():
                blocks.append({"type": "text", "text": not_shown(part)})
    return blocks


@dataclass(slots=True)
class _Call:
    index: int
    id: str = ""
    name: str = ""
    started: bool = False
    raw: list[str] = field(default_factory=list)
    pairs: PairJoiner = field(default_factory=PairJoiner)


class ChatReader:
    """Reads the chunks of one chat completion."""

    def __init__(self, profile: Profile, peer: Peer) -> None:
        self.done = False
        self._profile = profile
        self._peer = peer
        self._calls: list[_Call] = []
        self._by_key: dict[Any, _Call] = {}
        self._text = PairJoiner()
        self._thought = PairJoiner()
        self._reasoning: dict[str, Any] = {}
        self._finish = ""
        self._refused = False
        self._usage: dict[str, Any] | None = None

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        if event.data.strip() == "[DONE]":
            self.done = True
            return
        chunk = event_object(event.data)
        if chunk.get("error") or event.name == "error":
            raise told_fault(chunk, self._peer)
        self._keep_usage(chunk)
        for number, choice in enumerate(chunk.get("choices") or ()):
            if choice.get("index", 0) != 0:
                continue
            yield from self._delta(choice.get("delta") or {}, event.data, number)
            if choice.get("finish_reason"):
                yield from self._finished(str(choice["finish_reason"]))

    def finish(self) -> Iterator[ModelEvent]:
        if not self._finish:
            raise cut()
        usage = no_usage() if self._usage is None else read_usage(self._usage, self._profile)
        yield UsageReport(usage)
        reason = _STOPS.get(self._finish, StopReason.OTHER)
        if reason is StopReason.END and self._calls:
            reason = StopReason.CALLS  # Several servers say `stop` after calls.
        elif reason is StopReason.CALLS and not self._calls:
            reason = StopReason.OTHER
        yield Stop(StopReason.REFUSAL if self._refused else reason, self._finish)

    def _keep_usage(self, chunk: Mapping[str, Any]) -> None:
        usage = chunk.get("usage")
        if not isinstance(usage, Mapping):
            usage = (chunk.get("x_groq") or {}).get("usage") or _usage_of_choice(chunk)
        if isinstance(usage, Mapping):
            self._usage = {**(self._usage or {}), **usage}
        if isinstance(chunk.get("timings"), Mapping):  # llama.cpp
            self._usage = {**(self._usage or {}), "timings": chunk["timings"]}

    def _delta(self, delta: Mapping[str, Any], data: str, choice: int) -> Iterator[ModelEvent]:
        yield from self._thinking(delta)
        content = delta.get("content")
        if isinstance(content, list):  # Mistral's reasoning models send parts.
            yield from self._parts(content)
        elif content:
            yield from self._say(content)
        if delta.get("refusal"):
            self._refused = True
            yield from self._say(delta["refusal"])
        for number, piece in enumerate(delta.get("tool_calls") or ()):
            path = ("choices", choice, "delta", "tool_calls", number, "function", "arguments")
            yield from self._call_piece(piece, data, path)

    def _say(self, text: str) -> Iterator[ModelEvent]:
        yield from self._close_reasoning()
        if whole := self._text.feed(text):
            yield TextDelta(whole)

    def _parts(self, parts: Sequence[Any]) -> Iterator[ModelEvent]:
        for part in parts:
            if part.get("type") == "thinking":
                text = "".join(p.get("text", "") for p in part.get("thinking") or ())
                chunk = self._reasoning.setdefault(_CHUNK, {"text": ""})
                others = {k: v for k, v in part.items() if k not in ("type", "thinking", "text")}
                chunk |= others | {"text": chunk["text"] + text}
                if text and (whole := self._thought.feed(text)):
                    yield ReasoningDelta(whole)
            elif part.get("text"):
                yield from self._say(part["text"])

    def _thinking(self, delta: Mapping[str, Any]) -> Iterator[ModelEvent]:
        shown = ""
        for key in ("reasoning_content", "reasoning"):
            if isinstance(text := delta.get(key), str) and text:
                shown = shown or text
                self._reasoning[key] = self._reasoning.get(key, "") + text
        if isinstance(details := delta.get("reasoning_details"), list) and details:
            self._reasoning.setdefault("reasoning_details", []).extend(details)
        if shown and (whole := self._thought.feed(shown)):
            yield ReasoningDelta(whole)

    def _close_reasoning(self) -> Iterator[ModelEvent]:
        if not self._reasoning:
            return
        self._thought.end()
        pairs = PairJoiner()
        opaque: dict[str, Any] = {
            key: pairs.feed(value) if isinstance(value, str) else value
            for key, value in self._reasoning.items()
        }
        self._reasoning = {}
        if _CHUNK in opaque:
            opaque[_CHUNK] |= {"text": pairs.feed(opaque[_CHUNK]["text"])}
        if "reasoning_details" in opaque:
            # OpenRouter sends both; the details say the same and more.
            text = opaque.pop("reasoning", "")
        else:
            text = opaque.get("reasoning_content") or opaque.get("reasoning", "")
            text = text or opaque.get(_CHUNK, {}).get("text", "")
        yield ReasoningDone(ReasoningPart(text, WIRE, opaque))

    def _call_piece(
        self, piece: Mapping[str, Any], data: str, path: Sequence[str | int]
    ) -> Iterator[ModelEvent]:
        yield from self._close_reasoning()
        function = piece.get("function") or {}
        call = self._call_of(piece, function)
        name = function.get("name") or ""
        if name and not (call.started and name == call.name):
            call.name += name
        call.id = call.id or piece.get("id") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):  # Some servers send the object, not its text.
            arguments = slice_at(data, path)
        if call.name and not call.started:
            call.started = True
            yield CallStarted(call.index, call.name)
        if arguments and (whole := call.pairs.feed(arguments)):
            call.raw.append(whole)
            yield CallDelta(call.index, whole)

    def _call_of(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> _Call:
        """The call that `piece` continues, or a new one. Servers that give no index, or the same
        one to all, begin a new call with a new id."""
        key = piece.get("index")
        if key is not None:
            call = self._by_key.get(key)
        else:
            call = self._calls[-1] if self._calls else None
        new_id = piece.get("id") or ""
        begins = bool(function.get("name")) and (
            (key is None and call is not None and bool(call.raw or call.id != new_id))
            or (call is not None and bool(new_id) and bool(call.id) and new_id != call.id)
        )
        if call is None or begins:
            call = _Call(len(self._calls))
            self._calls.append(call)
        if key is not None:
            self._by_key[key] = call
        return call

    def _finished(self, reason: str) -> Iterator[ModelEvent]:
        if reason == "insufficient_system_resource":
            # https://api-docs.deepseek.com/api/create-chat-completion
            raise ProviderFailed(
                "The provider broke the answer off for lack of resources.", next="Ask again later."
            )
        self._finish = reason
        self._text.end()
        yield from self._close_reasoning()
        if _STOPS.get(reason) not in (StopReason.END, StopReason.CALLS):
            return  # The last call may be half written; none is called complete.
        for call in self._calls:
            call.pairs.end()
            if not call.started:
                call.started = True
                yield CallStarted(call.index, call.name)
            yield CallComplete(call.index, ToolCall(call.id, call.name, "".join(call.raw)))


def _usage_of_choice(chunk: Mapping[str, Any]) -> Any:
    """The usage inside the last choice: Moonshot's way in streams
    (https://platform.kimi.ai/docs/api/chat)."""
    for choice in chunk.get("choices") or ():
        if isinstance(choice, Mapping) and choice.get("usage"):
            return choice["usage"]
    return None
