"""Tools that do what they can not to end. Each says `reach` when its whole tree is there."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness import world as w

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)


def _deaf() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _for_ever() -> None:
    while True:
        time.sleep(3600)


def _forked(then: Callable[[], None]) -> None:
    if os.fork() == 0:
        try:
            then()
        finally:
            os._exit(1)


def ignores_signals(world: str) -> None:
    """Ignore every signal that can be ignored."""
    _deaf()
    w.reach(world, "before")
    _for_ever()


def forks(world: str) -> None:
    """Have children that ignore signals, and children of children."""

    def child() -> None:
        _deaf()
        _forked(lambda: (w.reach(world, "before"), _for_ever()))  # type: ignore[arg-type]
        _for_ever()

    _forked(child)
    _for_ever()


def daemonises(world: str) -> None:
    """Have a daemon: two forks, a session of its own, no open files."""

    def first() -> None:
        os.setsid()

        def second() -> None:
            _deaf()
            os.chdir("/")
            os.closerange(0, 256)
            w.reach(world, "before")
            _for_ever()

        _forked(second)

    _forked(first)
    _for_ever()


def leaves_programs(world: str) -> None:
    """Start programs in sessions of their own, and wait for them."""
    script = f"trap '' TERM INT HUP; touch '{world}/at-before'; while :; do sleep 3600; done"
    subprocess.Popen(["sh", "-c", script], start_new_session=True)
    subprocess.run(["sh", "-c", f'nohup sh -c "{script}" >/dev/null 2>&1 & wait'], check=False)


def sleeps_in_c(world: str) -> None:
    """Sleep in C."""
    w.reach(world, "before")
    libc = ctypes.PyDLL(None)  # keeps the interpreter's lock
    while True:
        libc.sleep(3600)


def counts_in_c(world: str) -> None:
    """Calculate in C for hours; Python sees no signal meanwhile."""
    w.reach(world, "before")
    3 ** (1 << 34)


def matches_in_c(world: str) -> None:
    """Match a pattern that takes for ever."""
    w.reach(world, "before")
    re.match(r"(a+)+$", "a" * 64 + "b")


def holds_locks(world: str) -> None:
    """Wait for a lock that it holds itself, in threads that are no daemons, and keep a file's."""
    lock = threading.Lock()
    lock.acquire()
    for _ in range(4):
        threading.Thread(target=lock.acquire).start()
    with open(Path(world) / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        w.reach(world, "before")
        lock.acquire()


def spins(world: str) -> None:
    """Do nothing, fast."""
    _deaf()
    w.reach(world, "before")
    while True:
        pass


def stops_itself(world: str) -> None:
    """Stop as a shell's job would."""
    w.reach(world, "before")
    os.kill(os.getpid(), signal.SIGSTOP)
    _for_ever()


def swallows(world: str) -> None:
    """Catch whatever is raised in it."""
    w.reach(world, "before")
    while True:
        try:
            _for_ever()
        except BaseException:  # noqa: BLE001 - that is its vice
            continue


def leaves_and_dies(world: str) -> None:
    """Leave a daemon behind, kill the whole process group, and so itself."""

    def daemon() -> None:
        os.setsid()
        _deaf()
        w.reach(world, "before")
        _for_ever()

    _forked(daemon)
    w.wait_until(lambda: w.reached(world, "before"))
    os.killpg(0, signal.SIGKILL)


def leaves_and_returns(world: str) -> str:
    """Leave a daemon behind and return; the daemon lives as long as the session."""

    def daemon() -> None:
        os.setsid()
        _deaf()
        w.reach(world, "before")
        _for_ever()

    _forked(daemon)
    w.wait_until(lambda: w.reached(world, "before"))
    return "returned"


def multiplies(world: str) -> None:
    """Have children that have children, as fast as forty of them can."""

    def child(left: int) -> None:
        _deaf()
        if left:
            _forked(lambda: child(left - 1))
        else:
            w.reach(world, "before")
        _for_ever()

    child(40)


UNDYING = (
    ignores_signals, forks, daemonises, leaves_programs, sleeps_in_c, counts_in_c, matches_in_c,
    holds_locks, spins, stops_itself, swallows, multiplies,
)  # fmt: skip
NAMES = tuple(function.__name__ for function in UNDYING)
assert sys.platform == "linux"
