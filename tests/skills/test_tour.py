"""repository-tour on repositories made for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

SKILL = "repository-tour"
FILES = {
    "README.md": "# It\n",
    "pyproject.toml": '[build-system]\nrequires = []\n[project.scripts]\nit = "it.cli:main"\n'
    "[tool.pytest.ini_options]\n",
    "src/it/__init__.py": "",
    "src/it/core/__init__.py": "",
    "src/it/core/model.py": "X = 1\n",
    "src/it/cli/__init__.py": "from it.core.model import X\nfrom ..store import db\n",
    "src/it/store/__init__.py": "",
    "src/it/store/db.py": "from it.core import model\nimport it.cli\n",
    "tests/test_model.py": "from it.core.model import X\n",
    "web/package.json": '{"scripts": {"build": "vite"},\n "main": "index.js"}\n',
    "web/src/app/main.ts": 'import { a } from "../lib/a.js";\n',
    "web/src/lib/a.ts": "export const a = 1;\n",
    "Makefile": "test: build\n\tpytest\nclean:\n\trm x\n",
    "docs/index.md": "x\n",
    ".gitignore": "out/\n*.log\n!keep.log\n",
    "out/generated.py": "import it\n",
    "a.log": "x\n",
    "keep.log": "x\n",
    "tool ü.py": 'if __name__ == "__main__":\n    pass\n',
}


def git(root: Path, *arguments: str) -> None:
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *names, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("history", [True, False])
def test_a_repository_is_mapped(run: Any, repository: Path, history: bool) -> None:
    if history:
        git(repository, "init", "-q")
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", "one")
        (repository / "tool ü.py").write_text('if __name__ == "__main__":\n    1\n', "utf-8")
        git(repository, "commit", "-qam", "two")
    report = run(f"{SKILL}/tour", repository, "--json", "--depth", 2).json
    ignored = {"out/generated.py", "a.log"}
    assert report["files"] == len(FILES) - len(ignored)
    entries = {(e["path"], e["line"]) for e in report["entry_points"]}
    assert {("pyproject.toml", 4), ("web/package.json", 2), ("tool ü.py", 1)} <= entries
    told = {(c["command"], c["line"]) for c in report["commands"]}
    assert {("make test", 1), ("cd web && npm run build", 1), ("python -m pytest", 5)} <= told
    assert not any("clean" in command for command, _ in told)
    edges = {(e["from"], e["to"]) for e in report["edges"]}
    assert ("src/it/cli", "src/it/core") in edges and ("src/it/cli", "src/it/store") in edges
    assert ("web/src/app", "web/src/lib") in edges
    assert report["cycles"] == [["src/it/cli", "src/it/store"]]
    assert report["packages"][0]["package"] == "src/it/core"
    assert report["tests"] == {"folders": [{"folder": "tests", "files": 1}], "files": 1}
    assert report["docs"] == ["docs/ (1 files)"] and report["read_first"] == ["README.md"]
    assert report["commits"] == (2 if history else 0)
    if history:
        assert report["most_changed"][0] == {
            "path": "tool ü.py", "commits": 2, "lines_changed": 4
        }  # fmt: skip
    else:
        assert "not a git repository: no history" in report["notes"]


def test_the_outline_is_short_and_written_once(run: Any, repository: Path) -> None:
    out = repository / "TOUR.md"
    assert run(f"{SKILL}/tour", repository, "--out", out).code == 0
    text = out.read_text("utf-8")
    assert "`pyproject.toml:4` command `it`" in text and len(text) < 6000
    assert run(f"{SKILL}/tour", repository, "--out", out).code == 2


def test_ten_thousand_files_are_no_trouble(run: Any, folder: Path) -> None:
    for n in range(10_000):
        path = folder / f"p{n % 50}" / f"m{n}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"from p{(n + 1) % 50} import m{(n + 1) % 10_000}\n", encoding="utf-8")
    report = run(f"{SKILL}/tour", folder, "--json").json
    assert report["files"] == 10_000 and len(report["packages"]) == 50
    cut = run(f"{SKILL}/tour", folder, "--json", "--max-files", "100").json
    assert any("only the first 100 of 10,000" in note for note in cut["notes"])


def test_a_repository_cannot_make_the_tour_run_its_programs(run: Any, repository: Path) -> None:
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "one")
    trap = repository / "trap.sh"
    trap.write_text("#!/bin/sh\ntouch sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "diff.external", str(trap))
    assert run(f"{SKILL}/tour", repository, cwd=repository).code == 0
    assert not (repository / "sprung").exists()


def test_wrong_roots_are_errors(run: Any, folder: Path) -> None:
    assert run(f"{SKILL}/tour", folder / "none").code == 2
    assert run(f"{SKILL}/tour", folder).code == 2
