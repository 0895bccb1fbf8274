"""A look at a file after it was written (`verify` of `write_file` and `edit_file`).

Two steps: does it parse (`syntax`, here), and what do the linters of this machine say of it: ruff,
`node --check`, `bash -n`, in the sandbox, which sees the workspace read-only. Findings are notes
in the result; nothing here changes a file or fails a call, and a linter that is missing, hangs or
breaks is no finding against the file.

`LORIMER_WRITE_CHECKS` says how much: `lint` (both, the default), `parse`, or `off`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import anyio.to_thread

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.path_faults import PathRefused
from lorimer.safety.sandbox import choose
from lorimer.safety.sandbox.spec import Limits, SandboxResult, SandboxSpec
from lorimer.toolkits.execution.syntax import LARGEST, PARSED, fault_in
from lorimer.toolkits.execution.visible import programs
from lorimer.toolkits.opening import roots_of
from lorimer.toolkits.text import read_all
from lorimer.tools.tool import Finding, ToolContext

SWITCH = "LORIMER_WRITE_CHECKS"
LEVELS = ("lint", "parse", "off")
_LONGEST_S = 10.0
_MOST = 8
_LINE = 200


@dataclass(frozen=True, slots=True)
class Linter:
    """A program that judges a file given on its standard input.

    Attributes:
        argv: its arguments; `{path}` becomes the file's path.
        read: findings from what it said.
    """

    program: str
    argv: tuple[str, ...]
    read: Callable[[SandboxResult], list[Finding]]


async def check_written(
    arguments: Mapping[str, Any], _: Any, context: ToolContext
) -> Sequence[Finding]:
    """Findings on the file that was written; bounded in time by some ten seconds."""
    level = os.environ.get(SWITCH, "") or "lint"
    if level == "off":
        return []
    path = str(arguments["path"])
    kind = PurePosixPath(path).suffix.lower()
    if kind not in PARSED and kind not in LINTERS:
        return []
    content = await anyio.to_thread.run_sync(_read, path, context)
    if isinstance(content, Finding):
        return [content]
    problem = await anyio.to_thread.run_sync(fault_in, kind, content)
    if problem is not None:
        return [Finding(f"{path} does not parse: {problem}", "error")]
    if level == "parse" or kind not in LINTERS:
        return []
    if level != "lint":
        return [Finding(f"{SWITCH} is {level!r}; it may be {', '.join(LEVELS)}")]
    return await _lint(LINTERS[kind], path, content, context)


def _read(path: str, context: ToolContext) -> bytes | Finding:
    try:
        with roots_of(context).open_file(path) as opened:
            content = read_all(opened.fd)
    except PathRefused as fault:
        return Finding(f"could not be checked: {fault.message}")
    if len(content) > LARGEST:
        return Finding(f"{len(content):,} bytes are too many for a check")
    return content


async def _lint(
    linter: Linter, path: str, content: bytes, context: ToolContext
) -> Sequence[Finding]:
    shown, search = await anyio.to_thread.run_sync(programs)
    program = await anyio.to_thread.run_sync(lambda: shutil.which(linter.program, path=search))
    if program is None:
        return []
    spec = SandboxSpec(
        workspace=context.workspace,
        read_only=shown,
        environment={"PATH": search},
        # JavaScript engines reserve far more address space than they use
        limits=Limits(wall_s=_LONGEST_S, cpu_s=10, memory_bytes=1 << 42, kept_bytes=256 << 10),
    )
    argv = [program, *(a.replace("{path}", path) for a in linter.argv)]
    try:
        result = await choose.run(argv, spec=spec, stdin=content)
    except SandboxUnavailable:
        return []
    if result.killed == "timeout":
        return [Finding(f"{linter.program} took longer than {_LONGEST_S:g} s and was stopped")]
    if result.killed:
        return []
    try:
        found = linter.read(result)
    except (ValueError, KeyError, TypeError, AttributeError):  # not what this version says
        return []
    more = len(found) - _MOST
    return found[:_MOST] + ([Finding(f"and {more} more of {linter.program}")] if more > 0 else [])


def _ruff(result: SandboxResult) -> list[Finding]:
    found = []
    for one in json.loads(result.stdout.text() or "[]"):
        code = one.get("code") or "syntax"
        severity = "error" if code.startswith(("E9", "F8")) or code == "syntax" else "warning"
        place = f"line {one['location']['row']}"
        found.append(Finding(f"ruff, {place}: {code} {one['message']}"[:_LINE], severity))
    return found


def _node(result: SandboxResult) -> list[Finding]:
    if not result.exit_code:
        return []
    lines = result.stderr.text().splitlines()
    what = next((line for line in lines if "Error:" in line), "")
    if not what:
        return []
    place = lines[0].rpartition(":")[2] if lines[0].rpartition(":")[2].isdigit() else "?"
    return [Finding(f"node, line {place}: {what}"[:_LINE], "error")]


def _bash(result: SandboxResult) -> list[Finding]:
    if not result.exit_code:
        return []
    return [
        Finding(line.removeprefix("bash: ").replace("/dev/stdin: ", "bash, ", 1)[:_LINE], "error")
        for line in result.stderr.text().splitlines()
        if "line " in line
    ][:1]


def _script(kind: str) -> Linter:
    return Linter("node", ("--check", *((kind,) if kind else ()), "-"), _node)


_RUFF = Linter(
    "ruff",
    ("check", "--output-format=json", "--no-cache", "--stdin-filename={path}", "-"),
    _ruff,
)
_BASH = Linter("bash", ("-n", "/dev/stdin"), _bash)
LINTERS: Mapping[str, Linter] = {
    ".py": _RUFF,
    ".pyi": _RUFF,
    ".js": _script(""),
    ".cjs": _script("--input-type=commonjs"),
    ".mjs": _script("--input-type=module"),
    ".sh": _BASH,
    ".bash": _BASH,
}
"""By suffix. A `.js` file may be either kind of module; node finds out."""
