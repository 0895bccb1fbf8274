"""Reading the server name of a TLS client, from hellos that OpenSSL makes."""

import itertools
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorimer.safety.sandbox.hello import Hello, NotUnderstood

NAME = b"\x00\x00\x0e\x00\x0c\x00\x00\x09a"
"""The head of the extension for the name `a.example`, and its first letter."""
LABEL = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=20)


def hello_of(name: str | None, *, old: bool = False) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.set_alpn_protocols(["h2", "http/1.1"])
    if old:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def in_records(hello: bytes, size: int) -> bytes:
    """The same message in records of `size` bytes."""
    body = hello[5:]
    return b"".join(
        hello[:3] + len(part).to_bytes(2, "big") + part
        for part in (body[at : at + size] for at in range(0, len(body), size))
    )


@given(
    st.lists(LABEL, max_size=4).map(lambda labels: ".".join([*labels, "example"])),
    st.booleans(),
    st.integers(1, 600),
    st.lists(st.floats(0, 1), max_size=6),
)
@settings(deadline=None)
def test_the_name_is_found_however_the_bytes_come(
    name: str, old: bool, record: int, cuts: list[float]
) -> None:
    whole = in_records(hello_of(name, old=old), record)
    places = [0, *sorted(int(cut * len(whole)) for cut in cuts), len(whole)]
    hello = Hello()
    for begin, end in itertools.pairwise(places):
        assert not (hello.known and begin < end)
        hello.feed(whole[begin:end])
    assert (hello.known, hello.tls, hello.name) == (True, True, name)


def test_one_byte_at_a_time() -> None:
    hello = Hello()
    for byte in in_records(hello_of("a.example"), 1):
        assert not hello.known
        hello.feed(bytes([byte]))
    assert hello.name == "a.example"


def test_no_name_and_no_tls() -> None:
    hello = Hello()
    hello.feed(hello_of(None))
    assert (hello.known, hello.tls, hello.name) == (True, True, None)
    other = Hello()
    other.feed(b"")
    assert not other.known
    other.feed(b"SSH-2.0-x\r\n")
    assert (other.known, other.tls) == (True, False)


@given(st.data())
@settings(deadline=None)
def test_a_changed_hello_is_never_more_than_refused(data: st.DataObject) -> None:
    whole = bytearray(hello_of("a.example"))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(1, len(whole) - 1))] = data.draw(st.integers(0, 255))
    hello = Hello()
    try:
        hello.feed(bytes(whole))
    except NotUnderstood:
        return
    assert hello.tls
    assert hello.name is None or hello.name.isascii()


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h[:5] + b"\x02" + h[6:],
        lambda h: h[:1] + b"\x02" + h[2:],
        lambda h: h[:3] + b"\x00\x00" + h[5:],
        lambda h: h[:3] + b"\xff\xff" + h[5:],
        lambda h: h[:3] + (int.from_bytes(h[3:5], "big") + 1).to_bytes(2, "big") + h[5:] + b"\x00",
        lambda h: h.replace(b"a.example", b"a.exampl\xe9"),
        lambda h: h.replace(NAME, b"\x00\x00\x0e\x00\x0c\x01\x00\x09a"),
        lambda h: h.replace(NAME, b"\x00\x00\x0e\x00\x0b\x00\x00\x08a"),
        lambda h: in_records(h, 1 << 14) + b"\x16" * 70_000,
    ],
)  # fmt: skip
def test_what_is_no_hello_is_refused(change: object) -> None:
    whole = hello_of("a.example")
    changed = change(whole)  # type: ignore[operator]
    assert changed != whole
    with pytest.raises(NotUnderstood):
        Hello().feed(changed)
