"""Starts a Jupyter kernel inside the sandbox. Started as a script; imports nothing of lorimer.

In a kernel, what forked processes print comes to it over a TCP socket on loopback. There is no such
thing in the sandbox (it would need netlink), so that line becomes a unix socket in the same private
folder as the others.

Usage: `kernel_start.py FOLDER [ARGUMENT …]`
"""

from __future__ import annotations

import os
import sys
from typing import Any


def main() -> None:
    folder = sys.argv.pop(1)
    import zmq
    from ipykernel.iostream import IOPubThread
    from ipykernel.kernelapp import IPKernelApp
    from zmq.eventloop.zmqstream import ZMQStream

    place = f"ipc://{folder}/forked"

    def listen(self: Any) -> None:
        self._pipe_uuid = os.urandom(16)
        socket = self.socket.context.socket(zmq.PULL)
        socket.linger = 0
        socket.bind(place)
        self._pipe_in = ZMQStream(socket, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def speak(_: Any) -> tuple[Any, Any]:
        context = zmq.Context()  # a forked process needs one of its own
        socket = context.socket(zmq.PUSH)
        socket.linger = 3000
        socket.connect(place)
        return context, socket

    for name, way in (("_setup_pipe_in", listen), ("_setup_pipe_out", speak)):
        setattr(IOPubThread, name, way)
    if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        sys.path[0] = ""  # as in a notebook: what lies in the workspace can be imported
    IPKernelApp.launch_instance()


if __name__ == "__main__":
    main()
