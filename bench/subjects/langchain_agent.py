"""langchain's create_agent with a fake chat model; tracing off, no checkpointer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from task import ANSWER, QUESTION, SYSTEM, Task, current

DISTRIBUTION = "langchain"
NOTE = "own BaseChatModel, async tool, recursion_limit raised, no checkpointer; nothing is stored"


@tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return current.task.add(a, b)


class _FakeModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        arguments = current.task.propose()
        if arguments is None:
            message = AIMessage(ANSWER)
        else:
            wanted = {"name": "add", "args": arguments, "id": f"call_{current.task.requests}"}
            message = AIMessage("", tool_calls=[wanted])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> ChatResult:
        return self._generate(messages)


@asynccontextmanager
async def open_subject() -> AsyncIterator[Callable[[Task], Awaitable[Any]]]:
    agent = create_agent(_FakeModel(), [add], system_prompt=SYSTEM)

    async def run(task: Task) -> None:
        current.task = task
        result = await agent.ainvoke(
            {"messages": [{"role": "user", "content": QUESTION}]},
            {"recursion_limit": 3 * task.steps + 10},
        )
        assert result["messages"][-1].content == ANSWER

    yield run
