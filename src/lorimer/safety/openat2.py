"""The Linux system call openat2(2), which can promise that a path stays below a folder.

Python has no wrapper for it. Structure, flags and the call number (the same on every architecture
but Alpha) are those of openat2(2) and `linux/openat2.h`; Linux 5.6 and later have it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache

_NUMBER = 437
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Open `path` below the descriptor `folder`; no step of it may leave that folder.

    Returns:
        A new descriptor, closed on exec.

    Raises:
        OSError: `EXDEV` when the path leads outside or over an absolute link, and whatever open(2)
            gives.
    """
    how = _OpenHow(
        flags=flags | os.O_CLOEXEC, mode=0, resolve=RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    )
    fd = _libc().syscall(
        ctypes.c_long(_NUMBER),
        ctypes.c_int(folder),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return int(fd)


@cache
def is_available() -> bool:
    """Whether this kernel has openat2 and `/proc/self/fd` tells where a descriptor points."""
    if not sys.platform.startswith("linux"):
        return False
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(open_beneath(root, ".", os.O_PATH | os.O_DIRECTORY))
        return os.readlink(f"/proc/self/fd/{root}") == "/"
    except OSError as fault:
        if fault.errno in (errno.ENOSYS, errno.EPERM, errno.ENOENT, errno.EACCES):
            return False
        raise
    finally:
        os.close(root)
