"""Where a prefix comes from: a stored session, or what would be built for a new one now."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorimer.core.errors import LorimerError

if TYPE_CHECKING:
    from lorimer.context.prefix.parts import Prompt, PromptPart
    from lorimer.models.protocol import Model
    from lorimer.store.protocol import SessionRecord
    from lorimer.store.sqlite import SqliteStore

_UNTAGGED = re.compile(r"<([a-z][a-z0-9_-]*) owner=\"[^\"]*\">\n(.*)\n</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """A prefix and where it comes from.

    Attributes:
        what: for a person: `session s_…`, `a new session here`.
        tools: their records, in the order in which they are sent.
        rendered: the bytes of the prefix; of a session those that are stored. Empty where the model
            that makes them cannot be had.
        wire, model: whose bytes these are.
        notices: what could not be had, and what was done instead.
    """

    what: str
    prompt: Prompt
    tools: tuple[Mapping[str, Any], ...]
    rendered: bytes
    wire: str
    model: str
    notices: tuple[str, ...] = ()
    stored: Mapping[str, Any] | None = None


@contextmanager
def reading(path: Path | None) -> Iterator[SqliteStore]:
    """The store at `path`, to be read."""
    from lorimer.cli.execute import existing_store

    opened = existing_store(path)
    try:
        yield opened
    finally:
        opened.close()


def of_session(store: SqliteStore, session_id: str) -> Source:
    """The prefix that a session sends now: that of its last rebase, or the one it began with.

    Raises:
        SessionNotFound, ConfigError: see `Prompt.from_json`.
    """
    from lorimer.context.prefix.parts import stored
    from lorimer.core.messages import Kind

    record = store.session(session_id)
    form = form_of(store, record)
    rebases = [
        (entry, data) for entry, data in store.entries(record.id, form) if entry.kind is Kind.REBASE
    ]
    facts: dict[str, Any] = {"rebases": len(rebases), "prefix_bytes": len(record.prefix)}
    if not rebases:
        return Source(
            f"session {record.id}", stored(record.system, record.meta), tuple(record.tools),
            record.prefix, record.wire, record.model, stored=facts,
        )  # fmt: skip
    entry, data = rebases[-1]
    facts |= {"rebased_at_entry": entry.seq, "prefix_bytes": len(data or b"")}
    return Source(
        f"session {record.id}", stored(str(entry.meta["system"]), entry.meta),
        tuple(entry.meta["tools"]), data or b"", record.wire,
        str(entry.meta.get("model", record.model)), stored=facts,
    )  # fmt: skip


def form_of(store: SqliteStore, record: SessionRecord) -> str:
    """The name of the rendering in which most entries of a session are stored."""
    rows = store.raw("SELECT session, seq, wire FROM renderings ORDER BY seq")
    forms = [wire for session, _, wire in rows if session == record.id and "prefix:" not in wire]
    return max(set(forms), key=forms.count) if forms else record.wire


def model_named(name: str, wire: str = "") -> tuple[Model, str]:
    """The model `name` as far as prompts go: it needs no key. When it cannot be had, one that
    stands for it (its prefix is none that is ever sent), and what to tell of that."""
    from lorimer.models.registry import resolve

    local = ":" not in name
    try:
        return resolve(name, api_key=None if local else "none"), ""
    except LorimerError as fault:
        words = f"{fault.message} The prompt is shown without its own form."
        return _stand_in(name, wire or ("local" if local else "scripted")), words


def _stand_in(name: str, wire: str) -> Model:
    from lorimer.models.local import prompt
    from lorimer.models.profiles import Profile
    from lorimer.models.scripted import ScriptedModel

    class StandIn(ScriptedModel):
        def render_prefix(self, *_: Any) -> bytes:
            return b""

    made = StandIn(name=name, profile=Profile(name="", wire=wire))
    if wire == "local":
        made.default_system = prompt.default_system  # type: ignore[attr-defined]
    return made


async def of_now(
    store: SqliteStore,
    *,
    model: str | None,
    tools: str | None,
    system: str | None,
    folder: Path,
    project_rules: bool | None,
) -> Source:
    """What a new session would be given here: the command line's own settings.

    Raises:
        LorimerError: when there are no such tools, or no such folder.
    """
    from lorimer.cli.run import answers_wanted, rules_wanted, skills_wanted, wants_status
    from lorimer.cli.setup import choose_tools, for_model
    from lorimer.models.registry import default_model

    notices: list[str] = []
    chosen, told = model_named(default_model().name if model is None else model)
    if told:
        notices.append(told)
    given = choose_tools(tools, allow_unsandboxed=True)
    given = for_model(chosen, given, asked=tools, allow_unsandboxed=True)
    return await _built(
        store, chosen, given, "a new session here", notices, system=system, workspace=folder,
        project_rules=rules_wanted(chosen, project_rules),
        skills=skills_wanted(chosen, None, tools=tools), status=wants_status(chosen, None),
        answers=answers_wanted(check=True, fill=False),
    )  # fmt: skip


async def of_session_now(store: SqliteStore, session_id: str, before: Source) -> Source:
    """What a session would be given if it began now: lorimer's own parts, the rules of the project
    and the tools as they are by now; the parts that somebody else gave as they were."""
    from lorimer.cli.session_tools import tools_of
    from lorimer.runtime.prompt import OWN

    record = store.session(session_id)
    notices: list[str] = []
    chosen, told = model_named(before.model, before.wire)
    if told:
        notices.append(told)
    tools: Any = None
    try:
        tools = tools_of(record, None, allow_unsandboxed=True, say=lambda _: None)
    except LorimerError as fault:
        notices.append(f"{fault.message} Its tools are taken as they are stored.")
    parts = before.prompt.placed
    default = _default_of(chosen, tools or [])
    own = any(p.owner == OWN and p.name == "instructions" for p in parts)
    own = own or (parts[0].owner == "unknown" and _looks_like(before.prompt.text, default))
    given = None if own else [_part(before.prompt, p) for p in parts if p.owner not in _BUILT]
    stored = (record.meta.get("prompt") or {}) if isinstance(record.meta, Mapping) else {}
    workspace = Path(str(record.meta.get("workspace", ".")))
    if not os.path.isdir(workspace):  # noqa: ASYNC240 - nothing else runs
        notices.append(f"The folder {workspace} is not there any more: its rules are left out.")
        workspace = Path()
        stored = {}
    from lorimer.cli.run import skills_wanted, wants_status

    built = await _built(
        store, chosen, tools or [], f"session {record.id}, if it began now", notices,
        system=given, workspace=workspace, project_rules=bool(stored.get("project_rules")),
        answers="fill" if any(p.name == "answers" and p.owner == OWN for p in parts) else None,
        compaction=None if "recall" in [t["name"] for t in before.tools] else "none",
        skills=skills_wanted(chosen, None, begun=record), status=wants_status(chosen, None),
    )  # fmt: skip
    if tools is not None:
        return built
    return Source(
        built.what, built.prompt, before.tools, built.rendered, built.wire, built.model,
        built.notices,
    )  # fmt: skip


_BUILT = frozenset({"lorimer", "project"})
"""Owners whose parts are built anew."""


async def _built(
    store: SqliteStore, model: Model, tools: Sequence[Any], what: str, notices: list[str],
    **options: Any,
) -> Source:  # fmt: skip
    from lorimer.core.watch import Warned
    from lorimer.runtime.agent import Agent
    from lorimer.runtime.prompt import fresh_prefix
    from lorimer.safety.secrets.stored import StoredVault

    def watch(event: Any) -> None:
        if isinstance(event, Warned):
            notices.append(event.message)

    try:
        async with Agent(
            model, tools, store=store, watch=watch, secrets=StoredVault(), telemetry=False,
            mode="ask", **options,
        ) as agent:  # fmt: skip
            specs = agent.registry.specs()
            prefix, prompt = fresh_prefix(agent, specs)
    finally:
        await model.aclose()
    return Source(
        what, prompt, tuple(spec.to_json() for spec in specs), prefix.rendered,
        model.profile.wire, model.name, tuple(dict.fromkeys(notices)),
    )  # fmt: skip


def _part(prompt: Prompt, placed: Any) -> PromptPart:
    from lorimer.context.prefix.parts import PromptPart

    text = prompt.rendered(placed)
    tagged = _UNTAGGED.fullmatch(text)
    inside = text if tagged is None else tagged[2]
    owner = placed.owner if placed.owner != "unknown" else "app"
    return PromptPart(placed.name, owner, placed.stability, inside)


def _default_of(model: Model, tools: Sequence[Any]) -> str:
    from lorimer.runtime.agent import DEFAULT_SYSTEM

    own: Callable[[Any], str] | None = getattr(model, "default_system", None)
    return DEFAULT_SYSTEM if own is None else own([tool.spec for tool in tools])


def _looks_like(text: str, default: str) -> bool:
    return text.partition("\n")[0] == default.partition("\n")[0]
