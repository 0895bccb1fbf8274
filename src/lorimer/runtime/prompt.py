"""The prompt of an agent's sessions, from its parts; the prefix of a session for a model.

A prefix is rendered once for each model that a session is gone on with, and stored: what is sent is
what was sent, whatever the code has become since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lorimer.context.prefix.parts import (
    KEY,
    Prompt,
    PromptPart,
    Stability,
    boundaries_of,
    build,
    render,
    text_prompt,
)
from lorimer.core.errors import ConfigError, LorimerError
from lorimer.core.messages import Entry, Kind
from lorimer.models.foreign import is_foreign
from lorimer.models.protocol import Prefix
from lorimer.safety.secrets.keeper import secrets_note
from lorimer.store.protocol import AddRendering

if TYPE_CHECKING:
    from lorimer.core.specs import ToolSpec
    from lorimer.runtime.agent import Agent
    from lorimer.store.protocol import SessionRecord

OWN = "lorimer"
"""The owner of lorimer's own parts."""


def given_parts(
    system: str | Iterable[PromptPart] | None, default: str
) -> tuple[tuple[PromptPart, ...], bool]:
    """The parts of `Agent(system=…)`; whether they are lorimer's own.

    Raises:
        ConfigError: when it is neither a text nor parts.
    """
    if system is None:
        return (PromptPart("instructions", OWN, Stability.GLOBAL, default),), True
    if isinstance(system, str):
        return (text_prompt(system),) if system.strip() else (), False
    parts = tuple(system)
    wrong = [part for part in parts if not isinstance(part, PromptPart)]
    if wrong:
        raise ConfigError(
            f"system= holds {type(wrong[0]).__name__}, which is no part of a prompt.",
            next="Give a text, or PromptPart(name, owner, stability, text) objects.",
        )
    return parts, False


def prompt_of(agent: Agent) -> Prompt:
    """The prompt of a session that begins now. What cannot be taken into it is told of.

    Raises:
        ConfigError: when two parts have one name.
    """
    parts = list(agent.parts)
    if agent.default_parts:
        note = secrets_note(agent.secrets.names()).strip()
        parts.append(PromptPart("secrets", OWN, Stability.DEPLOYMENT, note))
    if agent.project_rules:
        parts += _project_rules(agent)
    return build(parts)


def kept(agent: Agent, prompt: Prompt) -> dict[str, Any]:
    """What is kept of the prompt in the meta of a session or of a `REBASE` entry."""
    return {KEY: {**prompt.to_json(), "project_rules": agent.project_rules}}


def fresh_prefix(agent: Agent, specs: Sequence[ToolSpec]) -> tuple[Prefix, Prompt]:
    """The prefix of a session that begins now."""
    prompt = prompt_of(agent)
    rendered = render(agent.model, prompt.text, specs, prompt.boundaries)
    return Prefix(prompt.text, tuple(specs), rendered), prompt


def stored_prefix(agent: Agent, record: SessionRecord, specs: Sequence[ToolSpec]) -> Prefix:
    """The prefix that a session began with, for the agent's model: the bytes that were sent, and
    for another model those that were made for it first."""
    if record.wire == agent.model.profile.wire and record.model == agent.model.name:
        rendered: bytes | None = record.prefix
    else:
        rendered = agent.store.rendering(record.id, 0, prefix_form(agent))
    if rendered is None:
        rendered = render(agent.model, record.system, specs, boundaries_of(record.meta))
    return Prefix(record.system, tuple(specs), rendered)


def prefix_form(agent: Agent) -> str:
    """Names the renderings of prefixes for the agent's model. Two models of one wire may want other
    ones (`strict` tools, the template of a local model)."""
    return f"prefix:{agent.model.profile.wire}:{agent.model.name}"


def stored_entries(agent: Agent, record: SessionRecord) -> list[tuple[Entry, bytes | None]]:
    """The entries of a session with their renderings for the agent's model; a rebase that another
    model saw first has the prefix that was made for this one, an answer of another model has none
    of its reasoning."""
    form = agent.model.profile.rendering
    return [
        (entry, rendering)
        if (own := entry_form(agent, entry)) == form
        else (entry, agent.store.rendering(record.id, entry.seq, own))
        for entry, rendering in agent.store.entries(record.id, form)
    ]


def entry_form(agent: Agent, entry: Entry) -> str:
    """Names the rendering of `entry` for the agent's model."""
    model, form = agent.model.name, agent.model.profile.rendering
    if entry.kind is Kind.REBASE:
        # Not the form of the first prefix, which lies at number 0 like a rebase that comes first.
        return form if entry.meta.get("model") == model else f"{prefix_form(agent)}:rebase"
    return f"{form}:{model}" if is_foreign(entry, model) else form


def foreign_notice(
    agent: Agent, entries: Sequence[Entry], made: Sequence[tuple[int, bytes]]
) -> str:
    """What is said when answers of another model are rendered for this one, the first time."""
    model = agent.model.name
    others = [entries[seq] for seq, _ in made if is_foreign(entries[seq], model)]
    if not others:
        return ""
    names = sorted({str(e.meta["model"]) for e in others if "model" in e.meta})
    of = " and ".join(names) or "another model"
    return (
        f"{len(others)} answers of {of} hold reasoning that {model} cannot read; it is not sent. "
        "The record keeps it."
    )


def made_renderings(
    agent: Agent, record: SessionRecord, prefix: Prefix, entries: Sequence[Entry],
    made: Sequence[tuple[int, bytes]],
) -> list[AddRendering]:  # fmt: skip
    """What is to be stored of the renderings that were made while a session was loaded: those of
    entries (`made`), and that of the first prefix where another model began the session."""
    own = prefix_form(agent)
    out = [
        AddRendering(record.id, seq, entry_form(agent, entries[seq]), data) for seq, data in made
    ]
    theirs = (record.wire, record.model) != (agent.model.profile.wire, agent.model.name)
    if theirs and entries and agent.store.rendering(record.id, 0, own) is None:
        out.append(AddRendering(record.id, 0, own, prefix.rendered))
    return out


def _project_rules(agent: Agent) -> list[PromptPart]:
    from lorimer.context.prefix.rules import most_bytes, read_rules
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust

    try:
        found = FolderTrust(home()).is_trusted(agent.workspace)
    except LorimerError as fault:
        agent.notice(f"The project's rules are not in the prompt: {fault.message}")
        return []
    rules = [name for name in found.files if name.casefold() in ("agents.md", "claude.md")]
    if not rules:
        return []
    if found.state != "trusted":
        why = "is not trusted" if found.state == "unknown" else "has changed since it was trusted"
        agent.notice(
            f"{' and '.join(rules)} not used: this folder {why}. `lorimer trust` shows what "
            "steers the agent here, and asks."
        )
        return []
    limit = most_bytes(agent.model.profile.context_window)
    read = read_rules(agent.workspace, found.files, limit_bytes=limit)
    for notice in read.notices:
        agent.notice(notice)
    return [] if read.part is None else [read.part]
