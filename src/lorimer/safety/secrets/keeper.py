"""The secrets of an agent: puts values in at run time, takes them out of what is told."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lorimer.core.errors import LorimerError
from lorimer.core.secrets import SecretRefused
from lorimer.safety.secrets.handles import (
    handles_in,
    put_in,
    refuse_shell,
    refuse_tool,
    refuse_unknown,
    whole_handles_in,
)
from lorimer.safety.secrets.redactor import RedactedBytes, RedactedStream, Redactor
from lorimer.safety.secrets.vault import SHORTEST_REDACTED, Secret, UnknownSecret, Vault

EVERY_TOOL = "*"
_KEY_VARIABLE = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS)$")
_SHORTEST_IN_ENVIRONMENT = 12


class SecretKeeper:
    """A `lorimer.core.secrets.SecretPort` over a vault.

    The vault is asked for its names only until one is used or there is one whose value must be
    known again in results. A value that was used is looked for until the end of the program, also
    when it was changed or removed since.

    Args:
        vault: `None`: no handles; keys are still known by their shape.
        on_problem: told, once each, what cannot be redacted because the vault does not open.
    """

    def __init__(
        self, vault: Vault | None = None, *, on_problem: Callable[[str], None] | None = None
    ) -> None:
        self._vault = vault
        self._on_problem = on_problem
        self._values: dict[str, str] = _environment()
        self._names: tuple[str, ...] = ()
        self._redactor: Redactor | None = None
        self._issued: set[str] = set()
        self._problems: set[str] = set()

    def names(self) -> tuple[str, ...]:
        """The names of the secrets; none when the vault cannot be read, and that is told."""
        if self._vault is None:
            return ()
        try:
            return self._vault.names()
        except LorimerError as fault:
            self._problem(f"The secrets cannot be read: {fault}")
            return ()

    async def ready(self) -> None:
        """Load the values that results are searched for. It may wait for a person who unlocks the
        keyring; cancellation leaves it as it was."""
        if self.names() != self._names:
            await asyncio.to_thread(self._load)

    # --- values into arguments ---

    def check(
        self, tool: str, arguments: Any, declared: Sequence[str], shell_argument: str
    ) -> None:
        """See `SecretPort.check`. A handle that names no secret is refused: always when it is a
        whole value, and inside a longer text to tools that may use secrets; to the others that is
        text."""
        if not _may_hold_handles(arguments):
            return
        try:
            tools = {name: self._tools_of(name) for name in handles_in(arguments)}
        except LorimerError as fault:
            raise _unreadable(fault) from fault
        self._judge(tool, arguments, tools, declared, shell_argument)

    def _tools_of(self, name: str) -> tuple[str, ...] | None:
        if self._vault is None:
            return None
        try:
            return self._vault.tools_of(name)
        except UnknownSecret:
            return None

    def _judge(
        self,
        tool: str,
        arguments: Any,
        tools: Mapping[str, tuple[str, ...] | None],
        declared: Sequence[str],
        shell_argument: str,
    ) -> bool:
        """Whether `tool` may have all that is named; `False`: there is nothing to put in."""
        may = [n for n, to in tools.items() if to is not None
               and (n in declared or tool in to or EVERY_TOOL in to)]  # fmt: skip
        for name in whole_handles_in(arguments):
            if tools.get(name) is None:
                raise refuse_unknown(name, self.names())
        for name, to in tools.items():
            if to is None and (may or declared or self._uses_secrets(tool)):
                raise refuse_unknown(name, self.names())
            if to is not None and name not in may:
                raise refuse_tool(name, tool)
        if may and shell_argument:
            for name in handles_in(arguments.get(shell_argument)):
                raise refuse_shell(name, shell_argument)
        return bool(may)

    def _uses_secrets(self, tool: str) -> bool:
        """Whether any secret was given to `tool`."""
        if self._vault is None:
            return False
        try:
            given = [self._tools_of(name) or () for name in self._vault.names()]
        except LorimerError as fault:
            raise _unreadable(fault) from fault
        return any(tool in to or EVERY_TOOL in to for to in given)

    async def resolve(
        self, tool: str, arguments: dict[str, Any], declared: Sequence[str], shell_argument: str
    ) -> dict[str, Any]:
        """See `SecretPort.resolve`."""
        if not _may_hold_handles(arguments):
            return arguments
        found = await asyncio.to_thread(self._open, handles_in(arguments))
        tools = {name: None if one is None else one.tools for name, one in found.items()}
        if not self._judge(tool, arguments, tools, declared, shell_argument):
            return arguments
        values = {name: one.value for name, one in found.items() if one is not None}
        for name, value in values.items():
            self._know(name, value)
        return {
            key: one if key == shell_argument else put_in(one, values.get)
            for key, one in arguments.items()
        }

    def _open(self, wanted: Sequence[str]) -> dict[str, Secret | None]:
        """The secrets by name; `None` for those that do not exist.

        Raises:
            SecretRefused: when one cannot be opened.
        """
        out: dict[str, Secret | None] = {}
        for name in wanted:
            if self._vault is None:
                out[name] = None
                continue
            try:
                out[name] = self._vault.get(name)
            except UnknownSecret:
                out[name] = None
            except LorimerError as fault:
                raise SecretRefused(
                    f"secret:{name} cannot be opened: {fault.message}",
                    next=f"Tell the user. {fault.next}".rstrip(),
                ) from fault
        return out

    def copied(self, arguments: Any) -> tuple[str, ...]:
        """Names of secrets whose values themselves stand in `arguments` (JSON)."""
        redactor = self._ready_redactor()
        if not redactor.forms:
            return ()
        labels = redactor.known_in(json.dumps(arguments, ensure_ascii=False))
        return tuple(label[8:-1] for label in labels if label.startswith("[secret:"))

    def marks_in(self, arguments: Any) -> tuple[str, ...]:
        """What stands in `arguments` (JSON) for something that was taken out of a text."""
        if not self._issued:
            return ()
        text = json.dumps(arguments, ensure_ascii=False)
        return tuple(sorted(mark for mark in self._issued if mark in text))

    # --- values out of what is told ---

    def redact(self, text: str) -> str:
        """`text` with known values and keys of well-known shapes replaced by their names."""
        if len(text) < SHORTEST_REDACTED:
            return text
        return self._ready_redactor().redact(text)

    def stream(self) -> RedactedStream:
        """For output that comes in pieces; knows the values that are known by now."""
        return self._ready_redactor().stream()

    def byte_stream(self) -> RedactedBytes:
        """The same for raw output."""
        return RedactedBytes(self.stream())

    def _ready_redactor(self) -> Redactor:
        if self._vault is not None and self.names() != self._names:
            self._load()
        if self._redactor is None:
            self._redactor = Redactor(self._values, issued=self._issued)
        return self._redactor

    def _load(self) -> None:
        """Values of all secrets; those that cannot be had are told."""
        assert self._vault is not None
        names = self.names()
        for name in names:
            try:
                self._know(name, self._vault.get(name).value)
            except LorimerError as fault:
                self._problem(
                    f"secret:{name} cannot be opened, so its value would not be recognised in "
                    f"results: {fault}"
                )
        self._names = names

    def _know(self, name: str, value: str) -> None:
        label = f"[secret:{name}]"
        if self._values.get(value) != label:
            self._values[value] = label
            self._redactor = None

    def _problem(self, text: str) -> None:
        if text not in self._problems and self._on_problem is not None:
            self._problems.add(text)
            self._on_problem(text)


def _unreadable(fault: LorimerError) -> SecretRefused:
    return SecretRefused(
        f"The secrets cannot be read: {fault.message}",
        next=f"Tell the user. {fault.next}".rstrip(),
    )


def secrets_note(names: Sequence[str]) -> str:
    """What the system prompt says of the secrets there are."""
    if not names:
        return ""
    handles = ", ".join(f"secret:{name}" for name in names)
    return (
        f"\n- Secrets are named by handles ({handles}). Where "
        'a tool needs one, write the handle as the whole value, or "${secret:…}" inside a longer '
        "one; you never see the value, and need not."
    )


def _may_hold_handles(value: Any) -> bool:
    if isinstance(value, str):
        return "secret:" in value
    if isinstance(value, Mapping):
        return any(_may_hold_handles(one) for one in value.values())
    return isinstance(value, list | tuple) and any(_may_hold_handles(one) for one in value)


def _environment() -> dict[str, str]:
    """The keys in our own environment (`OPENAI_API_KEY`, …): no result shows them either."""
    return {
        value: f"[redacted: environment {name}]"
        for name, value in os.environ.items()
        if _KEY_VARIABLE.search(name) and len(value) >= _SHORTEST_IN_ENVIRONMENT
        and "/" not in value[:1] and not value.isalpha()
    }  # fmt: skip
