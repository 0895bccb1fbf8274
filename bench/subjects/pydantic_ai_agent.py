"""pydantic-ai with a fake Model. (Its own FunctionModel estimates token counts over the whole
history at every request, which no real model does; that would be measured too.)"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits
from task import ANSWER, QUESTION, SYSTEM, Task, current

DISTRIBUTION = "pydantic-ai-slim"
NOTE = "own Model class, async tool, request_limit=None; nothing is stored"


async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return current.task.add(a, b)


class _FakeModel(Model):
    @property
    def model_name(self) -> str:
        return "bench"

    @property
    def system(self) -> str:
        return "bench"

    async def request(
        self, messages: list[ModelMessage], settings: Any, parameters: Any
    ) -> ModelResponse:
        settings, parameters = self.prepare_request(settings, parameters)  # as its models do
        arguments = current.task.propose()
        if arguments is None:
            return ModelResponse(parts=[TextPart(ANSWER)])
        wanted = ToolCallPart("add", arguments, tool_call_id=f"call_{current.task.requests}")
        return ModelResponse(parts=[wanted])


@asynccontextmanager
async def open_subject() -> AsyncIterator[Callable[[Task], Awaitable[Any]]]:
    agent = Agent(_FakeModel(), system_prompt=SYSTEM, tools=[add])

    async def run(task: Task) -> None:
        current.task = task
        result = await agent.run(QUESTION, usage_limits=UsageLimits(request_limit=None))
        assert result.output == ANSWER

    yield run
