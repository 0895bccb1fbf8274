"""Runs a piece of Python like a cell of a notebook. Started as a script inside the sandbox.

The code comes on standard input. The value of a last line that is an expression is printed, with a
label that says so. Imports nothing of lorimer.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import traceback
import types
from typing import Any

_NAME = "<code>"
_LABEL = "[value of the last expression] "


def main() -> None:
    source = sys.stdin.buffer.read().decode("utf-8")
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.path.append(os.getcwd())
    sys.argv = [_NAME]
    linecache.cache[_NAME] = (len(source), None, source.splitlines(keepends=True), _NAME)
    module = types.ModuleType("__main__")
    module.__dict__["__file__"] = _NAME
    sys.modules["__main__"] = module
    try:
        _run(source, module.__dict__)
    except SystemExit:
        raise
    except BaseException as fault:  # noqa: BLE001
        _flush()
        lines = traceback.format_exception(type(fault), fault, _own_frames(fault))
        sys.stderr.write("".join(lines))
        sys.exit(1)
    finally:
        _flush()


def _run(source: str, names: dict[str, Any]) -> None:
    tree = ast.parse(source, _NAME)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, _NAME, "exec"), names)
        return
    tree.body.pop()
    exec(compile(tree, _NAME, "exec"), names)
    value = eval(compile(ast.Expression(last.value), _NAME, "eval"), names)
    if value is not None:
        text = repr(value)
        sys.stdout.write(f"{_LABEL}{chr(10) if chr(10) in text else ''}{text}\n")


def _own_frames(fault: BaseException) -> types.TracebackType | None:
    """The traceback from the first line of the code on, without ours."""
    frame = fault.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != _NAME:
        frame = frame.tb_next
    return frame


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


if __name__ == "__main__":
    main()
