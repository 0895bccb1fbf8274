"""What a wire server answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SayCall:
    """A call in an answer; `arguments` is text, sent as it is."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Usage:
    """Tokens as we count them: `input` holds cached and written ones too, `output` reasoning."""

    input: int = 120
    cached: int = 40
    written: int = 0
    output: int = 30
    reasoning: int = 0


@dataclass(frozen=True)
class Say:
    """A whole answer, streamed in pieces of `piece` characters."""

    text: str = ""
    calls: tuple[SayCall, ...] = ()
    reasoning: str = ""
    stop: str = ""
    """`end`, `calls`, `length` or `refusal`; by default what fits."""
    usage: Usage = field(default_factory=Usage)
    piece: int = 5

    @property
    def why(self) -> str:
        return self.stop or ("calls" if self.calls else "end")


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    body: Any = None
    """A JSON value, or bytes as they are; by default the provider's own error object."""
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "it went wrong"
    code: str = ""


@dataclass(frozen=True)
class Raw:
    """Bytes of an event stream as they are."""

    data: bytes


@dataclass(frozen=True)
class Cut:
    """`answer`, but the body ends after `at` bytes: with the connection broken, or `cleanly`."""

    answer: Say | Raw
    at: int
    cleanly: bool = False


Answer = Say | Fail | Raw | Cut


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
