"""Anthropic Messages on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from wire.answers import Fail, Say, pieces
from wire.protocol import Protocol, sse


class Messages(Protocol):
    name = "anthropic"
    key_header = "x-api-key"
    STOPS: ClassVar = {
        "end": "end_turn",
        "calls": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
    }
    TYPES: ClassVar = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }

    def path(self, model: str) -> str:
        return "/v1/messages"

    def accepts(self, path: str) -> bool:
        return path == "/v1/messages"

    def authorised(self, headers: Mapping[str, str], key: str) -> bool:
        # https://platform.claude.com/docs/en/api/overview names x-api-key; the SDK sends a bearer.
        known = headers.get("x-api-key") == key or headers.get("authorization") == f"Bearer {key}"
        return known and bool(headers.get("anthropic-version"))

    def error(self, fail: Fail) -> Any:
        kind = fail.code or self.TYPES.get(fail.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": fail.message},
            "request_id": "req_1",
        }

    def error_event(self, code: str, message: str) -> bytes:
        return sse({"type": "error", "error": {"type": code, "message": message}}, "error")

    def unknown_event(self) -> bytes:
        return sse({"type": "surprise", "x": 1}, "surprise") + sse({"type": "ping"}, "ping")

    def encode(self, say: Say, request: Mapping[str, Any]) -> bytes:
        out: list[bytes] = []
        blocks = 0

        def emit(kind: str, **fields: Any) -> None:
            out.append(sse({"type": kind, **fields}, kind))

        def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
            nonlocal blocks
            emit("content_block_start", index=blocks, content_block=start)
            for delta in deltas:
                emit("content_block_delta", index=blocks, delta=delta)
            emit("content_block_stop", index=blocks)
            blocks += 1

        u = say.usage
        usage = {
            "input_tokens": u.input - u.cached - u.written,
            "output_tokens": 1,
            "cache_read_input_tokens": u.cached,
            "cache_creation_input_tokens": u.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": u.written,
                "ephemeral_1h_input_tokens": 0,
            },
        }
        emit(
            "message_start",
            message={
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            },
        )
        emit("ping")
        if say.reasoning:
            deltas = [
                {"type": "thinking_delta", "thinking": p} for p in pieces(say.reasoning, say.piece)
            ]
            deltas.append({"type": "signature_delta", "signature": "c2lnbmF0dXJl"})
            block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
        if say.text:
            block(
                {"type": "text", "text": ""},
                [{"type": "text_delta", "text": p} for p in pieces(say.text, say.piece)],
            )
        for call in say.calls:
            deltas = [{"type": "input_json_delta", "partial_json": ""}]
            deltas += [
                {"type": "input_json_delta", "partial_json": p}
                for p in pieces(call.arguments, say.piece)
            ]
            block({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas)
        emit(
            "message_delta",
            delta={"stop_reason": self.STOPS[say.why], "stop_sequence": None},
            usage={
                "output_tokens": u.output,
                "output_tokens_details": {"thinking_tokens": u.reasoning},
            },
        )
        emit("message_stop")
        return b"".join(out)
