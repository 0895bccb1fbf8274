"""Granting single hosts to a sandboxed program, through a filtering proxy in our process.

The sandbox keeps its empty network: there is nothing in it but a loopback card, and on that one
port of ours. Behind the port, `egress_proxy` checks each host, looks the name up, checks the
addresses and connects to them. Programs find the port by the usual proxy variables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import anyio

from lorimer.core.errors import ConfigError
from lorimer.safety.network.resolve import Resolver
from lorimer.safety.network.rules import NetworkRules

if TYPE_CHECKING:
    import socket

PORT = 3128
_URL = f"http://127.0.0.1:{PORT}"

Verdict = Literal["allowed", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One wish of a sandboxed program to connect, told when it is over.

    Attributes:
        host: as it was understood, or as it was written when it could not be.
        port: 0 when there was none.
        verdict: `failed` was allowed, but there was no connection, or it was ended by a limit.
        reason: why it was refused or failed, in words.
        address: which address was connected to.
        bytes_up: from the program to the host; `bytes_down` the other way.
    """

    host: str
    port: int
    method: str
    verdict: Verdict
    reason: str
    address: str
    bytes_up: int
    bytes_down: int
    started_at: datetime
    duration_s: float


OnAttempt = Callable[[Attempt], None]


@dataclass(frozen=True, slots=True)
class Egress:
    """Which hosts one run may reach, and how much of them.

    Attributes:
        rules: `allow_hosts` are the hosts; `None` there means every public host.
        on_attempt: told every attempt, refused ones too; an exception in it ends the run, since
            what cannot be recorded must not happen.
        connections: at one time.
        attempts: of the whole run; then nothing more is answered, and that is told once.
        bytes_up: of the whole run, from the program to all hosts.
        bytes_down: of the whole run, the other way.
        connect_s: for a look-up, and again for a connection.
        idle_s: the longest silence of a connection.
        resolver: instead of the operating system's.

    Raises:
        ConfigError: rules with a `proxy`.
    """

    rules: NetworkRules
    on_attempt: OnAttempt | None = None
    connections: int = 64
    attempts: int = 100_000
    bytes_up: int = 1 << 30
    bytes_down: int = 8 << 30
    connect_s: float = 15.0
    idle_s: float = 300.0
    resolver: Resolver | None = None

    def __post_init__(self) -> None:
        if self.rules.proxy is not None:
            raise ConfigError(
                "Hosts granted to a sandbox cannot be reached through a further proxy yet.",
                next="Leave `proxy` out of the rules of `Egress`.",
            )

    @staticmethod
    def to(
        *hosts: str, ports: tuple[int, ...] = (80, 443), on_attempt: OnAttempt | None = None
    ) -> Egress:
        """To these host patterns (see `NetworkRules`) at public addresses.

        Raises:
            ConfigError: a pattern or port that is not one.
        """
        return Egress(NetworkRules(allow_hosts=hosts, ports=ports), on_attempt)

    def environment(self) -> dict[str, str]:
        """Variables by which programs find the proxy; local servers are reached without it."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        return {
            **dict.fromkeys(names, _URL),
            **{name.lower(): _URL for name in names},
            "NO_PROXY": "localhost,127.0.0.1,::1",
            "no_proxy": "localhost,127.0.0.1,::1",
            "NODE_USE_ENV_PROXY": "1",
        }


@asynccontextmanager
async def granted(egress: Egress | None, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve the sandbox's port while the block runs; afterwards every connection is closed.

    Args:
        listener: from `netns.listen_inside`; closed at the end.

    Raises:
        Exception: what `on_attempt` raised, and then the block was cancelled.
    """
    if egress is None or listener is None:
        yield
        return
    from lorimer.safety.sandbox.egress_proxy import EgressProxy

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(EgressProxy(egress).serve, listener)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as faults:
        fault: BaseException = faults
        while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
            fault = fault.exceptions[0]
        raise fault from None
    finally:
        listener.close()
