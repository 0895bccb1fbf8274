"""OpenAI Responses (https://developers.openai.com/api/reference/resources/responses).

Used without server-side state (`store: false`): the whole history goes with each request. Reasoning
items come encrypted and go back unchanged beside the call or message they led to
(https://developers.openai.com/api/docs/guides/reasoning#keeping-reasoning-items-in-context); the
server drops those of earlier turns by itself, so keeping them is safe for frozen renderings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from lorimer.core.calls import ToolCall
from lorimer.core.canonical import canonical_json
from lorimer.core.messages import (
    CallPart,
    Entry,
    FilePart,
    ImagePart,
    Kind,
    ReasoningPart,
    TextPart,
)
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
from lorimer.models.rawjson import event_object
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

WIRE = "openai_responses"
_INCOMPLETE = {
    "max_output_tokens": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}


class OpenAIResponses(WireModel):
    """A model behind the Responses wire."""

    wire: ClassVar[str] = WIRE

    def _headers(self, api_key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def _path(self) -> str:
        return "/responses"

    def _reader(self) -> Reader:
        return ResponsesReader(self._profile, self._peer)

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        start = b"{"
        if system:
            start += b'"instructions":' + canonical_json(system) + b","
        if tools:
            start += b'"tools":' + canonical_json([self._tool(spec) for spec in tools]) + b","
        return start + b'"input":['

    def _tool(self, spec: ToolSpec) -> dict[str, Any]:
        return {
            "type": "function",
            "name": spec.name,
            "description": described(spec),
            "parameters": spec.input_schema,
            # Left out, the server takes it for true and changes the schema.
            "strict": self._profile.strict and allows_strict(spec.input_schema),
        }

    def _tail(self, request: Request) -> dict[str, Any]:
        settings = request.settings
        self._no_seed(request)
        tail: dict[str, Any] = {"model": self.model, "stream": True}
        form, name = self._choice(request)
        if form == "tool":
            tail["tool_choice"] = {"type": "function", "name": name}
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
        return tail

    def _messages(self, entry: Entry) -> list[bytes]:
        match entry.kind:
            case Kind.USER:
                return [_message("user", _content(entry.parts))]
            case Kind.ASSISTANT:
                return self._assistant(entry)
            case Kind.TOOL_RESULT:
                return [
                    canonical_json(
                        {
                            "type": "function_call_output",
                            "call_id": wire_id(result.call_id, self._profile.id_pattern),
                            "output": _content(result.content)
                            if has_media(result.content)
                            else joined_text(result.content),
                        }
                    )
                    for result in entry.results
                ]
            case _:
                return [self._user_text(told_text(entry))]

    def _assistant(self, entry: Entry) -> list[bytes]:
        items: list[bytes] = []
        reasoned = False
        last_is_reasoning = False
        for part in entry.parts:
            match part:
                case TextPart(text=text) if text.strip():
                    items.append(self._assistant_text(text))
                    last_is_reasoning = False
                case ReasoningPart(wire=wire, opaque=opaque):
                    if wire == WIRE and opaque and self._profile.reasoning != "drop":
                        items.append(canonical_json(opaque))
                        reasoned = last_is_reasoning = True
                case CallPart(call):
                    items.append(canonical_json(self._call(call, reasoned)))
                    last_is_reasoning = False
        if last_is_reasoning or not items:
            # A reasoning item must be followed by the item it led to.
            items.append(self._assistant_text(NO_REPLY))
        return items

    def _call(self, call: ToolCall, reasoned: bool) -> dict[str, Any]:
        item: dict[str, Any] = {
            "type": "function_call",
            "call_id": wire_id(call.id, self._profile.id_pattern),
            "name": wire_name(call.name),
            "arguments": arguments_json(call.raw),
        }
        # With its item id, a call demands its reasoning item; so the id goes back only beside one.
        item_id = (call.opaque or {}).get("item_id")
        if reasoned and item_id:
            item["id"] = item_id
        return item

    def _user_text(self, text: str) -> bytes:
        return _message("user", [{"type": "input_text", "text": text}])

    def _role_text(self, role: str, text: str) -> bytes:
        return _message(role, [{"type": "input_text", "text": text}])

    def _assistant_text(self, text: str) -> bytes:
        return _message("assistant", [{"type": "output_text", "text": text}])


def _message(role: str, content: Any) -> bytes:
    return canonical_json({"type": "message", "role": role, "content": content})


def _content(parts: Sequence[object]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case TextPart(text=text) if text:
                blocks.append({"type": "input_text", "text": text})
            case ImagePart(media_type, data, url) if data or url:
                link = url or data_url(media_type, data)
                blocks.append({"type": "input_image", "image_url": link})
            case FilePart(media_type, name, data):
                link = data_url(media_type, data)
                blocks.append({"type": "input_file", "filename": name, "file_data": link})
            case ImagePart():
                blocks.append({"type": "input_text", "text": not_shown(part)})
    return blocks or [{"type": "input_text", "text": NO_MESSAGE}]


class ResponsesReader:
    """Reads the events of one response."""

    def __init__(self, profile: Profile, peer: Peer) -> None:
        self.done = False
        self._profile = profile
        self._peer = peer
        self._indexes: dict[Any, int] = {}
        self._deltas: dict[Any, PairJoiner] = {}
        self._text = PairJoiner()
        self._thought = PairJoiner()
        self._refused = False
        self._stop: Stop | None = None
        self._usage: Mapping[str, Any] | None = None

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        if event.data.strip() == "[DONE]":
            return
        record = event_object(event.data)
        match record.get("type") or event.name:
            case "response.output_text.delta":
                yield from self._say(record)
            case "response.refusal.delta":
                self._refused = True
                yield from self._say(record)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                if whole := self._thought.feed(record.get("delta") or ""):
                    yield ReasoningDelta(whole)
            case "response.output_item.added":
                yield from self._added(record)
            case "response.function_call_arguments.delta":
                yield from self._arguments(record)
            case "response.output_item.done":
                yield from self._item(record)
            case "response.completed":
                self._end(record, StopReason.END, "completed")
            case "response.incomplete":
                details = (record.get("response") or {}).get("incomplete_details") or {}
                word = str(details.get("reason") or "incomplete")
                self._end(record, _INCOMPLETE.get(word, StopReason.OTHER), word)
            case "response.cancelled":
                self._end(record, StopReason.OTHER, "cancelled")
            case "response.failed":
                raise told_fault(record.get("response") or record, self._peer)
            case "error":
                raise told_fault(record, self._peer)

    def finish(self) -> Iterator[ModelEvent]:
        if self._stop is None:
            raise cut()
        yield UsageReport(
            no_usage() if self._usage is None else read_usage(self._usage, self._profile)
        )
        yield self._stop

    def _say(self, record: Mapping[str, Any]) -> Iterator[ModelEvent]:
        if whole := self._text.feed(record.get("delta") or ""):
            yield TextDelta(whole)

    def _added(self, record: Mapping[str, Any]) -> Iterator[ModelEvent]:
        item = record.get("item") or {}
        if item.get("type") == "function_call":
            yield from self._started(_key(record, item), item)

    def _started(self, key: Any, item: Mapping[str, Any]) -> Iterator[ModelEvent]:
        if key not in self._indexes:
            self._indexes[key] = len(self._indexes)
            self._deltas[key] = PairJoiner()
            yield CallStarted(self._indexes[key], item.get("name") or "")

    def _arguments(self, record: Mapping[str, Any]) -> Iterator[ModelEvent]:
        key = _key(record, {})
        if key in self._indexes and (whole := self._deltas[key].feed(record.get("delta") or "")):
            yield CallDelta(self._indexes[key], whole)

    def _item(self, record: Mapping[str, Any]) -> Iterator[ModelEvent]:
        item = record.get("item") or {}
        if item.get("type") == "reasoning":
            yield ReasoningDone(_reasoning(item))
        elif item.get("type") == "function_call":
            key = _key(record, item)
            yield from self._started(key, item)
            if item.get("status") == "incomplete":
                return
            pairs = PairJoiner()
            raw = pairs.feed(item.get("arguments") or "")
            pairs.end()
            opaque = {"item_id": item["id"]} if item.get("id") else None
            call = ToolCall(item.get("call_id") or "", item.get("name") or "", raw, opaque=opaque)
            yield CallComplete(self._indexes[key], call)

    def _end(self, record: Mapping[str, Any], reason: StopReason, word: str) -> None:
        self._text.end()
        if self._refused:
            reason = StopReason.REFUSAL
        elif reason is StopReason.END and self._indexes:
            reason = StopReason.CALLS
        self._stop = Stop(reason, word)
        usage = (record.get("response") or {}).get("usage")
        self._usage = usage if isinstance(usage, Mapping) else None
        self.done = True


def _key(record: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
    """What names an item over its events: its place in the output, else its id."""
    place = record.get("output_index")
    return place if place is not None else item.get("id") or record.get("item_id")


def _reasoning(item: Mapping[str, Any]) -> ReasoningPart:
    parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    text = "\n\n".join(p.get("text") or "" for p in parts)
    # Without its encrypted content an item lives on the server only, and there it is not kept.
    # Fields that are null in an answer are refused in a request.
    opaque = {k: v for k, v in item.items() if v is not None}
    return ReasoningPart(text, WIRE, opaque if opaque.get("encrypted_content") else None)
