"""Runs one attempt, inside a sandbox or, as its control, outside. A program of its own.

Usage: `python -I -S FOLDER MODULE.FUNCTION PARAMETERS`, parameters as JSON. It prints one JSON
line: `open` (whether the attempt got what it wanted) and `detail` (what it got, or what stopped
it). A function raises `OSError` when it was stopped, returns nothing when it had no effect, and
otherwise what it got. It imports nothing of lorimer.
"""

from __future__ import annotations

import errno
import importlib
import json
import sys


def main() -> int:
    module, function = sys.argv[1].split(".")
    found = None
    try:
        found = getattr(importlib.import_module(module), function)(json.loads(sys.argv[2]))
        detail = found or "no effect"
    except OSError as fault:
        name = errno.errorcode.get(fault.errno or 0, type(fault).__name__)
        detail = f"{name}: {fault.strerror or fault}"
    except MemoryError:
        detail = "MemoryError"
    print(json.dumps({"open": found is not None, "detail": detail[:400]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
