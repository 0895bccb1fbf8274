"""Rules as text: the narrowest useful one for a call, and how a rule is written as TOML."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lorimer.core.calls import Effects
from lorimer.core.decisions import CallFacts, Verdict
from lorimer.core.effects import Access, Concern
from lorimer.core.errors import ConfigError
from lorimer.safety.policy.coverage import LIFTED_BY_MATCH
from lorimer.safety.policy.patterns import escape

if TYPE_CHECKING:
    from lorimer.safety.policy.layers import LayeredPolicy

_EACH_TIME = frozenset(Concern) - LIFTED_BY_MATCH
"""What is approved each time anew, never by a rule that was made from one call."""
_LONGEST = 2_000


def rule_for(policy: LayeredPolicy, facts: CallFacts) -> str:
    """The narrowest useful rule that makes `policy` allow the call `facts`, as TOML; empty when
    there is none."""
    touches = facts.touches
    assert touches is not None
    if touches.has(*_EACH_TIME) or policy.judge(facts).decision.verdict is not Verdict.ASK:
        return ""
    conditions = _conditions(facts)
    if conditions is None:
        return ""
    text = to_toml({"decision": "allow", **conditions})
    if len(text) > _LONGEST:
        return ""
    try:
        allows = policy.with_session_rule(text).decide(facts).verdict is Verdict.ALLOW
    except ConfigError:
        return ""
    return text if allows else ""


def _conditions(facts: CallFacts) -> dict[str, Any] | None:
    """What a rule about exactly this kind of call says."""
    touches = facts.touches
    assert touches is not None
    out: dict[str, Any] = {"tool": escape(facts.tool)}
    if touches.commands:
        patterns = [command_pattern(c.words) for c in touches.commands if not c.via]
        if None in patterns or not patterns:
            return None
        out["command"] = list(dict.fromkeys(patterns))
    paths = [p.path for p in touches.paths if p.access is not Access.READ or not p.inside]
    if paths:
        out["paths"] = [escape(p) for p in dict.fromkeys(paths)]
    if touches.hosts:
        out["hosts"] = [escape(h) for h in touches.hosts]
    if touches.commands or paths or touches.hosts:
        # Of a tool that only opens its paths in the session's folders they say all that counts; of
        # any other, the other arguments may mean anything.
        loose = facts.level is Effects.IRREVERSIBLE or (paths and not facts.traits.confined)
        if loose and not touches.commands:
            return _with_arguments(out, facts.arguments)
        return out
    if facts.traits.command_argument:
        return None  # a command text in which no command was found
    return _with_arguments(out, facts.arguments)


def _with_arguments(out: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """`out` for exactly these arguments and no others; `None` when a rule cannot say them."""
    tests: dict[str, Any] = {}
    for name, value in arguments.items():
        plain = value if isinstance(value, list) else [value]
        if not name or not all(isinstance(v, str | bool | int | float) for v in plain):
            return None
        tests[name] = {"one_of": [value]}
    pinned: dict[str, Any] = {"arguments": tests} if tests else {}
    return {**out, **pinned, "other_arguments": False}


def command_pattern(words: Sequence[str | None], *, rest: bool = False) -> str | None:
    """The pattern of exactly these words; `None` when one is not known. With `rest`, of commands
    that begin with them."""
    if not words or any(word is None for word in words):
        return None
    known = [word for word in words if word is not None]
    quoted = [shlex.quote(escape(word)) for word in known]
    if not rest and known[-1] == "*":  # escaped, it is not the open end
        return " ".join(quoted)
    return " ".join([*quoted, *(["*"] if rest else [])])


def to_toml(rule: Mapping[str, Any]) -> str:
    """`rule` as the text of one `[[policy.rule]]`."""
    lines = ["[[policy.rule]]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in rule.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    plain = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
    return key if plain else _text(key)


def _text(text: str) -> str:
    if not set(text) & set("'\n\r\t\\") and '"' in text and text.isprintable():
        return f"'{text}'"
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    items = [_value(one) for one in value]
    if len(items) == 1:
        return f"[{items[0]}]"
    return "[" + ", ".join(items) + "]"
