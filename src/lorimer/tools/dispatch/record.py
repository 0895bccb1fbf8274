"""Station 11, record: the end of the call goes to disk, before the model is told (G1).

The end of a call with effects is committed here, so that it does not wait for the other calls of
its turn; the only call of a turn is committed together with the entry that tells it, which comes
next. So is the end of a read: until then nothing is lost by running it again.
"""

from __future__ import annotations

from lorimer.core.calls import Effects, Refusal
from lorimer.core.canonical import digest
from lorimer.core.messages import TextPart, part_to_json
from lorimer.core.watch import CallEnded
from lorimer.store.protocol import FinishCall
from lorimer.tools.dispatch.state import CallState, Surroundings

NOT_ITS_FAILURE = (
    "limit", "rejected", "rejected_before", "breaker_open", "approval_timeout", "needs_approval",
    "approval_void", "approval_spent", "confirm_first", "interrupted",
)  # fmt: skip


async def record(state: CallState, around: Surroundings) -> Refusal | None:
    result, tool = state.result, state.tool
    assert result is not None
    _count(state, around)
    texts = [p.text for p in result.content if isinstance(p, TextPart)]
    text = "".join(texts[:1] if result.is_error else texts)  # an error stands in its first part
    if not (state.replayed and state.journal is not None and state.journal.result is not None):
        state.pending.append(
            FinishCall(
                session=around.session,
                id=state.call.id,
                outcome=state.outcome,
                code=state.code,
                result=part_to_json(result),
                at=around.clock.now(),
                duration_s=state.duration_s,
                views=_new_views(around),
                why="" if state.refusal is None else around.clean(state.refusal.message),
            )
        )
        has_effects = tool is not None and tool.effects is not Effects.READ
        if state.started and has_effects and not _told_at_once(state):
            await around.store.commit(*state.pending)
            state.pending.clear()
    around.tell(
        CallEnded(state.call.id, state.name, state.outcome, state.code, text, state.duration_s)
    )
    return None


def _told_at_once(state: CallState) -> bool:
    """Whether the entry that tells the model is the very next commit, so that both can be one: the
    only call of its turn. A function that still runs may end and correct the record before that."""
    refusal = state.refusal
    return state.alone and (refusal is None or "still_running" not in refusal.details)


def _new_views(around: Surroundings) -> dict[str, str]:
    take = getattr(around.views, "take_new", None)
    return {} if take is None else take()


def _count(state: CallState, around: Surroundings) -> None:
    tool = state.tool
    if tool is None or state.inner_of or state.code in ("skipped", "cancelled"):
        return
    if state.refusal is None:
        around.failures.pop(tool.name, None)
    elif state.code not in NOT_ITS_FAILURE:
        around.failures[tool.name] += 1
    if state.started and state.result is not None and tool.effects is Effects.READ:
        key = (tool.name, state.arguments_digest)
        text = "".join(p.text for p in state.result.content if isinstance(p, TextPart))
        seen = digest(text.encode("utf-8", "surrogatepass"))
        before = around.same.get(key)
        around.same[key] = (seen, before[1] + 1 if before is not None and before[0] == seen else 1)
