"""Asking again: of requests only, never of tool calls.

A request that failed with a `retryable` error is sent again after a growing pause with jitter, or
after the pause the provider asked for. An answer that broke off is asked for again too: nothing of
it has run (G3), and the consumer is told to drop what it has shown.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from lorimer.core.clock import Clock, SystemClock
from lorimer.core.errors import ModelError
from lorimer.models.protocol import Discarded, Model, ModelEvent, Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import stamina


@dataclass(frozen=True, slots=True)
class Retry:
    """One failed attempt that will be followed by another: `attempt` of `of`, after at least
    `wait_s` seconds."""

    error: ModelError
    attempt: int
    of: int
    wait_s: float


async def stream_with_retry(
    model: Model,
    request: Request,
    *,
    attempts: int = 3,
    deadline_s: float = 600.0,
    on_retry: Callable[[Retry], None] | None = None,
    clock: Clock | None = None,
    wait_initial_s: float = 0.5,
    wait_max_s: float = 30.0,
) -> AsyncIterator[ModelEvent]:
    """The events of `model.stream(request)`, asked again where that may help.

    Pauses double from `wait_initial_s` to `wait_max_s`, with up to as much jitter again as the
    first pause; a `Retry-After` of the provider is kept to, with the same jitter behind it. No
    attempt begins later than `deadline_s` after the first; an answer that is coming in is never cut
    by the deadline (the adapter bounds silence).

    Cancellation closes the connection, or ends the pause; nothing is sent afterwards.

    Raises:
        ModelError: the last one. Its `next` says how often was tried, or that the pause the
            provider asked for is longer than what is left.
    """
    clock = clock or SystemClock()
    start = clock.monotonic()
    pauses: _Pauses | None = None
    attempt = 0
    while True:
        attempt += 1
        shown = False
        try:
            # `stream` is an async generator in every adapter; the protocol promises less.
            stream = cast("AsyncGenerator[ModelEvent]", model.stream(request))
            async with aclosing(stream):
                async for event in stream:
                    shown = True
                    yield event
            return
        except ModelError as error:
            fault = error
        left_s = deadline_s - (clock.monotonic() - start)
        if pauses is None:
            pauses = _Pauses(wait_initial_s, wait_max_s)
        wait_s = await pauses.next_wait_s(fault)
        if not _worth_another(fault, attempt, attempts, wait_s, left_s, deadline_s):
            raise fault
        if shown:
            yield Discarded(fault.message, attempt, attempts)
        if on_retry is not None:
            on_retry(Retry(fault, attempt, attempts, wait_s))
        await pauses.pause(fault)


def _worth_another(
    fault: ModelError, attempt: int, attempts: int, wait_s: float, left_s: float, deadline_s: float
) -> bool:
    """Whether to ask again; if not, `fault` is told why not."""
    if not fault.retryable:
        return False
    if attempt >= attempts:
        if attempts > 1:
            fault.next = f"{fault.next} Tried {attempt} times.".lstrip()
        return False
    if wait_s > left_s:
        asked = "The provider asks to wait" if fault.retry_after_s is not None else "The pause is"
        fault.next = (
            f"{asked} {wait_s:g} s, and {max(0.0, left_s):.0f} s are left of the deadline of "
            f"{deadline_s:g} s: ask again later."
        )
        return False
    return True


class _Pauses:
    """The pauses between attempts, counted and slept by stamina. It is loaded at the first fault
    only: a request that succeeds pays nothing for it."""

    def __init__(self, wait_initial_s: float, wait_max_s: float) -> None:
        import logging

        import stamina

        # `on_retry` tells of retries; without this Python prints stamina's own line as well.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        self._jitter_s = wait_initial_s
        self._attempts = stamina.retry_context(
            on=self._wait,
            attempts=None,
            timeout=None,
            wait_initial=wait_initial_s,
            wait_max=wait_max_s,
            wait_jitter=wait_initial_s,
        ).__aiter__()
        self._current: stamina.Attempt | None = None

    def _wait(self, error: Exception) -> bool | float:
        asked = error.retry_after_s if isinstance(error, ModelError) else None
        # Many clients are told the same pause: jitter keeps them from coming back as one.
        return True if asked is None else asked + random.uniform(0, self._jitter_s)

    async def next_wait_s(self, fault: ModelError) -> float:
        """The least pause after `fault`, in seconds."""
        if self._current is None:
            self._current = await anext(self._attempts)
        return self._current.next_wait if fault.retry_after_s is None else fault.retry_after_s

    async def pause(self, fault: ModelError) -> None:
        assert self._current is not None
        with self._current:
            raise fault
        self._current = await anext(self._attempts)
