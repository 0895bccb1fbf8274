"""The folders as skills: valid, small, complete, each on its own."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import lorimer
from lorimer.context.skills.validate import validate

SKILLS = Path(lorimer.__file__).parent / "skills"
FOLDERS = sorted(p.parent for p in SKILLS.glob("*/SKILL.md"))
SCRIPTS = sorted(SKILLS.glob("*/scripts/*.py"))
PROGRAMS = [p for p in SCRIPTS if "ArgumentParser(" in p.read_text("utf-8")]


def _name(path: Path) -> str:
    return path.relative_to(SKILLS).as_posix()


def test_the_promised_skills_are_there() -> None:
    names = {folder.name for folder in FOLDERS}
    assert names >= {
        "spreadsheet-analysis", "document-to-slides", "data-plot", "repository-tour"
    }  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_a_folder_is_valid_and_short_and_says_when_not(folder: Path) -> None:
    verdict = validate(folder)
    assert not verdict.problems, verdict
    text = (folder / "SKILL.md").read_text("utf-8")
    assert text.count("\n") < 300
    description = re.search(r"^description: (.*)$", text, re.M)
    assert description and " Not for " in description[1] and "Use " in description[1]


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_what_a_skill_names_exists(folder: Path) -> None:
    text = (folder / "SKILL.md").read_text("utf-8")
    named = re.findall(r"<skill folder>/(scripts/\w+\.py)", text)
    named += re.findall(r"\]\((references/[^)]+)\)", text)
    assert named
    assert [name for name in named if not (folder / name).is_file()] == []


@pytest.mark.parametrize("script", PROGRAMS, ids=_name)
def test_a_script_explains_itself(script: Path, run) -> None:  # type: ignore[no-untyped-def]
    ran = run(f"{script.parts[-3]}/{script.stem}", "--help")
    assert ran.code == 0 and "--json" in ran.out and "Example" in ran.out


@pytest.mark.parametrize("name", ["needs.py", "cells.py", "table_io.py"])
def test_copies_of_a_shared_file_are_equal(name: str) -> None:
    assert len({p.read_bytes() for p in SKILLS.glob(f"*/scripts/{name}")}) == 1


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_a_script_needs_nothing_of_lorimer_and_no_network(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top not in {"lorimer", "urllib", "http", "requests", "httpx", "ftplib"}
            if script.parts[-3] == "repository-tour":
                assert top in sys.stdlib_module_names or (script.parent / f"{top}.py").exists()


def test_scripts_leave_no_bytecode_in_their_folder(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "a.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    run("spreadsheet-analysis/inspect_table", folder / "a.csv")
    run("repository-tour/tour", folder)
    assert not list(SKILLS.glob("*/scripts/__pycache__"))


def test_a_missing_package_is_named_with_its_pip_line(tmp_path: Path) -> None:
    import subprocess

    book = tmp_path / "a.xlsx"
    pytest.importorskip("openpyxl").Workbook().save(book)
    script = SKILLS / "spreadsheet-analysis/scripts/inspect_table.py"
    done = subprocess.run(
        [sys.executable, "-S", str(script), str(book), "--json"],
        capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "pip install openpyxl" in done.stderr and '"error"' in done.stdout
