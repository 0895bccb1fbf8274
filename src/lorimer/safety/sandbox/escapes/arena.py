"""Where the attempts are made: a mount namespace of our own, with a small file system of its own.

In it lie what must not be reached (`outside`, `home`, `store`), workspaces, listening sockets, and
processes that wait to be bothered. All of it goes with the process that made it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

NOBODY = 65534
CANARY = "LORIMER-CANARY-"
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_SIZE = "size=384m,mode=755,nr_inodes=200000"
INSIDE = Path(__file__).parent / "inside"


def _mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags),
        options.encode() or None,
    )  # fmt: skip
    if done != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}: {os.strerror(ctypes.get_errno())}")


def enter_own_mounts() -> bool:
    """Move this process, which must have one thread, to a mount namespace of its own.

    Without root a user namespace comes with it, in which this user keeps its number. Returns
    whether it could be had.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER) != 0:
        return False
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("none", Path("/"), "none", _RECURSIVE | _PRIVATE)
    return True


def mount_scratch(scratch: Path) -> None:
    """A small file system of its own, so that what fills it fills nothing else."""
    _mount("none", scratch, "tmpfs", 0, _SIZE)


def needed_places() -> list[Path]:
    """What a Python of this environment must be able to read."""
    found = {
        Path(p).resolve() for p in (sys.prefix, sys.base_prefix, *sys.path) if os.path.isdir(p)
    }
    found |= {Path(sys.prefix), Path(__file__).resolve().parents[3].parent}
    return sorted(p for p in found if not any(o != p and p.is_relative_to(o) for o in found))


def make_reachable(scratch: Path) -> None:
    """Let every user reach this Python, also below a folder that only root may enter (as root)."""
    closed: dict[Path, Path] = {}
    kept: list[tuple[Path, Path]] = []
    for number, place in enumerate(needed_places()):
        above = next((p for p in reversed(place.parents) if not p.stat().st_mode & 0o001), None)
        if above is None:
            continue
        keep = scratch / f"kept-{number}"
        keep.mkdir()
        _mount(str(place), keep, "none", _BIND | _RECURSIVE)
        kept.append((keep, place))
        closed[above] = above
    for above in closed:
        _mount("none", above, "tmpfs", 0, "mode=755")
    for keep, place in kept:
        place.mkdir(parents=True, exist_ok=True)
        _mount(str(keep), place, "none", _BIND | _RECURSIVE)


def become(user: int) -> None:
    """Go on as this user, with no way back."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc/self is ours again


@dataclass(slots=True)
class Arena:
    """The place, made by `arena`.

    Attributes:
        token: a fresh secret; whoever shows it has read it.
        control_user: who runs the controls; `None` for this user.
        facts: ports, names and process numbers for the attempts.
    """

    base: Path
    token: str
    control_user: int | None
    facts: dict[str, object] = field(default_factory=dict)
    victims: dict[bool, subprocess.Popen[bytes]] = field(default_factory=dict)
    _made: int = 0

    def workspace(self, *, repository: bool, control: bool) -> Path:
        """A new one, owned by whoever will run in it."""
        self._made += 1
        folder = self.base / "ws" / str(self._made)
        folder.mkdir(parents=True)
        if repository:
            for git in (folder / ".git", folder / "sub" / ".git"):
                for name in ("hooks", "objects", "refs/heads"):
                    (git / name).mkdir(parents=True)
                (git / "HEAD").write_text("ref: refs/heads/main\n")
                (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
            (folder / ".mcp.json").write_text("{}\n")
            (folder / ".vscode").mkdir()
            (folder / ".vscode" / "settings.json").write_text("{}\n")
        if control and self.control_user is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.control_user, self.control_user)
        return folder

    def fill(self) -> None:
        """Make everything that must not be reached as it was at first."""
        for name in ("outside", "home", "store", "shown"):
            shutil.rmtree(self.base / name, ignore_errors=True)
        secret = f"{self.token}\n"
        for name in ("outside/secret", "outside/file", "store/lorimer.db", "shown/file",
                     "home/.ssh/id_ed25519", "home/.aws/credentials", "home/.bashrc"):  # fmt: skip
            path = self.base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(secret)
            path.chmod(0o666)
            if self.control_user is not None:  # that user may change it, so the control can show it
                os.chown(path, self.control_user, self.control_user)
        for name in ("outside", "home", "home/.ssh", "home/.aws", "store", "shown"):
            (self.base / name).chmod(0o777)

    def victim(self, *, control: bool, heeds: bool = False) -> subprocess.Popen[bytes]:
        """A process that waits, of the user who would bother it; started again when it ended.

        Args:
            heeds: whether it ends at SIGURG, which everybody else ignores.
        """
        found = self.victims.get(control)
        if heeds and found is not None:
            found.kill()
            found.communicate()
        if found is None or found.poll() is not None:
            user = self.control_user if control else None
            found = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _VICTIM, self.token, str(int(heeds))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin", "SOME_KEY": self.token}, cwd="/",
                user=user, group=user, extra_groups=[] if user is not None else None,
            )  # fmt: skip
            assert found.stdout is not None
            found.stdout.read(1)
            self.victims[control] = found
        return found

    def victim_ended(self, *, control: bool) -> bool:
        """Whether the victim that was made last has ended, or does within a moment."""
        try:
            self.victims[control].wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        return True


_VICTIM = """
import ctypes, os, signal, sys
if sys.argv[2] == "1":
    signal.signal(signal.SIGURG, lambda *_: os._exit(0))
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (1 << 64) - 1), 0, 0, 0)  # may be traced
sys.stdout.write("x"); sys.stdout.flush()
sys.stdin.read()
"""


@contextlib.contextmanager
def arena(scratch: Path, *, own_mounts: bool) -> Iterator[Arena]:
    """Build it under `scratch`, an empty folder, and take it down at the end."""
    if own_mounts:
        mount_scratch(scratch)
    as_root = os.geteuid() == 0
    if as_root:
        make_reachable(scratch)
    made = Arena(scratch, CANARY + secrets.token_hex(16), NOBODY if as_root else None)
    made.fill()
    os.environ["SOME_API_KEY"] = made.token
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong((1 << 64) - 1), 0, 0, 0)  # PR_SET_PTRACER
    with contextlib.ExitStack() as closing:
        made.facts |= _listeners(made, closing)
        made.facts |= _shared(made, closing)
        try:
            yield made
        finally:
            for victim in made.victims.values():
                victim.kill()
                victim.communicate()


def _listeners(made: Arena, closing: contextlib.ExitStack) -> Mapping[str, object]:
    """Sockets that answer everybody with the secret."""
    folder = Path(tempfile.mkdtemp(prefix="s-", dir=made.base))
    folder.chmod(0o755)
    abstract = f"lorimer-{secrets.token_hex(8)}"
    tcp = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
    udp = closing.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    unix = closing.enter_context(socket.socket(socket.AF_UNIX))
    unix.bind(str(folder / "s"))
    (folder / "s").chmod(0o777)
    hidden = closing.enter_context(socket.socket(socket.AF_UNIX))
    hidden.bind(f"\0{abstract}")
    for one in (unix, hidden):
        one.listen(8)

    def answer(listening: socket.socket) -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.sendall(made.token.encode())

    def answer_datagrams() -> None:
        while True:
            try:
                _, peer = udp.recvfrom(64)
                if peer is None:  # it was shut down
                    return
                udp.sendto(made.token.encode(), peer)
            except OSError:
                return

    works: list[Callable[[], None]] = [lambda o=one: answer(o) for one in (tcp, unix, hidden)]  # type: ignore[misc]
    for work in (*works, answer_datagrams):
        threading.Thread(target=work, daemon=True).start()
    for one in (tcp, udp, unix, hidden):
        closing.callback(_wake, one)
    return {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1], "unix": str(folder / "s"),
            "abstract": abstract}  # fmt: skip


def _wake(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)


def _shared(made: Arena, closing: contextlib.ExitStack) -> Mapping[str, object]:
    """A System V segment and a file in /dev/shm, both with the secret."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    facts: dict[str, object] = {"sysv": -1, "shm": "/dev/shm/none"}
    segment = int(libc.shmget(0, ctypes.c_size_t(4096), 0o1666))  # IPC_PRIVATE, IPC_CREAT
    if segment >= 0:
        closing.callback(libc.shmctl, segment, 0, None)  # IPC_RMID
        place = libc.shmat(segment, None, 0)
        ctypes.memmove(place, made.token.encode(), len(made.token))
        libc.shmdt(ctypes.c_void_p(place))
        facts["sysv"] = segment
    with contextlib.suppress(OSError):
        fd, name = tempfile.mkstemp(prefix="lorimer-", dir="/dev/shm")
        closing.callback(os.unlink, name)
        os.write(fd, made.token.encode())
        os.fchmod(fd, 0o644)
        os.close(fd)
        facts["shm"] = name
    return facts
