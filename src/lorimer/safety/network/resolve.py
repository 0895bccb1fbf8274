"""From a checked host to checked addresses: all of them, or none."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

import anyio

from lorimer.safety.network.addresses import check_address
from lorimer.safety.network.hosts import Address, Host, parse_host
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.rules import NetworkRules, check_host

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes host and port, returns the texts of all addresses; raises OSError when there are none."""

RESOLVE_S = 10.0


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system (files, DNS), as any program here would."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def resolve_checked(
    host: Host | str,
    port: int,
    rules: NetworkRules,
    *,
    resolver: Resolver | None = None,
    timeout_s: float = RESOLVE_S,
) -> tuple[Address, ...]:
    """Every address of the host, each allowed by the rules, in the resolver's order.

    One address that is not allowed refuses the host: a name with a public and a private address is
    how a check is led astray. Connect to one of the returned addresses, never to the name again.

    Cancellation leaves nothing behind but a look-up that runs out by itself.

    Raises:
        NetworkRefused: host, port or an address is not allowed, or there is no address.
    """
    if isinstance(host, str):
        host = parse_host(host)
    check_host(host, port, rules)
    if host.address is not None:
        found: Sequence[str] = [host.name]
    else:
        found = await _look_up(host, port, resolver or system_resolver, timeout_s)
    addresses: dict[Address, None] = {}
    for text in found:
        try:
            address = ipaddress.ip_address(text)
        except ValueError as fault:
            raise _unresolved(host, f"the answer {text!r} is not an address") from fault
        check_address(address, host, port, rules)
        addresses[address] = None
    if not addresses:
        raise _unresolved(host, "it has no address")
    return tuple(addresses)


async def _look_up(host: Host, port: int, resolver: Resolver, timeout_s: float) -> Sequence[str]:
    try:
        with anyio.fail_after(timeout_s):
            return await resolver(host.name, port)
    except TimeoutError as fault:
        raise _unresolved(host, f"no answer within {timeout_s:g} s") from fault
    except (OSError, UnicodeError) as fault:
        raise _unresolved(host, getattr(fault, "strerror", None) or str(fault)) from fault


def _unresolved(host: Host, why: str) -> NetworkRefused:
    return NetworkRefused(
        f"The host {host} could not be looked up: {why}.",
        why=Why.RESOLUTION, host=host.name,
        next="Check its spelling, and that this machine can look up names.",
    )  # fmt: skip
