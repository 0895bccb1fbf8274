"""Two phases for what cannot be undone (T-8): the first call of a tool with `confirm` only shows
what would happen and gives a token; the same call with the token does it, once, before it expires.

A token is bound to principal, session, tool, exact arguments and the files they name. With any
other token the call is a first one again, and says why.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from lorimer.core.approvals import (
    ApprovalKind,
    ApprovalRecord,
    ApprovalState,
    Bound,
    what_changed,
)
from lorimer.core.calls import JournalState, Refusal
from lorimer.core.canonical import digest
from lorimer.core.clock import to_rfc3339
from lorimer.core.errors import UnknownApproval
from lorimer.core.ids import new_id
from lorimer.store.protocol import OpenApproval, SpendApproval
from lorimer.tools.dispatch.evidence import bound_of, preview_of
from lorimer.tools.dispatch.state import CallState, Surroundings
from lorimer.tools.tool import TOKEN

LIFE_S = 600.0


async def confirm(state: CallState, around: Surroundings) -> Refusal | None:
    """Spend the token that came with the call, or refuse with a new one."""
    assert state.facts is not None
    if state.journal is not None and state.journal.state is JournalState.STARTED:
        return None  # its token was spent when it started
    bound = await bound_of(state.facts, around)
    if not state.token:
        return await _first_phase(state, around, bound, "")
    record, fault = _check(state, around, bound)
    if record is None:
        return await _first_phase(state, around, bound, fault)
    around.claims[record.id] = state.call.id
    state.bound = bound
    state.spends.append(SpendApproval(record.id, around.session, state.call.id))
    return None


def _check(
    state: CallState, around: Surroundings, bound: Bound
) -> tuple[ApprovalRecord | None, str]:
    """The record of the token when it is good for this call; else why it is not."""
    approval_id, _, _ = state.token.partition(".")
    try:
        record = around.store.approval(approval_id)
    except UnknownApproval:
        return None, "there is no such confirmation token"
    known = record.kind is ApprovalKind.CONFIRMATION and record.digest == _hashed(state.token)
    if not known:
        return None, "there is no such confirmation token"
    if record.session != around.session or record.principal != around.principal.id:
        return None, "the token was given in another session"
    if record.tool != state.name:
        return None, f"the token was given for {record.tool}, not for {state.name}"
    if record.state is not ApprovalState.OPEN:
        return None, "the token was used already; it is good for one call"
    if around.claims.get(record.id, state.call.id) != state.call.id:
        return None, "another call of this turn uses the token; it is good for one call"
    if record.state_at(around.clock.now()) is ApprovalState.EXPIRED:
        assert record.expires_at is not None
        return None, f"the token expired at {to_rfc3339(record.expires_at)}"
    if record.binding != bound.binding:
        changes = what_changed(record.request.get("bound", {}), bound.to_json())
        return None, f"the token is for another call: {'; '.join(changes)}"
    return record, ""


async def _first_phase(state: CallState, around: Surroundings, bound: Bound, fault: str) -> Refusal:
    decision = state.decision
    assert decision is not None
    now = around.clock.now()
    record_id = new_id("c", around.clock)
    token = f"{record_id}.{secrets.token_hex(8)}"
    preview = around.clean(await preview_of(state, around))
    record = ApprovalRecord(
        id=record_id, session=around.session, root=around.lineage, kind=ApprovalKind.CONFIRMATION,
        call=state.call.id, tool=state.name, principal=around.principal.id, binding=bound.binding,
        digest=_hashed(token), state=ApprovalState.OPEN, asked_at=now,
        expires_at=now + timedelta(seconds=LIFE_S),
        request={
            "tool": state.name, "reason": decision.reason, "preview": preview,
            "bound": bound.to_json(),
        },
    )  # fmt: skip
    await around.store.commit(OpenApproval(record))
    assert record.expires_at is not None
    why = f"The confirmation token was not accepted: {fault}. " if fault else ""
    happens: dict[str, Any] = {"tool": state.name, "arguments": dict(bound.arguments)}
    if bound.paths:
        happens["paths"] = list(bound.paths)
    if preview:
        happens["preview"] = preview
    return Refusal(
        "confirm_first",
        f"{why}{state.name} cannot be undone, so it takes two calls. Nothing has happened yet; "
        "would_happen shows exactly what the second call will do.",
        next=f"If that is what the user wants, call {state.name} again with exactly these "
        f"arguments and {TOKEN} as given here, before it expires.",
        retryable=True,
        details={
            "would_happen": happens,
            TOKEN: token,
            "expires_at": to_rfc3339(record.expires_at),
        },
    )


def _hashed(token: str) -> str:
    return digest(token.encode("utf-8", "surrogatepass"))


def take_token(state: CallState) -> None:
    """Keep the token, and take it out of the arguments: neither rules nor the function see it."""
    given = state.value.get(TOKEN)
    if isinstance(given, str):
        state.token = given
    if TOKEN in state.value:
        state.value = {key: value for key, value in state.value.items() if key != TOKEN}
