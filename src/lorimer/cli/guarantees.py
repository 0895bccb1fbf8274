"""`lorimer guarantees`: run the public tests of the guarantees and say which hold here."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from lorimer.core.errors import LorimerError, UsageFault

GUARANTEES: dict[str, str] = {
    "G1": "outcome truth: every call ends in one of five outcomes, on disk before the "
    "model is told",
    "G2": "one effect: resume, retry and duplicate delivery never make two",
    "G3": "cut-off calls never run",
    "G4": "arguments are what the model wrote",
    "G5": "an approval is a capability",
    "G6": "MCP trust: definitions pinned, arguments validated here",
    "G7": "kill means dead: whatever a tool started is gone",
    "G8": "steering with receipts",
    "G9": "the prefix is proven",
    "G10": "flat and light: cost of a step does not grow",
    "G11": "errors teach: each says what to do next, retries are bounded",
    "G12": "always a valid request",
    "G13": "tamper-evident audit",
}


def guarantees(
    which: Annotated[list[str] | None, typer.Argument(help="Only these, e.g. G1 G13.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    tests: Annotated[
        Path | None,
        typer.Option("--tests", help="The folder of the tests. Default: of this checkout."),
    ] = None,
) -> int:
    """Run the tests behind each guarantee on this machine and print the table.

    `pass`: all its tests passed here. `fail`: one did not. `absent`: not built yet, or the tests
    are not here (they come with the source checkout, not with the installed package). Exit code 1
    when one fails.
    """
    wanted = [name.upper() for name in which or GUARANTEES]
    for name in wanted:
        if name not in GUARANTEES:
            raise UsageFault(
                f"There is no guarantee {name!r}.", next=f"Use G1 … G{len(GUARANTEES)}."
            )
    folder = tests or _default_folder()
    if folder is not None and importlib.util.find_spec("pytest") is None:
        print("pytest is not installed here: run scripts/setup dev, or pip install 'lorimer[dev]'.",
              file=sys.stderr)  # fmt: skip
        folder = None
    report = _run(folder, wanted, quiet=as_json) if folder is not None else {}
    out = {name: report.get(name, {"status": "absent", "tests": 0}) for name in wanted}
    if as_json:
        print(json.dumps(out))
    else:
        if folder is None:
            print("No tests can be run: use a source checkout with its development packages.\n")
        _table(out)
    return 1 if any(one["status"] == "fail" for one in out.values()) else 0


def _default_folder() -> Path | None:
    for base in (Path.cwd(), *Path(__file__).resolve().parents):
        folder = base / "tests" / "guarantees"
        if folder.is_dir() and (base / "pyproject.toml").is_file():
            return folder
    return None


def _run(folder: Path, wanted: list[str], *, quiet: bool) -> dict[str, dict[str, object]]:
    import re
    import subprocess
    import tempfile
    import xml.etree.ElementTree as tree

    files = []
    for name in wanted:
        files += sorted(folder.glob(f"test_g{int(name[1:]):02d}_*.py"))
    if not files:
        return {}
    with tempfile.TemporaryDirectory(prefix="lorimer-guarantees-") as scratch:
        xml = Path(scratch) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={xml}",
            f"--rootdir={folder.parent.parent}", *map(str, files),
        ]  # fmt: skip
        print(f"running {len(files)} test files; this takes a few minutes", file=sys.stderr)
        ended = subprocess.run(
            command, cwd=folder.parent.parent, check=False, stdout=sys.stderr,
            stderr=subprocess.STDOUT if quiet else None,
        )  # fmt: skip
        if not xml.exists():
            raise LorimerError(
                f"The tests could not be run (pytest ended with {ended.returncode})."
            )
        cases = list(tree.parse(xml).getroot().iter("testcase"))
    report: dict[str, dict[str, object]] = {}
    for name in wanted:
        mark = re.compile(rf"\btest_g{int(name[1:]):02d}_")
        own = [c for c in cases if mark.search(f"{c.get('classname')}.{c.get('name')}")]
        if not own:
            continue
        failed = sum(1 for c in own if c.find("failure") is not None or c.find("error") is not None)
        skipped = sum(1 for c in own if c.find("skipped") is not None)
        passed = len(own) - failed - skipped
        status = "fail" if failed else "pass" if passed else "absent"
        report[name] = {
            "status": status, "tests": passed + failed, "failed": failed, "skipped": skipped,
        }  # fmt: skip
    return report


def _table(out: dict[str, dict[str, object]]) -> None:
    marks = {"pass": "✓", "fail": "✗", "absent": "–"}
    for name, one in out.items():
        status = str(one["status"])
        print(f"{marks[status]} {name:<4} {status:<7} {one['tests']:>4} tests  {GUARANTEES[name]}")
        if one.get("skipped"):
            print(f"      ({one['skipped']} skipped here)")
