"""What a person sees of a run in a terminal: streamed words, one line a call, questions."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from lorimer.core.calls import Outcome
from lorimer.core.watch import Alert, CallBegan, CallEnded, CallOutput, SubagentEnded, Warned
from lorimer.models.protocol import Discarded, Progress, ReasoningDelta, TextDelta

_SHOWN = 100
_PLAIN_PROGRESS_S = 5.0
_HIDDEN = {0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def safe(text: str) -> str:
    """`text` with control and invisible characters written out, so that what a model or a tool says
    cannot move the cursor, hide text or fake a prompt."""
    if text.isprintable():
        return text
    return "".join(_safe_character(c) for c in text)


def _safe_character(c: str) -> str:
    if c in "\n\t":
        return c
    code = ord(c)
    if code < 32 or 127 <= code < 160 or code in _HIDDEN or 0xE0000 <= code < 0xE0080:
        return f"\\x{code:02x}" if code < 256 else f"\\u{{{code:x}}}"
    if 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return c


def flat(text: str) -> str:
    """`text` made `safe` and on one line, for names and other short texts that people give."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


def wrapped(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """One line of text as lines of at most `width` columns, broken between words; only a word that
    is longer than a line is broken itself. Nothing is left out.

    Args:
        first, rest: what stands before the first line and before the others (default: the same).
    """
    import textwrap

    if len(first) + len(text) <= width:
        return [first + text]
    rest = first if rest is None else rest
    made = textwrap.wrap(
        text, max(width, len(first) + 10, len(rest) + 10), initial_indent=first,
        subsequent_indent=rest, tabsize=4, replace_whitespace=False, drop_whitespace=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return made or [first]


_EXIT_CODE = re.compile(r"\[(exit code [^0\];][^\];]*)[^\]]*\]")


def _exit_code(text: str) -> str:
    """The exit code other than 0 in the notes at the end of a command's result; else empty."""
    for line in reversed(text.rstrip().split("\n")):
        if not (line.startswith("[") and line.endswith("]")):
            break
        found = _EXIT_CODE.fullmatch(line)
        if found is not None:
            return found[1]
    return ""


def one_line(arguments: Mapping[str, Any] | None, most: int = _SHOWN) -> str:
    """Arguments on one line, for a person; says how much was left out."""
    if not arguments:
        return ""
    text = " ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
    return _shorten(safe(text.replace("\n", "⏎")), most)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def _encodable(text: str, out: TextIO) -> str:
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


class Screen:
    """Shows a run: words on stdout as they come, calls and progress on stderr.

    When stdout is no terminal, only the final answer is written to it, by the caller.
    """

    def __init__(self, *, quiet: bool = False, stream: bool | None = None) -> None:
        self.quiet = quiet
        self.out, self.err = sys.stdout, sys.stderr
        self.stream = self.out.isatty() if stream is None else stream
        self.live = self.err.isatty() and os.environ.get("TERM") != "dumb"
        self.color = self.live and "NO_COLOR" not in os.environ
        self._midline = False
        self._status = False
        self._spoke = 0.0
        self.streamed = ""

    def __call__(self, event: Any) -> None:
        match event:
            case TextDelta(text):
                if self.stream:
                    self._clear()
                    self.out.write(_encodable(safe(text), self.out))
                    self.out.flush()
                    self._midline = not text.endswith("\n")
                    self.streamed += text
            case ReasoningDelta():
                self._progress("thinking …")
            case Progress(what, done, total):
                share = f"{100 * done // total} %" if total else ""
                self._progress(f"{what}: {done}/{total} {share}")
            case CallBegan(_, tool, arguments, _):
                self.line(
                    f"{self._paint('→', 36)} {tool} "
                    f"{one_line(arguments, self.width() - len(tool) - 4)}"
                )
            case CallOutput(_, _, text):
                last = text.rstrip().rsplit("\n", 1)[-1]
                if last and self.live:
                    self._progress(safe(last)[:_SHOWN])
            case CallEnded():
                self._ended(event)
            case SubagentEnded(session, agent, status, _):
                self.line(f"{self._paint('•', 36)} sub-agent {flat(agent)}: {status} ({session})")
            case Alert(message=message):
                self.line(f"{self._paint('!', 33)} alert: {safe(message)}")
            case Warned(message):
                self.line(f"{self._paint('!', 33)} {safe(message)}")
            case Discarded(reason, attempt, of):
                self.streamed = ""
                self.line(
                    f"{self._paint('!', 33)} the answer broke off ({safe(reason)}); what was shown "
                    f"of it does not count; asking again ({attempt} of {of})"
                )
            case _:
                pass

    def _ended(self, event: CallEnded) -> None:
        took = "" if event.duration_s is None else f" {event.duration_s:.1f} s"
        if event.outcome is Outcome.DONE and not event.code:
            lines = event.text.count("\n") + 1
            what = _shorten(safe(event.text.strip()), 70) if lines == 1 else f"{lines} lines"
            code = _exit_code(event.text)
            if code and lines > 1:
                what = f"{safe(code)}, {what}"
            mark = self._paint("•", 33) if code else self._paint("✓", 32)
            self.line(f"{mark} {event.tool}{took}  {what}")
            return
        message = event.text
        with contextlib.suppress(ValueError, KeyError, TypeError):
            message = json.loads(event.text)["message"]
        self.line(
            f"{self._paint('✗', 31)} {event.tool}{took}  {event.code or event.outcome} "
            f"({event.outcome}): {safe(str(message))}"
        )

    def line(self, text: str) -> None:
        """One line on stderr."""
        if self.quiet:
            return
        self._clear()
        if self._midline:
            self.out.write("\n")
            self.out.flush()
            self._midline = False
        self.err.write(_encodable(text, self.err) + "\n")
        self.err.flush()

    def _progress(self, text: str) -> None:
        if self.quiet or self._midline:
            return
        if self.live:
            width = self.width()
            self.err.write("\r\x1b[K" + _encodable(text, self.err)[: width - 1])
            self.err.flush()
            self._status = True
        elif time.monotonic() - self._spoke >= _PLAIN_PROGRESS_S:
            self._spoke = time.monotonic()
            self.err.write(_encodable(text, self.err) + "\n")
            self.err.flush()

    def _clear(self) -> None:
        if self._status:
            self.err.write("\r\x1b[K")
            self.err.flush()
            self._status = False

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else _encodable(text, self.err)

    @staticmethod
    def width() -> int:
        """Columns of the terminal on stderr, at least 40; 100 where there is none."""
        try:
            return max(40, os.get_terminal_size(sys.stderr.fileno()).columns)
        except OSError:
            return 100

    def end(self) -> None:
        """Finish a streamed line."""
        self._clear()
        if self._midline:
            self.out.write("\n")
            self.out.flush()
            self._midline = False


def can_ask() -> bool:
    """Whether there is a person at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
