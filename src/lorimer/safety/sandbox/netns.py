"""A listening socket inside a sandbox's network namespace, for a server outside of it.

A socket stays in the namespace in which it was made. So a short-lived process of ours enters the
namespace, before the sandboxed program begins, makes the socket, hands it out over one unix socket
and ends. Nothing of ours stays in the sandbox: no process, no file, no unix socket.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox.supervise import close_all, exited

_START_S = 10.0
_CHILD = Path(__file__).with_name("netns_child.py")


async def listen_inside(pid: int, port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1 in the network namespace of process `pid`.

    The process must be in a user namespace that this user made, as bubblewrap's child is.
    Cancellation ends the helper process and closes everything.

    Raises:
        SandboxUnavailable: the namespace could not be entered.
    """
    ours, theirs = socket.socketpair()
    namespace = -1
    child: subprocess.Popen[bytes] | None = None
    try:
        namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        ours.setblocking(False)
        child = subprocess.Popen(  # noqa: ASYNC220 - it takes a moment, and is waited for below
            [sys.executable, "-I", "-S", str(_CHILD), str(namespace), str(theirs.fileno()),
             str(port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(namespace, theirs.fileno()), env={}, cwd="/",
        )  # fmt: skip
        theirs.close()
        with anyio.fail_after(_START_S):
            await anyio.wait_readable(ours)
        said, fds, _, _ = socket.recv_fds(ours, 4096, 1, socket.MSG_CMSG_CLOEXEC)
        if not fds:
            raise _failed(said.decode("utf-8", "replace") or "the helper process died")
        listener = socket.socket(fileno=fds[0])
        listener.setblocking(False)
        return listener
    except (OSError, TimeoutError) as fault:
        raise _failed(str(fault) or "it took too long") from fault
    finally:
        close_all(namespace)
        ours.close()
        theirs.close()
        if child is not None:
            await _end(child)


async def _end(child: subprocess.Popen[bytes]) -> None:
    """It ends by itself as soon as it has spoken; a stuck one is killed."""
    with anyio.CancelScope(shield=True):
        pidfd = os.pidfd_open(child.pid)
        try:
            with anyio.move_on_after(1):
                await exited(pidfd)
            child.kill()
            child.wait()
        finally:
            os.close(pidfd)


def _failed(why: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"The sandbox's network could not be entered to grant hosts: {why}.",
        next="Run the call without granted hosts, or check that `bwrap` is not setuid here.",
    )
