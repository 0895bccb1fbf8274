# ruff: noqa: ASYNC230 - tests look at the disk, and wait for it
import base64
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.messages import ImagePart
from lorimer.toolkits.perception.read_file import read_file
from lorimer.tools.tool import ToolContext, ToolError

pytestmark = pytest.mark.anyio


async def test_the_first_page_says_how_to_continue(call: Any, workspace: Path) -> None:
    (workspace / "x").write_text("".join(f"line {n}\n" for n in range(1, 5001)))
    head, body = (await call("read_file", path="x")).split("\n", 1)
    assert head == "x: lines 1–180 of 5,000; continue with offset=181."
    assert body.count("\n") == 180
    head, body = (await call("read_file", path="x", offset=4990)).split("\n", 1)
    assert head == "x: lines 4,990–5,000 of 5,000."
    assert body.startswith("line 4990\n")


async def test_a_limit_over_a_page_is_told(call: Any, workspace: Path) -> None:
    (workspace / "x").write_text("a\n" * 1000)
    assert "one call shows at most 180 lines" in await call("read_file", path="x", limit=1000)


async def test_a_result_never_needs_cutting(call: Any, workspace: Path) -> None:
    (workspace / "x").write_text(("ü" * 150 + "\n") * 1000)
    said = await call("read_file", path="x")
    assert len(said) < 10_000 and said.count("\n") < 200
    assert "continue with offset=" in said


async def test_a_long_line_is_cut_in_sight_and_can_be_read_on(call: Any, workspace: Path) -> None:
    line = "".join(f"{n:06d}" for n in range(200_000))
    (workspace / "min.js").write_text(f"first\n{line}\nlast\n")
    said = await call("read_file", path="min.js")
    assert "⟪line 2 goes on for 1,198,001 more characters" in said
    assert said.endswith("last\n")
    got, column = "", 1
    for _ in range(3):
        said = await call("read_file", path="min.js", offset=2, limit=1, column=column)
        piece, _, mark = said.split("\n", 1)[1].partition(" ⟪")
        got += piece
        column = int(mark.split("column=")[1].split("⟫")[0])
    assert line.startswith(got) and len(got) > 20_000
    said = await call("read_file", path="min.js", offset=2, limit=1, column=1_199_990)
    assert said.split("\n", 1)[1] == line[1_199_989:] + "\n"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"a\r\nb\r\n", "CRLF line ends"),
        (b"a\r\nb\n", "mixed line ends (1 CRLF, 1 LF)"),
        (b"\xef\xbb\xbfa\n", "UTF-8 with a byte order mark"),
        (b"a\nb", "no newline at the end"),
        ("ab\n".encode("utf-16"), "UTF-16 LE with a byte order mark"),
        ("only ascii text here\n".encode("utf-16-be"), "UTF-16 BE"),
        (b"caf\xe9\n", "bytes that are not valid text are shown as \\xNN"),
    ],
)
async def test_what_is_unusual_is_told(call: Any, workspace: Path, raw: bytes, told: str) -> None:
    (workspace / "x").write_bytes(raw)
    assert told in (await call("read_file", path="x")).split("\n")[0]


async def test_bytes_that_are_not_text_are_shown(call: Any, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"caf\xe9 \xff\n")
    assert (await call("read_file", path="x")).split("\n", 1)[1] == "caf\\xe9 \\xff\n"


async def test_line_feeds_across_pieces_are_counted(call: Any, workspace: Path) -> None:
    (workspace / "x").write_bytes(b"a" * ((1 << 20) - 1) + b"\r\n" + b"b\r\n" * 10)
    head = (await call("read_file", path="x", offset=2)).split("\n")[0]
    assert head == "x: lines 2–11 of 11. CRLF line ends."


async def test_an_empty_file_is_told(call: Any, workspace: Path) -> None:
    (workspace / "x").touch()
    assert "empty file" in await call("read_file", path="x")


@pytest.mark.parametrize(("offset", "column"), [(4, 1), (10**12, 1), (1, 9)])
async def test_behind_the_end_is_an_error_with_the_end(
    call: Any, workspace: Path, offset: int, column: int
) -> None:
    (workspace / "x").write_text("a\nb\nc\n")
    with pytest.raises(ToolError) as caught:
        await call("read_file", path="x", offset=offset, column=column)
    assert caught.value.code == "past_end"
    assert "from 1 to" in caught.value.next


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"%PDF-1.7\n", "PDF"), (b"PK\x03\x04xx", "ZIP"), (os.urandom(999) + b"\0\xff", "binary")],
)
async def test_other_formats_are_named(call: Any, workspace: Path, raw: bytes, kind: str) -> None:
    (workspace / "x").write_bytes(raw)
    with pytest.raises(ToolError, match=kind) as caught:
        await call("read_file", path="x")
    assert "run_python" in caught.value.next


def png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)

    header = (1).to_bytes(4) + (1).to_bytes(4) + bytes([8, 2, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0abc"))
        + chunk(b"IEND", b"")
    )


async def test_an_image_comes_as_an_image(context: ToolContext, workspace: Path) -> None:
    (workspace / "x.png").write_bytes(png())
    parts = read_file.function(path="x.png", context=context)
    assert isinstance(parts[1], ImagePart)
    assert parts[1].media_type == "image/png"
    assert base64.b64decode(parts[1].data) == png()


async def test_a_huge_file_is_not_loaded(call: Any, workspace: Path) -> None:
    import tracemalloc

    with open(workspace / "huge", "wb") as file:
        for _ in range(200):
            file.write(b"0123456789abcde\n" * (1 << 16))
    tracemalloc.start()
    try:
        said = await call("read_file", path="huge", offset=13_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert "lines 13,000,000–13,000,179 of 13,107,200" in said


async def test_paths_outside_are_refused_without_a_trace(call: Any) -> None:
    with pytest.raises(ToolError) as caught:
        await call("read_file", path="../x")
    assert caught.value.code == "outside"


async def test_the_scratch_folder_can_be_read(call: Any, context: ToolContext) -> None:
    assert context.scratch is not None
    context.scratch.mkdir()
    (context.scratch / "out").write_text("whole output\n")
    assert "whole output" in await call("read_file", path=str(context.scratch / "out"))
