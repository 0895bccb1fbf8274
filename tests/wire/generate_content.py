"""Google Gemini on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from wire.answers import Fail, Say, SayCall, pieces
from wire.protocol import Protocol, sse


class GenerateContent(Protocol):
    name = "gemini"
    key_header = "x-goog-api-key"
    STOPS: ClassVar = {"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    STATUS: ClassVar = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
    }

    def path(self, model: str) -> str:
        return f"/v1beta/models/{model}:streamGenerateContent?alt=sse"

    def accepts(self, path: str) -> bool:
        return path.startswith("/v1beta/models/") and ":streamGenerateContent" in path

    def error(self, fail: Fail) -> Any:
        status = fail.code or self.STATUS.get(fail.status, "UNKNOWN")
        return {"error": {"code": fail.status, "message": fail.message, "status": status}}

    def error_event(self, code: str, message: str) -> bytes:
        number = next((n for n, status in self.STATUS.items() if status == code), 500)
        return sse({"error": {"code": number, "message": message, "status": code}})

    def unknown_event(self) -> bytes:
        return sse({"surprise": {"x": 1}, "candidates": [{"content": {}, "index": 0}]})

    def encode(self, say: Say, request: Mapping[str, Any]) -> bytes:
        out: list[bytes] = []

        def emit(parts: str, finish: str = "") -> None:
            more = f',"finishReason":"{finish}"' if finish else ""
            content = f'{{"parts":[{parts}],"role":"model"}}'
            record = f'{{"candidates":[{{"content":{content}{more},"index":0}}]'
            if finish:
                record += ',"usageMetadata":' + json.dumps(usage)
            out.append(sse(record + ',"modelVersion":"m","responseId":"r1"}'))

        u = say.usage
        usage = {
            "promptTokenCount": u.input,
            "cachedContentTokenCount": u.cached,
            "candidatesTokenCount": u.output - u.reasoning,
            "thoughtsTokenCount": u.reasoning,
            "totalTokenCount": u.input + u.output,
        }
        for piece in pieces(say.reasoning, say.piece):
            emit(json.dumps({"text": piece, "thought": True}))
        for piece in pieces(say.text, say.piece):
            emit(json.dumps({"text": piece}, ensure_ascii=False))
        signature = ',"thoughtSignature":"c2lnbmF0dXJl"' if say.reasoning else ""
        for number, call in enumerate(say.calls):
            emit(self._call(call) + (signature if number == 0 else "") + "}")
        emit('{"text":""}', self.STOPS[say.why])
        return b"".join(out)

    def _call(self, call: SayCall) -> str:
        head = f'"id":{json.dumps(call.id)},' if call.id else ""
        # The arguments stand in the stream as they were written.
        return f'{{"functionCall":{{{head}"name":{json.dumps(call.name)},"args":{call.arguments}}}'
