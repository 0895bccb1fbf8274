"""Putting new content in the place of a file, all of it or nothing.

The content is written to a new file beside the old one, forced to disk, given the old one's mode,
owner and extended attributes, and renamed over it. Where that would lose something (a file with
several hard links, an owner that cannot be given, a folder that cannot be written) the file is
written in place instead; then a crash in the middle can leave half of it, and a note says so.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from lorimer.safety import protected
from lorimer.safety.paths import Slot
from lorimer.toolkits.opening import nothing_done
from lorimer.toolkits.text import read_all
from lorimer.tools.tool import ToolContext, ToolError

_LOCK_WAIT_S = 10.0
_LARGEST = 256 << 20


@dataclass(slots=True)
class Current:
    """A file as it is now, open for reading and writing."""

    fd: int
    found: os.stat_result
    content: bytes

    @property
    def hash(self) -> str:
        return content_hash(self.content)


@dataclass(slots=True)
class Written:
    """What was done besides what was asked."""

    notes: list[str] = field(default_factory=list)


def content_hash(content: bytes) -> str:
    """The hash that `FileViews` keeps: SHA-256, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def current(slot: Slot) -> Iterator[Current]:
    """The file in `slot`, which exists, locked against other tools of ours.

    Raises:
        ToolError: when it cannot be written or is not a regular file any more.
    """
    with _locked(slot):
        try:
            fd = os.open(
                slot.name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=slot.fd
            )
        except OSError as fault:
            raise _no(slot, fault) from fault
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise nothing_done(
                    f"{slot.shown!r} is not a regular file any more.", next="List its folder."
                )
            if found.st_size > _LARGEST:
                raise nothing_done(
                    f"{slot.shown!r} has {found.st_size:,} bytes; at most {_LARGEST:,} can be "
                    "rewritten at once.",
                    next="Use run_python to change it piece by piece.",
                    code="too_large",
                )
            yield Current(fd, found, read_all(fd))
        finally:
            os.close(fd)


@contextmanager
def absent(slot: Slot) -> Iterator[None]:
    """The empty place `slot`, locked against other tools of ours."""
    with _locked(slot):
        yield


def overwrite(slot: Slot, now: Current, content: bytes, context: ToolContext) -> Written:
    """Put `content` in the place of `now`.

    Raises:
        ToolError: with a true outcome.
    """
    written = Written()
    if now.found.st_nlink > 1:
        _not_a_protected_link(slot, now)
        written.notes.append(f"written in place, to keep its {now.found.st_nlink} hard links")
        _in_place(slot, now, content, context)
        return written
    try:
        temporary = _write_beside(slot, content, like=now)
    except PermissionError:
        written.notes.append("written in place: its folder, mode or owner allows no replacement")
        _in_place(slot, now, content, context)
        return written
    except OSError as fault:
        raise _no(slot, fault) from fault
    try:
        _still_the_same(slot, now)
        with context.effect():
            try:
                os.rename(temporary, slot.name, src_dir_fd=slot.fd, dst_dir_fd=slot.fd)
            except OSError as fault:
                raise _no(slot, fault) from fault
            temporary = ""
        _sync_folder(slot.fd, written)
    finally:
        _remove(slot, temporary)
    return written


def create(slot: Slot, content: bytes, context: ToolContext) -> Written:
    """Make the file in `slot`, and the folders that are missing on the way.

    Raises:
        ToolError: and then nothing was made; also when the file exists by now.
    """
    written = Written()
    if not slot.missing:
        _create_here(slot, content, context.effect(), written)
        return written
    with context.effect():
        made: list[tuple[int, str]] = []
        try:
            _make_folders(slot, made)
            _create_here(slot, content, nullcontext(), written)
        except BaseException:
            for folder, name in reversed(made):
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folder)
            raise
        finally:
            for folder, _ in made:
                os.close(folder)
    written.notes.append(f"made the folder {'/'.join(slot.parts[:-1])}")
    return written


def _create_here(
    slot: Slot, content: bytes, effect: AbstractContextManager[None], written: Written
) -> None:
    temporary = ""
    try:
        temporary = _write_beside(slot, content, like=None)
        with effect:
            _place_new(slot, temporary)
    except FileExistsError as fault:
        raise nothing_done(
            f"{slot.shown!r} was made by somebody else just now.",
            next="Read it, then decide what to write.",
            code="stale",
        ) from fault
    except OSError as fault:
        raise _no(slot, fault) from fault
    finally:
        _remove(slot, temporary)
    _sync_folder(slot.fd, written)


def _place_new(slot: Slot, temporary: str) -> None:
    """Give the new file its name, only if the name is free."""
    try:
        os.link(temporary, slot.name, src_dir_fd=slot.fd, dst_dir_fd=slot.fd)
    except FileExistsError:
        raise
    except OSError as fault:  # no hard links on this file system
        if fault.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        fd = os.open(slot.name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=slot.fd)
        os.close(fd)
        os.rename(temporary, slot.name, src_dir_fd=slot.fd, dst_dir_fd=slot.fd)


def _make_folders(slot: Slot, made: list[tuple[int, str]]) -> None:
    """Make what is missing and move `slot` there; each (parent descriptor, name) goes to `made`."""
    try:
        for name in slot.missing:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=slot.fd)
                made.append((os.dup(slot.fd), name))
            folder = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=slot.fd
            )
            slot.close()
            slot.fd = folder
    except OSError as fault:
        raise _no(slot, fault) from fault


def _write_beside(slot: Slot, content: bytes, *, like: Current | None) -> str:
    """A new file with `content`, on disk, in the folder of `slot`; its name."""
    name = f".{os.urandom(8).hex()}.lorimer-new"
    mode = 0o666 if like is None else 0o600
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=slot.fd)
    try:
        try:
            _write_all(fd, content)
            if like is not None:
                _same_attributes(fd, like)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        _remove(slot, name)
        raise
    return name


def _same_attributes(fd: int, like: Current) -> None:
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (like.found.st_uid, like.found.st_gid):
        os.fchown(fd, like.found.st_uid, like.found.st_gid)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(like.fd):
                with suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(like.fd, name))
    os.fchmod(fd, stat.S_IMODE(like.found.st_mode))


def _in_place(slot: Slot, now: Current, content: bytes, context: ToolContext) -> None:
    _still_the_same(slot, now)
    if len(content) > len(now.content) and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(now.fd, 0, len(content))
        except OSError as fault:
            if fault.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                os.ftruncate(now.fd, len(now.content))
                raise _no(slot, fault) from fault
    with context.effect():
        try:
            os.lseek(now.fd, 0, os.SEEK_SET)
            _write_all(now.fd, content)
            os.ftruncate(now.fd, len(content))
            os.fsync(now.fd)
        except OSError as fault:
            os.lseek(now.fd, 0, os.SEEK_SET)
            _write_all(now.fd, now.content)
            os.ftruncate(now.fd, len(now.content))
            raise _no(slot, fault) from fault


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _still_the_same(slot: Slot, now: Current) -> None:
    try:
        found = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
    except FileNotFoundError:
        found = None
    before = now.found
    if found is None or (
        (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        != (before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns)
    ):
        raise nothing_done(
            f"{slot.shown!r} changed while it was being written; nothing was written.",
            next="Read it again, then repeat the change.",
            code="stale",
        )


def _not_a_protected_link(slot: Slot, now: Current) -> None:
    """A hard link to a protected file is that file under another name."""
    for name in protected.AT_ROOT:
        with suppress(OSError):
            other = os.stat(slot.root.path / name)
            if (other.st_dev, other.st_ino) == (now.found.st_dev, now.found.st_ino):
                raise nothing_done(
                    f"{slot.shown!r} is the same file as {name!r}, which no tool may write.",
                    next="Tell the user what should be changed there; only they can do it.",
                    code="protected",
                )


def _remove(slot: Slot, name: str) -> None:
    if name:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=slot.fd)


def _sync_folder(fd: int, written: Written) -> None:
    try:
        os.fsync(fd)
    except OSError as fault:
        written.notes.append(f"the folder could not be forced to disk ({fault.strerror})")


@contextmanager
def _locked(slot: Slot) -> Iterator[None]:
    """Hold the folder's lock, which all our tools take; file systems without locks go without."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=slot.fd)
    try:
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise nothing_done(
                        f"The folder of {slot.shown!r} is locked by another program.",
                        next="Try again later.",
                        code="busy",
                    ) from None
                time.sleep(0.005)
            except OSError:
                break
        yield
    finally:
        os.close(opened)


def _no(slot: Slot, fault: OSError) -> ToolError:
    """What the system said, with what to do; nothing of the file was changed."""
    what = f"{slot.shown!r} was not written: {fault.strerror}. Nothing was changed."
    hints = {
        errno.ENOSPC: "The disk is full: tell the user, or delete what is not needed.",
        errno.EDQUOT: "The disk quota is used up: tell the user.",
        errno.EFBIG: "The content is larger than this system allows: write less.",
        errno.EROFS: "This folder cannot be written: use another one.",
        errno.EACCES: "The permissions do not allow it: use another path, or tell the user.",
        errno.EPERM: "The permissions do not allow it: use another path, or tell the user.",
        errno.ELOOP: "The file was swapped for a link: read it again.",
        errno.ENOTDIR: "A part of the path is a file: use another path.",
    }
    code = "disk_full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else "not_written"
    return nothing_done(what, next=hints.get(fault.errno or 0, "Use another path."), code=code)
