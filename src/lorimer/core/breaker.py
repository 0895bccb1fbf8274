"""The rejection breaker: after many rejections nobody is asked the next one before they said that
the agent may go on (S-5).

Worked out from the stored decisions of a session and its sub-agents, so it outlasts restarts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """Open after `in_a_row` rejections in a row, or `of_last` among the last `window` decisions."""

    in_a_row: int = 3
    of_last: int = 10
    window: int = 50


def decisions(records: Iterable[ApprovalRecord]) -> list[bool]:
    """What was decided since somebody last let the agent go on, oldest first: `True` approved,
    `False` rejected, or no verdict of a sidecar or reviewer."""
    out: list[bool] = []
    ordered = sorted(records, key=lambda r: (r.answered_at or r.asked_at, r.id))
    for record in ordered:
        approved = record.answer.get("approved")
        match record.kind:
            case ApprovalKind.BREAKER:
                if approved is True:
                    out.clear()
            case ApprovalKind.CALL | ApprovalKind.SIDECAR | ApprovalKind.REVIEWER:
                if record.state is ApprovalState.NO_VERDICT or approved is False:
                    out.append(False)
                elif approved is True:
                    out.append(True)
            case ApprovalKind.CONFIRMATION:
                pass
    return out


def why_open(records: Iterable[ApprovalRecord], rule: BreakerRule) -> str:
    """Why the breaker is open, in words; empty when it is closed."""
    made = decisions(records)
    row = 0
    for approved in reversed(made):
        if approved:
            break
        row += 1
    if row >= rule.in_a_row:
        return f"the last {row} decisions were rejections"
    lately = made[-rule.window :]
    rejected = lately.count(False)
    if rejected >= rule.of_last:
        return f"{rejected} of the last {len(lately)} decisions were rejections"
    return ""
