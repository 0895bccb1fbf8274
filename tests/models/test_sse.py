"""The decoder of server-sent events."""

from __future__ import annotations

import itertools
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.core.errors import BadAnswer, StreamCut
from lorimer.models.sse import SseDecoder, SseEvent

STREAM = (
    "\ufeff: hello\r\nevent: one\r\ndata: ä1\r\n\r\n"
    "data: two\ndata:lines 😀\n\nid: 7\nretry: 5\n\nevent: empty\n\ndata\r\rdata: last\n\n"
).encode()
EVENTS = [
    SseEvent("one", "ä1"),
    SseEvent("", "two\nlines 😀"),
    SseEvent("", ""),
    SseEvent("", "last"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_do_not_depend_on_where_chunks_end(cuts: list[int]) -> None:
    decoder = SseDecoder()
    edges = [0, *sorted(cuts), len(STREAM)]
    got = []
    for start, end in itertools.pairwise(edges):
        got += decoder.feed(STREAM[start:end])
    decoder.close()
    assert got == EVENTS


def test_one_byte_at_a_time() -> None:
    decoder = SseDecoder()
    assert [e for byte in STREAM for e in decoder.feed(bytes([byte]))] == EVENTS


def test_an_event_without_its_empty_line_is_dropped() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: half") == []
    decoder.close()


def test_half_a_character_at_the_end_is_a_cut() -> None:
    decoder = SseDecoder()
    decoder.feed("data: ä".encode()[:-1])
    with pytest.raises(StreamCut):
        decoder.close()


@pytest.mark.parametrize("line", [b"data: \xff\n", b"data: \xc3\x28\n", b"event: \xed\xa0\x80\n"])
def test_bytes_that_are_no_utf8_are_a_bad_answer(line: bytes) -> None:
    with pytest.raises(BadAnswer, match="UTF-8"):
        SseDecoder().feed(line)


@pytest.mark.parametrize("piece", [b"data: 0123456789\n", b"data: 0123456789"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    decoder = SseDecoder(max_event_bytes=1000)
    for _ in range(60):
        decoder.feed(piece)
    with pytest.raises(BadAnswer, match="1000"):
        deque(decoder.feed(piece) for _ in range(60))
