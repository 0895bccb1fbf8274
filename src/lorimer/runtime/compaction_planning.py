"""What of a session's view may be compacted now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lorimer.context.compaction.plan import Plan, plan_of
from lorimer.context.compaction.units import Unit, units_of, whole_loop
from lorimer.core.messages import Kind
from lorimer.runtime.compaction_sources import Sources
from lorimer.runtime.compaction_worth import NEARLY_FULL

if TYPE_CHECKING:
    from lorimer.runtime.session import Session


def units_for(session: Session, tokens: int, budget: int | None) -> list[Unit]:
    """What may be replaced; an open thinking loop only when the window is nearly full."""
    view = session.trajectory.view
    goes_back = session.model.profile.reasoning != "drop"
    units = units_of(view, reasoning_goes_back=goes_back)
    if units and budget is not None and tokens > NEARLY_FULL * budget:
        units[-1] = whole_loop(units[-1], view) or units[-1]
    return units


def plan_for(sources: Sources, units: list[Unit], *, fold: bool, noise: bool = False) -> Plan:
    """The plan for `units`; `fold`: earlier summaries too; `noise`: only results of low value."""
    trajectory = sources.session.trajectory
    view = trajectory.view
    if noise:
        units = [
            u if u.turns and all(sources.is_noise(view[t.results]) for t in u.turns)
            else replace(u, why_kept=u.why_kept or "it is no noise")
            for u in units
        ]  # fmt: skip
    again = sources.again(view) if fold else None
    newest = max((n for n, e in enumerate(view) if e.kind is Kind.ASSISTANT), default=-1)
    last = units[-1] if units else None
    loop = last is not None and not last.why_kept and last.answer < 0 and bool(last.turns)
    loop = loop and last is not None and last.turns[-1].calls == newest
    return plan_of(view, trajectory.covers(), units, sources.digests, again=again, whole_loop=loop)
