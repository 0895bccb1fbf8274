"""The form a local model writes in, and reading it while it is being written.

A model writes one JSON object, or an array of call objects where several calls are offered:

    {"say": "text for the user"}
    {"name": "tool", "arguments": {…}}

The argument text is handed on exactly as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from enum import StrEnum

from lorimer.core.calls import ToolCall
from lorimer.models.protocol import CallComplete, CallDelta, CallStarted, TextDelta

_SAY = re.compile(r'\{\s*"say"\s*:\s*"')
_CALL = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*')
_BETWEEN = re.compile(r"[\s,\[\]}]*")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

WireEvent = TextDelta | CallStarted | CallDelta | CallComplete


def say_text(text: str) -> str:
    """`text` as a model writes it."""
    return '{"say": ' + json.dumps(text, ensure_ascii=False) + "}"


def call_text(call: ToolCall) -> str:
    """`call` as a model writes it, its arguments untouched."""
    return (
        '{"name": ' + json.dumps(call.name, ensure_ascii=False) + ', "arguments": ' + call.raw + "}"
    )


class JsonText:
    """Unescapes the inside of a JSON string that comes in pieces, also when an escape or a
    surrogate pair is split between two of them. Half a pair becomes U+FFFD."""

    def __init__(self) -> None:
        self.closed = False
        self._held = ""
        self._high = 0

    def feed(self, text: str) -> tuple[str, int]:
        """The text that is now certain, and how much of `text` was used (all, unless it closed)."""
        out: list[str] = []
        data = self._held + text
        skipped = len(self._held)
        self._held = ""
        at = 0
        while at < len(data):
            char = data[at]
            if char == "\\":
                size = 6 if data[at + 1 : at + 2] == "u" else 2
                if at + size > len(data):
                    self._held = data[at:]
                    return "".join(out), len(text)
                out.append(self._escape(data[at + 1 : at + size]))
                at += size
                continue
            out.append(self._flush())
            if char == '"':
                self.closed = True
                return "".join(out), at + 1 - skipped
            out.append(char)
            at += 1
        return "".join(out), len(text)

    def _escape(self, body: str) -> str:
        if body[0] != "u":
            return self._flush() + _ESCAPES.get(body, body)
        try:
            unit = int(body[1:], 16)
        except ValueError:
            return self._flush() + "\ufffd"
        if 0xDC00 <= unit < 0xE000 and self._high:
            pair = 0x10000 + ((self._high - 0xD800) << 10) + (unit - 0xDC00)
            self._high = 0
            return chr(pair)
        before = self._flush()
        if 0xD800 <= unit < 0xDC00:
            self._high = unit
            return before
        return before + ("\ufffd" if 0xDC00 <= unit < 0xE000 else chr(unit))

    def _flush(self) -> str:
        lone, self._high = self._high, 0
        return "\ufffd" if lone else ""


class Phase(StrEnum):
    """What the model is writing just now."""

    THINK = "think"
    TEXT = "text"
    CALL = "call"


class WireReader:
    """Turns what the model writes into events.

    Attributes:
        written: everything it wrote.
        calls: how many calls are complete.
        said: whether it began a `say`.
        open: a call or a text has begun and is not at its end.
        stray: it left the form; what it wrote must be read with `parse_text`.
    """

    def __init__(self) -> None:
        self.written = ""
        self.calls = 0
        self.said = False
        self.stray = False
        self._at = 0
        self._begun = 0
        self._name = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._text: JsonText | None = None
        self._in_call = False

    @property
    def open(self) -> bool:
        return self._in_call or self._text is not None

    @property
    def phase(self) -> Phase:
        return Phase.TEXT if self._text is not None or self.stray else Phase.CALL

    def feed(self, piece: str) -> Iterator[WireEvent]:
        """Take what the model wrote next."""
        self.written += piece
        while not self.stray and self._at < len(self.written):
            if self._text is not None:
                yield from self._read_say()
            elif self._in_call:
                yield from self._read_arguments()
            elif not (yield from self._read_opening()):
                return

    def _read_opening(self) -> Generator[WireEvent, None, bool]:
        gap = _BETWEEN.match(self.written, self._at)
        self._at = gap.end() if gap else self._at
        if self._at == len(self.written):
            return False
        if found := _SAY.match(self.written, self._at):
            self._at = found.end()
            self._text, self.said = JsonText(), True
            return True
        if found := _CALL.match(self.written, self._at):
            if found.end() == len(self.written):
                return False  # the arguments' first character is still to come
            if self.written[found.end()] != "{":
                self.stray = True
                return False
            self._at = self._begun = found.end()
            self._name = json.loads(found[1], strict=False)
            self._in_call, self._depth = True, 0
            self._in_string = self._escaped = False
            yield CallStarted(self.calls, self._name)
            return True
        rest = self.written[self._at :]
        self.stray = not (rest.startswith("{") and len(rest) < 300)
        return False

    def _read_say(self) -> Iterator[WireEvent]:
        assert self._text is not None
        text, used = self._text.feed(self.written[self._at :])
        self._at += used
        if self._text.closed:
            self._text = None
        if text:
            yield TextDelta(text)

    def _read_arguments(self) -> Iterator[WireEvent]:
        start = self._at
        for at in range(start, len(self.written)):
            char = self.written[at]
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif char == "\\":
                    self._escaped = True
                elif char == '"':
                    self._in_string = False
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]" and self._depth:
                self._depth -= 1
            if self._depth == 0 and not self._in_string:
                self._at = at + 1
                yield CallDelta(self.calls, self.written[start : self._at])
                raw = self.written[self._begun : self._at]
                yield CallComplete(self.calls, ToolCall("", self._name, raw))
                self.calls += 1
                self._in_call = False
                return
        self._at = len(self.written)
        yield CallDelta(self.calls, self.written[start:])
