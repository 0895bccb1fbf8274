"""What a call is after, so that a refused intent is known again in another dress.

Two calls have the same intent when they are the same but for white space and order, when they send
to the same sinks, or when they would run the same programs on the same things, or change the same
paths or reach the same hosts by another tool. Everything here rests on the facts of the call.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts
from lorimer.core.effects import Access, SimpleCommand

_NOTHING = frozenset(
    {"cd", "true", "false", ":", "echo", "printf", "export", "set", "sleep", "test", "["}
)
_LEVELS = (Effects.READ, Effects.WRITE, Effects.IRREVERSIBLE)


def intent_of(facts: CallFacts) -> dict[str, Any]:
    """The intent of a call, as JSON."""
    touches = facts.touches
    paths = () if touches is None else touches.paths
    commands = () if touches is None else touches.commands
    changed = {p.path for p in paths if p.access is not Access.READ} - set(facts.roots)
    return {
        "tool": facts.tool,
        "level": _LEVELS.index(facts.level),
        "arguments": _plain(dict(facts.arguments)),
        "sinks": {
            name: _folded(facts.arguments[name])
            for name in facts.traits.sinks
            if name in facts.arguments
        },
        "commands": sorted(_command(one, facts.cwd) for one in commands if not _idle(one)),
        "changes": sorted(changed),
        "hosts": [] if touches is None else sorted(set(touches.hosts)),
        "shell": bool(commands),
    }


def is_variant(denied: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether `call` is the `denied` intent again."""
    same_tool = denied["tool"] == call["tool"]
    if same_tool and denied["arguments"] == call["arguments"]:
        return True
    if same_tool and denied["sinks"] and denied["sinks"] == call["sinks"]:
        return True
    if denied["commands"] and all(one in call["commands"] for one in denied["commands"]):
        return True
    if call["level"] < denied["level"] or (same_tool and not call["shell"]):
        return False
    if denied["hosts"] and not set(denied["hosts"]) <= set(call["hosts"]):
        return False
    if denied["changes"]:
        return set(denied["changes"]) <= set(call["changes"])
    return bool(denied["hosts"])


def _idle(command: SimpleCommand) -> bool:
    return command.program is not None and command.program in _NOTHING


def _command(command: SimpleCommand, cwd: str) -> list[str]:
    """Its program, and its operands without order; options do not make another command of it."""
    program = "?" if command.program is None else posixpath.basename(command.program)
    operands = {
        "?" if word is None else _operand(word, cwd)
        for word in command.words[1:]
        if word is None or not word.startswith("-")
    }
    return [program, *sorted(operands)]


def _operand(word: str, cwd: str) -> str:
    """`build`, `./build/` and `/here/build` are one thing in `/here`."""
    if "://" in word:
        return word.casefold().rstrip("/")
    return posixpath.normpath(posixpath.join(cwd or "/", word))


def _plain(value: Any) -> Any:
    """`value` with runs of white space as one space."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _folded(value: Any) -> Any:
    """A sink: case and order do not make another receiver."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if isinstance(value, list):
        return sorted((_folded(item) for item in value), key=repr)
    return value
