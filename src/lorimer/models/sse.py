"""Server-sent events: bytes to events, one decoder for all wires.

Follows https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream with
one difference: text that is not UTF-8 is a fault here, not a replacement character, because a
replaced byte inside an argument would be a silent change (G4).
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from lorimer.core.errors import BadAnswer, StreamCut

MAX_EVENT_BYTES = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: `name` is empty where the stream gave none."""

    name: str
    data: str


class SseDecoder:
    """Turns chunks, cut anywhere, into whole events. A line is decoded only when it is complete, so
    a character split between two chunks is whole again here."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._first = True
        self._max = max_event_bytes

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes.

        Raises:
            BadAnswer: for text that is not UTF-8, or an event larger than the limit.
        """
        text = self._rest + chunk
        if self._first and len(text) >= len(_BOM):
            self._first = False
            text = text.removeprefix(_BOM)
        # A last CR may be half of a CR LF.
        held = b"\r" if text.endswith(b"\r") else b""
        if b"\r" in text:
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
        if self._size + len(rest) > self._max:
            raise BadAnswer(
                f"The provider sent an event of more than {self._max} bytes.",
                next="Ask for less at once.",
            )
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> None:
        """The stream is at its end. What is left over of an event is dropped, as the specification
        says; the reader above knows whether its end mark came.

        Raises:
            StreamCut: when the stream ends inside a character.
            BadAnswer: when what is left over is not UTF-8.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        try:
            decoder.decode(self._rest)
        except UnicodeDecodeError as error:
            raise _not_utf8(error) from None
        if decoder.getstate()[0]:
            raise StreamCut("The answer stopped in the middle of a character.")

    def _line(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            return None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(value)
            self._data.append(_text(value))
        elif field == b"event":
            self._name = _text(value)
        return None

    def _dispatch(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name, self._data, self._size = "", [], 0
        return SseEvent(name, "\n".join(data)) if data else None


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None


def _not_utf8(error: UnicodeDecodeError) -> BadAnswer:
    return BadAnswer(
        f"The provider sent text that is not UTF-8 (byte {error.object[error.start]:#04x}).",
        next="Ask again; if it stays so, the server or a proxy before it is broken.",
    )
