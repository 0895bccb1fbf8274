"""strands with a fake Model; printing off."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from strands import Agent, tool
from strands.models import Model
from task import ANSWER, QUESTION, SYSTEM, Task, current

DISTRIBUTION = "strands-agents"
NOTE = (
    "own Model class, async tool, callback_handler=None, Python's recursion limit raised; its "
    "default window keeps 40 messages and forgets the rest, unlike the others; nothing is stored"
)


@tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return current.task.add(a, b)


class _FakeModel(Model):
    def update_config(self, **options: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": "bench"}

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        arguments = current.task.propose()
        yield {"messageStart": {"role": "assistant"}}
        if arguments is None:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": ANSWER}}}
        else:
            start = {"toolUse": {"name": "add", "toolUseId": f"call_{current.task.requests}"}}
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if arguments is None else "tool_use"}}


@asynccontextmanager
async def open_subject() -> AsyncIterator[Callable[[Task], Awaitable[Any]]]:
    sys.setrecursionlimit(200_000)  # a step of its loop is a level of recursion

    async def run(task: Task) -> None:
        current.task = task
        agent = Agent(
            model=_FakeModel(),
            tools=[add],
            system_prompt=SYSTEM,
            callback_handler=None,
        )
        result = await agent.invoke_async(QUESTION)
        assert ANSWER in str(result)

    yield run
