"""Does a provider of machines keep to `microvm.Provider`? For the tests of whoever writes one.

    faults = await conformance.check(provider)
    assert not faults, faults

It makes two machines and kills them. It needs `/bin/sh`, `cat`, `sleep` and `env` in the machine,
and some seconds.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.microvm import Machine, MachineSpec, Provider

_Step = Callable[[Machine], Awaitable[str]]


async def check(provider: Provider, spec: MachineSpec | None = None) -> list[str]:
    """What the provider does otherwise than the interface says, in words; empty when nothing.

    A machine that could not be killed is told, too.
    """
    faults: list[str] = []
    wanted = spec or MachineSpec(environment={"LORIMER_GIVEN": "given"})
    machine = await provider.create(wanted)
    other = await provider.create(wanted)
    try:
        if not machine.id or machine.id == other.id:
            faults.append("two machines have the same id, or none")
        for step in _STEPS:
            faults += await _one(step, machine)
        faults += await _one(_again(provider), machine)
        faults += await _one(_apart(other), machine)
    finally:
        for each in (machine, other):
            faults += await _one(_kill, each)
    faults += await _one(_gone(provider), machine)
    return faults


async def _one(step: _Step, machine: Machine) -> list[str]:
    name = getattr(step, "__name__", "step").strip("_").replace("_", " ")
    try:
        with anyio.fail_after(60):
            said = await step(machine)
    except Exception as fault:  # noqa: BLE001 - a provider may raise anything; that is the finding
        said = f"raised {type(fault).__name__}: {fault}"
    return [f"{name}: {said}"] if said else []


async def _streams_and_exit_code(machine: Machine) -> str:
    done = await machine.run(["/bin/sh", "-c", "printf out; printf err >&2; exit 3"])
    got = (done.exit_code, done.stdout, done.stderr, done.killed)
    return "" if got == (3, b"out", b"err", "") else f"got {got}"


async def _arguments_are_not_parsed_by_a_shell(machine: Machine) -> str:
    odd = "a b'c\"d $HOME `x` \n*"
    done = await machine.run(["/bin/sh", "-c", 'printf %s "$1"', "sh", odd])
    return "" if done.stdout == odd.encode() else f"got {done.stdout!r}"


async def _stdin_is_given_whole(machine: Machine) -> str:
    content = os.urandom(200_000)
    done = await machine.run(["cat"], stdin=content)
    return "" if done.stdout == content else f"{len(done.stdout)} of {len(content)} bytes came back"


async def _environment(machine: Machine) -> str:
    done = await machine.run(["env"], environment={"LORIMER_MORE": "more"})
    lines = done.stdout.splitlines()
    return "" if b"LORIMER_MORE=more" in lines else "the command's environment is missing"


async def _working_folder(machine: Machine) -> str:
    done = await machine.run(["/bin/sh", "-c", "pwd"], cwd="/tmp")
    return "" if done.stdout.strip() == b"/tmp" else f"got {done.stdout!r}"


async def _files_come_back_as_they_were(machine: Machine) -> str:
    content = bytes(range(256)) * 1000
    await machine.write_file("/tmp/lorimer-check/deep/file", content)
    if await machine.read_file("/tmp/lorimer-check/deep/file") != content:
        return "other bytes came back"
    listed = {one.path.rstrip("/").rsplit("/", 1)[-1]: one
              for one in await machine.list_files("/tmp/lorimer-check")}  # fmt: skip
    if "deep" not in listed or not listed["deep"].is_folder:
        return "a folder is not listed"
    return ""


async def _a_missing_file_is_told(machine: Machine) -> str:
    try:
        await machine.read_file("/tmp/lorimer-check/missing")
    except FileNotFoundError:
        return ""
    return "no FileNotFoundError"


async def _output_comes_while_it_runs(machine: Machine) -> str:
    pieces: list[tuple[str, bytes]] = []
    await machine.run(
        ["/bin/sh", "-c", "echo one; echo two >&2"],
        on_output=lambda name, piece: pieces.append((name, piece)),
    )
    names = {name for name, _ in pieces}
    return "" if names == {"stdout", "stderr"} else f"on_output was called for {names or 'nothing'}"


_DAEMON = (
    "(while :; do date +%N > /tmp/lorimer-beat 2>/dev/null; done) & "
    "while [ ! -s /tmp/lorimer-beat ]; do :; done; echo began; sleep 60"
)
_STILL = (
    "a=$(cat /tmp/lorimer-beat); n=0; while [ $n -lt 5 ]; do sleep 0.1; n=$((n+1)); done; "
    'test "$a" = "$(cat /tmp/lorimer-beat)"'
)


async def _a_time_out_kills_the_tree(machine: Machine) -> str:
    done = await machine.run(["/bin/sh", "-c", _DAEMON], timeout_s=2)
    if (done.exit_code, done.killed) != (None, "timeout"):
        return f"exit code {done.exit_code}, killed {done.killed!r}"
    if b"began" not in done.stdout:
        return "what it had printed by then is lost"
    after = await machine.run(["/bin/sh", "-c", _STILL])
    return "" if after.exit_code == 0 else "what the command started goes on"


async def _cancelling_kills_the_tree(machine: Machine) -> str:
    began = anyio.Event()
    async with anyio.create_task_group() as group:

        async def work() -> None:
            await machine.run(["/bin/sh", "-c", _DAEMON], on_output=lambda *_: began.set())

        group.start_soon(work)
        await began.wait()
        group.cancel_scope.cancel()
    after = await machine.run(["/bin/sh", "-c", _STILL])
    return "" if after.exit_code == 0 else "what the command started goes on"


_STEPS: tuple[_Step, ...] = (
    _streams_and_exit_code, _arguments_are_not_parsed_by_a_shell, _stdin_is_given_whole,
    _environment, _working_folder, _files_come_back_as_they_were, _a_missing_file_is_told,
    _output_comes_while_it_runs, _a_time_out_kills_the_tree, _cancelling_kills_the_tree,
)  # fmt: skip


def _again(provider: Provider) -> _Step:
    async def connecting_again(machine: Machine) -> str:
        same = await provider.connect(machine.id)
        await machine.write_file("/tmp/lorimer-same", b"same")
        return "" if await same.read_file("/tmp/lorimer-same") == b"same" else "another machine"

    return connecting_again


def _apart(other: Machine) -> _Step:
    async def machines_are_apart(machine: Machine) -> str:
        await machine.write_file("/var/tmp/lorimer-apart", b"x")
        try:
            await other.read_file("/var/tmp/lorimer-apart")
        except FileNotFoundError:
            return ""
        return "one sees the other's files"

    return machines_are_apart


async def _kill(machine: Machine) -> str:
    await machine.kill()
    await machine.kill()
    try:
        await machine.run(["true"])
    except SandboxUnavailable:
        return ""
    return "a killed machine still runs commands"


def _gone(provider: Provider) -> _Step:
    async def a_killed_machine_cannot_be_connected(machine: Machine) -> str:
        try:
            await provider.connect(machine.id)
        except SandboxUnavailable:
            return ""
        return "no SandboxUnavailable"

    return a_killed_machine_cannot_be_connected
