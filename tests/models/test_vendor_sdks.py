"""The wire servers are honest: each vendor's own SDK makes a streamed tool round trip with them,
and what the SDK sends passes our strict rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire.answers import Cut, Fail, Say, SayCall, Usage
from wire.server import KEY, WireServer

CALL = SayCall("call_1", "get_weather", '{"city": "Zürich 😀"}')
OTHER = SayCall("call_2", "get_weather", '{"city": "Oslo"}')
SCRIPT = [
    Say("Let me look.", (CALL, OTHER), reasoning="Hm.", usage=Usage(reasoning=7)),
    Say("Rain in both, 雨."),
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_openai_chat_with_the_openai_sdk() -> None:
    openai = pytest.importorskip("openai")
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    with (
        WireServer("openai_chat", SCRIPT) as server,
        openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client,
    ):

        def turn() -> Any:
            with client.chat.completions.stream(
                model="m", messages=messages, tools=[tool], stream_options={"include_usage": True}
            ) as stream:
                for _ in stream:
                    pass
                return stream.get_final_completion()

        first = turn()
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.content == "Let me look."
        assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls] == [
            (c.id, c.name, c.arguments) for c in (CALL, OTHER)
        ]
        assert first.usage.prompt_tokens_details.cached_tokens == 40
        assert first.usage.completion_tokens_details.reasoning_tokens == 7
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in (CALL, OTHER)
        ]
        messages += [{"role": "assistant", "tool_calls": calls}]
        messages += [
            {"role": "tool", "tool_call_id": c.id, "content": "rain"} for c in (CALL, OTHER)
        ]
        assert turn().choices[0].message.content == "Rain in both, 雨."
        assert not server.faults


def test_openai_responses_with_the_openai_sdk() -> None:
    openai = pytest.importorskip("openai")
    tool = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": True}
    items: list[Any] = [{"role": "user", "content": "Weather?"}]
    with (
        WireServer("openai_responses", SCRIPT) as server,
        openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client,
    ):

        def turn() -> Any:
            with client.responses.stream(
                model="m",
                input=items,
                tools=[tool],
                store=False,
                include=["reasoning.encrypted_content"],
            ) as stream:
                for _ in stream:
                    pass
                return stream.get_final_response()

        first = turn()
        assert first.status == "completed"
        assert first.output_text == "Let me look."
        calls = [item for item in first.output if item.type == "function_call"]
        assert [(c.call_id, c.arguments) for c in calls] == [
            (c.id, c.arguments) for c in (CALL, OTHER)
        ]
        assert first.usage.input_tokens_details.cached_tokens == 40
        items += [
            {
                k: v
                for k, v in item.model_dump().items()
                if v is not None and k != "parsed_arguments"
            }
            for item in first.output
        ]
        items += [
            {"type": "function_call_output", "call_id": c.id, "output": "rain"}
            for c in (CALL, OTHER)
        ]
        assert turn().output_text == "Rain in both, 雨."
        assert not server.faults


def test_anthropic_with_the_anthropic_sdk() -> None:
    anthropic = pytest.importorskip("anthropic")
    tool = {"name": "get_weather", "description": "w", "input_schema": SCHEMA}
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    with (
        WireServer("anthropic", SCRIPT) as server,
        anthropic.Anthropic(api_key=KEY, base_url=server.origin, max_retries=0) as client,
    ):

        def turn() -> Any:
            with client.messages.stream(
                model="m", max_tokens=100, messages=messages, tools=[tool]
            ) as stream:
                return stream.get_final_message()

        first = turn()
        assert first.stop_reason == "tool_use"
        assert [b.type for b in first.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert first.content[0].signature == "c2lnbmF0dXJl"
        assert [b.input for b in first.content[2:]] == [
            json.loads(c.arguments) for c in (CALL, OTHER)
        ]
        assert (first.usage.input_tokens, first.usage.cache_read_input_tokens) == (80, 40)
        messages += [{"role": "assistant", "content": first.content}]
        blocks = [
            {"type": "tool_result", "tool_use_id": c.id, "content": "rain"} for c in (CALL, OTHER)
        ]
        messages += [{"role": "user", "content": blocks}]
        assert turn().content[0].text == "Rain in both, 雨."
        assert not server.faults


def test_gemini_with_the_google_sdk() -> None:
    genai = pytest.importorskip("google.genai")
    types = genai.types
    tool = types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name="get_weather", description="w", parameters_json_schema=SCHEMA
            )
        ]
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="Weather?")])]
    with WireServer("gemini", SCRIPT) as server:
        client = genai.Client(
            api_key=KEY,
            http_options=types.HttpOptions(base_url=server.origin, api_version="v1beta"),
        )

        def turn() -> tuple[list[Any], Any]:
            parts: list[Any] = []
            last = None
            for last in client.models.generate_content_stream(
                model="test-model",
                contents=contents,
                config=types.GenerateContentConfig(tools=[tool]),
            ):
                parts += last.candidates[0].content.parts or []
            return parts, last

        parts, last = turn()
        calls = [p for p in parts if p.function_call]
        assert [(p.function_call.id, p.function_call.args) for p in calls] == [
            (c.id, json.loads(c.arguments)) for c in (CALL, OTHER)
        ]
        assert calls[0].thought_signature == b"signature"
        assert last.candidates[0].finish_reason == "STOP"
        assert last.usage_metadata.cached_content_token_count == 40
        said = "".join(p.text for p in parts if p.text and not p.thought)
        assert said == "Let me look."
        contents.append(types.Content(role="model", parts=[p for p in parts if p.function_call]))
        responses = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=c.id, name=c.name, response={"output": "rain"}
                )
            )
            for c in (CALL, OTHER)
        ]
        contents.append(types.Content(role="user", parts=responses))
        parts, _ = turn()
        assert "".join(p.text for p in parts if p.text) == "Rain in both, 雨."
        assert not server.faults
        client.close()


class TestErrorsLookRight:
    """The SDKs see our errors as the errors they are meant to be."""

    def test_openai(self) -> None:
        openai = pytest.importorskip("openai")
        with (
            WireServer("openai_chat", [Fail(429), Fail(500)]) as server,
            openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client,
        ):
            for expected in (openai.RateLimitError, openai.InternalServerError):
                with pytest.raises(expected):
                    client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": "x"}], stream=True
                    )
            bad = client.with_options(api_key="wrong")
            with pytest.raises(openai.AuthenticationError):
                bad.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "x"}], stream=True
                )

    def test_anthropic(self) -> None:
        anthropic = pytest.importorskip("anthropic")
        say = Say("Hello there")
        with (
            WireServer("anthropic", [Fail(529), Cut(say, 900)]) as server,
            anthropic.Anthropic(api_key=KEY, base_url=server.origin, max_retries=0) as client,
        ):
            arguments: dict[str, Any] = {
                "model": "m",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "x"}],
            }
            with pytest.raises(anthropic.APIStatusError) as caught:
                client.messages.create(stream=True, **arguments)
            assert caught.value.status_code == 529
            with pytest.raises(Exception, match=r"peer closed|incomplete|[Cc]onnection"):
                for _ in client.messages.create(stream=True, **arguments):
                    pass

    def test_an_invalid_request_of_an_sdk_is_refused(self) -> None:
        openai = pytest.importorskip("openai")
        with (
            WireServer("openai_chat", [Say("never")]) as server,
            openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client,
        ):
            orphan: Any = [
                {"role": "user", "content": "x"},
                {"role": "tool", "tool_call_id": "nope", "content": "y"},
            ]
            with pytest.raises(openai.BadRequestError, match="not an open call"):
                client.chat.completions.create(model="m", messages=orphan, stream=True)
