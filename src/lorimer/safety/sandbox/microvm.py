"""The `microvm` level: an interface for providers of virtual machines, hosted or own.

No provider comes with this package. One is a class with the methods of `Provider`, registered by
its package under the entry point group `lorimer.sandbox_providers`:

    [project.entry-points."lorimer.sandbox_providers"]
    acme = "acme_sandboxes:Provider"

The methods are those that E2B and the services that follow it have: make a machine, run a command
in it, read and write files, kill it. `conformance.check` says whether a provider keeps to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, runtime_checkable

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.spec import OnOutput

GROUP = "lorimer.sandbox_providers"


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """What a machine is to have.

    Attributes:
        template: the provider's name of an image; empty for its default.
        lifetime_s: seconds after which the provider ends it, whatever happens to us.
        internet: whether it may connect to anything.
        environment: of every command.
        memory_bytes, cpus: `None` for the provider's default.
        labels: kept by the provider with the machine, e.g. the session; no secrets.
    """

    template: str = ""
    lifetime_s: float = 300.0
    internet: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. `exit_code` is `None` when it was killed, and then `killed` says why."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    killed: str = ""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An entry of a folder in the machine; `size_bytes` is 0 for folders."""

    path: str
    is_folder: bool
    size_bytes: int = 0


class Machine(Protocol):
    """One running machine. Every method raises `SandboxUnavailable` when it is gone."""

    @property
    def id(self) -> str:
        """The provider's name of it; not empty, never used again."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        on_output: OnOutput | None = None,
    ) -> CommandResult:
        """Run a program and wait for it. After `timeout_s`, and when this is cancelled, the program
        and all it started are killed before this returns (`killed="timeout"`) or raises."""
        ...

    async def read_file(self, path: str) -> bytes:
        """Raises `FileNotFoundError` for what is not there."""
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Makes the folders above it."""
        ...

    async def list_files(self, folder: str) -> list[FileInfo]:
        """Raises `FileNotFoundError` for what is not there."""
        ...

    async def extend(self, lifetime_s: float) -> None:
        """So many seconds more, from now on."""
        ...

    async def kill(self) -> None:
        """End it; nothing of it runs when this returns. May be called again."""
        ...


@runtime_checkable
class Provider(Protocol):
    """Where machines come from."""

    async def create(self, spec: MachineSpec) -> Machine:
        """A new machine, running.

        Raises:
            SandboxUnavailable: when it cannot be had; nothing was made, or it was killed again.
        """
        ...

    async def connect(self, machine_id: str) -> Machine:
        """A machine made before, e.g. by another process.

        Raises:
            SandboxUnavailable: when there is none of this id (any more).
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Machines go on until their end."""
        ...


def providers() -> tuple[str, ...]:
    """The names that are registered here."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def provider(name: str, **options: object) -> Provider:
    """Load and make the provider of this name.

    Args:
        options: given to its class.

    Raises:
        SandboxUnavailable: it is not registered, is registered twice, or cannot be loaded or made.
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        known = ", ".join(providers()) or "none"
        raise SandboxUnavailable(
            f"There is no provider of machines called {name!r} (registered: {known}).",
            next=f"Install a package with an entry point in the group {GROUP}.",
        )
    if len({point.value for point in found}) > 1:
        raise SandboxUnavailable(
            f"The provider {name!r} is registered more than once: "
            f"{', '.join(point.value for point in found)}.",
            next="Remove all but one of these packages.",
        )
    return _made(found[0], options)


def _made(point: EntryPoint, options: Mapping[str, object]) -> Provider:
    try:
        made = point.load()(**options)
    except Exception as fault:
        raise SandboxUnavailable(
            f"The provider {point.name!r} ({point.value}) could not be loaded: {fault}",
            next="Look at its settings, or ask who made it.",
        ) from fault
    if not isinstance(made, Provider):
        raise SandboxUnavailable(
            f"The provider {point.name!r} ({point.value}) lacks methods of a provider.",
            next="It must have create, connect and close; see lorimer.safety.sandbox.microvm.",
        )
    return made
