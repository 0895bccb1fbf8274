"""What compaction needs of an agent and a session before the first request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lorimer.context.compaction.options import Compaction, compaction_of
from lorimer.core.errors import ConfigError
from lorimer.runtime.compaction_references import READ, RECALL

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.session import Session

_SMALL = ("local",)
"""Wires whose models are not given one more tool unasked."""
_KEPT_RESULTS = 3
"""So many of the newest results the provider leaves alone."""


def compaction_for(agent: Agent, given: str | Compaction | None) -> Compaction | None:
    """What `Agent(compaction=given)` comes to. The tool `recall` is added where what is left out
    could not be read otherwise.

    Raises:
        ConfigError: when it cannot work with this model.
    """
    options = compaction_of(given)
    profile = agent.model.profile
    window = profile.context_window if options is None else options.window or profile.context_window
    if options is None:
        if window is None:
            return None
        options = Compaction()
    if options.strategy == "none":
        return None
    if window is None and not options.at_entry:
        raise ConfigError(
            f"The context window of {agent.model.name} is not known, so {options.strategy} cannot "
            "tell when it is nearly full.",
            next=f'Say how large it is: Compaction("{options.strategy}", window=32_000).',
        )
    readers = READ in agent.registry or RECALL in agent.registry
    if len(agent.registry) and not readers and profile.wire not in _SMALL:
        from lorimer.toolkits.recall import recall

        agent.registry.add(recall)
    return options


def use_provider_editing(session: Session) -> None:
    """Where the provider edits the context itself, let it drop results of low value (layer 3); all
    other tools are named as untouchable."""
    options, profile = session.agent.compaction, session.model.profile
    editing = profile.context_editing
    budget = session.compaction.budget
    if options is None or options.strategy != "layered" or not options.provider_editing:
        return
    if not editing or budget is None:
        return
    registry = session.agent.registry
    names = [spec.name for spec in session.trajectory.prefix.tools]
    tools = [(name, registry.get(name)) for name in names]
    low = [name for name, tool in tools if tool is not None and tool.low_value]
    if not low:
        return
    edit = {
        "type": editing["edit"],
        "trigger": {"type": "input_tokens", "value": round(0.75 * options.threshold * budget)},
        "keep": {"type": "tool_uses", "value": _KEPT_RESULTS},
        "clear_at_least": {"type": "input_tokens", "value": max(1_000, budget // 20)},
        "exclude_tools": sorted(set(names) - set(low)),
    }
    extra = {**(session.settings.extra or {})}
    extra.setdefault("context_management", {"edits": [edit]})
    session.settings = replace(session.settings, extra=extra)
