"""Attempts to reach something by sockets."""

from __future__ import annotations

import contextlib
import ctypes
import socket
from typing import Any

P = dict[str, Any]
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000


def tcp(p: P) -> str:
    with socket.create_connection(("127.0.0.1", p["tcp"]), timeout=2) as s:
        s.sendall(b"escaped")
        return f"said {s.recv(64)!r}"


def udp(p: P) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        s.sendto(b"escaped", ("127.0.0.1", p["udp"]))
        with contextlib.suppress(TimeoutError):
            return f"said {s.recv(64)!r}"
    return None


def unix(p: P) -> str:
    return _unix(p["unix"])


def abstract(p: P) -> str:
    return _unix("\0" + p["abstract"])


def _unix(address: str) -> str:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(address)
        return f"said {s.recv(64)!r}"


def vsock(p: P) -> str:
    socket.socket(40, socket.SOCK_STREAM).close()
    return "has a socket to the machine's host"


def netlink(p: P) -> str:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.bind((0, 0))
    return "has a socket to the kernel"


def algorithms(p: P) -> str:
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return "has a socket to the kernel's crypto"


def packet(p: P) -> str:
    return _with_or_without_namespace(lambda: socket.socket(17, socket.SOCK_RAW).close())


def raw(p: P) -> str:
    return _with_or_without_namespace(
        lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
    )


def _with_or_without_namespace(work: Any) -> str:
    with contextlib.suppress(OSError):
        work()
        return "has one"
    ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NET)
    work()
    return "has one, in a namespace of its own"
