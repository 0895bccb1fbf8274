"""TCP connections to checked addresses only: no name is looked up here."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from lorimer.safety.network.hosts import Address, Host, text_of
from lorimer.safety.network.refused import NetworkRefused, Why

_LEAST_S = 1.0
_Stream = TypeVar("_Stream")


async def first_of(
    host: Host,
    port: int,
    addresses: Sequence[Address],
    open_one: Callable[[str], Awaitable[_Stream]],
    *,
    timeout_s: float,
) -> _Stream:
    """What `open_one` gives for the first address with which it does not raise OSError.

    Each address gets an equal share of the time that is left, and at least a second.
    """
    faults = []
    ends = anyio.current_time() + timeout_s
    for place, address in enumerate(addresses):
        left = ends - anyio.current_time()
        if left <= 0:
            break
        share = max(left / (len(addresses) - place), min(left, _LEAST_S))
        try:
            with anyio.fail_after(share):
                return await open_one(str(address))
        except TimeoutError:
            faults.append(f"{text_of(address)}: no answer in {share:.1f} s")
        except OSError as fault:
            faults.append(f"{text_of(address)}: {_root(fault)}")
    raise NetworkRefused(
        f"No connection to {host} on port {port} ({'; '.join(faults) or 'no time was left'}).",
        why=Why.CONNECTION, host=host.name,
        next="Check that the service runs and that this machine may reach it; then try again.",
    )  # fmt: skip


def same_peer(peer: object, addresses: Sequence[Address], host: Host) -> None:
    """Whether the other end is one of the checked addresses, as the kernel tells it.

    Raises:
        NetworkRefused: it is not.
    """
    if ipaddress.ip_address(str(peer)) not in addresses:
        raise NetworkRefused(
            f"The connection to {host} went to {peer}, which was not checked.",
            why=Why.CONNECTION, host=host.name, next="Something here redirects connections.",
        )  # fmt: skip


def _root(fault: BaseException) -> str:
    """The reason inside: the libraries wrap it, sometimes in groups."""
    while True:
        if isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        elif fault.__cause__ is not None:
            fault = fault.__cause__
        else:
            number = getattr(fault, "errno", None)
            return os.strerror(number) if number else str(fault)
