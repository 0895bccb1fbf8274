"""Station 6, review: whoever has to agree to this exact call does so, or it does not run.

In this order: an intent that was rejected before is refused; the breaker stops what was rejected
too often; the sidecar and the reviewer say what they think; where the policy still asks, a person
decides. What a person decides is a capability for one call (`asking.py`, `launch.py`).
"""

from __future__ import annotations

from dataclasses import replace

from lorimer.core.approvals import ApprovalKind, ApprovalRecord, ApprovalState, Bound
from lorimer.core.breaker import why_open
from lorimer.core.calls import Diff, Effects, JournalState, Refusal
from lorimer.core.clock import to_rfc3339
from lorimer.core.decisions import Verdict
from lorimer.core.errors import LorimerError
from lorimer.store.protocol import CloseApproval, SpendApproval
from lorimer.tools.dispatch import asking
from lorimer.tools.dispatch.confirm import confirm
from lorimer.tools.dispatch.evidence import bound_of
from lorimer.tools.dispatch.judging import is_reviewed, judge
from lorimer.tools.dispatch.permit import permit
from lorimer.tools.dispatch.rules import rules
from lorimer.tools.dispatch.shape import shape
from lorimer.tools.dispatch.state import CallState, Surroundings

_LOOKED_AT = 200
_MOST_QUESTIONS = 3


class _EditFault(Exception):
    """What a person wrote instead of the arguments cannot be used; the call is as it was."""


async def review(state: CallState, around: Surroundings) -> Refusal | None:
    facts, decision = state.facts, state.decision
    assert facts is not None and decision is not None
    asks = decision.verdict is Verdict.ASK
    if facts.level is Effects.READ and not asks and not facts.traits.confirm:
        return skipped(state.held) if state.held else None
    refusal = _rejected_before(state, around)
    if refusal is not None:
        return refusal
    if asks and state.journal is not None and state.journal.state is JournalState.STARTED:
        record = asking.started_with(state, around)
        if record is not None:  # the approval that started it is the one that ends it
            try:
                return await _use(state, around, record, None)
            except _EditFault as fault:
                return _void(str(fault))
    if facts.traits.confirm:
        refusal = await confirm(state, around)
        if refusal is not None:
            return refusal
    bound: Bound | None = None
    edit_fault = ""
    if asks or is_reviewed(state, around):
        bound = await bound_of(facts, around)
    if asks and bound is not None:
        record = asking.find(state, around, bound)
        if record is not None and record.state is ApprovalState.APPROVED:
            try:
                return await _use(state, around, record, bound)
            except _EditFault as fault:
                edit_fault = str(fault)
    if asks or around.sidecar is not None or around.reviewer is not None:
        async with around.one_at_a_time:
            refusal = await _breaker(state, around)
        if refusal is not None:
            return refusal
        opinion = await judge(state, around)
        if isinstance(opinion, Refusal):
            return opinion
        asks = opinion
    if asks:
        return await _person(state, around, bound or await bound_of(facts, around), edit_fault)
    state.bound = bound or state.bound  # what was judged is what must run
    return skipped(state.held) if state.held else None


def skipped(after: str, approved: ApprovalRecord | None = None) -> Refusal:
    """`approved`: the approval that the call has, and keeps."""
    message = f"This call was not run, because {after} failed before it in the same turn."
    step = "Deal with the failure first; call this again if it is still right."
    if approved is not None:
        message = (
            f"This call was not run: {after}, which comes before it in the same turn, still waits "
            f"for an approval. {approved.by} approved this one; the approval {approved.id} is kept."
        )
        step = "Make exactly the same call again to use it."
    return Refusal(
        "skipped",
        message,
        next=step,
        retryable=False,
    )


# --- rejected before, rejected too often ---------------------------------------------------------


def _rejected_before(state: CallState, around: Surroundings) -> Refusal | None:
    assert state.facts is not None
    record = asking.rejected_before(state.facts, around)
    if record is None:
        return None
    if record.call == state.call.id:  # it was answered while nobody waited
        return rejected(state, record.by, record.reason)
    reason = f": {record.reason}" if record.reason else ""
    return Refusal(
        "rejected_before",
        f"{record.by} rejected this already, as call {record.call} of {record.tool} at "
        f"{to_rfc3339(record.answered_at or record.asked_at)}{reason}. The same in another form is "
        "not asked again.",
        next="Do something else, or stop and ask the user what is wanted instead.",
    )


async def _breaker(state: CallState, around: Surroundings) -> Refusal | None:
    """Ask whether to go on at all, when too much was rejected."""
    known = around.store.approvals(root=around.lineage, newest=_LOOKED_AT, brief=True)
    why = why_open(known, around.breaker)
    if not why:
        return None
    refusal = Refusal(
        "breaker_open",
        f"No more calls are put to anybody: {why}. The run ends here.",
        next="Stop, and say what you wanted to do and why.",
    )
    if around.halted:
        return refusal
    waiting = [r for r in known if r.kind is ApprovalKind.BREAKER and r.state is ApprovalState.OPEN]
    if waiting:
        record = around.store.approval(waiting[-1].id)
    else:
        record = await _ask_to_go_on(state, around, why)
    assert state.facts is not None
    record = await asking.answer_to(record, asking.shown(record, state.facts), around)
    if record.state is ApprovalState.APPROVED:
        return None
    around.halted = "breaker"
    if record.state is ApprovalState.OPEN:
        where = f" A person lets it go on with: lorimer approvals approve {record.id}"
        return Refusal(refusal.code, refusal.message + where, next=refusal.next)
    return refusal


async def _ask_to_go_on(state: CallState, around: Surroundings, why: str) -> ApprovalRecord:
    assert state.facts is not None
    request = {
        "tool": state.name,
        "reason": f"{why}. May the agent go on and ask? The next call would be this one",
        "bound": {"tool": state.name, "arguments": dict(state.facts.arguments)},
        "cwd": state.facts.cwd,
    }
    return await asking.keep(state, around, ApprovalKind.BREAKER, "", request, expires=False)


# --- a person ------------------------------------------------------------------------------------


async def _person(
    state: CallState, around: Surroundings, bound: Bound, edit_fault: str = ""
) -> Refusal | None:
    """Ask a person; anew, a few times, when what they write instead cannot be used."""
    facts = state.facts
    assert facts is not None
    for _ in range(_MOST_QUESTIONS):
        async with around.one_at_a_time:
            record = await _request(state, around, bound, edit_fault)
            ask_ahead, around.ask_ahead = around.ask_ahead, None
            if ask_ahead is not None and not state.held:
                await ask_ahead()
        if not state.held:
            record = await asking.answer_to(record, asking.shown(record, facts), around)
        match record.state:
            case ApprovalState.APPROVED:
                if state.held:
                    return skipped(state.held, record)
                try:
                    return await _use(state, around, record, bound)
                except _EditFault as fault:
                    edit_fault = str(fault)
            case ApprovalState.REJECTED:
                return rejected(state, record.by, record.reason)
            case ApprovalState.OPEN:
                return _kept(state, around, record, edit_fault)
            case ApprovalState.VOID:
                return _void(f"The request {record.id}: {record.closing.get('why', '')}.")
            case _:
                return _unanswered(around, record)
    return _void(edit_fault)


async def _request(
    state: CallState, around: Surroundings, bound: Bound, edit_fault: str
) -> ApprovalRecord:
    """The request of this call: the one that is kept already, or a new one."""
    record = asking.find(state, around, bound)
    if record is not None:
        return record
    changed = await asking.void_outdated(state, around, bound)
    if changed:
        state.notes.append(
            f"An earlier request or approval of this call is void: {'; '.join(changed)}."
        )
    if edit_fault:
        changed = [edit_fault, *changed]
        state.notes.append(f"{edit_fault} It was asked again.")
    assert state.facts is not None
    return await asking.open_request(state, around, state.facts, bound, changed)


def _void(why: str) -> Refusal:
    return Refusal(
        "approval_void",
        f"{why} Nothing was run; nobody rejected the call.",
        next="If the call is still right, make the same call again: it is asked anew.",
        retryable=True,
    )


def rejected(state: CallState, by: str, reason: str) -> Refusal:
    return Refusal(
        "rejected",
        f"{by} rejected this call of {state.name}" + (f": {reason}" if reason else "."),
        next="Do not try the same thing in another way. Ask what is wanted instead.",
    )


def _kept(
    state: CallState, around: Surroundings, record: ApprovalRecord, edit_fault: str
) -> Refusal:
    assert state.decision is not None
    why = "nobody can be asked here"
    if state.held:
        why = f"{state.held}, which comes before it, waits for one too"
    elif around.approval_wait_s > 0:
        why = f"nobody answered within {around.approval_wait_s:g} s"
    until = "" if record.expires_at is None else f" until {to_rfc3339(record.expires_at)}"
    before = f"{edit_fault} The question is open again. " if edit_fault else ""
    return Refusal(
        "needs_approval",
        f"{before}This call of {state.name} needs a person's approval ({state.decision.reason}), "
        f"and {why}. It was not run. The request is kept as {record.id}{until}: "
        f"`lorimer approvals approve {record.id}` approves it.",
        next=f"Tell the user what you would do and that the request {record.id} waits for them. "
        "Once they say that it is approved, make exactly the same call again.",
        details={"approval": record.id},
    )


def _unanswered(around: Surroundings, record: ApprovalRecord) -> Refusal:
    limit = around.approval_timeout_s
    if limit is None:
        limit = asking.ASKED_HERE_S if around.approver else asking.ASKED_ELSEWHERE_S
    why = record.closing.get("why", "")
    if record.state is not ApprovalState.EXPIRED:
        message = f"The approval request {record.id} was closed ({record.state}: {why}), so the "
    else:
        message = f"Nobody answered the approval request within {limit:g} s, so the "
    return Refusal(
        "approval_timeout",
        f"{message}call was not run.",
        next="Go on without it, or tell the user that it waits for them.",
    )


async def _use(
    state: CallState, around: Surroundings, record: ApprovalRecord, bound: Bound | None
) -> Refusal | None:
    """Take an approval for this call; it is spent in the commit that starts it. Without `bound`
    the call had started with it before: nothing is left to check or to spend.

    Raises:
        _EditFault: the person's own arguments cannot be used; the approval is void.
    """
    if state.held:
        return skipped(state.held, record)
    state.approved_by = record.by
    if record.edited is not None:
        try:
            await _edit(state, around, record)
        except _EditFault as unusable:
            state.approved_by = ""
            void = CloseApproval(record.id, ApprovalState.VOID, str(unusable))
            await around.store.commit(void)
            raise
        if bound is not None:
            assert state.facts is not None
            bound = _shown_files(await bound_of(state.facts, around), bound)
    rule = str(record.request.get("remember_rule", ""))
    if record.answer.get("for_session") and rule:
        fault = remember(around, rule)
        state.notes.append(
            f"{record.by} approved this for the whole session, by the rule: {rule}"
            if not fault
            else f"{record.by} approved this call; the rule for the session was not added: {fault}"
        )
    if bound is not None:
        state.bound = bound
        state.spends.append(
            SpendApproval(record.id, around.session, state.call.id, bound.to_json())
        )
    return None


def _shown_files(edited: Bound, asked: Bound) -> Bound:
    """The binding of an edited call: files that the person was shown must still be as shown."""
    return replace(edited, files={**edited.files, **{
        path: found for path, found in asked.files.items() if path in edited.files
    }})  # fmt: skip


def load_rules(around: Surroundings) -> list[str]:
    """Put the rules that people approved for this session into its policy; what is wrong with those
    that cannot be."""
    rules = [
        str(record.request.get("remember_rule", ""))
        for record in around.store.approvals(around.session)
        if record.answer.get("for_session") and record.answer.get("approved")
    ]
    faults = [remember(around, rule) for rule in dict.fromkeys(rules) if rule]
    return [
        f"A rule that was approved for this session is not used: {f}" for f in faults if f
    ]  # fmt: skip


def remember(around: Surroundings, rule: str) -> str:
    """Put a rule that a person approved into the policy of this session only; why it cannot be, or
    empty."""
    extend = getattr(around.policy, "with_session_rule", None)
    if extend is None:
        return "this policy takes no rules"
    try:
        around.policy = extend(rule, session=around.session)
    except LorimerError as fault:
        return fault.message
    return ""


async def _edit(state: CallState, around: Surroundings, record: ApprovalRecord) -> None:
    """Use the arguments that the person wrote, after the same checks as the model's own.

    Raises:
        _EditFault: when they do not pass; the call is as it was.
    """
    assert record.edited is not None
    before, written = state.value, dict(record.edited)
    own, known = list(state.diffs), (state.facts, state.decision)
    state.value = written
    for station in (shape, rules, permit):
        refusal = await station(state, around)
        if refusal is not None:
            state.value, state.diffs = before, own
            state.facts, state.decision = known
            raise _EditFault(
                f"{record.by} wrote other arguments for this call of {state.name}, and they cannot "
                f"be used: {refusal.message}"
            )
    state.diffs = own
    for name in sorted({*before, *state.value}):
        old, new = before.get(name), state.value.get(name)
        if (name in before) != (name in state.value) or old != new:
            state.diffs.append(Diff(f"/{name}", old, new, f"edited by {record.by}"))
    state.notes.append(
        f"{record.by} changed the arguments and approved the changed call; that is what counts."
    )
