"""Alerts: something happens too often in a session. One who watches counts; nothing is stopped.

What counts as what is a table. Of each kind the newest times are kept, as many as its limit; an
alert of one kind is not given again before its window has passed, and then says how many there were
since.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lorimer.core.calls import Outcome
from lorimer.core.clock import Clock
from lorimer.core.watch import Alert, CallEnded, RequestEnded, RunEnded

_MOST_TOOLS = 50
_SHOWN_TOOLS = 3

KIND_OF_CODE = {
    "timeout": "timeouts",
    "approval_timeout": "timeouts",
    "limit": "quota",
    "quota": "quota",
    "denied": "refusals",
    "rejected": "refusals",
    "rejected_before": "refusals",
    "approval_void": "refusals",
    "approval_spent": "refusals",
    "breaker_open": "refusals",
    "needs_approval": "refusals",
    "secret": "refusals",
    "skipped": "",
    "cancelled": "",
    "interrupted": "",
    "confirm_first": "",
}
"""The kind of alert that a call's code counts for; empty: none. Other codes count as failures."""

KIND_OF_STOP = {"max_steps": "quota", "max_cost": "quota", "max_time": "quota"}

_WORDS = {
    "failures": "calls failed",
    "timeouts": "calls ran out of time",
    "quota": "calls or runs reached a limit",
    "refusals": "calls were refused",
    "requests": "model requests failed",
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How many within `window_s` seconds make an alert; 0 means: never."""

    window_s: float = 300.0
    failures: int = 6
    timeouts: int = 3
    quota: int = 3
    refusals: int = 5
    requests: int = 4


@dataclass(slots=True)
class _Count:
    """Times of the newest events of one kind, and what has happened since the last alert."""

    times: deque[float]
    tools: Counter[str] = field(default_factory=Counter)
    alerted_at: float | None = None
    since: int = 0


class Alerts:
    """A watcher that turns what ends badly too often into `Alert`s.

    Args:
        tell: given each alert.
        clock: for the window; its monotonic time.
    """

    def __init__(self, tell: Callable[[Alert], None], thresholds: Thresholds, clock: Clock) -> None:
        self._tell = tell
        self._thresholds = thresholds
        self._clock = clock
        self._counts: dict[str, _Count] = {}

    def __call__(self, event: Any) -> None:
        match event:
            case CallEnded(tool=tool, outcome=outcome, code=code):
                if code or outcome is not Outcome.DONE:
                    self._add(KIND_OF_CODE.get(code, "failures"), tool)
            case RequestEnded(error=error, attempts=attempts):
                for _ in range(attempts - 1 + bool(error and error != "cancelled")):
                    self._add("requests", "")
            case RunEnded(stop=stop):
                self._add(KIND_OF_STOP.get(stop, ""), "")
            case _:
                pass

    def _add(self, kind: str, tool: str) -> None:
        limit = getattr(self._thresholds, kind) if kind else 0
        if limit <= 0:
            return
        count = self._counts.get(kind)
        if count is None:
            count = self._counts[kind] = _Count(deque(maxlen=limit))
        now, window = self._clock.monotonic(), self._thresholds.window_s
        if count.times and now - count.times[-1] > window:
            count.tools.clear()
            count.since = 0
        count.times.append(now)
        count.since += 1
        if tool and (tool in count.tools or len(count.tools) < _MOST_TOOLS):
            count.tools[tool] += 1
        if len(count.times) < limit or now - count.times[0] > window:
            return
        if count.alerted_at is not None and now - count.alerted_at < window:
            return
        count.alerted_at = now
        self._tell(self._alert(kind, count, limit, now - count.times[0]))
        count.since = 0
        count.tools.clear()

    def _alert(self, kind: str, count: _Count, limit: int, took_s: float) -> Alert:
        most = count.tools.most_common(_SHOWN_TOOLS)
        which = ", ".join(f"{name} {times}×" for name, times in most)
        if len(count.tools) > len(most):
            which += ", …"
        message = (
            f"{count.since} {_WORDS[kind]}, the last {limit} within {took_s:.0f} s"
            f"{f' ({which})' if which else ''}."
        )
        tool = most[0][0] if len(count.tools) == 1 else ""
        return Alert(kind, message, count.since, limit, self._thresholds.window_s, tool)
