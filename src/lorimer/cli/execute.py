"""Running one message in a terminal: signals, output, exit code. Shared by run, resume and chat."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import LorimerError, StoreError

if TYPE_CHECKING:
    from lorimer.cli.terminal import Screen
    from lorimer.runtime.results import RunResult
    from lorimer.runtime.session import Session
    from lorimer.store.sqlite import SqliteStore

STOPPED = "cancelled by the user"
"""The reason of a run that the person stopped with Ctrl-C."""
_CODES = {
    "answered": 0, "cancelled": 130, "max_steps": 7, "max_cost": 7, "max_time": 7, "failures": 7,
    "breaker": 7,
}  # fmt: skip
_MOST_FLAGS = 5
_WORDS = {
    "max_steps": "the limit of steps (--max-steps) was reached",
    "max_cost": "the limit of cost (--max-cost) was reached",
    "max_time": "the limit of time (--max-time) was reached",
    "failures": "too many calls in a row failed",
    "breaker": "too many calls were rejected, and nobody said that it may go on",
    "length": "the answer was cut off at the output limit",
    "refusal": "the model refused to answer",
    "empty": "the model gave no answer",
    "cancelled": "stopped",
}


async def with_signals(
    session: Session, work: Callable[[], Awaitable[RunResult]], screen: Screen
) -> RunResult:
    """Run `work`; the first Ctrl-C (or SIGTERM) stops the run cleanly, a second one at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work())
    presses = 0

    def pressed() -> None:
        nonlocal presses
        presses += 1
        if presses == 1 and session.cancel_requested != STOPPED:  # or at a question
            screen.line(
                "Stopping: what runs is ended and recorded. Press Ctrl-C again to leave at once."
            )
            session.cancel(STOPPED)
            if not session.running:
                task.cancel()
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, pressed)
    try:
        return await task
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def show(result: RunResult, screen: Screen, *, as_json: bool) -> int:
    """Print how a run ended; its exit code."""
    screen.end()
    if as_json:
        emit(result.to_json())
    elif result.answer and (not screen.stream or not screen.streamed.strip()):
        from lorimer.cli.terminal import safe

        print(safe(result.answer) if sys.stdout.isatty() else result.answer)
    show_flags(result, screen)
    if result.stop != "answered":
        screen.line(
            f"Ended: {_WORDS.get(result.stop, result.stop)}. Go on with: lorimer resume "
            f"{result.session}"
        )
    return _CODES.get(result.stop, 3)


def show_flags(result: RunResult, screen: Screen) -> None:
    """Short lines about what the answer says and nothing recorded bears out."""
    from lorimer.cli.terminal import flat

    shown = [flag for flag in result.flags if flag.worth_showing]
    for flag in shown[:_MOST_FLAGS]:
        near = f" Nearest: {flag.nearest}." if flag.nearest else ""
        screen.line(f"! check {flat(flag.text)!r}: {flat(flag.why + near)}")
    more = len(shown) - _MOST_FLAGS
    if more > 0:
        screen.line(f"! and {more} more; --json shows all of them.")


def run_async(work: Callable[[], Awaitable[int]], *, as_json: bool) -> int:
    """Run `work`; with `--json` a known fault becomes a JSON object on stdout as well."""
    if as_json:
        _keep_stdout()
    try:
        return asyncio.run(_main(work))
    except LorimerError as fault:
        if not as_json:
            raise
        emit(fault_json(fault))
        return fault.exit_code
    except asyncio.CancelledError:
        return 130


def fault_json(fault: LorimerError) -> dict[str, Any]:
    """A fault for programs: `error` is the name of its kind."""
    body: dict[str, Any] = {
        "error": type(fault).__name__, "message": fault.message, "next": fault.next,
        "exit_code": fault.exit_code,
    }  # fmt: skip
    if fault.run is not None:
        body |= fault.run.to_json()
    return body


@contextlib.contextmanager
def faults_as_json(as_json: bool) -> Iterator[None]:
    """With `as_json` a known fault becomes one JSON object on stdout, and the exit code."""
    try:
        yield
    except LorimerError as fault:
        if not as_json:
            raise
        import typer

        emit(fault_json(fault))
        raise typer.Exit(fault.exit_code) from fault


def existing_store(path: Path | None, *, empty: bool = True) -> SqliteStore:
    """The store at `path` for a command that only reads: nothing is made where there is none.

    Args:
        empty: whether the default store may be missing; it is as one without anything in it.

    Raises:
        StoreError: when there is no store at `path`.
    """
    from lorimer.store import default_path, open_store

    found = default_path() if path is None else path
    if str(found) == ":memory:" or found.exists():
        return open_store(path)
    if path is None and empty:
        return open_store(":memory:")
    raise StoreError(
        f"There is no store at {found}.",
        next="Check the path. A store is made by the first run: lorimer run --store PATH …",
    )


_json_out: int | None = None


def _keep_stdout() -> None:
    """Standard output is for our one JSON object: what tools print goes to standard error."""
    global _json_out
    if _json_out is None:
        sys.stdout.flush()
        _json_out = os.dup(1)
        os.dup2(2, 1)


def emit(body: Any) -> None:
    """One JSON object as a line on the real standard output."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    try:
        data = json.dumps(body, ensure_ascii=not utf8).encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: as an escape
        data = json.dumps(body).encode("ascii")
    sys.stdout.flush()
    with open(1 if _json_out is None else _json_out, "wb", closefd=False) as out:
        out.write(data + b"\n")


async def _main(work: Callable[[], Awaitable[int]]) -> int:
    return await work()
