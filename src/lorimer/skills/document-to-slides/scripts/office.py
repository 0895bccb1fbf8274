"""A document to PDF with LibreOffice, as a program or as a library.

The program needs Unix sockets (it looks for a running copy of itself), and waits for ever where a
sandbox forbids them. The library (LibreOfficeKit, `libreofficekit_hook_2`) does not; it is loaded
in a process of its own, because it ends hard.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

_PROGRAMS = ("soffice", "libreoffice")
_PLACES = (
    "/usr/lib/libreoffice/program", "/usr/lib64/libreoffice/program",
    "/opt/libreoffice/program", "/Applications/LibreOffice.app/Contents/MacOS",
)  # fmt: skip
_LIBRARIES = ("libmergedlo.so", "libsofficeapp.so")


class NoOffice(Exception):
    """There is no LibreOffice here."""


class OfficeFailed(Exception):
    """It is there, but made no PDF; says why."""


def to_pdf(source: Path, target: Path, timeout_s: float) -> str:
    """Make a PDF of a document; says by which way.

    Args:
        source: in a folder where a lock file may be written.

    Raises:
        NoOffice, OfficeFailed
    """
    program, folder = _program(), _folder()
    if program is None and folder is None:
        raise NoOffice("LibreOffice is not installed here.")
    with tempfile.TemporaryDirectory(prefix="office-") as profile:
        if program is not None and _sockets_allowed():
            _by_program(program, source, target, Path(profile), timeout_s)
            return "LibreOffice as a program"
        if folder is None:
            raise OfficeFailed(
                "LibreOffice needs Unix sockets, which are forbidden here, and its library was "
                "not found."
            )
        _by_library(folder, source, target, Path(profile), timeout_s)
        return "LibreOffice as a library"


def _program() -> str | None:
    for name in _PROGRAMS:
        if found := shutil.which(name):
            return found
    mac = Path(_PLACES[-1], "soffice")
    return str(mac) if mac.exists() else None


def _folder() -> Path | None:
    places = [Path(place) for place in _PLACES]
    program = _program()
    if program is not None:
        places.insert(0, Path(os.path.realpath(program)).parent)
    for place in places:
        if any((place / name).exists() for name in _LIBRARIES):
            return place
    return None


def _sockets_allowed() -> bool:
    try:
        socket.socket(socket.AF_UNIX).close()
    except OSError:
        return False
    return True


def _by_program(program: str, source: Path, target: Path, profile: Path, timeout_s: float) -> None:
    command = [
        program, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--norestore",
        "--convert-to", "pdf", "--outdir", str(target.parent), str(source),
    ]  # fmt: skip
    told = _run(command, timeout_s)
    made = target.parent / (source.stem + ".pdf")
    if not made.exists():
        raise OfficeFailed(f"LibreOffice made no PDF: {told[-300:].strip() or 'it said nothing'}")
    if made != target:
        made.replace(target)


def _by_library(folder: Path, source: Path, target: Path, profile: Path, timeout_s: float) -> None:
    command = [
        sys.executable, "-B", str(Path(__file__).resolve()),
        str(folder), str(source), str(target), profile.as_uri(),
    ]  # fmt: skip
    told = _run(command, timeout_s)
    if not target.exists() or target.stat().st_size == 0:
        raise OfficeFailed(f"LibreOffice made no PDF: {told[-300:].strip() or 'it said nothing'}")


def _run(command: list[str], timeout_s: float) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise OfficeFailed(f"LibreOffice took longer than {timeout_s:g} s.") from None
    except OSError as fault:
        raise OfficeFailed(f"LibreOffice cannot be started: {fault}.") from None
    return done.stderr + done.stdout


class _Kit(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("destroy", ctypes.c_void_p),
        ("load", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
        ("error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
    )


class _Document(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("destroy", ctypes.c_void_p),
        (
            "save",
            ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p
            ),
        ),
    )


def _inside(folder: str, source: str, target: str, profile: str) -> int:
    """What the process of its own does."""
    name = next(n for n in _LIBRARIES if (Path(folder) / n).exists())
    library = ctypes.CDLL(str(Path(folder) / name), mode=ctypes.RTLD_GLOBAL)
    hook = library.libreofficekit_hook_2
    hook.restype, hook.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
    kit = hook(folder.encode(), profile.encode())
    if not kit:
        sys.stderr.write("the library did not start\n")
        return 1
    calls = ctypes.cast(
        ctypes.cast(kit, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(_Kit)
    ).contents
    document = calls.load(kit, Path(source).as_uri().encode())
    if not document:
        sys.stderr.write((calls.error(kit) or b"it cannot be opened").decode("utf-8", "replace"))
        return 1
    of_document = ctypes.cast(
        ctypes.cast(document, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(_Document)
    ).contents
    saved = of_document.save(document, Path(target).as_uri().encode(), b"pdf", None)
    return 0 if saved else 1


if __name__ == "__main__":
    code = _inside(*sys.argv[1:5])
    sys.stderr.flush()
    os._exit(code)  # the library's own end would wait for threads that never stop
