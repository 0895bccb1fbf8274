"""The size of an image, read from the first bytes of its file (PNG, JPEG, GIF, WebP).

Sources: https://www.w3.org/TR/png-3/#11IHDR · ITU-T T.81 annex B · GIF89a section 18 ·
https://developers.google.com/speed/webp/docs/riff_container
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Final

_FIRST: Final = 64 * 1024
"""Base64 characters that are looked at first; a multiple of 4."""
_MOST_PIXELS: Final = 1 << 20
"""An edge longer than this is taken for damage."""
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


def size_of_base64(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of the image in `data`; `None` when they cannot be seen.

    Only the beginning is decoded where that is enough.
    """
    for part in (data[:_FIRST], data) if len(data) > _FIRST else (data,):
        try:
            found = image_size(base64.b64decode(part + "=" * (-len(part) % 4)))
        except (binascii.Error, ValueError):
            return None
        if found is not None:
            return found
    return None


def image_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in pixels by the header of an image file; `None` when it is no header of a
    known kind, or is cut before the size."""
    try:
        found = _read(head)
    except (struct.error, IndexError):
        return None
    if found is None or not all(0 < edge <= _MOST_PIXELS for edge in found):
        return None
    return found


def _read(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        return struct.unpack_from(">II", head, 16)
    if head.startswith((b"GIF87a", b"GIF89a")):
        return struct.unpack_from("<HH", head, 6)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and head[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(head) >= 30:
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 4 <= len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF:  # fill
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        elif marker in (0xD9, 0xDA):
            return None
        else:
            (length,) = struct.unpack_from(">H", head, at + 2)
            at += 2 + max(2, length)
    return None
