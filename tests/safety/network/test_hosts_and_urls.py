"""Reading hosts and URLs: every spelling of an address is that address, every doubt is refused."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorimer.safety.network import NetworkRefused, NetworkRules, Why, check_url, hosts_of
from lorimer.safety.network.hosts import parse_host

ANY = NetworkRules()
v4 = st.ip_addresses(v=4)
v6 = st.ip_addresses(v=6)


@st.composite
def spelled(draw: st.DrawFn) -> tuple[ipaddress.IPv4Address, str]:
    """An IPv4 address in any of the ways inet_aton(3) reads."""
    address = draw(v4)
    octets = list(address.packed)
    parts = draw(st.integers(1, 4))
    values = [*octets[: parts - 1], int.from_bytes(bytes(octets[parts - 1 :]), "big")]
    ways = [
        draw(st.sampled_from([str, lambda n: f"0{n:o}", lambda n: f"0x{n:x}", lambda n: f"0X{n:X}",
                              lambda n: f"0x00{n:x}", lambda n: f"000{n:o}"]))
        for _ in values
    ]  # fmt: skip
    return address, ".".join(way(n) for way, n in zip(ways, values, strict=True))


@given(spelled())
def test_every_spelling_of_an_ipv4_address_is_that_address(
    pair: tuple[ipaddress.IPv4Address, str],
) -> None:
    address, text = pair
    assert socket.inet_aton(text) == address.packed  # the system reads it the same way
    host = parse_host(text)
    assert host.address == address
    assert host.name == str(address)
    assert host.odd == (text != str(address))
    assert hosts_of(f"http://{text}/") == str(address)


@given(spelled())
def test_a_url_takes_an_address_in_its_usual_spelling_only(
    pair: tuple[ipaddress.IPv4Address, str],
) -> None:
    address, text = pair
    if text != str(address):
        with pytest.raises(NetworkRefused) as info:
            check_url(f"http://{text}/", NetworkRules(allow_networks=("0.0.0.0/0",)))
        assert info.value.why is Why.URL
        assert str(address) in info.value.message


@given(v6, st.sampled_from(["compressed", "exploded", "upper"]))
def test_every_spelling_of_an_ipv6_address_is_that_address(
    address: ipaddress.IPv6Address, how: str
) -> None:
    text = address.exploded if how == "exploded" else address.compressed
    host = parse_host(f"[{text.upper() if how == 'upper' else text}]")
    assert host.address == address
    assert ipaddress.ip_address(host.name) == address
    assert str(host) == f"[{host.name}]"
    assert hosts_of(text) == str(host)


@given(st.text(max_size=30))
def test_any_text_is_a_host_or_refused(text: str) -> None:
    try:
        host = parse_host(text)
    except NetworkRefused:
        return
    assert host.name.isascii() and host.name == host.name.lower()
    assert parse_host(str(host)).name == host.name


@given(st.text(max_size=40))
def test_any_text_is_a_url_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            checked = check_url(url, ANY)
        except NetworkRefused:
            continue
        again = check_url(str(checked), ANY)
        assert (again.origin, again.target) == (checked.origin, checked.target)
        assert str(checked).isascii() and " " not in str(checked)


@pytest.mark.parametrize(
    ("given_", "name"),
    [
        ("EXAMPLE.com", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("example。com", "example.com"),
        ("ｅｘａｍｐｌｅ.com", "example.com"),
        ("аррle.com", "xn--le-6kc8da.com"),  # Cyrillic: shown for what it is
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("1.2.3.example", "1.2.3.example"),
        ("[::FFFF:1.2.3.4]", "::ffff:1.2.3.4"),
    ],
)
def test_a_host_has_one_name(given_: str, name: str) -> None:
    host = parse_host(given_)
    assert host.name == name
    assert bool(host.change) == (given_ != str(host))


@pytest.mark.parametrize(
    "text", ["①②⑦.0.0.1", "１２７.1", "127。0。0。1", "0x7f000001", "0177.0.0.1"]
)
def test_numbers_in_disguise_are_addresses(text: str) -> None:
    host = parse_host(text)
    assert (host.name, host.odd) == ("127.0.0.1", True)


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a..b", ".a", "a..", "-a.com", "a-.com", "a" * 64 + ".com", "a." * 130 + "com",
     "1.2.3.4.5", "256.1.1.1", "1.2.3.300", "0x1ffffffff", "a.1", "09.1.1.1", "x.0xg.1",
     "[::1", "::1]", "[]", "[1.2.3.4]", "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::g]", "a b",
     "a\tb", "a\x00b", "a\u200bb", "a\u202eb", "a%2eb", "a\\b", "a/b", "a?b", "a#b", "a@b", "a:b",
     "a*b", "$HOST", "{a,b}.com", "a\u00adb.com\ud800", "💩.com", "a" * 2000],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_advice(text: str) -> None:
    with pytest.raises(NetworkRefused) as info:
        parse_host(text)
    assert info.value.why is Why.URL
    assert info.value.next


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)",
     "http:example.com", "http:/example.com", "http:///example.com", "//example.com", "http://",
     "http:\\\\example.com", "http://example.com\\@evil.example/", "http://a@b@example.com/",
     "http://user@example.com/", "http://user:pw@example.com/", " http://example.com/",
     "http://example.com/ x", "http://example.com/\n", "http://exam\tple.com/",
     "http://example.com/\x00", "http://example.com/\u202etxt", "http://example.com/\u200b",
     "http://example.com:x/", "http://example.com:0/", "http://example.com:99999/",
     "http://example.com:80:80/", "http://[::1]x/", "http://[::1]:x/", "http://example.com:８０/",
     "http://example.com%00.evil.example/", "http://%65xample.com/", "http://ex\u00a0ample.com/",
     "http://example.com/a\\b", "http://example.com/?q=\\",
     "http://example.com:+80/", "http://example.com/" + "x" * 9000],
)  # fmt: skip
def test_a_url_that_can_be_read_two_ways_is_refused(url: str) -> None:
    with pytest.raises(NetworkRefused) as info:
        check_url(url, ANY)
    assert info.value.why is Why.URL
    assert info.value.next
    assert not info.value.sent


def test_what_was_changed_in_a_url_is_told() -> None:
    checked = check_url("HTTPS://Bücher.example.:443/a/../b/./%2e%2e/c?q=ü#part", ANY)
    assert str(checked) == "https://xn--bcher-kva.example/c?q=%C3%BC"
    assert checked.authority == "xn--bcher-kva.example"
    assert len(checked.changes) == 4
    assert check_url("https://example.com/a%20b?x=1&y=%zz", ANY).changes == ()


def test_user_and_password_are_taken_only_where_allowed_and_never_shown() -> None:
    checked = check_url("https://me:topsecret@example.com/", NetworkRules(userinfo=True))
    assert checked.userinfo == "me:topsecret"
    assert "topsecret" not in f"{checked} {checked!r}"
    with pytest.raises(NetworkRefused) as info:
        check_url("https://me:topsecret@example.com/", ANY)
    assert "topsecret" not in str(info.value)


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://Example.com/x?y#z", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("http://example.com:443/", "example.com:443"),
        ("http://user:pw@example.com:8080/x", "example.com:8080"),
        ("ssh://git@example.com:2222/x.git", "example.com:2222"),
        ("git@example.com:owner/repo.git", "example.com"),
        ("user@example.com", "example.com"),
        ("example.com", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("example.com/path:1", "example.com"),
        ("localhost:3000", "localhost:3000"),
        ("//example.com/x", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("0x7f.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("[::1]:80", "[::1]:80"),
        ("ws://example.com", "example.com"),
        ("$HOST", None),
        ("http://$HOST/", None),
        ("http://{a,b}.com/", None),
        ("http://[1-3].com/", None),
        ("http://%65xample.com/", None),
        ("http://a.com\\@b.com", None),
        ("http://a@b@c.com/", None),
        ("http:example.com", None),
        ("file:///etc/passwd", None),
        ("data:text/plain,x", None),
        ("javascript:alert(1)", None),
        ("example.com:99999", None),
        ("*.example.com", None),
        ("a b", None),
        ("-o", None),
        ("", None),
    ],
)
def test_the_host_of_an_argument(value: str, host: str | None) -> None:
    assert hosts_of(value) == host
