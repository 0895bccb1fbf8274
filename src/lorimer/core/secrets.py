"""Secrets as calls see them: handles in arguments, and who puts the values in.

A handle (`secret:github`) is all that the model, the record and an approval ever hold. Its value is
put in just before the tool's function runs, by a `SecretPort` that the session was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lorimer.core.errors import LorimerError


class SecretRefused(LorimerError):
    """A call names a secret that it cannot have; the message is for the model."""

    exit_code = 2


class TextStream(Protocol):
    """Redacts text that comes in pieces."""

    def feed(self, piece: str) -> str:
        """What can be shown by now."""
        ...

    def end(self) -> str:
        """The rest."""
        ...


class ByteStream(Protocol):
    """The same for raw output; bytes that are no UTF-8 are kept."""

    def feed(self, piece: bytes) -> bytes:
        """What can be written down by now."""
        ...

    def end(self) -> bytes:
        """The rest."""
        ...


class SecretPort(Protocol):
    """Puts values in place of handles, and takes values out of what is told."""

    async def ready(self) -> None:
        """Load what `redact` needs. Cheap when there are no secrets. Cancellation: as if not
        called."""
        ...

    def check(
        self, tool: str, arguments: Any, declared: Sequence[str], shell_argument: str
    ) -> None:
        """Whether `tool` may have the secrets that `arguments` name; no value is opened.

        `declared` are the secrets that the tool's author declared; `shell_argument` is the argument
        that is shell text, in which no value is ever put.

        Raises:
            SecretRefused: when it may not.
        """
        ...

    async def resolve(
        self, tool: str, arguments: dict[str, Any], declared: Sequence[str], shell_argument: str
    ) -> dict[str, Any]:
        """`arguments` as the function gets them; the same object when they hold no handle.

        Raises:
            SecretRefused: as `check`, or when a value cannot be opened; nothing was put in.
        """
        ...

    def copied(self, arguments: Any) -> tuple[str, ...]:
        """Names of secrets whose values themselves stand in `arguments`."""
        ...

    def marks_in(self, arguments: Any) -> tuple[str, ...]:
        """What stands in `arguments` for something that was taken out of a text, in this process:
        `[secret:github]`."""
        ...

    def redact(self, text: str) -> str:
        """`text` with every secret in it replaced by what it is called."""
        ...

    def stream(self) -> TextStream:
        """`redact`, for output that comes in pieces."""
        ...

    def byte_stream(self) -> ByteStream:
        """The same for raw output."""
        ...
