"""The `container` level: one Podman or Docker container for each run.

Not run with a real engine by our own tests: they read the command, and run everything around it
with a stand-in that records it. The image must be there already (`--pull never`); it must hold the
programs. The container has no network, a read-only root, no capabilities, and sees the workspace
and what is shown at their own paths.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import landlock, mounts, outer
from lorimer.safety.sandbox.guard import Guard
from lorimer.safety.sandbox.spec import OnOutput, SandboxResult, SandboxSpec

ENGINES = ("podman", "docker")
_FROM_US = ("PATH", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST", "HOME")
"""What the engine's own client needs of our environment; the program gets none of it."""


def engine() -> str:
    """Podman's or Docker's program, Podman first: it needs no service that runs as root.

    Raises:
        SandboxUnavailable: when neither is installed.
    """
    for name in ENGINES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise SandboxUnavailable(
        "Neither `podman` nor `docker` is installed.",
        next="Install one, e.g. `apt install podman`, and load the image.",
    )


def usable() -> str:
    """The engine's program, when it answers.

    Raises:
        SandboxUnavailable: with what it says.
    """
    found = engine()
    try:
        done = subprocess.run(
            [found, "info"], capture_output=True, text=True, timeout=20, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise SandboxUnavailable(
            f"`{Path(found).name} info` did not answer: {fault}", next="Look at the engine itself."
        ) from fault
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it ended without a word"]
        raise SandboxUnavailable(
            f"{Path(found).name} does not work here: {said[-1]}",
            next=f"Start its service, and try `{Path(found).name} info`.",
        )
    return found


def command(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    image: str,
    program: str,
    name: str,
    id_file: str,
    guarded: Sequence[str] = (),
    feeds_stdin: bool = False,
) -> list[str]:
    """The engine's whole command line.

    Args:
        program: the engine, as a path or a name.
        name: of the container, so that it can be killed.
        id_file: where the engine notes that it has made one.
        guarded: mounts over protected names, as `Guard.mounts` has them.

    Raises:
        SandboxUnavailable: when the spec cannot be had in a container.
    """
    limits = spec.limits
    podman = Path(program).name == "podman"
    size = limits.tmp_bytes
    out = [
        program, "run", "--rm", "--pull", "never", "--name", name, "--cidfile", id_file,
        "--hostname", "sandbox",
        "--network", "none", "--ipc", "private", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--init", "--log-driver", "none",
        "--pids-limit", str(limits.processes), "--memory", str(limits.tree_memory_bytes),
        "--memory-swap", str(limits.tree_memory_bytes), "--shm-size", str(size),
        "--ulimit", f"cpu={limits.cpu_s}:{limits.cpu_s}",
        "--ulimit", f"fsize={limits.file_bytes}:{limits.file_bytes}",
        "--ulimit", f"nofile={limits.open_files}:{limits.open_files}", "--ulimit", "core=0:0",
    ]  # fmt: skip
    for place in ("/tmp", mounts.HOME):
        if place in spec.folders:
            continue
        out += ["--tmpfs", f"{place}:rw,nosuid,nodev,size={size},mode=1777,nr_inodes="
                           f"{limits.inodes}"]  # fmt: skip
    if podman:
        out += ["--read-only-tmpfs=false"]
    out += _user(spec, podman=podman)
    for path in spec.read_only:
        out += _mount(os.path.abspath(path), writable=False)
    for inside, folder in spec.folders.items():
        out += _mount(os.path.abspath(folder), writable=True, at=inside)
    where = mounts.HOME
    if spec.workspace is not None:
        where = str(mounts.workspace_of(spec.workspace))
        out += _mount(where, writable=spec.writable)
        for how, place in zip(guarded[0::3], guarded[1::3], strict=True):
            out += _mount(place, writable=how == "--bind")
    out += ["--env", f"HOME={mounts.HOME}", "--env", "TMPDIR=/tmp", "--env", "LANG=C.UTF-8"]
    for key in spec.environment:
        if key in _FROM_US or "=" in key or not key:
            raise SandboxUnavailable(
                f"The environment name {key!r} cannot be given to a container.",
                next="Set it in the image, or in the command itself.",
            )
        out += ["--env", key]  # the value comes from the client's environment, not from `ps`
    if feeds_stdin:
        out.append("--interactive")
    return [*out, "--workdir", where, "--entrypoint", "", image, *argv]


def _user(spec: SandboxSpec, *, podman: bool) -> list[str]:
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        mapped = ["--userns", f"keep-id:uid={user},gid={group}"] if podman else []
        return [*mapped, "--user", f"{user}:{group}"]
    owner = os.stat(spec.workspace) if spec.workspace is not None else None
    if owner is None or not spec.writable:
        return ["--user", "65534:65534"]
    return ["--user", f"{owner.st_uid}:{owner.st_gid}"]


def _mount(path: str, *, writable: bool, at: str | None = None) -> list[str]:
    if any(c in path + (at or "") for c in ',"\n\r'):
        raise SandboxUnavailable(
            f"The path {path!r} has a character that a container engine cannot mount.",
            next="Rename it, or use the level `os`.",
        )
    return ["--mount", f"type=bind,source={path},target={at or path}"
            + ("" if writable else ",readonly")]  # fmt: skip


async def run(
    argv: Sequence[str],
    *,
    spec: SandboxSpec,
    image: str | None,
    stdin: bytes | None = None,
    on_output: OnOutput | None = None,
) -> SandboxResult:
    """Run `argv` in a new container, which is removed at the end.

    Cancellation and time-outs kill the container by its name before this returns or raises.

    Raises:
        SandboxUnavailable: no engine, no image, or a spec that a container cannot have.
    """
    if not image:
        raise SandboxUnavailable(
            "No container image is set.",
            next="Give the name of one that is on this machine, with its digest.",
        )
    if spec.pass_fds:
        raise SandboxUnavailable(
            "A container cannot inherit descriptors.", next="Use the level `os`."
        )
    if spec.unix_sockets:
        raise SandboxUnavailable(
            "The level `container` leaves unix sockets to the engine and cannot grant them.",
            next="Use the level `os`.",
        )
    program = engine()
    name = f"lorimer-{os.urandom(8).hex()}"
    guard = None
    if spec.workspace is not None and not spec.workspace.is_dir():
        raise SandboxUnavailable(
            f"The workspace {spec.workspace} is not a folder.", next="Start in an existing folder."
        )
    if spec.workspace is not None and spec.writable:
        guard = Guard.over(mounts.workspace_of(spec.workspace))
    private = Path(tempfile.mkdtemp(prefix="lorimer-"))
    id_file = private / "id"
    try:
        try:
            line = command(
                argv, spec=spec, image=image, program=program, name=name, id_file=str(id_file),
                guarded=guard.mounts if guard else (), feeds_stdin=stdin is not None,
            )  # fmt: skip
        except BaseException:
            if guard is not None:
                guard.close()
            raise
        own = {key: os.environ[key] for key in _FROM_US if key in os.environ}
        result = await outer.run(
            line,
            spec=spec,
            environment={**spec.environment, **own},
            level="container",
            guard=guard,
            ends=([program, "rm", "--force", name],),
            stdin=stdin,
            on_output=on_output,
        )
        was_made = id_file.exists()
    finally:
        landlock.remove(private)
    if result.exit_code == 125 and not was_made:  # a program may end with 125 as well
        raise SandboxUnavailable(
            f"{Path(program).name} could not start a container: {result.stderr.text().strip()}",
            next="Check that the image is on this machine and every folder of the call exists.",
        )
    return result
