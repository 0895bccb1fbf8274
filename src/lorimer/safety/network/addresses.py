"""Which addresses are public, and which are allowed although they are not.

The table is the special-purpose registries of IANA (RFC 6890 and its updates), and the addresses at
which clouds give out credentials. An IPv6 address that carries an IPv4 address (mapped, compatible,
6to4, NAT64, ISATAP) is only as public as what it carries.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from lorimer.safety.network.hosts import Address, Host, text_of
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.rules import NetworkRules, may_be_private, parse_network, parse_pattern

_V4 = (
    ("0.0.0.0/8", "of this host (unspecified)"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared inside a provider (CGNAT)"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "for documentation only"),
    ("192.31.196.0/24", "reserved (AS112)"),
    ("192.52.193.0/24", "reserved (AMT)"),
    ("192.88.99.0/24", "reserved (6to4 relay)"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved (AS112)"),
    ("198.18.0.0/15", "for benchmarks only"),
    ("198.51.100.0/24", "for documentation only"),
    ("203.0.113.0/24", "for documentation only"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6 = (
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("64:ff9b:1::/48", "local NAT64"),
    ("100::/64", "discard-only"),
    ("2001::/23", "reserved for protocols (Teredo and others)"),
    ("2001:db8::/32", "for documentation only"),
    ("2620:4f:8000::/48", "reserved (AS112)"),
    ("3fff::/20", "for documentation only"),
    ("5f00::/16", "reserved (segment routing)"),
    ("fc00::/7", "private (unique local)"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private (site-local)"),
    ("ff00::/8", "multicast"),
)
_SPECIAL_V4 = tuple((ipaddress.IPv4Network(text), words) for text, words in _V4)
_SPECIAL_V6 = tuple((ipaddress.IPv6Network(text), words) for text, words in _V6)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)

METADATA: frozenset[Address] = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Google, Azure, OpenStack, and most others
        "169.254.170.2",  # AWS: credentials of a container
        "169.254.170.23",  # AWS: credentials of a pod
        "168.63.129.16",  # Azure: wire server, in public space
        "192.0.0.192",  # Oracle
        "100.100.100.200",  # Alibaba
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS: credentials of a pod
        "fd20:ce::254",  # Google
    )
)


def carried(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses inside an IPv6 address, by each form that carries one."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    value = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif (
        (address in _COMPATIBLE and value > 0xFFFF)
        or address in _NAT64
        or (value >> 32) & 0xFFFFFFFF in _ISATAP
    ):
        yield ipaddress.IPv4Address(value & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        yield ipaddress.IPv4Address((value >> 80) & 0xFFFFFFFF)


def not_public(address: Address) -> str:
    """Why the address is not one of the public internet, in words (`loopback`); empty if it is."""
    if address in METADATA:
        return "where this cloud gives out credentials (metadata)"
    inner = list(carried(address))
    for one in inner:
        fault = not_public(one)
        if fault:
            return f"{fault}, carried as {one}"
    if isinstance(address, ipaddress.IPv4Address):
        return next((words for net, words in _SPECIAL_V4 if address in net), "")
    if address.ipv4_mapped is not None:
        return ""
    if address in _COMPATIBLE and inner:
        return f"an outdated form of {inner[0]}"
    found = next((words for net, words in _SPECIAL_V6 if address in net), "")
    if found or address in _GLOBAL_V6 or address in _NAT64:
        return found
    return "reserved"


def check_address(address: Address, host: Host, port: int, rules: NetworkRules) -> None:
    """Whether this address may be connected to for this host.

    Raises:
        NetworkRefused: no.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise _refused(address, host, "an address of one network card only (it has a zone)", "")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # what the kernel connects to
    both = (address, *carried(address))
    denied = [parse_network(text) for text in rules.deny_networks]
    names = [parse_pattern(text) for text in rules.deny_hosts]
    for one in both:
        if any(one in net for net in denied) or any(
            p.address == one and p.port in (None, port) for p in names
        ):
            raise _refused(address, host, "denied by the rules", "Use another source.")
    fault = not_public(address)
    if not fault:
        return
    allowed = [parse_network(text) for text in rules.allow_networks]
    if any(one in METADATA for one in both):
        alone = ipaddress.ip_network(address)
        if alone in allowed:
            return
        raise _refused(
            address, host, fault,
            f"Nothing may ask there unless the policy allows exactly the network {alone}.",
        )  # fmt: skip
    if any(address in net for net in allowed) or may_be_private(host, port, rules):
        return
    raise _refused(
        address, host, fault,
        "Only public addresses may be connected to. If this one is meant, the policy must allow "
        f"the network {ipaddress.ip_network(address)} or name the host as private.",
    )  # fmt: skip


def _refused(address: Address, host: Host, what: str, what_next: str) -> NetworkRefused:
    shown = text_of(address)
    whose = f"The address {shown}" if host.address else f"{host} has the address {shown}, which"
    return NetworkRefused(f"{whose} is {what}.", why=Why.ADDRESS, host=host.name, next=what_next)
