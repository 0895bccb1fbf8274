"""`rewrite_todo_list`, `update_todo_status`: the TODO list of a session.

The list is what the calls of these tools come to (`context.status.todo`). It lives with the
session; after a restart it is made again from the call journal. Nothing else in the world is
changed, so the calls count as reads: nobody is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lorimer.context.status.todo import (
    LONGEST_TEXT,
    MOST_ITEMS,
    REWRITE,
    UPDATE,
    TodoFault,
    TodoList,
    TodoStatus,
)
from lorimer.core.calls import Effects, Outcome
from lorimer.core.trust import Trust
from lorimer.toolkits.opening import nothing_done
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext
from lorimer.tools.tool_context import PastCall

KEY = "todo"
TOOLS = (REWRITE, UPDATE)


class TodoBoard:
    """The list of one session, among its belongings."""

    def __init__(self, todo: TodoList) -> None:
        self.todo = todo

    @staticmethod
    def of(context: ToolContext) -> TodoBoard:
        """The board of this session; made from its past calls on first use."""
        found = context.belongings.get(KEY, TodoBoard)
        if found is not None:
            return found
        past = () if context.past is None else context.past(*TOOLS)
        return context.belongings.keep(KEY, TodoBoard(todo_of(past)))

    async def close(self) -> None:
        """Nothing runs."""


def todo_of(past: Iterable[PastCall]) -> TodoList:
    """The list that the ended calls `past` (oldest first) come to. A call that failed changed
    nothing; neither does one whose arguments would not do today."""
    todo = TodoList()
    for call in past:
        if call.outcome is Outcome.DONE:
            try:
                todo = todo.apply(call.tool, call.arguments)
            except TodoFault:
                continue
    return todo


class NewItem(BaseModel):
    """An item as the model writes it."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, description="What to do")]
    status: Annotated[TodoStatus | None, Field(description="Left out: pending, or as it was")] = (
        None
    )
    id: Annotated[str | None, Field(description="Id of an item that is in the list, e.g. 't2'")] = (
        None
    )


@tool(
    name=REWRITE,
    description=Description(
        "Write the TODO list of this session anew. The list given is the whole list.",
        use_when="a task has three steps or more, or the steps have changed.",
        not_when="only the status of an item changes; use update_todo_status.",
        cost="nothing.",
        returns="the list with the id of each item; an item that was in it keeps its id.",
    ),
    examples=(
        {"items": [{"text": "Read the orders", "status": "in_progress"}, {"text": "Sum them up"}]},
        {"items": [{"id": "t2", "text": "Sum them up per month"}]},
    ),
    category=Category.COLLABORATION,
    effects=Effects.READ,
    timeout_s=10,
    trust=Trust.USER_DATA,
    group="todo",
)
async def rewrite_todo_list(
    items: Annotated[
        list[NewItem],
        Field(
            max_length=MOST_ITEMS, description='Every item, in order, e.g. [{"text": "Read it"}]'
        ),
    ],
    *,
    context: ToolContext,
) -> str:
    """Cancellation: the list is changed whole or not at all."""
    return _changed(context, REWRITE, {"items": [one.model_dump(mode="json") for one in items]})


@tool(
    name=UPDATE,
    description=Description(
        "Set the status of one item of the TODO list.",
        use_when="an item is begun, done, or not wanted any more.",
        not_when="items come or go; use rewrite_todo_list.",
        cost="nothing.",
        returns="the list.",
    ),
    examples=({"id": "t1", "status": "completed"}, {"id": "t2", "status": "in_progress"}),
    category=Category.COLLABORATION,
    effects=Effects.READ,
    timeout_s=10,
    trust=Trust.USER_DATA,
    group="todo",
)
async def update_todo_status(
    id: Annotated[str, Field(description="The item, e.g. 't1'")],
    status: Annotated[TodoStatus, Field(description="e.g. 'completed'")],
    *,
    context: ToolContext,
) -> str:
    """Cancellation: the list is changed whole or not at all."""
    return _changed(context, UPDATE, {"id": id, "status": str(status)})


def _changed(context: ToolContext, name: str, arguments: dict[str, object]) -> str:
    board = TodoBoard.of(context)
    try:
        board.todo = board.todo.apply(name, arguments)
    except TodoFault as fault:
        raise nothing_done(fault.message, next=fault.next, code="todo") from fault
    return board.todo.words()
