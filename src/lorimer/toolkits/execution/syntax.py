"""A quick look at a file after it was written: does it still parse?"""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from lorimer.safety.path_faults import PathRefused
from lorimer.toolkits.opening import roots_of
from lorimer.toolkits.text import read_all
from lorimer.tools.tool import Finding, ToolContext

_LARGEST = 2 << 20


def check_syntax(arguments: Mapping[str, Any], _: Any, context: ToolContext) -> list[Finding]:
    """Findings for Python, JSON and TOML files of up to 2 MiB; none for others."""
    path = str(arguments["path"])
    kind = PurePosixPath(path).suffix.lower()
    if kind not in (".py", ".pyi", ".json", ".toml"):
        return []
    try:
        with roots_of(context).open_file(path) as opened:
            content = read_all(opened.fd)
    except PathRefused as fault:
        return [Finding(f"could not be checked: {fault.message}")]
    if len(content) > _LARGEST:
        return [Finding(f"{len(content):,} bytes are too many for a syntax check")]
    problem = fault_in(kind, content)
    return [] if problem is None else [Finding(f"{path} does not parse: {problem}", "error")]


def fault_in(kind: str, content: bytes) -> str | None:
    """What is wrong with `content` as a file of this suffix; `None` when it parses."""
    try:
        if kind == ".json":
            json.loads(content)
        elif kind == ".toml":
            tomllib.loads(content.decode("utf-8"))
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(content)
    except SyntaxError as fault:
        return f"line {fault.lineno}: {fault.msg}"
    except (ValueError, RecursionError, MemoryError) as fault:
        return str(fault) or type(fault).__name__
    return None
