"""What a sandboxed program prints: no secret is kept of it, in memory or on disk."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.safety.sandbox.spec import Limits, SandboxSpec
from lorimer.safety.sandbox.streams import captures_of
from lorimer.safety.secrets import MemoryVault
from lorimer.safety.secrets.keeper import SecretKeeper
from lorimer.safety.secrets.redactor import Redactor

VALUE = "s3cr3t-välue-0815"
MARK = "[secret:github]"
KEEPER = SecretKeeper(MemoryVault({"github": VALUE}))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_kept_parts_and_the_file_hold_no_value(size: int, tmp_path: Path) -> None:
    seen: list[bytes] = []
    limits = Limits(kept_bytes=200, output_bytes=1 << 20)
    spec = SandboxSpec(limits=limits, spool=tmp_path, without_secrets=KEEPER.byte_stream)
    out, _ = captures_of(spec, lambda _, piece: seen.append(piece))
    data = f"{'x' * 95} {VALUE} {'y' * 400} {VALUE}".encode() + b"\xff end"
    for at in range(0, len(data), size):
        out.take(data[at : at + size])
    ended = out.close()
    assert ended.stored is not None
    stored = ended.stored.read_bytes()
    assert stored == b"".join(seen) and stored.count(MARK.encode()) == 2
    assert stored.endswith(b"\xff end") and ended.total == len(stored)
    for place in (stored, ended.head, ended.tail):
        assert VALUE[2:].encode() not in place and VALUE[:9].encode() not in place


def test_without_a_stream_the_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    out, _ = captures_of(SandboxSpec(spool=tmp_path), None)
    out.take(b"\xff\x00" + VALUE.encode())
    assert out.close().head == b"\xff\x00" + VALUE.encode()


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=8))
def test_other_bytes_are_the_same_in_any_pieces(data: bytes, cuts: list[int]) -> None:
    stream = KEEPER.byte_stream()
    at = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    out = b"".join(stream.feed(data[a:b]) for a, b in itertools.pairwise(at)) + stream.end()
    assert out == Redactor({VALUE: MARK}).redact(data)
