"""Bundled skills run as their users run them: as programs, on files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lorimer

SKILLS = Path(lorimer.__file__).parent / "skills"


class Ran:
    """What a script printed, and how it ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Script = Callable[..., Ran]


def _run(name: str, *arguments: object, cwd: Path | None = None, python: str = "") -> Ran:
    skill, _, script = name.partition("/")
    done = subprocess.run(
        [python or sys.executable, str(SKILLS / skill / "scripts" / f"{script}.py"),
         *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", cwd=cwd, timeout=300, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Ran(done)


@pytest.fixture
def run() -> Script:
    return _run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name has a space and signs beyond ASCII."""
    made = tmp_path / "mein Ordner ü 数"
    made.mkdir()
    return made
