"""openai-agents with a fake Model; tracing off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from task import ANSWER, QUESTION, SYSTEM, Task, current

DISTRIBUTION = "openai-agents"
NOTE = "own Model class, async tool, max_turns raised, tracing off; nothing is stored"


@function_tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return current.task.add(a, b)


class _FakeModel(Model):
    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        arguments = current.task.propose()
        item: Any
        if arguments is None:
            text = ResponseOutputText(text=ANSWER, type="output_text", annotations=[])
            item = ResponseOutputMessage(
                id="answer", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            item = ResponseFunctionToolCall(
                arguments=json.dumps(arguments),
                call_id=f"call_{current.task.requests}",
                name="add",
                type="function_call",
            )
        return ModelResponse(output=[item], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


@asynccontextmanager
async def open_subject() -> AsyncIterator[Callable[[Task], Awaitable[Any]]]:
    set_tracing_disabled(True)
    agent = Agent(name="bench", instructions=SYSTEM, model=_FakeModel(), tools=[add])

    async def run(task: Task) -> None:
        current.task = task
        result = await Runner.run(agent, QUESTION, max_turns=task.steps + 2)
        assert result.final_output == ANSWER

    yield run
