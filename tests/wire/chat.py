"""OpenAI Chat Completions on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from wire.answers import Fail, Say, pieces
from wire.protocol import Protocol, sse


class Chat(Protocol):
    name = "openai_chat"
    key_header = "authorization"
    key_prefix = "Bearer "
    STOPS: ClassVar = {
        "end": "stop",
        "calls": "tool_calls",
        "length": "length",
        "refusal": "content_filter",
    }

    def path(self, model: str) -> str:
        return "/v1/chat/completions"

    def accepts(self, path: str) -> bool:
        return path == "/v1/chat/completions"

    def error(self, fail: Fail) -> Any:
        return {
            "error": {
                "message": fail.message,
                "type": "some_error",
                "param": None,
                "code": fail.code or None,
            }
        }

    def error_event(self, code: str, message: str) -> bytes:
        return sse({"error": {"message": message, "type": code, "code": code}})

    def unknown_event(self) -> bytes:
        return sse({"object": "chat.completion.surprise", "choices": [], "novelty": {"a": [1]}})

    def _chunk(self, delta: Any, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [choice],
                **more,
            }
        )

    def encode(self, say: Say, request: Mapping[str, Any]) -> bytes:
        out = [self._chunk({"role": "assistant", "content": ""})]
        for piece in pieces(say.reasoning, say.piece):
            out.append(self._chunk({"reasoning_content": piece}))
        for piece in pieces(say.text, say.piece):
            out.append(self._chunk({"content": piece}))
        for index, call in enumerate(say.calls):
            function = {"name": call.name, "arguments": ""}
            start = {"index": index, "id": call.id, "type": "function", "function": function}
            out.append(self._chunk({"tool_calls": [start]}))
            for piece in pieces(call.arguments, say.piece):
                part = {"index": index, "function": {"arguments": piece}}
                out.append(self._chunk({"tool_calls": [part]}))
        out.append(self._chunk({}, self.STOPS[say.why]))
        if (request.get("stream_options") or {}).get("include_usage"):
            u = say.usage
            usage = {
                "prompt_tokens": u.input,
                "completion_tokens": u.output,
                "total_tokens": u.input + u.output,
                "prompt_tokens_details": {
                    "cached_tokens": u.cached,
                    "cache_write_tokens": u.written,
                },
                "completion_tokens_details": {"reasoning_tokens": u.reasoning},
            }
            out.append(
                sse(
                    {
                        "id": "chatcmpl-1",
                        "object": "chat.completion.chunk",
                        "created": 1,
                        "model": "m",
                        "choices": [],
                        "usage": usage,
                    }
                )
            )
        return b"".join([*out, sse("[DONE]")])
