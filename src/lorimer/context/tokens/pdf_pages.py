"""How many pages a PDF has, without a PDF library: by its page objects, also where they lie in
compressed object streams (ISO 32000-2, 7.5.7 and 7.7.3)."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Final

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,6})(?!\s+\d+\s+R)")
_TREE: Final = re.compile(rb"/Type\s*/Pages\b")
_OBJECTS: Final = re.compile(rb"/Type\s*/ObjStm\b")
_STREAM: Final = re.compile(rb"\bstream\r?\n")
_MOST_INFLATED: Final = 32 * 1024 * 1024
_NEAR: Final = 400
"""Bytes around `/Type /Pages` in which its `/Count` is looked for."""


def pages_of_base64(data: str) -> int | None:
    """The pages of the PDF in `data`; `None` when they cannot be counted."""
    try:
        return pdf_pages(base64.b64decode(data, validate=False))
    except (binascii.Error, ValueError):
        return None


def pdf_pages(file: bytes) -> int | None:
    """The pages of a PDF; `None` when it is none, or they are encrypted or damaged.

    The tree of pages tells their number; where that is not found the page objects are counted. A
    file that was changed by appending may hold old trees: the largest number counts.
    """
    if b"%PDF-" not in file[:1024]:
        return None
    texts = [file, *_object_streams(file)]
    told = [int(found) for text in texts for found in _counts(text)]
    if told:
        return max(told) or None
    return sum(len(_PAGE.findall(text)) for text in texts) or None


def _counts(text: bytes) -> list[bytes]:
    found = []
    for tree in _TREE.finditer(text):
        start = max(text.rfind(b"<<", max(0, tree.start() - _NEAR), tree.start()), 0)
        near = text[start : tree.end() + _NEAR]
        end = near.find(b">>", tree.end() - start)
        match = _COUNT.search(near if end < 0 else near[:end])
        if match:
            found.append(match[1])
    return found


def _object_streams(file: bytes) -> list[bytes]:
    texts = []
    left = _MOST_INFLATED
    for mark in _OBJECTS.finditer(file):
        begin = _STREAM.search(file, mark.end(), mark.end() + 2 * _NEAR)
        if begin is None or left <= 0:
            continue
        try:
            text = zlib.decompressobj().decompress(file[begin.end() :], left)
        except zlib.error:
            continue
        left -= len(text)
        texts.append(text)
    return texts
