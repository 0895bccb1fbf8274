"""Handles: how a secret is named in arguments, and where its value goes.

`secret:github` as a whole string, or `${secret:github}` inside a longer one. `$${secret:github}` is
the text `${secret:github}` itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lorimer.core.errors import UsageFault
from lorimer.core.secrets import SecretRefused

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_WHOLE = re.compile(r"secret:([a-z][a-z0-9_-]{0,63})")
_FORM = re.compile(r"secret:([A-Za-z0-9._-]{1,100})")
_INSIDE = re.compile(r"(\$?)\$\{secret:([a-z][a-z0-9_-]{0,63})\}")


def check_name(name: str) -> str:
    """`name`, when a secret may be called that.

    Raises:
        UsageFault: otherwise.
    """
    if not NAME.fullmatch(name):
        raise UsageFault(
            f"{name!r} is no name for a secret.",
            next="Use a small letter, then up to 63 small letters, digits, - or _.",
        )
    return name


def handles_in(arguments: Any) -> tuple[str, ...]:
    """Names of the secrets that `arguments` (JSON) name by a handle, sorted, each once."""
    found: set[str] = set()
    _walk(arguments, found)
    return tuple(sorted(found))


def _walk(value: Any, found: set[str]) -> None:
    if isinstance(value, str):
        if "secret:" in value:
            whole = _WHOLE.fullmatch(value)
            if whole is not None:
                found.add(whole[1])
            found.update(m[2] for m in _INSIDE.finditer(value) if not m[1])
    elif isinstance(value, Mapping):
        for one in value.values():
            _walk(one, found)
    elif isinstance(value, list | tuple):
        for one in value:
            _walk(one, found)


def whole_handles_in(arguments: Any) -> tuple[str, ...]:
    """What stands behind `secret:` in values of `arguments` (JSON) that are nothing but a handle,
    sorted, each once; also what can be no name (`secret:GitHub`)."""
    found: set[str] = set()
    pending = [arguments]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            whole = _FORM.fullmatch(one)
            if whole is not None:
                found.add(whole[1])
        elif isinstance(one, Mapping):
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
    return tuple(sorted(found))


def put_in(value: Any, value_of: Callable[[str], str | None]) -> Any:
    """A copy of `value` with handles replaced by what `value_of` gives for their names; a handle
    for which it gives `None` stays as it stands. Keys of objects are left alone."""
    if isinstance(value, str):
        return _put_in_text(value, value_of)
    if isinstance(value, Mapping):
        return {key: put_in(one, value_of) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [put_in(one, value_of) for one in value]
    return value


def _put_in_text(text: str, value_of: Callable[[str], str | None]) -> str:
    if "secret:" not in text:
        return text
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        found = value_of(whole[1])
        return text if found is None else found

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        found = value_of(match[2])
        return match[0] if found is None else found

    return _INSIDE.sub(one, text)


def refuse_unknown(name: str, known: Sequence[str]) -> SecretRefused:
    """The refusal of a handle that names no secret."""
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    if near:
        step = f"Did you mean {', '.join(f'secret:{one}' for one in near)}?"
    elif known:
        step = f"There are: {', '.join(f'secret:{one}' for one in known)}."
    else:
        wanted = name if NAME.fullmatch(name) else "NAME"
        step = f"No secrets are set. Ask the user to run: lorimer secrets set {wanted}"
    return SecretRefused(f"There is no secret {name!r}.", next=step)


def refuse_tool(name: str, tool: str) -> SecretRefused:
    """The refusal of a secret to a tool that it was not given to."""
    return SecretRefused(
        f"{tool} may not use secret:{name}; nobody has allowed it to.",
        next=f"Do it without it, or ask the user to run: lorimer secrets allow {name} {tool}",
    )


def refuse_shell(name: str, argument: str) -> SecretRefused:
    """The refusal of a value inside shell text, where its characters could end a quotation."""
    return SecretRefused(
        f"The value of secret:{name} is never put into the text of {argument!r}.",
        next=f'Give it as an environment variable (env: {{"NAME": "secret:{name}"}}) where the '
        'tool has one, and write "$NAME" in the command.',
    )
