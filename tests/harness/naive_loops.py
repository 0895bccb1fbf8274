"""The loops of `harness.habits` on the vendors' own SDKs: what is sent is made by the SDKs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.habits import Message, Sdk
from wire.server import KEY, WireServer

Hook = Callable[[bytes], None]


def sdk(wire: str, server: WireServer, hook: Hook) -> tuple[Sdk, Callable[[], None]]:
    """One vendor's client for the server of `wire`, and what closes it. `hook` gets the body of
    each request inside the SDK's own HTTP client, before it is sent."""
    return _SDKS[wire](server, hook)


def _hooks(hook: Hook) -> dict[str, list[Callable[[Any], None]]]:
    return {"request": [lambda request: hook(request.read())]}


def _openai(server: WireServer, hook: Hook) -> Any:
    import openai

    http = openai.DefaultHttpxClient(event_hooks=_hooks(hook))
    return openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0, http_client=http)


def _chat(server: WireServer, hook: Hook) -> tuple[Sdk, Callable[[], None]]:
    client = _openai(server, hook)

    def ask(system: str, tools: Sequence[dict[str, Any]], messages: Sequence[Message]) -> str:
        stream = client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": system},
                *({"role": role, "content": text} for role, text in messages),
            ],
            tools=[{"type": "function", "function": tool} for tool in tools],
            stream=True,
        )
        return "".join(c.choices[0].delta.content or "" for c in stream if c.choices)

    return ask, client.close


def _responses(server: WireServer, hook: Hook) -> tuple[Sdk, Callable[[], None]]:
    client = _openai(server, hook)

    def ask(system: str, tools: Sequence[dict[str, Any]], messages: Sequence[Message]) -> str:
        kinds = {"user": "input_text", "assistant": "output_text"}
        stream = client.responses.create(
            model="m",
            instructions=system,
            input=[
                {"role": role, "content": [{"type": kinds[role], "text": text}]}
                for role, text in messages
            ],
            tools=[{"type": "function", "strict": False, **tool} for tool in tools],
            store=False,
            stream=True,
        )
        return "".join(e.delta for e in stream if e.type == "response.output_text.delta")

    return ask, client.close


def _anthropic(server: WireServer, hook: Hook) -> tuple[Sdk, Callable[[], None]]:
    import anthropic

    http = anthropic.DefaultHttpxClient(event_hooks=_hooks(hook))
    client = anthropic.Anthropic(
        api_key=KEY, base_url=server.origin, max_retries=0, http_client=http
    )

    def ask(system: str, tools: Sequence[dict[str, Any]], messages: Sequence[Message]) -> str:
        marked: list[Any] = [{"role": role, "content": text} for role, text in messages]
        mark = {"type": "ephemeral"}  # as the vendor's own examples do, on the last message
        marked[-1]["content"] = [{"type": "text", "text": messages[-1][1], "cache_control": mark}]
        with client.messages.stream(
            model="m",
            max_tokens=64,
            system=system,
            messages=marked,
            tools=[
                {
                    "name": tool["name"],
                    "description": tool["description"],
                    "input_schema": tool["parameters"],
                }
                for tool in tools
            ],
        ) as stream:
            return "".join(stream.text_stream)

    return ask, client.close


def _gemini(server: WireServer, hook: Hook) -> tuple[Sdk, Callable[[], None]]:
    from google import genai

    types = genai.types
    client = genai.Client(
        api_key=KEY,
        http_options=types.HttpOptions(
            base_url=server.origin,
            api_version="v1beta",
            client_args={"event_hooks": _hooks(hook)},
        ),
    )

    def ask(system: str, tools: Sequence[dict[str, Any]], messages: Sequence[Message]) -> str:
        roles = {"user": "user", "assistant": "model"}
        declared = [
            types.FunctionDeclaration(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=tool["parameters"],
            )
            for tool in tools
        ]
        answer = client.models.generate_content_stream(
            model="test-model",
            contents=[
                types.Content(role=roles[role], parts=[types.Part(text=text)])
                for role, text in messages
            ],
            config=types.GenerateContentConfig(
                system_instruction=system, tools=[types.Tool(function_declarations=declared)]
            ),
        )
        return "".join(piece.text or "" for piece in answer)

    return ask, client.close


_SDKS: dict[str, Callable[[WireServer, Hook], tuple[Sdk, Callable[[], None]]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
