"""Where sub-agents meet the rest of the runtime: what an agent is given, what a session opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lorimer.core.decisions import Conversation, NoConversation
from lorimer.core.errors import ConfigError
from lorimer.tools.subagents import SPAWN

if TYPE_CHECKING:
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.session import Session
    from lorimer.runtime.subagents.host import SubagentHost
    from lorimer.runtime.subagents.settings import SubagentSettings
    from lorimer.store.protocol import SessionRecord
    from lorimer.tools.registry import Registry


def settings_of(
    given: bool | SubagentSettings | None, registry: Registry
) -> SubagentSettings | None:
    """The settings of `Agent(subagents=…)`; the tools are added to `registry` where they are
    missing.

    Raises:
        ConfigError: when it is something else.
    """
    if given is False or (given is None and SPAWN not in registry):
        return None
    from lorimer.runtime.subagents.settings import SubagentSettings
    from lorimer.toolkits.collaboration.subagents import agent_tools

    settings = SubagentSettings() if given is None or given is True else given
    if not isinstance(settings, SubagentSettings):
        raise ConfigError(
            f"subagents={given!r} is not known.", next="Use True, or SubagentSettings(…)."
        )
    for tool in agent_tools():
        if tool.name not in registry:
            registry.add(tool)
    return settings


def host_of(session: Session) -> SubagentHost | None:
    """The sub-agents of an opened session, kept among its belongings."""
    settings = session.agent.subagents
    if settings is None:
        return None
    from lorimer.runtime.subagents.host import KEPT_AS, SubagentHost

    host = SubagentHost(session, settings)
    session.dispatcher.around.belongings.keep(KEPT_AS, host)
    return host


def above_of(agent: Agent, record: SessionRecord) -> Conversation | None:
    """What the session that started this one has seen. One that is opened by itself knows the
    user's words from the record of the session at the top."""
    if agent.delegated_by is not None:
        return agent.delegated_by.session.conversation
    if "parent" not in record.meta:
        return None
    from lorimer.runtime.subagents.labels import words_of_user

    return NoConversation(user_words=tuple(words_of_user(agent.store, record.id)))
