"""What a person typed while the model worked: whole lines that wait at the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections import deque

END = "/exit"
"""Stands for Ctrl-D: the end of what is typed."""


def typed_ahead(descriptor: int | None = None) -> list[str]:
    """The lines that were ended with Enter and not read yet, without blank ones; a line that is
    still being typed stays for the prompt. Never waits. Where standard input cannot be asked that,
    there are none.

    Args:
        descriptor: of a terminal that gives whole lines; standard input by default.
    """
    pieces: list[bytes] = []
    ended = False
    with contextlib.suppress(OSError, ValueError):
        fd = sys.stdin.fileno() if descriptor is None else descriptor
        while select.select([fd], [], [], 0)[0]:
            data = os.read(fd, 65_536)
            if not data:
                ended = True
                break
            pieces.append(data)
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [*lines, END] if ended else lines


def is_command(line: str) -> bool:
    """Whether `line` is a command of `lorimer chat`, known or not."""
    return line.startswith("/") and " " not in line and "/" not in line[1:]


def next_messages(waiting: deque[str]) -> list[str]:
    """Take from `waiting` what is to be done next: one command, or all messages before one."""
    taken = [waiting.popleft()]
    if not is_command(taken[0]):
        while waiting and not is_command(waiting[0]):
            taken.append(waiting.popleft())
    return taken
