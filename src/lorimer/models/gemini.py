"""Google Gemini, `streamGenerateContent` (https://ai.google.dev/api/generate-content).

Reasoning: signatures of the current turn must come back in the part they came in, older ones are
ignored (https://ai.google.dev/gemini-api/docs/thought-signatures), so keeping all of them is safe
for frozen renderings. A signature of a call is kept with the call, one of a text or a thought is a
reasoning part of its own, rendered as exactly the part it was.

Arguments are an object on this wire: their text is cut out of the event as it stood there, and put
back as that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

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
from lorimer.models.rawjson import event_object, slice_at
from lorimer.models.rendering import (
    NO_MESSAGE,
    NO_REPLY,
    arguments_json,
    described,
    joined_text,
    not_shown,
    told_text,
    wire_id,
    wire_name,
)
from lorimer.models.sse import SseEvent
from lorimer.models.usage_fields import read_usage
from lorimer.models.wire_model import Reader, WireModel, cut, no_usage

WIRE = "gemini"
_OLD = re.compile(r"(?:models/)?gemini-[12]\b")
"""Models that ask for no signature; they know no stand-in for one either."""
_STOPS = {"STOP": StopReason.END, "MAX_TOKENS": StopReason.LENGTH} | dict.fromkeys(
    (
        "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
        "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR",
    ),
    StopReason.REFUSAL,
)  # fmt: skip


class Gemini(WireModel):
    """A model behind the Gemini wire."""

    wire: ClassVar[str] = WIRE

    def _headers(self, api_key: str) -> Mapping[str, str]:
        # In a header, not in the URL: URLs are logged.
        return {"x-goog-api-key": api_key} if api_key else {}

    def _path(self) -> str:
        model = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{quote(model)}:streamGenerateContent?alt=sse"

    def _reader(self) -> Reader:
        return GeminiReader(self._profile, self._peer)

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        start = b"{"
        if system:
            instruction = {"parts": [{"text": system}]}
            start += b'"systemInstruction":' + canonical_json(instruction) + b","
        if tools:
            declarations = [
                {
                    "name": spec.name,
                    "description": described(spec),
                    "parametersJsonSchema": spec.input_schema,
                }
                for spec in tools
            ]
            start += b'"tools":' + canonical_json([{"functionDeclarations": declarations}]) + b","
        return start + b'"contents":['

    def _tail(self, request: Request) -> dict[str, Any]:
        settings = request.settings
        form, name = self._choice(request)
        tail: dict[str, Any] = {}
        if form != "auto":
            calling: dict[str, Any] = {"mode": "NONE" if form == "none" else "ANY"}
            if name:
                calling["allowedFunctionNames"] = [name]
            tail["toolConfig"] = {"functionCallingConfig": calling}
        config = dict(self._profile.extra.get("generationConfig") or {})
        if settings.max_output_tokens is not None:
            config[self._profile.max_tokens_field] = settings.max_output_tokens
        if settings.temperature is not None:
            config["temperature"] = settings.temperature
        if settings.seed is not None:
            config["seed"] = settings.seed
        if config:
            tail["generationConfig"] = config
        return tail

    def _messages(self, entry: Entry) -> list[bytes]:
        match entry.kind:
            case Kind.USER:
                parts = [canonical_json(part) for part in _content(entry.parts)]
                return [_message("user", parts or [canonical_json({"text": NO_MESSAGE})])]
            case Kind.ASSISTANT:
                return [_message("model", self._assistant(entry))]
            case Kind.TOOL_RESULT:
                return [_message("user", [canonical_json(part) for part in self._results(entry)])]
            case _:
                return [self._user_text(told_text(entry))]

    def _assistant(self, entry: Entry) -> list[bytes]:
        parts: list[bytes] = []
        visible = called = False
        for part in entry.parts:
            match part:
                case TextPart(text=text) if text:
                    parts.append(canonical_json({"text": text}))
                    visible = True
                case ReasoningPart(wire=wire, opaque=opaque):
                    if wire == WIRE and opaque and self._profile.reasoning != "drop":
                        parts.append(canonical_json(opaque))
                case CallPart(call):
                    parts.append(self._call(call, first=not called))
                    visible = called = True
        if not visible:
            parts.append(canonical_json({"text": NO_REPLY}))
        return parts

    def _call(self, call: ToolCall, *, first: bool) -> bytes:
        head = canonical_json(
            {"id": wire_id(call.id, self._profile.id_pattern), "name": wire_name(call.name)}
        )
        raw = arguments_json(call.raw).encode("utf-8", "surrogatepass")
        part = b'{"functionCall":' + head[:-1] + b',"args":' + raw + b"}"
        signature = (call.opaque or {}).get("thoughtSignature")
        if first and not signature and not _OLD.match(self.model):
            # The first call of each step must have one; this one says that there is none.
            signature = self._profile.reasoning_stand_in
        if signature and self._profile.reasoning != "drop":
            part += b',"thoughtSignature":' + canonical_json(signature)
        return part + b"}"

    def _results(self, entry: Entry) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for result in entry.results:
            key = "error" if result.is_error else "output"
            response = {
                "id": wire_id(result.call_id, self._profile.id_pattern),
                "name": wire_name(result.name),
                "response": {key: joined_text(result.content)},
            }
            parts.append({"functionResponse": response})
            # Images stand behind all responses: these must be as many as the calls, in one message.
            shown += _content([p for p in result.content if isinstance(p, ImagePart)])
        return parts + shown

    def _user_text(self, text: str) -> bytes:
        return _message("user", [canonical_json({"text": text})])

    def _assistant_text(self, text: str) -> bytes:
        return _message("model", [canonical_json({"text": text})])


def _message(role: str, parts: Sequence[bytes]) -> bytes:
    return b'{"role":"' + role.encode() + b'","parts":[' + b",".join(parts) + b"]}"


def _content(parts: Sequence[object]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case TextPart(text=text) if text:
                blocks.append({"text": text})
            case ImagePart(media_type, data, _) | FilePart(media_type, _, data) if data:
                blocks.append({"inlineData": {"mimeType": media_type, "data": data}})
            case ImagePart(media_type, _, url) if url:
                blocks.append({"fileData": {"mimeType": media_type, "fileUri": url}})
            case ImagePart() | FilePart():
                blocks.append({"text": not_shown(part)})
    return blocks


class GeminiReader:
    """Reads the chunks of one answer."""

    def __init__(self, profile: Profile, peer: Peer) -> None:
        self.done = False
        self._profile = profile
        self._peer = peer
        self._calls = 0
        self._text = PairJoiner()
        self._thoughts: list[str] = []
        self._reason = ""
        self._usage: dict[str, Any] | None = None

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        chunk = event_object(event.data)
        if chunk.get("error"):
            raise told_fault(chunk, self._peer)
        if isinstance(chunk.get("usageMetadata"), Mapping):
            self._usage = {**(self._usage or {}), **chunk["usageMetadata"]}
        blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            self._reason = f"blocked: {blocked}"
        for place, candidate in enumerate(chunk.get("candidates") or ()):
            if candidate.get("index", 0) != 0:
                continue
            parts = (candidate.get("content") or {}).get("parts") or ()
            for number, part in enumerate(parts):
                path = ("candidates", place, "content", "parts", number)
                yield from self._part(part, event.data, path)
            if candidate.get("finishReason"):
                self._reason = str(candidate["finishReason"])

    def finish(self) -> Iterator[ModelEvent]:
        # This wire has no end mark of its own: the finish reason and a clean end of the body.
        if not self._reason:
            raise cut()
        self._text.end()
        yield from self._end_thoughts(None)
        yield UsageReport(
            no_usage() if self._usage is None else read_usage(self._usage, self._profile)
        )
        blocked = self._reason.startswith("blocked: ")
        reason = StopReason.REFUSAL if blocked else _STOPS.get(self._reason, StopReason.OTHER)
        if reason is StopReason.END and self._calls:
            reason = StopReason.CALLS
        yield Stop(reason, self._reason)

    def _part(
        self, part: Mapping[str, Any], data: str, path: tuple[str | int, ...]
    ) -> Iterator[ModelEvent]:
        signature = part.get("thoughtSignature")
        if isinstance(part.get("functionCall"), Mapping):
            yield from self._end_thoughts(None)
            yield from self._call(part["functionCall"], signature, data, path)
        elif part.get("thought"):
            text = part.get("text") or ""
            self._thoughts.append(text)
            if text:
                yield ReasoningDelta(text)
            if signature:
                yield from self._end_thoughts(signature)
        elif "text" in part:
            yield from self._end_thoughts(None)
            if whole := self._text.feed(part["text"] or ""):
                yield TextDelta(whole)
            if signature:
                opaque = {"text": "", "thoughtSignature": signature}
                yield ReasoningDone(ReasoningPart("", WIRE, opaque))

    def _end_thoughts(self, signature: str | None) -> Iterator[ModelEvent]:
        if not self._thoughts:
            return
        text, self._thoughts = "".join(self._thoughts), []
        opaque = (
            {"text": text, "thought": True, "thoughtSignature": signature} if signature else None
        )
        yield ReasoningDone(ReasoningPart(text, WIRE, opaque))

    def _call(
        self, call: Mapping[str, Any], signature: Any, data: str, path: tuple[str | int, ...]
    ) -> Iterator[ModelEvent]:
        raw = slice_at(data, (*path, "functionCall", "args")) if "args" in call else ""
        index, self._calls = self._calls, self._calls + 1
        name = call.get("name") or ""
        yield CallStarted(index, name)
        if raw:
            yield CallDelta(index, raw)
        opaque = {"thoughtSignature": signature} if signature else None
        yield CallComplete(index, ToolCall(call.get("id") or "", name, raw, opaque=opaque))
