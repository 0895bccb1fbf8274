"""The status bar: what the harness knows and the model should, at the end of its context."""

from lorimer.context.status.bar import (
    TAG,
    TEXTS_TAG,
    Bar,
    Shown,
    delta_bar,
    full_bar,
    is_news,
    render_status,
    shown_of,
)
from lorimer.context.status.facts import (
    ClockFact,
    CounterFact,
    ErrorFact,
    Facts,
    FillFact,
    RepeatFact,
    SystemFact,
    TaskFact,
    ToolsFact,
)
from lorimer.context.status.mode import Choice, Measures, choose, price_ratios
from lorimer.context.status.parts import HEADINGS, parts_of
from lorimer.context.status.settings import StatusBar, status_bar
from lorimer.context.status.todo import TodoFault, TodoItem, TodoList, TodoStatus

__all__ = [
    "HEADINGS", "TAG", "TEXTS_TAG", "Bar", "Choice", "ClockFact", "CounterFact", "ErrorFact",
    "Facts", "FillFact", "Measures", "RepeatFact", "Shown", "StatusBar", "SystemFact", "TaskFact",
    "TodoFault", "TodoItem", "TodoList", "TodoStatus", "ToolsFact", "choose", "delta_bar",
    "full_bar", "is_news", "parts_of", "price_ratios", "render_status", "shown_of", "status_bar",
]  # fmt: skip
