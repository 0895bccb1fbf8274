"""What a file's bytes are: text in which encoding, an image, or something else."""

from __future__ import annotations

import codecs
import hashlib
import os
from array import array
from dataclasses import dataclass

SAMPLE = 1 << 16
_PIECE = 1 << 20

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
)  # fmt: skip
_OTHERS = (
    (b"%PDF-", "a PDF document"), (b"PK\x03\x04", "a ZIP archive (also DOCX, XLSX, PPTX, EPUB)"),
    (b"SQLite format 3\0", "an SQLite database"), (b"\x7fELF", "a program (ELF)"),
    (b"\x1f\x8b", "gzip data"), (b"BZh", "bzip2 data"), (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"), (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"PAR1", "a Parquet table"), (b"ID3", "MP3 sound"), (b"OggS", "Ogg sound"),
    (b"RIFF", "a RIFF file (WAV, AVI)"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text encoding; `bom` is the mark at the start of the file, empty without one."""

    codec: str
    bom: bytes = b""

    @property
    def label(self) -> str:
        name = {"utf-8": "UTF-8", "utf-16-le": "UTF-16 LE", "utf-16-be": "UTF-16 BE"}[self.codec]
        return f"{name} with a byte order mark" if self.bom else name

    @property
    def unit(self) -> int:
        return 1 if self.codec == "utf-8" else 2


def image_type(sample: bytes) -> str | None:
    """The media type, when `sample` begins like an image that models can read."""
    if sample[:4] == b"RIFF" and sample[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if sample.startswith(magic)), None)


def binary_kind(sample: bytes) -> str:
    """What a file that is not text seems to be."""
    return next((kind for magic, kind in _OTHERS if sample.startswith(magic)), "binary data")


def detect(sample: bytes) -> Encoding | None:
    """The encoding of a text that begins with `sample` (up to `SAMPLE` bytes); `None` if no text.

    Without a byte order mark it is UTF-16 when more than 30 % of the bytes at odd or even places
    are NUL and next to none at the others, and UTF-8 otherwise, other bytes included. It is not
    text when it begins like a known binary format or more than a tenth of it is NUL.
    """
    for bom, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if sample.startswith(bom):
            return Encoding(codec, bom)
    if image_type(sample) or binary_kind(sample) != "binary data":
        return None
    nuls = sample.count(0)
    if not nuls:
        return Encoding("utf-8")
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = max(len(sample) // 2, 1)
    if len(sample) >= 8 and max(even, odd) > 0.3 * half and min(even, odd) < 0.02 * half:
        codec = "utf-16-le" if odd > even else "utf-16-be"
        try:
            sample[: len(sample) & ~3].decode(codec)
        except UnicodeDecodeError as fault:
            if fault.end < len(sample) - 4:
                return None
        return Encoding(codec)
    if nuls > len(sample) / 10 and len(sample) > 32:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return None
    return Encoding("utf-8")


@dataclass(frozen=True, slots=True)
class Survey:
    """One pass over a text file.

    Attributes:
        hash: SHA-256 of all bytes, hexadecimal.
        newlines: line feeds in it; `crlf` of them follow a carriage return.
        ends_with_newline: whether the last line is ended.
        empty: nothing but a byte order mark is in it.
        start: byte offset where the line that was asked for begins; `None` when there is none.
    """

    hash: str
    size: int
    newlines: int
    crlf: int
    ends_with_newline: bool
    empty: bool
    start: int | None

    @property
    def lines(self) -> int:
        return self.newlines + (0 if self.ends_with_newline or self.empty else 1)

    @property
    def line_ends(self) -> str:
        """In words, when it is not simply LF."""
        if self.crlf == 0:
            return ""
        if self.crlf == self.newlines:
            return "CRLF line ends"
        return f"mixed line ends ({self.crlf:,} CRLF, {self.newlines - self.crlf:,} LF)"


def survey(fd: int, encoding: Encoding, line: int) -> Survey:
    """Read the file in pieces, and find where line number `line` (from 1) begins."""
    digest = hashlib.sha256()
    newlines = crlf = size = 0
    begin = len(encoding.bom)
    start: int | None = begin if line == 1 else None
    before = b"\0\0"
    while piece := _exactly(fd, _PIECE, size):
        digest.update(piece)
        if encoding.unit == 1:
            found = piece.count(b"\n")
            crlf += piece.count(b"\r\n") + (before[-1:] == b"\r" and piece[:1] == b"\n")
            if start is None and newlines + found >= line - 1:
                place = -1
                for _ in range(line - 1 - newlines):
                    place = piece.index(b"\n", place + 1)
                start = size + place + 1
        else:
            units = array("H", piece[: len(piece) & ~1])
            if encoding.codec == "utf-16-be":
                units.byteswap()
            found = units.count(10)
            place = -1
            for seen in range(1, found + 1):
                place = units.index(10, place + 1)
                crlf += (units[place - 1] == 13) if place else before == _cr(encoding)
                if start is None and newlines + seen == line - 1:
                    start = size + 2 * (place + 1)
        newlines += found
        size += len(piece)
        before = piece[-2:]
    newline = "\n".encode(encoding.codec)
    ended = size >= len(newline) and before[-len(newline) :] == newline
    if size <= begin or (start is not None and start >= size):
        start = None
    return Survey(digest.hexdigest(), size, newlines, crlf, ended, size <= begin, start)


def _cr(encoding: Encoding) -> bytes:
    return "\r".encode(encoding.codec)


def _exactly(fd: int, count: int, offset: int) -> bytes:
    """`count` bytes, fewer only at the end of the file."""
    out = os.pread(fd, count, offset)
    while 0 < len(out) < count:
        more = os.pread(fd, count - len(out), offset + len(out))
        if not more:
            break
        out += more
    return out


def read_all(fd: int) -> bytes:
    """The whole file, from its start."""
    out = bytearray()
    while piece := os.pread(fd, _PIECE, len(out)):
        out += piece
    return bytes(out)
