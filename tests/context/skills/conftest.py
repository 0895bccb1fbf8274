from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

MakeSkill = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, for the user and for lorimer."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "lorimer"))
    return home


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk space"
    folder.mkdir()
    return folder


@pytest.fixture
def make_skill() -> MakeSkill:
    """Writes one skill: `make_skill(top, "name", {file: text}, description=…, body=…)`."""

    def make(
        top: Path, name: str, files: dict[str, str] | None = None, *, folder: str = "",
        description: str = "Counts lines. Use when lines are to be counted.",
        body: str = "# Count\n\nRun the script.", front: str | None = None,
    ) -> Path:  # fmt: skip
        where = top / (folder or name)
        where.mkdir(parents=True, exist_ok=True)
        if front is None:
            front = f"name: {name}\ndescription: {description}\n"
        (where / "SKILL.md").write_text(f"---\n{front}---\n\n{body}\n", encoding="utf-8")
        for file, text in (files or {}).items():
            path = where / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if file.startswith("scripts/"):
                os.chmod(path, 0o755)
        return where

    return make
