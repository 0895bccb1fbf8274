"""Bytes survive: whatever stands in a file or an argument is written, read and edited exactly."""

import asyncio
import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.toolkits.text import SAMPLE, detect
from lorimer.tools.tool import ToolContext

PIECES = [
    "\r\n", "\n", "\r", "\t", " ", "  \n", "\ufeff", "\0", "‘curly’ “quotes”", '"straight"', "'",
    "é", "e\u0301", "Å", "A\u030a", "👩‍👩‍👧", "🇹🇷",
    "\u00a0", "\u202f", "\u2028", "\u0085", "\x0b", "\x0c",
    "\\n", "\\u00e9", "工作", "İı", "தமிழ்", "-0", "%s{}", "\u200b", "end", "\x1b[0m", "\uffff",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)
WHOLE = TEXTS.filter(lambda t: t.isprintable() or not any(0xD800 <= ord(c) < 0xE000 for c in t))
HEADS = st.sampled_from([b"", b"\xef\xbb\xbf"])
ODD = st.sampled_from([b"", b"\xff\xfe\xfa raw", b"caf\xe9"])
_numbers = itertools.count()


def run(work: Any) -> Any:
    return asyncio.run(work)


@pytest.fixture(scope="module")
def folder() -> Any:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(text=WHOLE)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_in_the_file(
    text: str, folder: Path, in_context: Any, make_context: Any
) -> None:
    name = f"f{next(_numbers)}"
    run(in_context(make_context(folder), "write_file", path=name, content=text))
    assert (folder / name).read_bytes() == text.encode()


@given(head=HEADS, text=WHOLE)
@settings(max_examples=150, deadline=None)
def test_what_is_read_is_what_is_in_the_file(
    head: bytes, text: str, folder: Path, in_context: Any, make_context: Any
) -> None:
    raw = head + text.encode()
    if detect(raw[:SAMPLE]) != detect(head + b"x") or raw[3:].startswith(b"\xef\xbb\xbf"):
        return  # it looks like another encoding, which is told; the tests of encodings have that
    path = folder / f"f{next(_numbers)}"
    path.write_bytes(raw)
    said = run(in_context(make_context(folder), "read_file", path=path.name))
    bare = text.removeprefix("\ufeff") if not head else text
    if bare:
        assert said.split("\n", 1)[1] == bare
    else:
        assert "empty file" in said


@given(head=HEADS, before=WHOLE, middle=ODD, after=WHOLE, new=WHOLE)
@settings(max_examples=200, deadline=None)
def test_an_edit_changes_its_text_and_no_other_byte(
    head: bytes,
    before: str,
    middle: bytes,
    after: str,
    new: str,
    folder: Path,
    in_context: Any,
    make_context: Any,
) -> None:
    old = "<<ôld ‘text’\r\nhere>>"
    raw = head + before.encode() + old.encode() + middle + after.encode()
    if (encoding := detect(raw[:SAMPLE])) is None or encoding.unit != 1:
        return
    path = folder / f"f{next(_numbers)}"
    path.write_bytes(raw)
    context = make_context(folder)
    run(in_context(context, "read_file", path=path.name))
    run(in_context(context, "edit_file", path=path.name, old_text=old, new_text=new))
    assert path.read_bytes() == (head + before.encode() + new.encode() + middle + after.encode())


@given(text=WHOLE, new=WHOLE)
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_stays_utf16(
    codec: str, text: str, new: str, folder: Path, in_context: Any, make_context: Any
) -> None:
    bom = "\ufeff".encode(codec)
    text, new = text.replace("\ufeff", ""), new
    path = folder / f"f{next(_numbers)}"
    path.write_bytes(bom + (text + "<old>" + text).encode(codec))
    context = make_context(folder)
    said = run(in_context(context, "read_file", path=path.name))
    assert "UTF-16" in said
    assert said.split("\n", 1)[1] == text + "<old>" + text
    run(in_context(context, "edit_file", path=path.name, old_text="<old>", new_text=new))
    assert path.read_bytes() == bom + (text + new + text).encode(codec)


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]),
                              max_size=30), max_size=400),
       ends=st.booleans())  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_pages_put_together_are_the_file(
    lines: list[str], ends: bool, folder: Path, in_context: Any, make_context: Any
) -> None:
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    raw = text.encode()
    if not raw or (encoding := detect(raw[:SAMPLE])) is None or encoding != detect(b"x"):
        return
    path = folder / f"f{next(_numbers)}"
    path.write_bytes(raw)
    context: ToolContext = make_context(folder)
    got, offset = "", 1
    while True:
        said = run(in_context(context, "read_file", path=path.name, offset=offset, limit=37))
        head, body = said.split("\n", 1)
        got += body
        if "continue with offset=" not in head:
            break
        offset = int(head.split("continue with offset=")[1].split(".")[0])
    assert got == text
