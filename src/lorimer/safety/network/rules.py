"""Which hosts, ports and networks may be connected to: a frozen record, checked when it is made."""

from __future__ import annotations

import functools
import ipaddress
import re
from dataclasses import dataclass

from lorimer.core.errors import ConfigError
from lorimer.safety.network.hosts import Address, Host, parse_host
from lorimer.safety.network.refused import NetworkRefused, Why

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What a connection may reach. A denial wins over a permission.

    Host patterns are `example.com` (that host only), `*.example.com` (every host below it, not
    itself), `*`, an address, each also with `:port`. A pattern with a port in `allow_hosts` or
    `private_hosts` permits that port for that host.

    Attributes:
        allow_hosts: the only hosts; `None` for every public host, `()` for none.
        deny_hosts: never these; an address here also refuses names that resolve to it.
        private_hosts: hosts that may resolve to addresses that are not public.
        allow_networks: networks (`10.1.0.0/16`) that may be connected to although not public. A
            cloud's metadata address must be given alone (`169.254.169.254/32`).
        deny_networks: networks that may not, although public.
        ports: the ports for every host.
        schemes: of URLs.
        userinfo: whether a URL may hold `user:password@`.
        max_redirects: hops after the first request.
        proxy: `http://host:port` of a proxy through which fetches go; the environment never names
            one. The proxy looks names up and not we, so their addresses cannot be checked: it
            needs `allow_hosts`.

    Raises:
        ConfigError: a pattern, network or number that is not one.
    """

    allow_hosts: tuple[str, ...] | None = None
    deny_hosts: tuple[str, ...] = ()
    private_hosts: tuple[str, ...] = ()
    allow_networks: tuple[str, ...] = ()
    deny_networks: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443)
    schemes: tuple[str, ...] = ("http", "https")
    userinfo: bool = False
    max_redirects: int = 5
    proxy: str | None = None

    def __post_init__(self) -> None:
        for name in ("allow_hosts", "deny_hosts", "private_hosts"):
            for text in _texts(name, getattr(self, name) or ()):
                parse_pattern(text)
        for name in ("allow_networks", "deny_networks"):
            for text in _texts(name, getattr(self, name)):
                parse_network(text)
        for port in self.ports:
            if type(port) is not int or not 0 < port < 65536:
                raise ConfigError(f"{port!r} is not a port.", next="Give numbers from 1 to 65535.")
        if not set(self.schemes) <= {"http", "https"}:
            raise ConfigError(
                f"The schemes {self.schemes!r} cannot be had.", next="Give 'http', 'https' or both."
            )
        if self.max_redirects < 0:
            raise ConfigError(
                f"{self.max_redirects} redirects cannot be.", next="Give 0 or a small number."
            )
        if self.proxy is not None:
            parse_proxy(self.proxy)
            if self.allow_hosts is None:
                raise ConfigError(
                    "A proxy looks names up by itself, so private addresses behind it cannot be "
                    "seen here.",
                    next="With `proxy`, name the hosts that may be reached in `allow_hosts`.",
                )


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One pattern: `name` (empty for any), `below` for `*.name`, `port` if it names one."""

    name: str
    below: bool
    port: int | None
    address: Address | None = None

    def covers(self, host: Host) -> bool:
        """Whether the host, whatever the port, is meant."""
        if self.below:
            return host.address is None and (not self.name or host.name.endswith(f".{self.name}"))
        return not self.name or host.name == self.name

    def matches(self, host: Host, port: int) -> bool:
        return self.covers(host) and self.port in (None, port)


@functools.lru_cache(maxsize=4096)
def parse_pattern(text: str) -> HostPattern:
    """Read a host pattern.

    Raises:
        ConfigError: it is not one.
    """
    rest, port = text, None
    head, colon, tail = text.rpartition(":")
    if colon and not tail.endswith("]"):
        if not (tail.isascii() and tail.isdigit() and 0 < int(tail) < 65536):
            raise _bad_pattern(text, "what follows the colon is not a port")
        rest, port = head, int(tail)
    if rest == "*":
        return HostPattern("", below=False, port=port)
    below = rest.startswith("*.")
    try:
        host = parse_host(rest[2:] if below else rest)
    except NetworkRefused as fault:
        raise _bad_pattern(text, fault.message) from fault
    if host.odd or (below and host.address is not None):
        raise _bad_pattern(text, f"it names the address {host} in an unusual way")
    return HostPattern(host.name, below, port, host.address)


@functools.lru_cache(maxsize=4096)
def parse_network(text: str) -> Network:
    """Read a network such as `10.1.0.0/16`, or one address.

    Raises:
        ConfigError: it is not one, or has bits behind its prefix.
    """
    try:
        return ipaddress.ip_network(text)
    except ValueError as fault:
        raise ConfigError(
            f"{text!r} is not a network: {fault}.", next="Write e.g. 10.1.0.0/16 or fd12::/32."
        ) from fault


@functools.lru_cache(maxsize=64)
def parse_proxy(text: str) -> tuple[Host, int]:
    """Host and port of a proxy.

    Raises:
        ConfigError: it is not `http://host:port`.
    """
    found = re.fullmatch(r"http://([^/@]+):([0-9]{1,5})/?", text)
    try:
        host = parse_host(found.group(1)) if found else None
    except NetworkRefused:
        host = None
    if found is None or host is None or host.odd or not 0 < int(found.group(2)) < 65536:
        raise ConfigError(
            f"The proxy is not given as http://host:port (it has {len(text)} characters).",
            next="Write e.g. http://proxy.example:3128, without user and password.",
        )
    return host, int(found.group(2))


def check_host(host: Host, port: int, rules: NetworkRules) -> None:
    """Whether the rules let this host and port be connected to, by name.

    Raises:
        NetworkRefused: no; nothing was looked up.
    """
    denied = next((p for p in rules.deny_hosts if parse_pattern(p).matches(host, port)), None)
    if denied is not None:
        raise NetworkRefused(
            f"The host {host} is denied by the rule {denied!r}.",
            why=Why.HOST, host=host.name, next="Use another source; do not try other spellings.",
        )  # fmt: skip
    allowed = None if rules.allow_hosts is None else [parse_pattern(p) for p in rules.allow_hosts]
    if allowed is not None and not any(p.covers(host) for p in allowed):
        raise NetworkRefused(
            f"The host {host} is not among the allowed hosts ({_listed(rules.allow_hosts)}).",
            why=Why.HOST, host=host.name,
            next="Use one of them, or ask for this host to be added to the allowed ones.",
        )  # fmt: skip
    if port in rules.ports and (allowed is None or any(p.matches(host, port) for p in allowed)):
        return
    naming = [*(allowed or ()), *(parse_pattern(p) for p in rules.private_hosts)]
    ports = sorted({p.port for p in naming if p.port is not None and p.covers(host)})
    if port in ports:
        return
    if allowed is None or any(p.port is None and p.covers(host) for p in allowed):
        ports = sorted({*ports, *rules.ports})
    raise NetworkRefused(
        f"The port {port} of {host} is not allowed.",
        why=Why.PORT, host=host.name,
        next=f"Allowed for this host: {', '.join(map(str, ports)) or 'none'}. To allow it, "
        f"add '{host}:{port}' to the allowed hosts.",
    )  # fmt: skip


def may_be_private(host: Host, port: int, rules: NetworkRules) -> bool:
    """Whether the host may resolve to addresses that are not public."""
    return any(parse_pattern(p).matches(host, port) for p in rules.private_hosts)


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, tuple) or not all(isinstance(one, str) for one in value):
        raise ConfigError(
            f"`{name}` is {value!r}, not a tuple of texts.", next="Write e.g. ('example.com',)."
        )
    return value


def _listed(patterns: tuple[str, ...] | None) -> str:
    if not patterns:
        return "there are none"
    more = len(patterns) - _SHOWN
    return ", ".join(patterns[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _bad_pattern(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is not a host pattern: {why.rstrip('.')}.",
        next="Write example.com, *.example.com, *, an address, or one of them with :port.",
    )
