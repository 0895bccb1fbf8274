"""Which hosts, ports and addresses the rules let through."""

import ipaddress
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.net import names
from lorimer.core.errors import ConfigError
from lorimer.safety.network import NetworkRefused, NetworkRules, Why, check_url, resolve_checked
from lorimer.safety.network.addresses import METADATA, not_public
from lorimer.safety.network.hosts import parse_host
from lorimer.safety.network.rules import check_host

PUBLIC4 = "93.184.215.14"
PUBLIC6 = "2606:4700:4700::1111"


def allowed(host: str, port: int, rules: NetworkRules) -> Why | None:
    try:
        check_host(parse_host(host), port, rules)
    except NetworkRefused as fault:
        return fault.why
    return None


@pytest.mark.parametrize(
    ("patterns", "host", "port", "why"),
    [
        (None, "example.com", 443, None),
        (None, "example.com", 22, Why.PORT),
        ((), "example.com", 443, Why.HOST),
        (("example.com",), "example.com", 80, None),
        (("EXAMPLE.com",), "example.COM.", 80, None),
        (("example.com",), "www.example.com", 80, Why.HOST),
        (("example.com",), "notexample.com", 80, Why.HOST),
        (("example.com",), "example.com.evil.example", 80, Why.HOST),
        (("*.example.com",), "a.b.example.com", 80, None),
        (("*.example.com",), "example.com", 80, Why.HOST),
        (("*.example.com",), "badexample.com", 80, Why.HOST),
        (("example.com:8443",), "example.com", 8443, None),
        (("example.com:8443",), "example.com", 443, Why.PORT),
        (("example.com:8443",), "other.com", 8443, Why.HOST),
        (("*", "example.com:22"), "example.com", 22, None),
        (("*", "example.com:22"), "other.com", 22, Why.PORT),
        (("*", "example.com:22"), "other.com", 443, None),
        (("*:22",), "other.com", 22, None),
        (("bücher.example",), "xn--bcher-kva.example", 443, None),
        (("1.2.3.4",), "1.2.3.4", 443, None),
        (("1.2.3.4",), "1.2.3.5", 443, Why.HOST),
        (("[2606:4700::1]:8080",), "[2606:4700:0::1]", 8080, None),
    ],
)
def test_host_patterns(
    patterns: tuple[str, ...] | None, host: str, port: int, why: Why | None
) -> None:
    assert allowed(host, port, NetworkRules(allow_hosts=patterns)) is why


def test_a_denial_wins() -> None:
    rules = NetworkRules(
        allow_hosts=("*",), deny_hosts=("*.evil.example", "evil.example", "part.example:8080"),
        ports=(80, 8080),
    )  # fmt: skip
    assert allowed("a.evil.example", 80, rules) is Why.HOST
    assert allowed("EVIL.example.", 80, rules) is Why.HOST
    assert allowed("part.example", 80, rules) is None
    assert allowed("part.example", 8080, rules) is Why.HOST


@pytest.mark.parametrize(
    "options",
    [
        {"allow_hosts": ("exa mple.com",)},
        {"allow_hosts": ("https://example.com",)},
        {"allow_hosts": ("ex*mple.com",)},
        {"allow_hosts": ("a.*.com",)},
        {"allow_hosts": ("example.com:http",)},
        {"allow_hosts": ("example.com:0",)},
        {"allow_hosts": ("0x7f.1",)},
        {"allow_hosts": ("*.1.2.3.4",)},
        {"allow_hosts": "example.com"},
        {"deny_hosts": ("",)},
        {"private_hosts": ("example.com/x",)},
        {"allow_networks": ("10.0.0.1/8",)},
        {"allow_networks": ("localhost",)},
        {"deny_networks": ("::/129",)},
        {"ports": (0,)},
        {"ports": ("80",)},
        {"ports": (True,)},
        {"schemes": ("ftp",)},
        {"max_redirects": -1},
    ],
)
def test_rules_that_make_no_sense_stop_the_start(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as info:
        NetworkRules(**options)  # type: ignore[arg-type]
    assert info.value.next


NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
    "127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "100.100.100.200",
    "::", "::1", "::2", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1",
    "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "3fff::1", "5f00::1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "fc00::1", "fd00:ec2::254",
    "fd20:ce::254", "fe80::1", "fec0::1", "ff02::1", "4000::1", "1::1", "e000::1",
]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("text", NOT_PUBLIC)
async def test_a_name_with_an_address_that_is_not_public_is_refused(text: str) -> None:
    resolver = names({"a.example": [PUBLIC4, text], "b.example": [text]})
    for host in ("a.example", "b.example"):
        with pytest.raises(NetworkRefused) as info:
            await resolve_checked(host, 443, NetworkRules(), resolver=resolver)
        assert info.value.why is Why.ADDRESS
        assert host in info.value.message
    literal = f"[{text}]" if ":" in text else text
    with pytest.raises(NetworkRefused) as info:
        check_url(f"http://{literal}/", NetworkRules())
    assert info.value.why is Why.ADDRESS


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_called_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not not_public(address):
        plain = getattr(address, "ipv4_mapped", None) or address
        assert not (plain.is_private or plain.is_loopback or plain.is_link_local)
        assert not (plain.is_multicast or plain.is_unspecified)
        assert not plain.is_reserved or plain in ipaddress.ip_network("64:ff9b::/96")  # NAT64


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "64:ff9b::", "2002::", "isatap"]))
def test_a_carried_address_is_as_public_as_itself(inner: ipaddress.IPv4Address, form: str) -> None:
    value = int(inner)
    outer = {
        "::ffff:0:0": 0xFFFF << 32 | value,
        "64:ff9b::": 0x64FF9B << 96 | value,
        "2002::": 0x2002 << 112 | value << 80,
        "isatap": int(ipaddress.IPv6Address(PUBLIC6)) >> 64 << 64 | 0x5EFE << 32 | value,
    }[form]
    assert bool(not_public(ipaddress.IPv6Address(outer))) == bool(not_public(inner))


@pytest.mark.anyio
async def test_public_addresses_are_returned_in_order_once() -> None:
    resolver = names({"a.example": [PUBLIC6, PUBLIC4, PUBLIC4]})
    found = await resolve_checked("A.example.", 443, NetworkRules(), resolver=resolver)
    assert [str(a) for a in found] == [PUBLIC6, PUBLIC4]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "word"),
    [(None, "no such name"), ([], "no address"), (["nonsense"], "not an address")],
)
async def test_a_name_without_addresses_is_refused(
    answers: Sequence[str] | None, word: str
) -> None:
    table = {} if answers is None else {"a.example": answers}
    with pytest.raises(NetworkRefused) as info:
        await resolve_checked("a.example", 443, NetworkRules(), resolver=names(table))
    assert info.value.why is Why.RESOLUTION
    assert word in info.value.message


@pytest.mark.anyio
async def test_a_look_up_that_hangs_is_ended() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await anyio.sleep_forever()
        return []

    with pytest.raises(NetworkRefused) as info:
        await resolve_checked("a.example", 443, NetworkRules(), resolver=never, timeout_s=0.05)
    assert info.value.why is Why.RESOLUTION


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "works"),
    [
        ({}, False),
        ({"allow_hosts": ("in.example",)}, False),
        ({"allow_networks": ("10.0.0.0/8",)}, True),
        ({"allow_networks": ("10.1.0.0/16",)}, False),
        ({"private_hosts": ("in.example",)}, True),
        ({"private_hosts": ("in.example:8443",)}, False),
        ({"private_hosts": ("other.example",)}, False),
        ({"allow_networks": ("10.0.0.0/8",), "deny_networks": ("10.2.0.0/16",)}, False),
        ({"allow_networks": ("10.0.0.0/8",), "deny_hosts": ("10.2.3.4",)}, False),
    ],
)
async def test_a_private_address_needs_an_explicit_rule(
    options: dict[str, tuple[str, ...]], works: bool
) -> None:
    rules = NetworkRules(**options)  # type: ignore[arg-type]
    resolver = names({"in.example": ["10.2.3.4"]})
    if works:
        assert await resolve_checked("in.example", 443, rules, resolver=resolver)
    else:
        with pytest.raises(NetworkRefused):
            await resolve_checked("in.example", 443, rules, resolver=resolver)


@pytest.mark.parametrize("address", sorted(map(str, METADATA)))
def test_metadata_needs_a_rule_of_its_own(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    url = f"http://{literal}/"
    wide = NetworkRules(allow_networks=("0.0.0.0/0", "::/0"), private_hosts=("*",))
    with pytest.raises(NetworkRefused) as info:
        check_url(url, wide)
    assert "credentials" in info.value.message
    width = 128 if ":" in address else 32
    assert check_url(url, NetworkRules(allow_networks=(f"{address}/{width}",)))


@pytest.mark.anyio
async def test_localhost_is_refused_by_the_real_resolver() -> None:
    with pytest.raises(NetworkRefused) as info:
        await resolve_checked("localhost", 80, NetworkRules())
    assert info.value.why is Why.ADDRESS


def test_a_denied_network_refuses_what_is_carried_too() -> None:
    rules = NetworkRules(deny_networks=(f"{PUBLIC4}/32",))
    inner = ipaddress.IPv4Address(PUBLIC4)
    outer = ipaddress.IPv6Address(0x64FF9B << 96 | int(inner))
    for literal in (PUBLIC4, f"[::ffff:{PUBLIC4}]", f"[{outer}]"):
        with pytest.raises(NetworkRefused):
            check_url(f"http://{literal}/", rules)
