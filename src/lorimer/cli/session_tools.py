"""Where the tools of a session came from, so that it can be gone on with in another process.

The model of a session was told of its tools once, at the beginning. What `--tools` said then is
kept with the session, files by their whole path, and read again when nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import ConfigError, LorimerError, UsageFault

if TYPE_CHECKING:
    from lorimer.store.protocol import SessionRecord
    from lorimer.tools.tool import Tool

KEY = "tools"
ADDED = ("recall", "skill")
"""Tools that an agent adds itself: where a context is compacted, and where it has skills."""


def kept(text: str | None) -> dict[str, Any]:
    """What is kept of `--tools` in a session (`Agent(meta=…)`)."""
    if not text:
        return {}
    pieces = [piece.strip() for piece in text.split(",")]
    return {KEY: ",".join(str(Path(p).absolute()) if p.endswith(".py") else p for p in pieces)}


def record_of(store: Path | None, session_id: str) -> SessionRecord:
    """The record of a session in the store at `store`.

    Raises:
        SessionNotFound, StoreError: when there is none.
    """
    from lorimer.cli.execute import existing_store

    opened = existing_store(store)
    try:
        return opened.session(session_id)
    finally:
        opened.close()


def tools_of(
    record: SessionRecord,
    asked: str | None,
    *,
    allow_unsandboxed: bool,
    say: Callable[[str], None],
) -> list[Tool]:
    """The tools to go on with in a session: those of `--tools`, or its own. What does not fit what
    its model was told is said.

    Raises:
        UsageFault, ConfigError: when its own cannot be had any more; says which `--tools` to give.
    """
    from lorimer.cli.setup import choose_tools

    told = [str(one["name"]) for one in record.tools]
    if asked is not None:
        found = choose_tools(asked, allow_unsandboxed=allow_unsandboxed)
        _say_differences(record, told, [one.name for one in found], say)
        return found
    given = [name for name in told if name not in ADDED]
    text = str(record.meta.get(KEY) or ",".join(given) or "none")
    _look_for_files(record, text, told)
    try:
        own = {one.name: one for one in choose_tools(text, allow_unsandboxed=allow_unsandboxed)}
    except LorimerError as fault:
        raise ConfigError(
            f"The tools of session {record.id} ({_listed(told)}) cannot be had: {fault.message}",
            next=_give(record),
        ) from fault
    gone = [name for name in told if name not in own and name not in ADDED]
    if gone:
        raise ConfigError(
            f"{text} has no {_listed(gone)} any more, which session {record.id} was begun with.",
            next=_give(record),
        )
    if KEY in record.meta:
        say(f"tools: those the session was begun with, from {text}")
    return [own[name] for name in told if name in own]


def _look_for_files(record: SessionRecord, text: str, told: list[str]) -> None:
    for piece in text.split(","):
        if piece.endswith(".py") and not Path(piece).is_file():
            raise UsageFault(
                f"The tools of session {record.id} ({_listed(told)}) came from {piece}, which is "
                "not there any more.",
                next=f"Say where the file is now: --tools {_moved(text, piece)}",
            )


def _moved(text: str, gone: str) -> str:
    import shlex

    return shlex.quote(text.replace(gone, f"NEW-PLACE/{Path(gone).name}"))


def _give(record: SessionRecord) -> str:
    from_text = record.meta.get(KEY)
    hint = f" (it was begun with --tools {from_text})" if from_text else ""
    return f"Say where they are: --tools FILE.py, or module:name{hint}."


def _say_differences(
    record: SessionRecord, told: list[str], found: list[str], say: Callable[[str], None]
) -> None:
    missing = [name for name in told if name not in found and name not in ADDED]
    more = [name for name in found if name not in told]
    if missing:
        say(f"not given now, so calls of them fail: {_listed(missing)}")
    if more:
        say(
            f"session {record.id} was begun with {_listed(told) or 'no tools'}: its model does not "
            f"know {_listed(more)}"
        )


def _listed(names: list[str]) -> str:
    return ", ".join(names)
