"""Sub-agents of a session: started by a call, each a session of its own."""

from lorimer.runtime.subagents.settings import Budget, SubagentSettings

__all__ = ["Budget", "SubagentSettings"]
