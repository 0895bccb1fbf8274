"""Where secrets are kept: what a vault can do, and one in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from lorimer.core.errors import LorimerError, UsageFault
from lorimer.safety.secrets.handles import check_name

SHORTEST_REDACTED = 8
"""Characters. A shorter value would be found in ordinary text, so it is not looked for."""
LONGEST = 64 * 1024


class VaultError(LorimerError):
    """The secrets cannot be read or written; nothing was changed."""

    exit_code = 5


class UnknownSecret(LorimerError):
    """No secret has this name."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret with its value, which `repr` does not show.

    Attributes:
        tools: names of the tools that it was given to; `*` for all of them.
        backend: where it is kept: `keyring`, `file` or `memory`.
    """

    name: str
    value: str = field(repr=False)
    tools: tuple[str, ...] = ()
    set_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    backend: str = "memory"


class Vault(Protocol):
    """Keeps secrets. Whoever has one has every value in it: tools never do."""

    def names(self) -> tuple[str, ...]:
        """The names, sorted. Cheap, and no value is decrypted for it.

        Raises:
            VaultError: when the list cannot be read.
        """
        ...

    def tools_of(self, name: str) -> tuple[str, ...]:
        """The tools that it is listed for; nothing is decrypted, and `get` has the last word.

        Raises:
            UnknownSecret, VaultError.
        """
        ...

    def get(self, name: str) -> Secret:
        """Raises `UnknownSecret`, or `VaultError` when the value cannot be had."""
        ...

    def set(self, name: str, value: str, *, tools: Sequence[str] | None = None) -> Secret:
        """Keep `value`, instead of an older one; `tools` `None` leaves those it has.

        Raises:
            UsageFault: for a name or value that cannot be one. VaultError.
        """
        ...

    def remove(self, name: str) -> None:
        """Forget it. Raises `UnknownSecret`, `VaultError`."""
        ...


def check_value(value: str) -> str:
    """`value`, when it may be a secret.

    Raises:
        UsageFault: when it is empty, too long, or not whole UTF-8.
    """
    if not value.strip():
        raise UsageFault("The value is empty.", next="Type it again; nothing was changed.")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise UsageFault(
            "The value is not whole UTF-8 text.", next="Encode it first, e.g. as base64."
        ) from None
    if size > LONGEST:
        raise UsageFault(
            f"The value has {size:,} bytes; at most {LONGEST:,} are kept.",
            next="Keep it in a file of your own instead.",
        )
    return value


def unknown(name: str, known: Sequence[str]) -> UnknownSecret:
    """The error for a name that is not there."""
    step = f"There are: {', '.join(known)}." if known else f"Set it: lorimer secrets set {name}"
    return UnknownSecret(f"There is no secret {name!r}.", next=step)


class MemoryVault:
    """Secrets of this process only, e.g. taken from somewhere else by the program.

    Args:
        values: value by name.
        tools: names of the tools that may use all of these, beside those that declare a secret;
            `*` for every tool.
    """

    def __init__(
        self, values: Mapping[str, str] | None = None, *, tools: Sequence[str] = ()
    ) -> None:
        self._secrets: dict[str, Secret] = {}
        for name, value in (values or {}).items():
            self.set(name, value, tools=tools)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._secrets))

    def tools_of(self, name: str) -> tuple[str, ...]:
        return self.get(name).tools

    def get(self, name: str) -> Secret:
        if name not in self._secrets:
            raise unknown(name, self.names())
        return self._secrets[name]

    def set(self, name: str, value: str, *, tools: Sequence[str] | None = None) -> Secret:
        old = self._secrets.get(check_name(name))
        given = (() if old is None else old.tools) if tools is None else tuple(tools)
        self._secrets[name] = Secret(name, check_value(value), given)
        return self._secrets[name]

    def remove(self, name: str) -> None:
        if self._secrets.pop(name, None) is None:
            raise unknown(name, self.names())
