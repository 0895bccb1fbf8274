"""`read_file`: lines of a text file exactly as they are, or an image."""

from __future__ import annotations

import base64
import codecs
import os
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from lorimer.core.calls import Effects
from lorimer.core.messages import ImagePart, TextPart
from lorimer.core.trust import Trust
from lorimer.safety.paths import Opened
from lorimer.toolkits.opening import nothing_done, refusals, roots_of
from lorimer.toolkits.text import (
    SAMPLE,
    Encoding,
    Survey,
    binary_kind,
    detect,
    image_type,
    read_all,
    survey,
)
from lorimer.tools.function import tool
from lorimer.tools.tool import Category, Description, ToolContext

MOST_LINES = 180
MOST_CHARACTERS = 9_000
LONGEST_LINE = 2_000
_LARGEST_IMAGE = 5 << 20


@tool(
    description=Description(
        "Read lines of a text file exactly as they are, or look at an image.",
        use_when="you need its content; always before changing it.",
        not_when="searching (grep_file), or computing over a table (run_python).",
        cost="up to 180 lines.",
        returns="where it is and how to continue, then the lines.",
    ),
    examples=({"path": "notes/todo.txt"}, {"path": "app.log", "offset": 181}),
    category=Category.PERCEPTION,
    effects=Effects.READ,
    timeout_s=60,
    path_arguments=("path",),
    confined=True,
    trust=Trust.USER_DATA,
    group="files",
)
def read_file(
    path: Annotated[str, Field(description="File, e.g. 'src/main.py'")],
    offset: Annotated[int, Field(ge=1, description="First line, e.g. 181")] = 1,
    limit: Annotated[int, Field(ge=1, description="Most lines, e.g. 50")] = MOST_LINES,
    column: Annotated[
        int, Field(ge=1, description="In a long line, first character, e.g. 2001")
    ] = 1,
    *,
    context: ToolContext,
) -> list[TextPart | ImagePart]:
    with refusals(), roots_of(context).open_file(path) as opened:
        sample = os.pread(opened.fd, SAMPLE, 0)
        if media_type := image_type(sample):
            return _image(opened, media_type)
        encoding = detect(sample)
        if encoding is None:
            size = os.fstat(opened.fd).st_size
            raise nothing_done(
                f"{path!r} is not text: {binary_kind(sample)}, {size:,} bytes.",
                next="Use run_python to look into it with a library for that format.",
                code="binary",
            )
        found = survey(opened.fd, encoding, offset)
        if found.start is None and (found.lines or offset > 1):
            raise nothing_done(
                f"{path!r} has {found.lines:,} lines; there is no line {offset:,}.",
                next=f"Use an offset from 1 to {max(found.lines, 1)}.",
                code="past_end",
            )
        name = opened.shown
        if found.start is None:
            context.views.remember(str(opened.path), found.hash)
            facts = f", {encoding.label}" if encoding.bom else ""
            return [TextPart(f"{name}: an empty file ({found.size} bytes{facts}).")]
        window = _Window(offset, min(limit, MOST_LINES), column)
        window.read(opened.fd, found.start, encoding)
        context.views.remember(str(opened.path), found.hash)
        header = _header(name, window, found, encoding, clipped=limit > MOST_LINES)
        return [
            TextPart(header + "\n", source=name),
            TextPart("".join(window.shown), Trust.USER_DATA, source=name),
        ]


def _image(opened: Opened, media_type: str) -> list[TextPart | ImagePart]:
    size = os.fstat(opened.fd).st_size
    if size > _LARGEST_IMAGE:
        raise nothing_done(
            f"{opened.shown!r} is an image of {size:,} bytes; at most {_LARGEST_IMAGE:,} fit.",
            next="Make a smaller copy with run_python and read that.",
            code="too_large",
        )
    content = base64.b64encode(read_all(opened.fd)).decode()
    return [
        TextPart(f"{opened.shown}: {media_type}, {size:,} bytes"),
        ImagePart(media_type, content, source=opened.shown),
    ]


def _header(name: str, window: _Window, found: Survey, encoding: Encoding, *, clipped: bool) -> str:
    last = window.first + max(window.lines, 1) - 1
    where = f"line {last:,}" if last == window.first else f"lines {window.first:,}–{last:,}"
    text = f"{name}: {where} of {found.lines:,}"
    if window.column > 1:
        text += f", from character {window.column:,}"
    if last < found.lines and not window.unfinished:
        text += f"; continue with offset={last + 1}"
    facts = [encoding.label] if encoding != Encoding("utf-8") else []
    if found.line_ends:
        facts.append(found.line_ends)
    if not found.ends_with_newline and last == found.lines:
        facts.append("no newline at the end")
    if window.odd_bytes:
        facts.append("bytes that are not valid text are shown as \\xNN")
    if clipped:
        facts.append(f"one call shows at most {MOST_LINES} lines")
    return f"{text}. {'; '.join(facts)}." if facts else f"{text}."


@dataclass(slots=True)
class _Line:
    """One line while it is read: what is shown of it, and how long it is."""

    skip: int
    most: int
    shown: str = ""
    length: int = 0

    def take(self, segment: str) -> None:
        begin = max(0, self.skip - self.length)
        room = self.most - len(self.shown)
        if room > 0 and begin < len(segment):
            self.shown += segment[begin : begin + room]
        self.length += len(segment)

    @property
    def left_out(self) -> int:
        return self.length - self.skip - len(self.shown)


class _Window:
    """Lines `first` and on, at most `limit` of them, as much of each as fits."""

    def __init__(self, first: int, limit: int, column: int) -> None:
        self.first = first
        self.limit = limit
        self.column = column
        self.shown: list[str] = []
        self.unfinished = False
        self.odd_bytes = False
        self._characters = 0

    @property
    def lines(self) -> int:
        return len(self.shown)

    def read(self, fd: int, start: int, encoding: Encoding) -> None:
        """Decode from byte `start`; long lines are cut, with a mark that says how to go on."""
        decoder = codecs.getincrementaldecoder(encoding.codec)(_BYTES_AS_SURROGATES)
        line = self._next_line()
        while True:
            piece = os.pread(fd, SAMPLE, start)
            start += len(piece)
            for segment in _SEGMENTS.findall(decoder.decode(piece, final=not piece)):
                line.take(segment)
                if segment[-1] == "\n":
                    if not self._add(line):
                        return
                    line = self._next_line()
            if not piece:
                if line.length:
                    self._add(line)
                return

    def _next_line(self) -> _Line:
        most = MOST_CHARACTERS - 200 if self.limit == 1 else LONGEST_LINE
        return _Line(0 if self.shown else self.column - 1, most)

    def _add(self, line: _Line) -> bool:
        """Whether another line is wanted after this one."""
        number = self.first + len(self.shown)
        if line.skip >= line.length:
            raise nothing_done(
                f"Line {number:,} has {line.length:,} characters; there is no character "
                f"{self.column:,}.",
                next=f"Use a column from 1 to {line.length}.",
                code="past_end",
            )
        text = _SURROGATES.sub(self._show_byte, line.shown)
        if line.left_out:
            text += (
                f" ⟪line {number} goes on for {line.left_out:,} more characters: read them with "
                f"offset={number}, limit=1, column={line.skip + len(line.shown) + 1}⟫\n"
            )
        if self.shown and self._characters + len(text) > MOST_CHARACTERS:
            return False
        self.unfinished = bool(line.left_out) and self.limit == 1
        self.shown.append(text)
        self._characters += len(text)
        return len(self.shown) < self.limit

    def _show_byte(self, match: re.Match[str]) -> str:
        self.odd_bytes = True
        return f"\\x{ord(match[0]) - 0xDC00:02x}"


_SEGMENTS = re.compile(r"[^\n]*\n|[^\n]+")
_SURROGATES = re.compile("[\udc00-\udcff]")
_BYTES_AS_SURROGATES = "lorimer-bytes-as-surrogates"


def _keep_bytes(fault: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(fault, UnicodeDecodeError)
    bad = fault.object[fault.start : fault.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), fault.end


codecs.register_error(_BYTES_AS_SURROGATES, _keep_bytes)
