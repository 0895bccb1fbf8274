"""The filtering proxy of one sandbox: accepts its connections, within the limits of the run."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import anyio

from lorimer.safety.sandbox.egress import Attempt, Egress
from lorimer.safety.sandbox.egress_talk import LimitPassed, Talk
from lorimer.safety.sandbox.wire import Wire, accept

_SPARE = 16
"""Connections more than are allowed, so that those too many are told so."""


class EgressProxy:
    """Serves one sandbox; counts bytes over all of its connections."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._up = self._down = 0
        self._open: set[Wire] = set()
        self._slots = anyio.Semaphore(egress.connections + _SPARE)

    async def serve(self, listener: socket.socket) -> None:
        """Until cancelled, which closes all connections; each attempt is then told as it stands.

        What the program opens beyond our slots waits in the kernel and costs us no descriptors.
        """
        try:
            async with anyio.create_task_group() as group:
                for _ in range(self._egress.attempts):
                    await self._slots.acquire()
                    wire = await accept(listener)
                    self._open.add(wire)
                    group.start_soon(self._one, wire)
                listener.close()
                self._tell_the_end()
        finally:
            for wire in self._open:  # cancelled before their task began
                wire.close()

    def _tell_the_end(self) -> None:
        if self._egress.on_attempt is not None:
            reason = f"after {self._egress.attempts:,} attempts the network was closed"
            self._egress.on_attempt(
                Attempt("", 0, "", "refused", reason, "", 0, 0, datetime.now(UTC), 0.0)
            )

    async def _one(self, wire: Wire) -> None:
        talk = Talk(self._egress, wire, self._count)
        try:
            await talk.run(crowded=len(self._open) > self._egress.connections)
        finally:
            self._open.discard(wire)
            self._slots.release()
            wire.close()
            talk.tell()

    def _count(self, up: int, down: int) -> None:
        self._up, self._down = self._up + up, self._down + down
        if self._up > self._egress.bytes_up or self._down > self._egress.bytes_down:
            raise LimitPassed
