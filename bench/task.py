"""The one task of every subject: N steps, each one model request and one call of `add`.

The fake model of each framework asks `Task.propose()` what to say next, so that all say the same.
"""

from __future__ import annotations

from collections.abc import Callable

QUESTION = "Add the numbers, one pair at a time."
ANSWER = "All sums are done."
SYSTEM = "You are an agent that works with tools."


class Task:
    """One session.

    Args:
        steps: how many calls the model proposes before it answers.
        on_request: told the number of the model request (0 … steps) as it arrives; the time from
            one to the next is one step.
    """

    def __init__(self, steps: int, on_request: Callable[[int], None]) -> None:
        self.steps = steps
        self.requests = 0
        self.calls_done = 0
        self._on_request = on_request

    def propose(self) -> dict[str, int] | None:
        """The arguments of the next call of `add`, or `None`: give the answer."""
        number = self.requests
        self.requests += 1
        self._on_request(number)
        return {"a": number, "b": 2} if number < self.steps else None

    def add(self, a: int, b: int) -> int:
        """What the tool does."""
        self.calls_done += 1
        return a + b


class Current:
    """The session that is going on, for the fake models and the tools."""

    task: Task


current = Current()
