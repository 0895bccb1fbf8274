"""What a status bar shows, and how it is kept up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lorimer.core.errors import ConfigError

MODES: Final = ("auto", "append", "replace")


@dataclass(frozen=True, slots=True)
class StatusBar:
    """Settings of the bar: each part can be switched off.

    Attributes:
        mode: `append` (what changed is appended, for good), `replace` (the whole bar is put last in
            each request, in that one only), or `auto`: whichever costs less with this model.
        time: the time, to the minute.
        session_clock: how long the session is open, how long it was silent before the last message.
        counters: calls used and left, for tools with limits.
        repeats: calls that keep giving the same result.
        errors: the last failures: type, message, arguments, advice.
        todo: the TODO list of `rewrite_todo_list` and `update_todo_status`.
        tasks: background commands and sub-agents.
        system: folder, operating system, shell, Python.
        tools, skills: their names.
        context: how full the context is.
        timezone: the zone that `time` is told in, e.g. `Europe/Berlin`.
        text_limit: most characters of a text from outside (a TODO text, a message, arguments).

    Raises:
        ConfigError: when a mode, zone or limit cannot be.
    """

    mode: str = "auto"
    time: bool = True
    session_clock: bool = True
    counters: bool = True
    repeats: bool = True
    errors: bool = True
    todo: bool = True
    tasks: bool = True
    system: bool = True
    tools: bool = True
    skills: bool = True
    context: bool = True
    timezone: str = "UTC"
    text_limit: int = 200

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(
                f"StatusBar(mode={self.mode!r}) is no mode.",
                next=f"Use one of: {', '.join(MODES)}.",
            )
        if isinstance(self.text_limit, bool) or not 20 <= self.text_limit <= 2000:
            raise ConfigError(
                f"StatusBar(text_limit={self.text_limit!r}) cannot be.",
                next="Use a number of characters from 20 to 2000.",
            )
        if self.timezone != "UTC":
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, OSError) as fault:
                raise ConfigError(
                    f"StatusBar(timezone={self.timezone!r}) is no zone that is known here.",
                    next="Use a name such as Europe/Berlin, or UTC.",
                ) from fault


def status_bar(given: bool | StatusBar | None) -> StatusBar | None:
    """The settings that an agent's option `status` stands for; `None` for no bar.

    Raises:
        ConfigError: when it is something else.
    """
    if given is None or given is False:
        return None
    if given is True:
        return StatusBar()
    if isinstance(given, StatusBar):
        return given
    raise ConfigError(
        f"status={given!r} is no status bar.", next="Use True, a StatusBar(...), or None."
    )
