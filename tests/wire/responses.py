"""OpenAI Responses on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wire.answers import Fail, Say, pieces
from wire.chat import Chat
from wire.protocol import Protocol, sse


class Responses(Protocol):
    name = "openai_responses"
    key_header = "authorization"
    key_prefix = "Bearer "

    def path(self, model: str) -> str:
        return "/v1/responses"

    def accepts(self, path: str) -> bool:
        return path == "/v1/responses"

    def error(self, fail: Fail) -> Any:
        return Chat().error(fail)

    def error_event(self, code: str, message: str) -> bytes:
        return sse(
            {
                "type": "error",
                "code": code,
                "message": message,
                "param": None,
                "sequence_number": 9,
            },
            "error",
        )

    def unknown_event(self) -> bytes:
        return sse(
            {"type": "response.surprise", "sequence_number": 2, "x": {}}, "response.surprise"
        )

    def encode(self, say: Say, request: Mapping[str, Any]) -> bytes:
        out: list[bytes] = []

        def emit(kind: str, **fields: Any) -> None:
            out.append(sse({"type": kind, "sequence_number": len(out), **fields}, kind))

        response: dict[str, Any] = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "in_progress",
            "model": "m",
            "output": [],
            "parallel_tool_calls": True,
            "tools": [],
            "tool_choice": "auto",
            "error": None,
            "incomplete_details": None,
            "usage": None,
            "instructions": None,
            "metadata": {},
            "temperature": 1.0,
            "top_p": 1.0,
        }
        emit("response.created", response=response)
        emit("response.in_progress", response=response)
        output: list[dict[str, Any]] = []

        def item(
            start: dict[str, Any], done: dict[str, Any], deltas: list[tuple[str, dict]]
        ) -> None:
            place = len(output)
            emit("response.output_item.added", output_index=place, item=start)
            for kind, fields in deltas:
                emit(kind, output_index=place, item_id=start["id"], **fields)
            emit("response.output_item.done", output_index=place, item=done)
            output.append(done)

        if say.reasoning:
            base = {
                "id": "rs_1",
                "type": "reasoning",
                "encrypted_content": "c2VjcmV0",
                "status": None,
            }
            summary = {"type": "summary_text", "text": say.reasoning}
            deltas: list[tuple[str, dict]] = [
                ("response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece})
                for piece in pieces(say.reasoning, say.piece)
            ]
            item({**base, "summary": []}, {**base, "summary": [summary]}, deltas)
        if say.text:
            base = {"id": "msg_1", "type": "message", "role": "assistant"}
            part = {"type": "output_text", "text": say.text, "annotations": []}
            deltas = [
                ("response.content_part.added", {"content_index": 0, "part": {**part, "text": ""}})
            ]
            deltas += [
                ("response.output_text.delta", {"content_index": 0, "delta": piece, "logprobs": []})
                for piece in pieces(say.text, say.piece)
            ]
            deltas += [
                (
                    "response.output_text.done",
                    {"content_index": 0, "text": say.text, "logprobs": []},
                ),
                ("response.content_part.done", {"content_index": 0, "part": part}),
            ]
            item(
                {**base, "status": "in_progress", "content": []},
                {**base, "status": "completed", "content": [part]},
                deltas,
            )
        for number, call in enumerate(say.calls):
            cut = say.why == "length" and number + 1 == len(say.calls)
            base = {
                "id": f"fc_{number}",
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
            }
            deltas = [
                ("response.function_call_arguments.delta", {"delta": piece})
                for piece in pieces(call.arguments, say.piece)
            ]
            if not cut:
                deltas.append(
                    (
                        "response.function_call_arguments.done",
                        {"arguments": call.arguments, "name": call.name},
                    )
                )
            status = "incomplete" if cut else "completed"
            item(
                {**base, "status": "in_progress", "arguments": ""},
                {**base, "status": status, "arguments": call.arguments},
                deltas,
            )
        u = say.usage
        response |= {
            "output": output,
            "usage": {
                "input_tokens": u.input,
                "output_tokens": u.output,
                "total_tokens": u.input + u.output,
                "input_tokens_details": {
                    "cached_tokens": u.cached,
                    "cache_write_tokens": u.written,
                },
                "output_tokens_details": {"reasoning_tokens": u.reasoning},
            },
        }
        if say.why in ("length", "refusal"):
            why = {"length": "max_output_tokens", "refusal": "content_filter"}[say.why]
            response |= {"status": "incomplete", "incomplete_details": {"reason": why}}
            emit("response.incomplete", response=response)
        else:
            response["status"] = "completed"
            emit("response.completed", response=response)
        return b"".join(out)
