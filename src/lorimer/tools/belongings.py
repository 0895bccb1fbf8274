"""What tools keep alive between the calls of one session: shells, background tasks, interpreters.

Nothing of it outlasts the session (G7): whoever closes the session closes these, and waits until
nothing of them runs.
"""

from __future__ import annotations

from typing import Protocol, TypeVar


class Belonging(Protocol):
    async def close(self) -> None:
        """End it and wait for its end. May be called again."""
        ...


T = TypeVar("T", bound=Belonging)


class Belongings:
    """Living things of one session, by name; `close` ends them, the newest first."""

    def __init__(self) -> None:
        self._kept: dict[str, Belonging] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def get(self, name: str, kind: type[T]) -> T | None:
        """What is kept under `name`, if it is a `kind`."""
        found = self._kept.get(name)
        return found if isinstance(found, kind) else None

    def keep(self, name: str, thing: T) -> T:
        """Keep `thing`; the name must be free."""
        if name in self._kept:
            raise KeyError(f"{name!r} is kept already")
        self._kept[name] = thing
        return thing

    async def close(self) -> None:
        """End everything; a fault of one does not keep the others from ending."""
        faults: list[Exception] = []
        while self._kept:
            _, thing = self._kept.popitem()
            try:
                await thing.close()
            except Exception as fault:  # noqa: BLE001 - the rest must end, too
                faults.append(fault)
        if faults:
            raise faults[0]
