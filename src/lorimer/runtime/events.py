"""What has arrived for a session and waits for the next safe point: before its next request.

In memory: what waits is lost with the process. What was taken is in the record.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from lorimer.context.events import MOST_EVENTS, Event, event_entry

if TYPE_CHECKING:
    from lorimer.runtime.session import Session


class Mailbox:
    """The events of one session, in the order in which they came."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: deque[Event] = deque()

    @property
    def waiting(self) -> int:
        """How many events the model has not been told of."""
        return len(self._waiting)

    def post(self, event: Event) -> None:
        """Keep `event` for the next request. May be called at any time, from any thread."""
        if event.at is None:
            event = replace(event, at=self._session.agent.clock.now())
        self._waiting.append(event)

    async def before_request(self) -> None:
        """Tell the model all that waits, in one entry; at most `MOST_EVENTS` at once, the others
        come with the next request.

        Raises:
            StoreError: when it cannot be recorded; then all of it still waits.
        """
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_EVENTS))]
        if not taken:
            return
        session = self._session
        principal = session.agent.principal.id
        own = all(event.is_of(principal) for event in taken)
        before = session.trajectory.next_seq
        try:
            entry = event_entry(taken, session.agent.clock.now(), principal=principal)
            await session.record(entry, principal if own else "lorimer")
        finally:
            if session.trajectory.next_seq == before:  # nothing was recorded
                self._waiting.extendleft(reversed(taken))
