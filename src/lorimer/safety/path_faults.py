"""Why a path is refused, in words that say what to do next."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lorimer.core.errors import LorimerError

_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link",
}  # fmt: skip


class PathRefused(LorimerError):
    """A path cannot be used; `code` says why.

    Codes: `bad_path`, `outside`, `not_found`, `not_a_folder`, `not_a_file`, `special_file`,
    `protected`, `read_only`, `denied`, `link_loop`.
    """

    def __init__(self, code: str, message: str, *, next: str = "") -> None:
        super().__init__(message, next=next)
        self.code = code


def kind_of(found: os.stat_result) -> str:
    """What a file is, in words."""
    return _KINDS.get(stat.S_IFMT(found.st_mode), "a file")


def only_regular(found: os.stat_result, path: str) -> None:
    """Let regular files pass.

    Raises:
        PathRefused: when `found` is a folder or a special file.
    """
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused(
            "not_a_file", f"{path!r} is a folder.", next="List it, or give the path of a file."
        )
    raise PathRefused(
        "special_file",
        f"{path!r} is {kind_of(found)}; only regular files can be opened.",
        next="Use a regular file.",
    )


def not_found(path: str) -> PathRefused:
    hint = "List the folder to see what is there."
    if path.startswith("~"):
        hint = "'~' is not expanded: give a path relative to the workspace."
    return PathRefused("not_found", f"{path!r} does not exist.", next=hint)


def outside(path: str, workspace: Path) -> PathRefused:
    return PathRefused(
        "outside",
        f"{path!r} leads outside the folders of this session.",
        next=f"Use a path inside the workspace {workspace}, e.g. 'notes.txt'.",
    )


def check_text(path: str) -> None:
    hint = "Give a path relative to the workspace, e.g. 'notes.txt'."
    if not path:
        raise PathRefused("bad_path", "The path is empty.", next="Use '.' for the workspace.")
    if "\0" in path:
        raise PathRefused("bad_path", f"{path!r} contains a NUL character.", next=hint)
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused("bad_path", f"{path!r} is not a file name here.", next=hint) from None
    if len(raw) > 4095 or any(len(name) > 255 for name in raw.split(b"/")):
        raise PathRefused(
            "bad_path",
            f"The path {path[:60]!r}… is too long (255 bytes a name, 4,095 in all).",
            next="Use shorter names.",
        )


@contextmanager
def faults(path: str, workspace: Path) -> Iterator[None]:
    """Turn what the kernel says into errors that say what to do."""
    try:
        yield
    except FileNotFoundError:
        raise not_found(path) from None
    except NotADirectoryError:
        raise PathRefused(
            "not_a_folder", f"A part of {path!r} is a file, not a folder.", next="Check the path."
        ) from None
    except PermissionError as fault:
        raise PathRefused(
            "denied",
            f"The system does not allow to open {path!r} ({fault.strerror}).",
            next="Use another file, or ask the user to change its permissions.",
        ) from None
    except OSError as fault:
        if fault.errno == errno.EXDEV:
            raise outside(path, workspace) from None
        if fault.errno == errno.ELOOP:
            raise PathRefused(
                "link_loop",
                f"{path!r} goes through a loop of links, or changed while it was opened.",
                next="Use the real path.",
            ) from None
        raise PathRefused(
            "bad_path", f"{path!r} cannot be opened: {fault.strerror}.", next="Use another path."
        ) from None
