"""Putting one exact call to a person: the request is kept, bound, answered once, from anywhere.

Whoever answers first counts: the approver of this process, or anybody who answers the stored
request (`lorimer approvals`, another process). When this process dies, the request and its answer
stay; the same call finds them again by what they are bound to.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio

from lorimer.core.approvals import (
    ApprovalKind,
    ApprovalRecord,
    ApprovalState,
    Bound,
    full_digest,
    what_changed,
)
from lorimer.core.canonical import canonical_json, digest
from lorimer.core.clock import to_rfc3339
from lorimer.core.decisions import ApprovalRequest, CallFacts
from lorimer.core.errors import AlreadyAnswered, ApprovalError, Cancelled
from lorimer.core.ids import new_id
from lorimer.core.intents import intent_of, is_variant
from lorimer.core.news import news
from lorimer.core.watch import ApprovalAsked, ApprovalEnded, Warned
from lorimer.store.protocol import AnswerApproval, CloseApproval, OpenApproval
from lorimer.tools.dispatch.evidence import preview_of
from lorimer.tools.dispatch.state import CallCancelled, CallState, Surroundings

ASKED_HERE_S = 600.0
ASKED_ELSEWHERE_S = 86_400.0
_POLL_S = 0.1
_LOOKED_AT = 200


def find(state: CallState, around: Surroundings, bound: Bound) -> ApprovalRecord | None:
    """The request or unused approval that this very call may use: bound to the same, alive, and
    taken by no other call of the turn; its own first."""
    now = around.clock.now()
    alive = [
        record
        for record in around.store.approvals(around.session, binding=bound.binding)
        if record.kind is ApprovalKind.CALL
        and record.state_at(now) in (ApprovalState.OPEN, ApprovalState.APPROVED)
        and around.claims.get(record.id, state.call.id) == state.call.id
    ]
    if not alive:
        return None
    best = min(
        alive,
        key=lambda r: (r.call != state.call.id, r.state is not ApprovalState.APPROVED, r.id),
    )
    around.claims[best.id] = state.call.id
    return best


def rejected_before(facts: CallFacts, around: Surroundings) -> ApprovalRecord | None:
    """The rejection of a call that was after the same as this one, in this session or in the one
    that started it, since the user last spoke there."""
    refused = around.store.approvals(
        root=around.lineage, state=ApprovalState.REJECTED, newest=_LOOKED_AT
    )
    if not refused:
        return None
    spoken = around.store.last_spoken(around.lineage)
    intent = intent_of(facts)
    for record in reversed(refused):
        at = record.answered_at or record.asked_at
        denied = record.request.get("intent")
        if denied is None or (spoken is not None and spoken > at):
            continue
        if record.kind is ApprovalKind.REVIEWER:
            denied = {**denied, "sinks": {}}  # its reasons ask for a corrected call
        if is_variant(denied, intent):
            return record
    return None


def started_with(state: CallState, around: Surroundings) -> ApprovalRecord | None:
    """The approval with which this call had started before the run was interrupted."""
    for record in around.store.approvals(around.session, ApprovalState.SPENT):
        if record.kind is ApprovalKind.CALL and record.closing.get("call") == state.call.id:
            return record
    return None


async def void_outdated(state: CallState, around: Surroundings, bound: Bound) -> list[str]:
    """End requests and approvals of this call that are bound to something else by now; what
    changed."""
    changes: list[str] = []
    after = bound.to_json()
    for record in around.store.approvals(around.session, newest=_LOOKED_AT):
        if record.kind is not ApprovalKind.CALL or record.binding == bound.binding:
            continue
        if record.state not in (ApprovalState.OPEN, ApprovalState.APPROVED):
            continue
        before = record.request.get("bound", {})
        same = before.get("tool") == bound.tool and before.get("arguments") == after["arguments"]
        if around.claims.get(record.id, state.call.id) != state.call.id:
            continue
        if record.call == state.call.id or same:
            found = what_changed(before, after)
            changes += found
            why = f"{'; '.join(found)} since it was asked"
            await around.store.commit(CloseApproval(record.id, ApprovalState.VOID, why))
    return changes


async def open_request(
    state: CallState,
    around: Surroundings,
    facts: CallFacts,
    bound: Bound,
    changed: list[str],
    *,
    times: int = 1,
) -> ApprovalRecord:
    """Keep a new request, with everything that is shown. At a screen it lives so many `times` as
    long as one alone, because others are asked before it."""
    decision = state.decision
    assert decision is not None
    preview = around.clean(await preview_of(state, around))
    kept = bound.to_json()
    told = news(_last_approved(state, around), kept)
    if changed:
        told = f"an earlier answer is void: {'; '.join(changed)}\n{told}"
    rule_for = getattr(around.policy, "rule_for", None)
    rule = "" if rule_for is None else str(rule_for(facts) or "").strip()
    return await keep(
        state, around, ApprovalKind.CALL, bound.binding,
        {
            "tool": state.name, "reason": decision.reason, "rule": decision.rule,
            "effects": str(facts.level), "cwd": facts.cwd, "preview": preview,
            "news": around.clean(told), "remember_rule": rule, "bound": kept,
            "intent": intent_of(facts), **_shape_of(state),
        },
        times=times,
    )  # fmt: skip


def _shape_of(state: CallState) -> dict[str, Any]:
    """What a person's edit of the arguments must fit, for whoever answers elsewhere."""
    tool = state.tool
    if tool is None:
        return {}
    schema = dict(tool.input_schema)
    return {
        "schema": schema, "schema_digest": digest(canonical_json(schema)),
        "repaired": [one.argument for one in tool.normalisers],
    }  # fmt: skip


async def keep(
    state: CallState,
    around: Surroundings,
    kind: ApprovalKind,
    binding: str,
    request: dict[str, Any],
    *,
    expires: bool = True,
    times: int = 1,
) -> ApprovalRecord:
    now = around.clock.now()
    here = around.approver is not None
    life = around.approval_timeout_s
    if life is None:
        life = ASKED_HERE_S if here else ASKED_ELSEWHERE_S
    if here:  # one question after the other; in the store all are open at once
        life *= times
    deadline = now + timedelta(seconds=life) if expires else None
    shown = "" if deadline is None else to_rfc3339(deadline)
    record = ApprovalRecord(
        id=new_id("a", around.clock), session=around.session, root=around.lineage, kind=kind,
        call=state.call.id, tool=state.name, principal=around.principal.id, binding=binding,
        digest=full_digest(binding, shown), state=ApprovalState.OPEN, asked_at=now,
        expires_at=deadline, request=request,
    )  # fmt: skip
    await around.store.commit(OpenApproval(record))
    around.claims[record.id] = state.call.id
    return record


def _last_approved(state: CallState, around: Surroundings) -> dict[str, Any] | None:
    used = around.store.approvals(
        around.session, ApprovalState.SPENT, tool=state.name, newest=_LOOKED_AT
    )
    for record in reversed(used):
        if record.kind is ApprovalKind.CALL:
            found = record.closing.get("bound") or record.request.get("bound")
            return dict(found) if found else None
    return None


def shown(record: ApprovalRecord, facts: CallFacts) -> ApprovalRequest:
    """The request as approvers get it."""
    told = record.request
    return ApprovalRequest(
        call_id=record.call, facts=facts, reason=str(told.get("reason", "")), id=record.id,
        digest=record.digest, preview=str(told.get("preview", "")),
        files=told.get("bound", {}).get("files", {}), news=str(told.get("news", "")),
        remember_rule=str(told.get("remember_rule", "")), expires_at=record.expires_at,
        kind=str(record.kind),
    )  # fmt: skip


async def answer_to(
    record: ApprovalRecord, request: ApprovalRequest, around: Surroundings
) -> ApprovalRecord:
    """Wait for the answer, from here or elsewhere; the record as it is then: still open when nobody
    answered in time. An equal call of the turn that is approved first gives its approval to this
    one, and takes its request.

    Raises:
        CallCancelled: when the run was cancelled, also by whoever was asked; a question on the
            screen is withdrawn.
        Exception: what the approver raised; the request is withdrawn.
    """
    if record.state is not ApprovalState.OPEN:
        return record
    twins = _twins(record, around)
    twin = _approved_twin(record, twins, around)
    if twin is not None:
        return twin
    wait_s = _wait_s(record, around)
    if wait_s <= 0:
        return record
    begun = around.clock.monotonic()
    around.tell(ApprovalAsked(request.call_id, request.facts.tool, request.reason))
    if around.approver is None:
        around.tell(Warned(_waiting_words(record, request, wait_s)))
    answer = "failed"
    around.awaited.add(record.id)
    try:
        with anyio.move_on_after(wait_s):
            await around.unless_cancelled(_first(record, request, twins, around))
        found = _approved_twin(record, twins, around)
        if found is None:
            late = record.state_at(around.clock.now()) is ApprovalState.EXPIRED
            if late or around.approver is not None:
                await around.store.commit(
                    CloseApproval(
                        record.id, ApprovalState.EXPIRED, "nobody answered", only_open=True
                    )
                )
            found = around.store.approval(record.id)
        answer = _answer_word(found)
        return found
    except Cancelled as fault:  # whoever was asked wants the whole run to stop
        answer = "cancelled"
        (around.stop_run or around.cancel)(fault.message)
        await _withdraw(record, around, "the run was stopped at the question")
        raise CallCancelled from fault
    except (CallCancelled, asyncio.CancelledError):
        answer = "cancelled"
        await _withdraw(record, around, "the run was stopped")
        raise
    except Exception as fault:
        await _withdraw(record, around, f"the approver failed: {fault}")
        raise
    finally:
        around.awaited.discard(record.id)
        waited = around.clock.monotonic() - begun
        around.tell(ApprovalEnded(request.call_id, request.facts.tool, answer, waited))


def _twins(record: ApprovalRecord, around: Surroundings) -> list[str]:
    """Requests of other calls that are the same as this one."""
    if record.kind is not ApprovalKind.CALL or not record.binding:
        return []
    same = around.store.approvals(around.session, binding=record.binding)
    return [
        one.id
        for one in same
        if one.id != record.id
        and one.kind is ApprovalKind.CALL
        and one.state in (ApprovalState.OPEN, ApprovalState.APPROVED)
    ]


def _approved_twin(
    record: ApprovalRecord, twins: list[str], around: Surroundings
) -> ApprovalRecord | None:
    """An approval among `twins` that no call waits for, when this request is not answered: one
    approval is one effect, whichever of the equal calls has it. The two exchange their requests."""
    if not twins or around.store.approval(record.id).state is not ApprovalState.OPEN:
        return None
    now = around.clock.now()
    for twin in twins:
        found = around.store.approval(twin)
        if twin in around.awaited or found.state_at(now) is not ApprovalState.APPROVED:
            continue
        mine, other = around.claims.get(record.id, record.call), around.claims.get(twin)
        around.claims[twin] = mine
        around.claims[record.id] = found.call if other is None else other
        return found
    return None


def _wait_s(record: ApprovalRecord, around: Surroundings) -> float:
    left = float("inf")
    if record.expires_at is not None:
        left = (record.expires_at - around.clock.now()).total_seconds()
    if around.approver is None:
        return min(left, around.approval_wait_s)
    limit = around.approval_timeout_s
    return max(0.001, min(left, ASKED_HERE_S if limit is None else limit))  # it is asked at least


def _waiting_words(record: ApprovalRecord, request: ApprovalRequest, wait_s: float) -> str:
    return (
        f"{request.facts.tool} waits for an approval ({wait_s:g} s at most). "
        f"Look: lorimer approvals show {record.id} · then approve or reject it."
    )


def _answer_word(record: ApprovalRecord) -> str:
    if record.state is ApprovalState.APPROVED:
        return "approved" if record.edited is None else "edited"
    return "rejected" if record.state is ApprovalState.REJECTED else "expired"


async def _withdraw(record: ApprovalRecord, around: Surroundings, why: str) -> None:
    if around.approver is None:
        return  # nobody's screen shows it: it may be answered later
    ids = {record.id, *around.claims}
    with anyio.CancelScope(shield=True):
        await around.store.commit(
            *(CloseApproval(one, ApprovalState.WITHDRAWN, why, only_open=True) for one in ids)
        )


@dataclass(slots=True)
class _Race:
    answering: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


async def _first(
    record: ApprovalRecord, request: ApprovalRequest, twins: list[str], around: Surroundings
) -> None:
    """Until the record is answered, by whomever, or an equal one approved; the other is called
    off."""
    race = _Race()
    loop = asyncio.get_running_loop()
    race.tasks.append(loop.create_task(_answered(record, twins, around)))
    if around.approver is not None:
        race.tasks.append(loop.create_task(_asked_here(record, request, around, race)))
    try:
        await asyncio.wait(race.tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in race.tasks:
            if task.done():
                task.result()
        if around.approver is not None and not race.answering:
            found = around.store.approval(record.id)
            said = f"{found.state} by {found.by or 'nobody'}"
            if found.state is ApprovalState.OPEN:
                said = "an equal call of this turn was approved, and this one takes its place"
            around.tell(Warned(f"Answered elsewhere: {said}."))
    finally:
        for task in race.tasks:
            task.cancel()
        await asyncio.gather(*race.tasks, return_exceptions=True)


async def _answered(record: ApprovalRecord, twins: list[str], around: Surroundings) -> None:
    # Another process writes the answer: there is no event to wait for.
    while around.store.approval(record.id).state is ApprovalState.OPEN:
        now = around.clock.now()
        for twin in twins:
            state = around.store.approval(twin).state_at(now)
            if twin not in around.awaited and state is ApprovalState.APPROVED:
                return
        await asyncio.sleep(_POLL_S)


async def _asked_here(
    record: ApprovalRecord, request: ApprovalRequest, around: Surroundings, race: _Race
) -> None:
    assert around.approver is not None
    answer = await around.approver.ask(request)
    race.answering = True
    try:
        await around.store.commit(
            AnswerApproval(
                record.id, answer.approved, around.principal.id, by=answer.by,
                reason=answer.reason, digest=record.digest, for_session=answer.for_session,
                edited=answer.edited, facts=answer.facts,
            )
        )  # fmt: skip
    except AlreadyAnswered as fault:
        around.tell(Warned(f"{fault.message} The first answer counts."))
    except ApprovalError as fault:
        around.tell(Warned(fault.message))
