"""Run as a program by `netns.py`, alone in its process: join a namespace and listen there.

Arguments: descriptor of the network namespace, descriptor of the unix socket, port. It imports
nothing of ours, so that it starts quickly and needs no installed packages.
"""

import ctypes
import fcntl
import os
import socket
import sys

_NS_GET_USERNS = 0xB701  # ioctl_ns(2)
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_IP_FREEBIND = 15  # the loopback card may not be up yet
_WAITING = 128


def main() -> None:
    namespace, unix_socket, port = (int(text) for text in sys.argv[1:4])
    answer = socket.socket(fileno=unix_socket)
    try:
        listener = _listen(namespace, port)
    except OSError as fault:
        answer.sendall(str(fault).encode())
        return
    socket.send_fds(answer, [b"ok"], [listener.fileno()])


def _listen(namespace: int, port: int) -> socket.socket:
    owner = fcntl.ioctl(namespace, _NS_GET_USERNS)
    libc = ctypes.CDLL(None, use_errno=True)
    for descriptor, kind in ((owner, _CLONE_NEWUSER), (namespace, _CLONE_NEWNET)):
        if libc.setns(descriptor, kind) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"setns: {os.strerror(number)}")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(_WAITING)
    return listener


if __name__ == "__main__":
    main()
