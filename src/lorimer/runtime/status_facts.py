"""Where the facts of the status bar come from: the call journal, the dispatcher, the clock, what
runs. Never the model.

`EntryFacts` follows the entries of a session, each read once; `gather` looks at what is now.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

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
from lorimer.core.messages import Entry, Kind, ResultPart, TextPart
from lorimer.core.trust import Trust
from lorimer.tools.dispatch.state import limit_key
from lorimer.tools.subagents import SPAWN

if TYPE_CHECKING:
    from lorimer.context.status.settings import StatusBar
    from lorimer.context.status.todo import TodoItem
    from lorimer.runtime.session import Session
    from lorimer.tools.dispatch.state import Surroundings

_ARRIVALS: Final = frozenset({Kind.USER, Kind.EVENT})
_CALLERS: Final = ("run_script", "code_interpreter")
"""Tools that may call others, which no entry shows."""
_MOST_ERRORS: Final = 3
_MOST_VALUES: Final = 12
_MOST_LOOKED_AT: Final = 300
"""Of the counters the newest: a step costs the same however long the session is."""
_LOOKED_BACK: Final = 12
_KEPT_CHARACTERS: Final = 4000
_NOTED: Final = 2
"""A call that gave the same result so often in a row is told of."""


class EntryFacts:
    """What entries say: failures, how long it was silent, which calls were made last."""

    def __init__(self) -> None:
        self.seen = 0
        self.arrivals = 0
        self.delegated = False
        self.idle_s: float | None = None
        self.errors: dict[str, ErrorFact] = {}
        self.last_calls: list[tuple[str, str, str]] = []  # id, tool, arguments as written
        self.digests: dict[str, str] = {}  # of their arguments, by id
        self._last_at: datetime | None = None

    def read(self, entries: list[Entry]) -> None:
        """Take the entries that are new."""
        for entry in entries[self.seen :]:
            self._take(entry)
        self.seen = len(entries)

    def _take(self, entry: Entry) -> None:
        if entry.kind in _ARRIVALS:
            self.arrivals += 1
            self.errors.clear()
            if self._last_at is not None:
                self.idle_s = max(0.0, (entry.at - self._last_at).total_seconds())
        elif entry.kind is Kind.ASSISTANT:
            self.last_calls += [(c.id, c.name, c.raw[:_KEPT_CHARACTERS]) for c in entry.calls]
            for call_id, *_ in self.last_calls[:-_LOOKED_BACK]:
                self.digests.pop(call_id, None)
            del self.last_calls[:-_LOOKED_BACK]
            self.delegated |= any(c.name in (SPAWN, *_CALLERS) for c in entry.calls)
        for result in entry.results:
            self._result(result)
        if entry.kind is not Kind.STATUS:
            self._last_at = entry.at

    def _result(self, result: ResultPart) -> None:
        self.errors.pop(result.name, None)
        if not result.is_error:
            return
        texts = [p for p in result.content if isinstance(p, TextPart)]
        # What stands under another label beside the error is no word for the bar.
        text = "".join(p.text for p in texts if p.trust is Trust.TRUSTED)
        told = _error(text)
        arguments = next((raw for i, _, raw in self.last_calls if i == result.call_id), "")
        self.errors[result.name] = ErrorFact(
            tool=result.name,
            type=str(told.get("error") or "error"),
            message=str(told.get("message") or text)[:_KEPT_CHARACTERS],
            arguments=arguments,
            next=str(told.get("next") or ""),
            outcome=str(told.get("outcome") or result.outcome),
            stack=str(told.get("stack") or told.get("traceback") or "")[-_KEPT_CHARACTERS:],
        )
        while len(self.errors) > _MOST_ERRORS:
            del self.errors[next(iter(self.errors))]


def _error(text: str) -> Mapping[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def gather(session: Session, settings: StatusBar, known: EntryFacts) -> Facts:
    """The facts of now, those that `settings` ask for. Reads nothing that grows with the
    session."""
    around = session.dispatcher.around
    clean = around.clean
    counters, more = _counters(around) if settings.counters else ([], 0)
    return Facts(
        clock=ClockFact(around.clock.now(), session.began, known.idle_s),
        counters=counters,
        more_counters=more,
        repeats=_repeats(session, known) if settings.repeats else (),
        errors=[_cleaned(one, clean) for one in reversed(known.errors.values())],
        todo=_todo(around) if settings.todo else (),
        tasks=_tasks(around, known.delegated) if settings.tasks else (),
        system=_system(around) if settings.system else None,
        tools=ToolsFact([t.name for t in around.registry], sorted(around.unloaded)),
        skills=_skills(session) if settings.skills else (),
        fill=_fill(session) if settings.context else None,
    )


def _cleaned(error: ErrorFact, clean: Any) -> ErrorFact:
    return ErrorFact(
        error.tool, error.type, clean(error.message), clean(error.arguments), clean(error.next),
        error.outcome, clean(error.stack),
    )  # fmt: skip


def _counters(around: Surroundings) -> tuple[list[CounterFact], int]:
    """Each limit that a tool declares; where it counts by an argument, the newest values. And how
    many values are left out."""
    newest: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for (tool, argument, value), used in islice(reversed(around.counts.items()), _MOST_LOOKED_AT):
        if argument is not None and value is not None:
            values = newest.setdefault((tool, argument), [])
            if len(values) < _MOST_VALUES:
                values.append((around.clean(value[:_KEPT_CHARACTERS]), used))
    found: list[CounterFact] = []
    told = 0
    for one in around.registry:
        for limit in one.limits:
            if limit.counter is None:
                key = limit_key(one.name, None, None)
                told += key in around.counts
                found.append(CounterFact(one.name, around.counts.get(key, 0), limit.count))
                continue
            values = newest.get((one.name, limit.counter), [])
            told += len(values)
            found += [
                CounterFact(one.name, used, limit.count, limit.counter, value)
                for value, used in values
            ]
            found.append(CounterFact(one.name, 0, limit.count, limit.counter))
    return found, max(0, len(around.counts) - told)


def _repeats(session: Session, known: EntryFacts) -> list[RepeatFact]:
    """Of the calls made last, those that keep giving the same result."""
    around = session.dispatcher.around
    found: dict[tuple[str, str], RepeatFact] = {}
    for call_id, tool, raw in reversed(known.last_calls):
        digest = _digest(session, known, call_id)
        _, times = around.same.get((tool, digest), ("", 0))
        if times >= _NOTED and (tool, digest) not in found:
            fact = RepeatFact(tool, around.clean(raw), times, around.repeat_limit)
            found[tool, digest] = fact
    return list(found.values())


def _digest(session: Session, known: EntryFacts, call_id: str) -> str:
    """Of the arguments that the call was run with; empty when it was not run."""
    if call_id not in known.digests:
        record = session.store.call(session.id, call_id)
        known.digests[call_id] = "" if record is None else record.arguments_digest
    return known.digests[call_id]


def _todo(around: Surroundings) -> tuple[TodoItem, ...]:
    from lorimer.toolkits.todo import KEY, TOOLS, TodoBoard, todo_of
    from lorimer.tools.dispatch.context import past_calls

    board = around.belongings.get(KEY, TodoBoard)
    if board is None:
        if not any(name in around.registry for name in TOOLS):
            return ()
        board = around.belongings.keep(KEY, TodoBoard(todo_of(past_calls(around, *TOOLS))))
    return tuple(replace(item, text=around.clean(item.text)) for item in board.todo.items)


def _tasks(around: Surroundings, delegated: bool) -> list[TaskFact]:
    found = []
    shell = _shell(around)
    for task in () if shell is None else shell.tasks.values():
        running = task.running
        if not running and task.told:
            continue
        result = task.live.result
        ended = "ended"
        if result is not None and result.exit_code is not None:
            ended = f"ended with exit code {result.exit_code}"
        elif task.stopped:
            ended = "was stopped"
        found.append(
            TaskFact(
                task.id, "shell", around.clean(task.words), "running" if running else ended,
                time.monotonic() - task.began if running else None, printed_bytes=task.output.size,
            )
        )  # fmt: skip
    port = around.subagents if delegated else None  # to ask first is to read the journal
    for report in () if port is None else port.unfinished():
        found.append(
            TaskFact(
                report.id, "subagent", around.clean(report.agent), str(report.status),
                progress=f"{report.steps} requests",
            )
        )  # fmt: skip
    return found


def _shell(around: Surroundings) -> Any:
    if "shell" not in around.belongings:
        return None
    from lorimer.toolkits.execution.shell import KEY, Shell

    return around.belongings.get(KEY, Shell)


def _system(around: Surroundings) -> SystemFact:
    shell = _shell(around)
    cwd = around.workspace if shell is None else shell.cwd or around.workspace
    return SystemFact(
        cwd=str(cwd),
        os=f"{platform.system()} {platform.release()}",
        shell="bash" if "shell_exec" in around.registry else "",
        python=".".join(map(str, sys.version_info[:3])),
    )


def _skills(session: Session) -> list[str]:
    library = session.agent.skills
    return [] if library is None else [one.name for one in library.available]


def _fill(session: Session) -> FillFact | None:
    window = session.tokens.window
    if not window:
        return None
    return FillFact(session.tokens.before_request().tokens, window)
