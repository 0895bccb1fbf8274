"""The part of a session that asks: what is done before a request, and requests beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.usage import Usage
from lorimer.models.retry import stream_with_retry
from lorimer.runtime.recorder import Recorder
from lorimer.runtime.reply import Reply, read_reply

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.status import StatusUpkeep


class Preparation(Protocol):
    """Something that has to be done before each request of a session."""

    async def before_request(self) -> None: ...


class Requests(Recorder):
    """What a session asks its model.

    Attributes:
        preparations: done before each request, in this order.
        tail: put last in the next request, and in that one only: a status bar that is replaced.
        status: keeps the status bar, where there is one.
    """

    def __init__(self, agent: Agent, session_id: str) -> None:
        super().__init__(agent, session_id)
        self.settings = agent.settings
        self.tail: Entry | None = None
        self.preparations: list[Preparation] = []
        self.status: StatusUpkeep | None = None
        self._side_usage = Usage()

    async def prepare(self) -> None:
        """What comes before each request: what has arrived, skills, compaction, status."""
        await self.tokens.find_window()
        for one in self.preparations:
            await one.before_request()

    def request_facts(self, reply: Reply) -> dict[str, Any]:
        """What is kept of the request that `reply` answers; also what stood in it only."""
        facts = super().request_facts(reply)
        return facts if self.status is None else facts | self.status.kept()

    async def side_request(
        self,
        instruction: str,
        *,
        purpose: str,
        max_output_tokens: int | None = None,
        count: int | None = None,
    ) -> Reply:
        """One model request beside the conversation: this session's own prefix and entries, byte
        for byte, and `instruction` as its last message. It rides the cached prefix, nothing of it
        enters the trajectory, and no call of its answer is ever run. The audit has a line of it;
        its usage counts into the run. With `count` it has the first so many entries of the view:
        those that were sent before are read from the cache.

        Cancellation: the request is closed.

        Raises:
            ModelError: when the model cannot answer.
        """
        settings = self.settings
        if max_output_tokens is not None:
            settings = replace(settings, max_output_tokens=max_output_tokens)
        if self.model.profile.wire in ("local", "scripted"):  # elsewhere it may cost the cache
            settings = replace(settings, tool_choice="none")
        tail = Entry(Kind.NOTE, (TextPart(instruction),), self._now(), self.trajectory.next_seq)
        request = self.cache.aside(self.trajectory.side_request(settings, tail, count))
        limits = self.agent.limits
        events = stream_with_retry(
            self.model, request, attempts=limits.request_attempts,
            deadline_s=limits.request_deadline_s,
            on_retry=lambda retry: self.remark("request.repeated", str(retry.error)),
        )  # fmt: skip
        reply = await read_reply(events, None)
        self._side_usage += reply.usage
        self.remark("request.beside", f"{purpose}: {json.dumps(reply.usage.to_json())}")
        return reply

    def take_side_usage(self) -> Usage:
        """What the requests beside the conversation have used since the last time."""
        usage, self._side_usage = self._side_usage, Usage()
        return usage
