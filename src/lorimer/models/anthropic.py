"""Anthropic Messages (https://platform.claude.com/docs/en/api/messages).

Reasoning: thinking blocks go back unchanged and in place, with their signature
(https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks).
The server ignores blocks it no longer needs, so keeping them is safe for frozen renderings. A block
without a signature cannot go back and does not.

Cache: the system block carries a breakpoint of its own, so that the prefix (tools, then system) is
read from the cache by every session that shares it; where the prompt has boundaries it is cut there
into blocks with a breakpoint each. The moving breakpoint is the profile's; before what stands in
one request only it is put by hand (`breakpoints`).

Status bar: models with system messages inside the conversation are told it in one. Such a message
must follow one of the user and stand before an answer or last
(https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from lorimer.core.trust import Trust
from lorimer.models.breakpoints import MARK, before_transient
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
    not_shown,
    told_text,
    wire_id,
    wire_name,
)
from lorimer.models.sse import SseEvent
from lorimer.models.usage_fields import read_usage
from lorimer.models.wire_model import Reader, WireModel, cut, no_usage

WIRE = "anthropic"
API_VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
"""The wire demands a bound; this one is sent where neither the settings nor the profile has one."""

PREFIX_BREAKPOINTS = 2
"""Of the four that a request may have
(https://platform.claude.com/docs/en/build-with-claude/prompt-caching#when-to-use-multiple-breakpoints):
one is the moving one, which `profiles.toml` asks for (before a replaced status bar it stands in a
message); one is left for `Settings.extra`."""

_STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSAL,
}
_THINKING = ("thinking", "redacted_thinking")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
_DROP_UNBOUND = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
"""Thinking that is bound to what stood before it is void after a compaction or a rebase; the server
is to leave it out, not to refuse the request
(https://platform.claude.com/docs/en/build-with-claude/preserved-thinking). These models think
adaptively in any case."""


class Anthropic(WireModel):
    """A model behind the Messages wire."""

    wire: ClassVar[str] = WIRE

    def _headers(self, api_key: str) -> Mapping[str, str]:
        version = {"anthropic-version": API_VERSION}
        betas = [self._profile.context_editing["beta"]] if self._profile.context_editing else []
        if self._profile.bound_reasoning:
            betas.append(BINDING_BETA)
        if betas:
            version["anthropic-beta"] = ",".join(betas)
        return version | {"x-api-key": api_key} if api_key else version

    def _path(self) -> str:
        return "/messages"

    def _reader(self) -> Reader:
        return AnthropicReader(self._profile, self._peer)

    def render_prefix(
        self, system: str, tools: Sequence[ToolSpec], boundaries: Sequence[int] = ()
    ) -> bytes:
        mark = {"cache_control": {"type": "ephemeral"}}
        start = b"{"
        if tools:
            records = [self._tool(spec) for spec in tools]
            if not system.strip():
                records[-1] |= mark
            start += b'"tools":' + canonical_json(records) + b","
        if system.strip():
            blocks = [
                {"type": "text", "text": text} | (mark if marked else {})
                for text, marked in _system_blocks(system, boundaries)
            ]
            start += b'"system":' + canonical_json(blocks) + b","
        return start + b'"messages":['

    def _tool(self, spec: ToolSpec) -> dict[str, Any]:
        record: dict[str, Any] = {
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.input_schema,
        }
        if spec.examples:
            record["input_examples"] = list(spec.examples)
        if self._profile.strict and allows_strict(spec.input_schema):
            record["strict"] = True
        return record

    def _tail(self, request: Request) -> dict[str, Any]:
        settings = request.settings
        self._no_seed(request)
        bound = settings.max_output_tokens or self._profile.max_output_tokens or DEFAULT_MAX_TOKENS
        tail: dict[str, Any] = {"model": self.model, "stream": True, "max_tokens": bound}
        form, name = self._choice(request)
        choice: dict[str, Any] = {"type": {"required": "any"}.get(form, form)}
        if name:
            choice["name"] = name
        if settings.parallel_calls is not None and form != "none" and request.prefix.tools:
            choice["disable_parallel_tool_use"] = not settings.parallel_calls
        if choice != {"type": "auto"}:
            tail["tool_choice"] = choice
        if self._profile.bound_reasoning:
            tail["thinking"] = _DROP_UNBOUND
        if settings.temperature is not None:
            tail["temperature"] = settings.temperature
        return tail

    def _messages(self, entry: Entry) -> list[bytes]:
        match entry.kind:
            case Kind.USER:
                blocks = [canonical_json(block) for block in _content(entry.parts)]
                return [_message("user", blocks or [_text(NO_MESSAGE)])]
            case Kind.ASSISTANT:
                return [_message("assistant", self._assistant(entry))]
            case Kind.TOOL_RESULT:
                return [_message("user", [canonical_json(r) for r in self._results(entry)])]
            case _:
                return [self._user_text(told_text(entry))]

    def _assistant(self, entry: Entry) -> list[bytes]:
        blocks: list[bytes] = []
        last_is_thinking = False
        for part in entry.parts:
            match part:
                case TextPart(text=text) if text.strip():
                    blocks.append(_text(text))
                    last_is_thinking = False
                case ReasoningPart(wire=wire, opaque=opaque):
                    if wire == WIRE and opaque and self._profile.reasoning != "drop":
                        blocks.append(canonical_json(opaque))
                        last_is_thinking = True
                case CallPart(call):
                    blocks.append(self._call(call))
                    last_is_thinking = False
        if last_is_thinking or not blocks:
            blocks.append(_text(NO_REPLY))  # An assistant message may not end in thinking.
        return blocks

    def _call(self, call: ToolCall) -> bytes:
        head = canonical_json(
            {"type": "tool_use", "id": wire_id(call.id, self._profile.id_pattern),
             "name": wire_name(call.name)}
        )  # fmt: skip
        # The arguments go back as the text they came in.
        raw = arguments_json(call.raw).encode("utf-8", "surrogatepass")
        return head[:-1] + b',"input":' + raw + b"}"

    def _results(self, entry: Entry) -> Iterator[dict[str, Any]]:
        for result in entry.results:
            block: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": wire_id(result.call_id, self._profile.id_pattern),
            }
            content = _content(result.content)
            if content:
                block["content"] = content
            if result.is_error:
                block["is_error"] = True
            yield block

    def _user_text(self, text: str) -> bytes:
        return _message("user", [_text(text)])

    def _role_text(self, role: str, text: str) -> bytes:
        return _message(role, [_text(text)])

    def _filler(self, entry: Entry, earlier: Sequence[Entry]) -> bytes:
        own = self._in_own_role(entry) and not _has_texts(entry)
        after = bool(earlier) and self._in_own_role(earlier[-1])
        if own and (not earlier or earlier[-1].kind is Kind.ASSISTANT):
            return self._user_text(NO_MESSAGE)
        if after and not own and entry.kind is not Kind.ASSISTANT:
            return self._assistant_text(NO_REPLY)
        return super()._filler(entry, earlier)

    def _checked_tail(self, request: Request) -> dict[str, Any]:
        tail = super()._checked_tail(request)
        if request.transient:
            tail.pop(MARK, None)
        return tail

    def _fragments(self, request: Request) -> Sequence[bytes]:
        return before_transient(request, super()._checked_tail(request).get(MARK))

    def _assistant_text(self, text: str) -> bytes:
        return _message("assistant", [_text(text)])


def _system_blocks(system: str, boundaries: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """The system text cut at `boundaries`; whether a breakpoint stands at the end of each piece.
    There are at most `PREFIX_BREAKPOINTS`, the earliest ones."""
    inner = sorted({at for at in boundaries if 0 < at < len(system)})
    cuts = [at for at in inner if system[:at].strip() and system[at:].strip()]
    begin = 0
    for place, end in enumerate([*cuts[:PREFIX_BREAKPOINTS], len(system)]):
        yield system[begin:end], place < PREFIX_BREAKPOINTS
        begin = end


def _has_texts(entry: Entry) -> bool:
    """Whether a status bar brings texts from outside, which are told in the user's role."""
    return any(isinstance(p, TextPart) and p.trust is not Trust.TRUSTED for p in entry.parts)


def _message(role: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"' + role.encode() + b'","content":[' + b",".join(blocks) + b"]}"


def _text(text: str) -> bytes:
    return canonical_json({"type": "text", "text": text})


def _content(parts: Sequence[object]) -> list[dict[str, Any]]:
    """User or result content; text of spaces only is refused by the server and stays out."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case TextPart(text=text) if text.strip():
                blocks.append({"type": "text", "text": text})
            case ImagePart(media_type, data, url) if data or url:
                source = (
                    {"type": "base64", "media_type": media_type, "data": data}
                    if data
                    else {"type": "url", "url": url}
                )
                blocks.append({"type": "image", "source": source})
            case FilePart():
                blocks.append(_document(part))
            case ImagePart():
                blocks.append({"type": "text", "text": not_shown(part)})
    return blocks


def _document(part: FilePart) -> dict[str, Any]:
    if part.media_type == "application/pdf":
        source = {"type": "base64", "media_type": part.media_type, "data": part.data}
        return {"type": "document", "title": part.name, "source": source}
    if part.media_type.startswith("text/"):
        try:
            text = base64.b64decode(part.data, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            text = ""
        if text.strip():
            source = {"type": "text", "media_type": "text/plain", "data": text}
            return {"type": "document", "title": part.name, "source": source}
    return {"type": "text", "text": not_shown(part)}


@dataclass(slots=True)
class _Block:
    """A content block that is being written."""

    kind: str
    start: Mapping[str, Any]
    first: str = ""
    index: int = -1
    pieces: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    pairs: PairJoiner = field(default_factory=PairJoiner)


class AnthropicReader:
    """Reads the events of one message."""

    def __init__(self, profile: Profile, peer: Peer) -> None:
        self.done = False
        self._profile = profile
        self._peer = peer
        self._blocks: dict[Any, _Block] = {}
        self._calls = 0
        # A block that max_tokens cut in two is closed like any other, so a call is held back until
        # the next block or the stop reason shows that it is whole.
        self._held: CallComplete | None = None
        self._reason = ""
        self._usage: dict[str, Any] = {}

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        record = event_object(event.data)
        match record.get("type") or event.name:
            case "message_start":
                message = record.get("message") or {}
                self._keep_usage(message.get("usage"))
                changed = message.get("input_transformations")
                if changed:  # thinking that the server left out: kept in the record with the usage
                    self._keep_usage({"input_transformations": changed})
            case "content_block_start":
                yield from self._release()
                yield from self._start(record, event.data)
            case "content_block_delta":
                block = self._blocks.get(record.get("index"))
                if block is not None:
                    yield from self._delta(block, record.get("delta") or {})
            case "content_block_stop":
                block = self._blocks.pop(record.get("index"), None)
                if block is not None:
                    yield from self._close(block)
            case "message_delta":
                self._keep_usage(record.get("usage"))
                self._reason = (record.get("delta") or {}).get("stop_reason") or self._reason
                if _STOPS.get(self._reason) in (StopReason.END, StopReason.CALLS):
                    yield from self._release()
            case "message_stop":
                self.done = True
            case "error":
                raise told_fault(record, self._peer)

    def finish(self) -> Iterator[ModelEvent]:
        if not self.done or not self._reason:
            raise cut()
        yield UsageReport(read_usage(self._usage, self._profile) if self._usage else no_usage())
        reason = _STOPS.get(self._reason, StopReason.OTHER)
        if reason is StopReason.END and self._calls:
            reason = StopReason.CALLS
        elif reason is StopReason.CALLS and not self._calls:
            reason = StopReason.OTHER
        yield Stop(reason, self._reason)

    def _keep_usage(self, usage: Any) -> None:
        """The counts of `message_delta` are totals: they replace those of `message_start`."""
        if isinstance(usage, Mapping):
            self._usage |= {k: v for k, v in usage.items() if v is not None}

    def _release(self) -> Iterator[ModelEvent]:
        if self._held is not None:
            held, self._held = self._held, None
            yield held

    def _start(self, record: Mapping[str, Any], data: str) -> Iterator[ModelEvent]:
        start = record.get("content_block") or {}
        block = _Block(str(start.get("type")), start)
        self._blocks[record.get("index")] = block
        if block.kind == "tool_use":
            block.index, self._calls = self._calls, self._calls + 1
            block.first = slice_at(data, ("content_block", "input")) if "input" in start else ""
            yield CallStarted(block.index, start.get("name") or "")
        elif block.kind == "text" and start.get("text"):
            yield TextDelta(block.pairs.feed(start["text"]))
        elif block.kind == "thinking" and start.get("thinking"):
            block.pieces.append(start["thinking"])
            yield ReasoningDelta(start["thinking"])

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> Iterator[ModelEvent]:
        match delta.get("type"):
            case "text_delta":
                if whole := block.pairs.feed(delta.get("text") or ""):
                    yield TextDelta(whole)
            case "input_json_delta":
                if whole := block.pairs.feed(delta.get("partial_json") or ""):
                    block.pieces.append(whole)
                    if block.index >= 0:
                        yield CallDelta(block.index, whole)
            case "thinking_delta":
                if whole := block.pairs.feed(delta.get("thinking") or ""):
                    block.pieces.append(whole)
                    yield ReasoningDelta(whole)
            case "signature_delta":
                block.signature.append(delta.get("signature") or "")

    def _close(self, block: _Block) -> Iterator[ModelEvent]:
        block.pairs.end()
        written = "".join(block.pieces)
        if block.kind == "tool_use":
            raw = written or block.first
            start = block.start
            call = ToolCall(start.get("id") or "", start.get("name") or "", raw)
            self._held = CallComplete(block.index, call)
        elif block.kind == "thinking":
            signature = "".join(block.signature) or block.start.get("signature") or ""
            opaque = {"type": "thinking", "thinking": written, "signature": signature}
            yield ReasoningDone(ReasoningPart(written, WIRE, opaque if signature else None))
        elif block.kind == "redacted_thinking":
            yield ReasoningDone(ReasoningPart("", WIRE, dict(block.start)))
