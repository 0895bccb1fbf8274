"""Station 7, once: the journal. After this station the effect may exist; so it is on disk first.

The operation key is the digest of (session, tool, canonical arguments, occurrence): the same call
after a crash has the same key, a second call with the same arguments has another.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import anyio
import anyio.to_thread

from lorimer.core.calls import Effects, Idempotency, JournalState, Outcome, Refusal
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.errors import ApprovalError, SessionBusy
from lorimer.core.messages import ResultPart, part_from_json
from lorimer.store.protocol import StartCall
from lorimer.tools.dispatch.context import make_context
from lorimer.tools.dispatch.launch import not_usable, still_approved
from lorimer.tools.dispatch.limits import count, over_limit
from lorimer.tools.dispatch.secret_arguments import without_secrets
from lorimer.tools.dispatch.state import CallCancelled, CallState, Surroundings
from lorimer.tools.tool import NOT_FOUND, Tool, is_async

_FIND_TIMEOUT_S = 30.0


def operation_key(session: str, tool: str, arguments_digest: str, occurrence: int) -> str:
    """The stable key of one effect (G2)."""
    return digest(canonical_json([session, tool, arguments_digest, occurrence]))


async def once(state: CallState, around: Surroundings) -> Refusal | None:
    tool, record = state.tool, state.journal
    assert tool is not None
    if record is not None and record.state is JournalState.STARTED:
        state.operation_key, state.occurrence = record.operation_key, record.occurrence
        refusal = await _settle_started(state, around, tool)
        if refusal is not None or state.replayed:
            return refusal
    if tool.resources is not None:
        refusal = await _take_resources(state, around, tool)
        if refusal is not None:
            return refusal
    if around.cancel_reason:
        raise CallCancelled
    if not state.operation_key:
        refusal = over_limit(tool, state.value, around)  # others may have started meanwhile
        if refusal is not None:
            return refusal
        key = (tool.name, state.arguments_digest)
        state.occurrence = around.occurrences[key]
        around.occurrences[key] += 1
        state.operation_key = operation_key(around.session, *key, state.occurrence)
        count(around, tool, state.value)
    refusal = await still_approved(state, around)
    if refusal is not None:
        return refusal
    state.context = make_context(state, around)
    state.started_at = around.clock.now()
    start = StartCall(
        session=around.session,
        id=state.call.id,
        operation_key=state.operation_key,
        occurrence=state.occurrence,
        arguments_digest=state.arguments_digest,
        value=state.value,
        diffs=[
            {"path": d.path, "written": d.written, "used": d.used, "rule": d.rule}
            for d in state.diffs
        ],
        effects=tool.effects,
        idempotency=tool.recovery,
        decision=_decision(state),
        at=state.started_at,
    )
    if tool.effects is Effects.READ and not state.spends:
        state.pending.append(start)  # no effect to lose: written together with the end of the call
    else:
        try:
            await around.store.commit(*state.spends, start)
        except ApprovalError as fault:  # somebody else used it at the same moment
            return not_usable(state, fault)
    state.started = True
    return None


async def _take_resources(state: CallState, around: Surroundings, tool: Tool) -> Refusal | None:
    """The locks of what the call touches, in sorted order so that no two calls wait for each other.
    A call that is cancelled while it waits never starts."""
    assert tool.resources is not None
    wait_s = tool.timeout_s
    for key in sorted(set(tool.resources(state.value))):
        try:
            lock = await around.unless_cancelled(around.store.lock_resource(key, wait_s=wait_s))
        except SessionBusy as fault:
            return Refusal(
                "timeout",
                f"{tool.name} waited {wait_s:g} s for {key!r}, which another call is using: "
                f"{fault.message}",
                next="Try again a little later.",
                retryable=True,
            )
        state.locks.append(lock)
    return None


def _decision(state: CallState) -> dict[str, Any]:
    if state.decision is None:
        return {}
    reason = state.decision.reason
    if state.approved_by:
        reason += f"; approved by {state.approved_by}"
    return {"verdict": str(state.decision.verdict), "rule": state.decision.rule, "reason": reason,
            "approved_by": state.approved_by}  # fmt: skip


async def _settle_started(state: CallState, around: Surroundings, tool: Tool) -> Refusal | None:
    """A call that had started before a crash: run again only where that is safe."""
    match tool.recovery:
        case Idempotency.NATURAL:
            state.notes.append(
                "The run was interrupted after this call had started; it was run again (it is "
                "safe to repeat)."
            )
            return None
        case Idempotency.KEYED:
            state.notes.append(
                "The run was interrupted after this call had started; it was sent again with the "
                "same key."
            )
            return None
        case Idempotency.QUERYABLE:
            return await ask_outcome(state, around, tool)
        case _:
            return unknown(state, "The run was interrupted after this call had started")


async def ask_outcome(state: CallState, around: Surroundings, tool: Tool) -> Refusal | None:
    """Ask the far side what became of the operation key. `None` with `state.replayed` set: it was
    done and its result is in the state. `None` without: it surely did not happen."""
    assert tool.find_outcome is not None
    context = make_context(state, around)
    try:
        with anyio.fail_after(_FIND_TIMEOUT_S):
            ask = functools.partial(tool.find_outcome, state.operation_key, context)
            if is_async(tool.find_outcome):
                found = ask()
            else:  # in a thread, so that a far side that hangs does not hold up everything else
                found = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
            if inspect.isawaitable(found):
                found = await found
    except Exception as fault:  # noqa: BLE001 - whatever it raises means: cannot say
        return unknown(state, f"The call had started, and asking for its outcome failed ({fault})")
    if found is NOT_FOUND:
        state.notes.append(
            "The call had been interrupted; the far side confirmed that it had not happened."
        )
        return None
    from lorimer.tools.units.content import to_content

    state.content, state.result_value = without_secrets(*to_content(found, tool), around)
    state.outcome = Outcome.DONE
    state.replayed = True
    state.notes.append(
        "The call had been interrupted; the far side confirmed that it had happened."
    )
    return None


def unknown(state: CallState, what: str) -> Refusal:
    tool = state.tool
    irreversible = tool is not None and tool.effects is Effects.IRREVERSIBLE
    step = (
        "Look whether it happened (read the state it would have changed) before you do "
        "anything else; do not send it again."
    )
    if irreversible:
        step += " Tell the user that the outcome of this call is not known."
    return Refusal(
        "outcome_unknown",
        f"{what}: whether its effect happened is not known.",
        next=step,
        outcome=Outcome.UNKNOWN,
    )


def recorded_result(state: CallState) -> ResultPart:
    """The first result of a call that had ended before; it is returned, not repeated."""
    assert state.journal is not None and state.journal.result is not None
    part = part_from_json(state.journal.result)
    assert isinstance(part, ResultPart)
    return part
