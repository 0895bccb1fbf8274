"""Summaries that a session's model writes: asked beside the conversation, checked line by line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lorimer.context.compaction.digest import Digest
from lorimer.context.compaction.summary import Checked, Refused, check_summary
from lorimer.core.errors import LorimerError, StoreError
from lorimer.core.messages import Kind

if TYPE_CHECKING:
    from lorimer.runtime.reply import Reply
    from lorimer.runtime.session import Session

_CHARACTERS_A_TOKEN = 3
"""What a bound in tokens is worth in characters, carefully."""


class Stopped(Exception):
    """The run was cancelled while a summary was being written; nothing was recorded."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """Asks the model of a session for summaries.

    Attributes:
        most_tokens: what it may write.
        cited: each line must name its source.
    """

    session: Session
    most_tokens: int
    cited: bool = False

    @property
    def most_characters(self) -> int:
        return self.most_tokens * _CHARACTERS_A_TOKEN

    async def ask(
        self,
        instruction: str,
        digests: Sequence[Digest],
        purpose: str,
        *,
        count: int | None = None,
    ) -> Checked:
        """The checked summary of `digests`; the request has the first `count` entries of the view.
        What goes wrong is in the summary (`refused`), not raised.

        Cancellation: the request is closed and nothing is recorded.

        Raises:
            Stopped: when the run was cancelled meanwhile.
            StoreError: when the record cannot be written.
        """
        session = self.session
        work = session.side_request(
            instruction, purpose=purpose, max_output_tokens=self.most_tokens, count=count
        )
        try:
            reply: Reply | None = await (session.until_cancelled(work) if session.running else work)
        except StoreError:
            raise
        except LorimerError as fault:
            session.compaction.fault = fault
            return Checked(refused=Refused("failed", f"no answer came: {fault.message}"))
        if reply is None or (session.running and session.cancel_requested):
            raise Stopped
        known = [e.text for e in session.entries if e.kind in (Kind.USER, Kind.ASSISTANT)]
        return await asyncio.to_thread(
            check_summary,
            reply.text,
            digests,
            called=[call.name for call in reply.calls],
            cut_off=reply.cut and not reply.calls,
            cited=self.cited,
            known=known,
        )
