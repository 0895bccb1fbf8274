"""Facts as parts of the bar: under each heading, items of one line. Pure.

An item is said in the words of this file; what comes from outside stands in it quoted, and apart
from it (`said`), so that a bar can be written without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from lorimer.context.status.escape import is_name, quoted
from lorimer.context.status.facts import (
    ClockFact,
    ErrorFact,
    Facts,
    FillFact,
    RepeatFact,
    SystemFact,
    TaskFact,
)
from lorimer.context.status.settings import StatusBar
from lorimer.core.canonical import digest

TIME: Final = "time"
HEADINGS: Final = (
    TIME, "calls", "repeated calls", "errors", "todo", "running", "system", "tools", "skills",
    "context",
)  # fmt: skip
"""Every heading a bar can have, in its order."""
FADING: Final = frozenset({"repeated calls", "errors"})
"""Headings whose lines are warnings: that one holds no more is told with other news."""

_MOST_COUNTERS, _MOST_REPEATS, _MOST_ERRORS = 24, 5, 3
_MOST_TODO, _MOST_TASKS, _MOST_NAMES = 40, 12, 60
_FILL_STEPS: Final = (95, 90, 80, 70, 50)
_CWD_LIMIT = 400
_POINTS: Final = dict.fromkeys(map(ord, ",;()+%"), " ")


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the bar.

    Attributes:
        key: names it within its part; plain characters only.
        fact: words of the harness.
        said: what comes from outside, quoted already; stands behind the fact.
        soft: what changes all the time (seconds, bytes): shown, but no reason for a new bar.
    """

    key: str
    fact: str
    said: str = ""
    soft: str = ""

    @property
    def hard_mark(self) -> str:
        return _mark(f"{self.fact}\0{self.said}")

    @property
    def soft_mark(self) -> str:
        return _mark(self.soft) if self.soft else ""


@dataclass(frozen=True, slots=True)
class Part:
    """Items under a heading. `quiet`: a change of it alone is no reason for a new bar."""

    heading: str
    items: Sequence[Item]
    quiet: bool = False


def parts_of(facts: Facts, settings: StatusBar) -> tuple[Part, ...]:
    """The parts that have something to say."""
    limit = settings.text_limit
    made = (
        Part(TIME, tuple(_clock(facts.clock, settings)), quiet=True),
        Part("calls", tuple(_counters(facts, limit)) if settings.counters else ()),
        Part("repeated calls", _repeats(facts.repeats, limit) if settings.repeats else ()),
        Part("errors", _errors(facts.errors, limit) if settings.errors else ()),
        Part("todo", tuple(_todo(facts, limit)) if settings.todo else ()),
        Part("running", tuple(_tasks(facts.tasks, limit)) if settings.tasks else ()),
        Part("system", _system(facts.system) if settings.system else ()),
        Part("tools", tuple(_tools(facts)) if settings.tools else ()),
        Part("skills", _names("skills", "", facts.skills) if settings.skills else ()),
        Part("context", _fill(facts.fill) if settings.context else ()),
    )
    return tuple(part for part in made if part.items)


def _clock(clock: ClockFact | None, settings: StatusBar) -> Iterator[Item]:
    if clock is None:
        return
    if settings.time:
        yield Item("now", _moment(clock.now, settings.timezone))
    if settings.session_clock:
        words = f"session open for {_minutes((clock.now - clock.began).total_seconds())}"
        if clock.idle_s is not None and clock.idle_s >= 60:
            words += f"; silent for {span(clock.idle_s)} before the last message"
        yield Item("session", words)


def _moment(now: datetime, zone: str) -> str:
    if zone == "UTC":
        return now.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC, %A")
    from zoneinfo import ZoneInfo

    local = now.astimezone(ZoneInfo(zone))
    return f"{local:%Y-%m-%d %H:%M %z} ({zone}), {local:%A}"


def _minutes(seconds: float) -> str:
    return span(seconds) if seconds >= 60 else "less than a minute"


def span(seconds: float) -> str:
    """`40 s`, `5 min`, `3 h 10 min`, `2 d 4 h`: never two figures more than matter."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def _counters(facts: Facts, limit: int) -> Iterator[Item]:
    for counter in facts.counters[:_MOST_COUNTERS]:
        used = min(counter.used, counter.limit)
        left = counter.limit - used
        words = f"{_known(counter.tool)}: {used}/{counter.limit} calls used, {left or 'none'} left"
        key, said = f"{_mark(counter.tool)}-{counter.limit}", ""
        if counter.argument is not None:
            argument = _known(counter.argument)
            key += f"-{_mark(counter.argument)}"
            if counter.value is None:
                words += f", for every other {argument}"
            else:
                words += f", for {argument} = "
                said = quoted(counter.value, limit)
                key += f"-{_mark(counter.value)}"
        yield Item(key, words, said)
    more = facts.more_counters + max(0, len(facts.counters) - _MOST_COUNTERS)
    if more:
        yield Item("more", f"{more} more counters are not shown")


def _repeats(repeats: Sequence[RepeatFact], limit: int) -> tuple[Item, ...]:
    return tuple(
        Item(
            f"{_mark(one.tool)}-{_mark(one.arguments)}",
            f"{_known(one.tool)} gave the same result {one.times} times in a row; "
            + (
                "it is refused now; use the result, or other arguments. It had the arguments "
                if one.times >= one.limit
                else f"after {one.limit} times it is refused. It had the arguments "
            ),
            quoted(one.arguments, limit),
        )
        for one in repeats[:_MOST_REPEATS]
    )


def _errors(errors: Sequence[ErrorFact], limit: int) -> tuple[Item, ...]:
    items = []
    for one in errors[:_MOST_ERRORS]:
        said = [
            f"message {quoted(one.message, limit)}",
            f"arguments {quoted(one.arguments, limit)}",
        ]
        if _known(one.tool) != one.tool:
            said.insert(0, f"tool {quoted(one.tool, 64)}")
        if one.next:
            said.append(f"next {quoted(one.next, limit)}")
        if one.stack:
            said.append(f"stack {quoted(one.stack, limit)}")
        outcome = f", outcome {_known(one.outcome)}" if one.outcome else ""
        key = _mark(f"{one.tool}\0{one.message}\0{one.arguments}")
        items.append(
            Item(key, f"{_known(one.tool)} failed: {_known(one.type)}{outcome}; ", "; ".join(said))
        )
    return tuple(items)


def _todo(facts: Facts, limit: int) -> Iterator[Item]:
    shown = facts.todo[:_MOST_TODO]
    for item in shown:
        yield Item(_known(item.id), f"{_known(item.id)} {item.status}: ", quoted(item.text, limit))
    if len(facts.todo) > len(shown):
        yield Item("more", f"{len(facts.todo) - len(shown)} more items are not shown")


def _tasks(tasks: Sequence[TaskFact], limit: int) -> Iterator[Item]:
    for task in tasks[:_MOST_TASKS]:
        soft = []
        if task.running_s is not None:
            soft.append(f"for {span(task.running_s)}")
        if task.printed_bytes is not None:
            soft.append(f"{_size(task.printed_bytes)} printed")
        if task.progress:
            soft.append(_plain(task.progress))
        yield Item(
            _mark(f"{task.kind}\0{task.id}"),
            f"{_known(task.kind)} {_known(task.id)} {_plain(task.state)}: ",
            quoted(task.words, min(limit, 120)),
            f" ({', '.join(soft)})" if soft else "",
        )
    if len(tasks) > _MOST_TASKS:
        yield Item("more", f"{len(tasks) - _MOST_TASKS} more tasks are not shown")


def _size(size: int) -> str:
    for unit, one in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size} bytes"


def _system(system: SystemFact | None) -> tuple[Item, ...]:
    if system is None:
        return ()
    known = (("OS", system.os), ("shell", system.shell), ("Python", system.python))
    about = "; ".join(f"{label} {_plain(text)}" for label, text in known if text)
    items = (Item("cwd", "folder ", quoted(system.cwd, _CWD_LIMIT)) if system.cwd else None,
             Item("machine", about) if about else None)  # fmt: skip
    return tuple(item for item in items if item is not None)


def _known(text: str) -> str:
    """A plain name as it is. Any other text stands for itself only where it is quoted."""
    return text if is_name(text) else "(an odd name)"


def _plain(text: str) -> str:
    """A few plain words, as they are."""
    words = text.translate(_POINTS).split()
    return text if len(text) <= 120 and all(map(is_name, words)) else "(odd words)"


def _tools(facts: Facts) -> Iterator[Item]:
    if facts.tools is not None:
        yield from _names("loaded", "loaded: ", facts.tools.loaded)
        yield from _names("available", "can be loaded: ", facts.tools.available)


def _names(key: str, label: str, names: Sequence[str]) -> tuple[Item, ...]:
    if not names:
        return ()
    shown = ", ".join(one if is_name(one) else quoted(one, 64) for one in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return (Item(key, label, shown + (f", and {more:,} more" if more > 0 else "")),)


def _fill(fill: FillFact | None) -> tuple[Item, ...]:
    if fill is None or fill.window <= 0:
        return ()
    percent = 100 * fill.tokens / fill.window
    passed = next((step for step in _FILL_STEPS if percent >= step), None)
    fact = f"more than {passed} % of the context is used" if passed else "most of it is free"
    return (Item("fill", fact, "", f" ({fill.tokens:,} of {fill.window:,} tokens)"),)


def _mark(text: str) -> str:
    """A short mark that is the same for the same text."""
    return digest(text.encode("utf-8", "surrogatepass")).removeprefix("sha256:")[:8]
