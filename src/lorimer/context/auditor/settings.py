"""Settings beside the prompt that a provider's cache depends on.

Sources, read 2026-11: https://developers.openai.com/api/docs/guides/prompt-caching (a schema for
the answer is part of the prefix; `prompt_cache_key` decides where a request is routed) and
https://platform.claude.com/docs/en/build-with-claude/prompt-caching (tool choice and thinking
settings: what is cached of the messages is lost, tools and system stay).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lorimer.context.auditor.finding import Finding

_MODEL = "model"
_MATTER: Mapping[str, Mapping[str, str]] = {
    "openai_chat": {
        "response_format": "the schema of the answer stands in the prefix",
        "prompt_cache_key": "requests are routed to another cache",
    },
    "openai_responses": {
        "text": "the schema of the answer stands in the prefix",
        "prompt_cache_key": "requests are routed to another cache",
    },
    "anthropic": {
        "tool_choice": "the cached messages cannot serve; tools and system can",
        "thinking": "the cached messages cannot serve; tools and system can",
    },
    "gemini": {"cachedContent": "another explicit cache is used"},
}


def setting_notes(finding: Finding, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Finding:
    """`finding` with a note for each setting that changed and that caches depend on."""
    if old == new or not old:
        return finding
    notes = []
    other = finding.other_cache
    if _MODEL in old and old[_MODEL] != new.get(_MODEL):
        other = True
        notes.append(
            f"The model changed from {_shown(old[_MODEL])} to {_shown(new.get(_MODEL, b''))}: each "
            "model has a cache of its own."
        )
    for name, why in _MATTER.get(finding.wire, {}).items():
        if old.get(name) != new.get(name):
            notes.append(f"The setting {name} changed: {why}.")
    return replace(finding, notes=(*finding.notes, *notes), other_cache=other)


def _shown(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip('"')[:80]
