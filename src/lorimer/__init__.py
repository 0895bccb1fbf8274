"""lorimer: the harness between a language model and the world.

The model only proposes; lorimer decides and acts. Names are imported on first use, so that
`import lorimer` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lorimer.context.answers.records import AnswerSettings
    from lorimer.context.compaction.options import Compaction
    from lorimer.context.events import Event
    from lorimer.context.prefix.parts import PromptPart, Stability
    from lorimer.context.skills.sources import SkillSources
    from lorimer.context.status.settings import StatusBar
    from lorimer.core.calls import Effects, Idempotency, Outcome, Refusal
    from lorimer.core.decisions import Approval, ApprovalRequest, Decision, Policy
    from lorimer.core.errors import LorimerError
    from lorimer.core.messages import FilePart, ImagePart, TextPart
    from lorimer.core.trust import Trust
    from lorimer.models.protocol import Model, Settings
    from lorimer.runtime.agent import Agent, run
    from lorimer.runtime.loop import Limits
    from lorimer.runtime.results import RunResult
    from lorimer.runtime.session import Session
    from lorimer.runtime.subagents.settings import SubagentSettings
    from lorimer.store import open_store
    from lorimer.tools.function import tool
    from lorimer.tools.tool import (
        NOT_FOUND,
        Budget,
        Description,
        Finding,
        Limit,
        Normaliser,
        Principal,
        Tool,
        ToolContext,
        ToolError,
    )

__version__ = "0.1.0"

_FROM = {
    "Agent": "lorimer.runtime.agent",
    "AnswerSettings": "lorimer.context.answers.records",
    "Approval": "lorimer.core.decisions",
    "ApprovalRequest": "lorimer.core.decisions",
    "Budget": "lorimer.tools.tool",
    "Compaction": "lorimer.context.compaction.options",
    "Decision": "lorimer.core.decisions",
    "Description": "lorimer.tools.tool",
    "Effects": "lorimer.core.calls",
    "Event": "lorimer.context.events",
    "FilePart": "lorimer.core.messages",
    "Finding": "lorimer.tools.tool",
    "Idempotency": "lorimer.core.calls",
    "ImagePart": "lorimer.core.messages",
    "Limit": "lorimer.tools.tool",
    "Limits": "lorimer.runtime.loop",
    "LorimerError": "lorimer.core.errors",
    "Model": "lorimer.models.protocol",
    "NOT_FOUND": "lorimer.tools.tool",
    "Normaliser": "lorimer.tools.tool",
    "Outcome": "lorimer.core.calls",
    "Policy": "lorimer.core.decisions",
    "Principal": "lorimer.tools.tool",
    "PromptPart": "lorimer.context.prefix.parts",
    "Refusal": "lorimer.core.calls",
    "RunResult": "lorimer.runtime.results",
    "Session": "lorimer.runtime.session",
    "Settings": "lorimer.models.protocol",
    "SkillSources": "lorimer.context.skills.sources",
    "Stability": "lorimer.context.prefix.parts",
    "StatusBar": "lorimer.context.status.settings",
    "SubagentSettings": "lorimer.runtime.subagents.settings",
    "TextPart": "lorimer.core.messages",
    "Tool": "lorimer.tools.tool",
    "ToolContext": "lorimer.tools.tool",
    "ToolError": "lorimer.tools.tool",
    "Trust": "lorimer.core.trust",
    "open_store": "lorimer.store",
    "run": "lorimer.runtime.agent",
    "tool": "lorimer.tools.function",
}

__all__ = [
    "NOT_FOUND",
    "Agent",
    "AnswerSettings",
    "Approval",
    "ApprovalRequest",
    "Budget",
    "Compaction",
    "Decision",
    "Description",
    "Effects",
    "Event",
    "FilePart",
    "Finding",
    "Idempotency",
    "ImagePart",
    "Limit",
    "Limits",
    "LorimerError",
    "Model",
    "Normaliser",
    "Outcome",
    "Policy",
    "Principal",
    "PromptPart",
    "Refusal",
    "RunResult",
    "Session",
    "Settings",
    "SkillSources",
    "Stability",
    "StatusBar",
    "SubagentSettings",
    "TextPart",
    "Tool",
    "ToolContext",
    "ToolError",
    "Trust",
    "open_store",
    "run",
    "tool",
]


def __getattr__(name: str) -> Any:
    module = _FROM.get(name)
    if module is None:
        raise AttributeError(f"module 'lorimer' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
