"""Asking ahead: while one call of a turn waits for its answer, the requests of the calls after it
are kept, too, so that a person can look at all of them and answer in any order.

Each is worked out again when its turn comes; where an earlier call has changed what it would do, it
is asked anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from lorimer.core.breaker import why_open
from lorimer.core.calls import JournalState
from lorimer.core.decisions import Verdict
from lorimer.tools.dispatch import asking
from lorimer.tools.dispatch.evidence import bound_of
from lorimer.tools.dispatch.find import find
from lorimer.tools.dispatch.parse import parse
from lorimer.tools.dispatch.permit import permit
from lorimer.tools.dispatch.rules import rules
from lorimer.tools.dispatch.shape import shape
from lorimer.tools.dispatch.state import CallState, Surroundings

_LOOKED_AT = 200


async def ask_ahead(waiting: Sequence[CallState], around: Surroundings) -> None:
    """Keep the requests of the calls in `waiting` that a person will be asked about. Calls that a
    sidecar or reviewer looks at first are left to their turn."""
    if around.sidecar is not None or around.reviewer is not None:
        return
    known = around.store.approvals(root=around.lineage, newest=_LOOKED_AT, brief=True)
    if why_open(known, around.breaker):
        return
    for state in waiting:
        begun = state.journal is not None and state.journal.state is not JournalState.PLANNED
        if not begun and state.result is None and not around.cancel_reason:
            await _ask(CallState(state.call, state.journal), around, len(waiting))


async def _ask(shadow: CallState, around: Surroundings, times: int) -> None:
    try:
        for station in (parse, find, shape, rules, permit):
            if await station(shadow, around) is not None:
                return
    except Exception:  # noqa: BLE001 - its own way through the stations says what it is
        return
    facts, decision = shadow.facts, shadow.decision
    assert facts is not None and decision is not None
    if decision.verdict is not Verdict.ASK or facts.traits.confirm:
        return
    if asking.rejected_before(facts, around) is not None:
        return
    bound = await bound_of(facts, around)
    if asking.find(shadow, around, bound) is None:
        changed = await asking.void_outdated(shadow, around, bound)
        await asking.open_request(shadow, around, facts, bound, changed, times=times)
