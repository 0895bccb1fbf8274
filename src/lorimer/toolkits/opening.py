"""How file tools open paths: the session's roots, and refusals in words for the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lorimer.core.calls import Outcome
from lorimer.safety.path_faults import PathRefused
from lorimer.safety.paths import Opened, Roots
from lorimer.tools.tool import ToolContext, ToolError


def roots_of(context: ToolContext) -> Roots:
    """The workspace, writable; the session's scratch folder and those of its skills, read-only."""
    kept = [] if context.scratch is None else [context.scratch]
    return Roots(context.workspace, [*kept, *context.readable])


@contextmanager
def refusals() -> Iterator[None]:
    """Turn a refused path into a `ToolError`; nothing has happened then."""
    try:
        yield
    except PathRefused as fault:
        raise ToolError(
            fault.message,
            next=fault.next,
            code=fault.code,
            outcome=Outcome.FAILED_BEFORE_EFFECT,
            retryable=fault.code not in ("protected", "read_only"),
        ) from fault


def nothing_done(message: str, *, next: str, code: str = "tool_error") -> ToolError:
    """An error of a tool that has not changed anything."""
    return ToolError(message, next=next, code=code, outcome=Outcome.FAILED_BEFORE_EFFECT)


def below(folder: Opened) -> str:
    """What stands before the names of files in `folder`, so that a model can use them as paths."""
    return f"{folder.shown}/" if folder.shown else ""


def shown_name(name: str) -> str:
    """A file name as one line of text: as it is, or quoted when it has odd characters in it.

    Quoted names use Python's escapes; a name that is not UTF-8 shows its bytes as `\\udcNN`.
    """
    return name if name.isprintable() or _only_odd_spaces(name) else ascii(name)


def _only_odd_spaces(name: str) -> bool:
    return all(c.isprintable() or c in "\u00a0\u202f\u2009\u3000" for c in name)


def page(first: int, shown: int, total: int, what: str, *, more: str = "") -> str:
    """`entries 1–100 of 340; continue with offset=101`; `more` marks a total that is a floor."""
    if total == 0:
        return f"no {what}"
    last = first + shown - 1
    text = f"{what} {first:,}–{last:,} of {more}{total:,}"
    return f"{text}; continue with offset={last + 1}" if last < total else text
