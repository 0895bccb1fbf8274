"""smolagents' ToolCallingAgent with a fake Model; it has no async way, so it runs as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from smolagents import LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)
from task import ANSWER, QUESTION, SYSTEM, Task, current

DISTRIBUTION = "smolagents"
NOTE = (
    "own Model class, sync tool (it has no async), max_steps raised, output off; nothing is stored"
)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers.

    Args:
        a: one number.
        b: the other.
    """
    return current.task.add(a, b)


class _FakeModel(Model):
    def generate(self, messages: Any, *args: Any, **options: Any) -> ChatMessage:
        arguments = current.task.propose()
        if arguments is None:
            function = ChatMessageToolCallFunction(
                name="final_answer", arguments={"answer": ANSWER}
            )
        else:
            function = ChatMessageToolCallFunction(name="add", arguments=arguments)
        wanted = ChatMessageToolCall(
            function=function, id=f"call_{current.task.requests}", type="function"
        )
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[wanted])


@asynccontextmanager
async def open_subject() -> AsyncIterator[Callable[[Task], Awaitable[Any]]]:
    agent = ToolCallingAgent(
        tools=[add], model=_FakeModel(), instructions=SYSTEM, verbosity_level=LogLevel.OFF
    )

    async def run(task: Task) -> None:
        current.task = task
        answer = agent.run(QUESTION, max_steps=task.steps + 2)
        assert answer == ANSWER

    yield run
