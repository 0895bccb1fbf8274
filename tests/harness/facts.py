"""Facts of calls, made by hand: what a policy decides on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, NoConversation, Traits
from lorimer.core.effects import Access, CallEffects, Concern, PathTouch, Reason, SimpleCommand
from lorimer.safety.effects import CallAssessor
from lorimer.safety.policy.layers import LayeredPolicy
from lorimer.safety.policy.load import Layer, parse_layer
from lorimer.safety.policy.rules import Place

WORK = "/here-folder/project"
PLACE = Place(WORK, "/home/ada")
SHELL = Traits(command_argument="command")


def facts(
    tool: str = "write_thing",
    arguments: Mapping[str, Any] | None = None,
    *,
    effects: Effects | str = Effects.WRITE,
    touches: CallEffects | None = None,
    traits: Traits | None = None,
    cwd: str | Path = WORK,
    tainted_by: Sequence[str] = (),
    **more: Any,
) -> CallFacts:
    """Facts of a call; what it touches is worked out when it is not given."""
    made = CallFacts(
        tool, Effects(effects), "execution", dict(arguments or {}), (),
        more.pop("principal", "ada"), more.pop("session", "s_1"), str(cwd),
        roots=(str(cwd),), traits=traits or Traits(), touches=touches,
        conversation=NoConversation(tainted_by=tainted_by), **more,
    )  # fmt: skip
    if touches is None:
        object.__setattr__(made, "touches", CallAssessor().assess(made))
    return made


def command(*words: str | None, via: Sequence[str] = (), text: str = "") -> SimpleCommand:
    return SimpleCommand(tuple(words), text or " ".join(w or "$X" for w in words), tuple(via))


def touch(path: str, access: str = "write", *, inside: bool = True) -> PathTouch:
    return PathTouch(
        path, path if path.startswith("/") else f"{WORK}/{path}", Access(access), inside
    )


def because(concern: str, where: str = "", text: str = "") -> Reason:
    return Reason(Concern(concern), text or f"it is {concern}", where)


def shell(
    *commands: SimpleCommand,
    text: str = "",
    level: str = "write",
    paths: Sequence[PathTouch] = (),
    hosts: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
    **more: Any,
) -> CallFacts:
    """Facts of a call of `shell_exec` that comes to these commands."""
    touches = CallEffects(
        Effects(level), tuple(paths), tuple(hosts), tuple(commands), reasons=tuple(reasons)
    )
    written = text or "; ".join(c.text for c in commands)
    return facts("shell_exec", {"command": written}, touches=touches, traits=SHELL, **more)


def layer(text: str, name: str = "user") -> Layer:
    return parse_layer(text, name=name, file=f"{name}.toml")


def policy(mode: str = "ask", **layers: str) -> LayeredPolicy:
    """A policy of `mode` and of layers given as TOML: `policy("ask", user="[[policy.rule]]…")`."""
    order = ("organisation", "user", "project", "session")
    return LayeredPolicy(mode, [layer(layers[n], n) for n in order if n in layers], place=PLACE)
