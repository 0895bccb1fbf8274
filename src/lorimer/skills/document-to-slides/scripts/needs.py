"""What the scripts of this skill begin and end with: packages, errors, output files.

The same file lies in several skills, so that each folder works on its own.

Exit codes: 0 all is well, 1 something was found (the output says what), 2 wrong input or
arguments, 3 a package is missing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

PACKAGES = {
    "PIL": "pillow",
    "docx": "python-docx",
    "matplotlib": "matplotlib",
    "openpyxl": "openpyxl",
    "pptx": "python-pptx",
    "pypdfium2": "pypdfium2",
}
_TRIED = "LORIMER_SKILL_OTHER_PYTHON"


def fail(message: str, next_step: str, code: int = 2) -> NoReturn:
    """End with an error that says what to do; as JSON on stdout where `--json` was given."""
    if "--json" in sys.argv[1:]:
        print(json.dumps({"error": message, "next": next_step}, ensure_ascii=False))
    sys.stderr.write(f"error: {message}\nnext: {next_step}\n")
    raise SystemExit(code)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def need(*modules: str) -> None:
    """Go on only where all `modules` can be imported.

    Where one is missing and another Python on PATH has them all, the script starts again with that
    one, and says so on stderr.
    """
    missing = [module for module in modules if not has(module)]
    if not missing:
        return
    main = getattr(sys.modules["__main__"], "__file__", None)
    is_script = main is not None and Path(main).resolve().parent == Path(__file__).resolve().parent
    if is_script and _TRIED not in os.environ:
        other = _python_with(modules)
        if other is not None:
            sys.stderr.write(
                f"note: {sys.executable} has no {', '.join(missing)}; this runs with {other}\n"
            )
            sys.stderr.flush()
            os.execve(other, [other, "-B", *sys.argv], {**os.environ, _TRIED: "1"})
    names = " ".join(PACKAGES.get(module, module) for module in missing)
    fail(
        f"{sys.executable} has no {', '.join(missing)}, and no other Python on PATH has.",
        f"ask the user to run: pip install {names}   (or: pip install 'lorimer[skills]'). "
        "Nothing can be installed from inside the sandbox.",
        code=3,
    )


def _python_with(modules: tuple[str, ...]) -> str | None:
    test = (
        "import importlib.util as u, sys; "
        f"sys.exit(any(u.find_spec(m) is None for m in {list(modules)!r}))"
    )
    for folder in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        for name in ("python3", "python"):
            program = os.path.join(folder, name)
            if not (folder and os.access(program, os.X_OK)) or program == sys.executable:
                continue
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                command = [program, "-B", "-c", test]
                if subprocess.run(command, capture_output=True, timeout=15).returncode == 0:
                    return program
    return None


def input_file(text: str) -> Path:
    """A file that exists and can be read."""
    path = Path(text)
    if path.is_dir():
        fail(f"{text!r} is a folder, not a file.", "give one file; list_directory shows them.")
    if not path.exists():
        fail(f"{text!r} does not exist.", "find it with find_file; write the path in quotes.")
    if not os.access(path, os.R_OK):
        fail(f"{text!r} may not be read.", "tell the user; choose another file.")
    return path


@contextlib.contextmanager
def output_file(text: str, suffixes: tuple[str, ...], *, force: bool = False) -> Iterator[Path]:
    """A path to write to; only when all went well does it become the file `text`.

    Args:
        suffixes: the endings that it may have.
        force: replace a file that is there.
    """
    path = Path(text)
    if path.suffix.lower() not in suffixes:
        fail(f"{text!r} does not end in {' or '.join(suffixes)}.", "choose such a name.")
    if path.is_dir():
        fail(f"{text!r} is a folder.", "give a file name.")
    if path.exists() and not force:
        fail(f"{text!r} is already there.", "choose another name, or add --force to replace it.")
    if not path.parent.is_dir():
        fail(f"the folder {str(path.parent)!r} does not exist.", "make it first, or choose one.")
    try:
        handle, name = tempfile.mkstemp(suffix=path.suffix, prefix=".new-", dir=path.parent)
    except OSError as fault:
        fail(f"{text!r} cannot be written: {fault.strerror}.", "choose a folder of the workspace.")
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o644 & ~_umask())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
