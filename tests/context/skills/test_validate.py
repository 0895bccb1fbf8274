"""The strict validator against the specification's own, and each rule by itself."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lorimer.context.skills.validate import validate

HERE = Path(__file__).parent


def _beside(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


made = _beside("generated_skills")
RECORD = json.loads((HERE / "reference_verdicts.json").read_text(encoding="utf-8"))
FOLDERS = made.folders()


def test_the_verdicts_agree_with_the_reference_validator(tmp_path: Path) -> None:
    """What `skills-ref` said of them is recorded (`record_reference.py`): valid, invalid, or the
    exception that it ended with, which is no verdict of valid."""
    assert len(FOLDERS) == len(RECORD["verdicts"]) >= 200
    different = []
    for number, (folder, theirs) in enumerate(zip(FOLDERS, RECORD["verdicts"], strict=True)):
        where = tmp_path / str(number)
        where.mkdir()
        ours = validate(Path(made.write(folder, str(where))))
        if ours.valid != (theirs == "valid"):
            different.append((folder.what, theirs, ours.problems))
    assert different == []
    assert RECORD["verdicts"].count("valid") >= 200
    assert len(FOLDERS) - RECORD["verdicts"].count("valid") >= 200


def test_three_rules_of_the_specification_go_beyond_the_reference(tmp_path: Path) -> None:
    beyond = list(made.beyond_reference())
    assert RECORD["beyond"] == ["valid"] * len(beyond)
    fields = set()
    for number, folder in enumerate(beyond):
        where = tmp_path / str(number)
        where.mkdir()
        ours = validate(Path(made.write(folder, str(where))))
        assert not ours.valid, folder.what
        assert all(problem.beyond_reference for problem in ours.problems), folder.what
        fields |= {problem.field for problem in ours.problems}
    assert fields == {"license", "metadata", "allowed-tools"}


@pytest.mark.parametrize("seed", range(4))
def test_other_seeds_agree_with_the_reference_itself(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("skills_ref", reason="the reference validator is not installed")
    verdict = _beside("record_reference").verdict
    for number, folder in enumerate(made.mixed(seed, 300)):
        where = tmp_path / str(number)
        where.mkdir()
        ours = validate(Path(made.write(folder, str(where))))
        strict = [problem for problem in ours.problems if not problem.beyond_reference]
        assert (not strict) == (verdict(folder) == "valid"), (folder, ours.problems)


def _fields(tmp_path: Path, text: str, folder: str = "table") -> list[str]:
    where = tmp_path / folder
    where.mkdir()
    (where / "SKILL.md").write_text(text, encoding="utf-8")
    return [problem.field for problem in validate(where).problems]


@pytest.mark.parametrize(
    ("front", "fields"),
    [
        ("name: table\ndescription: x\n", []),
        ("name: Table\ndescription: x\n", ["name", "name"]),
        ("description: x\n", ["name"]),
        ("name: table\n", ["description"]),
        ("name: table\ndescription: x\nversion: 1\nauthor: y\n", ["author", "version"]),
        (f"name: table\ndescription: {'x' * 1025}\n", ["description"]),
        (f"name: table\ndescription: x\ncompatibility: {'x' * 501}\n", ["compatibility"]),
        ("name: table\ndescription: x\nmetadata: y\n", ["metadata"]),
        ("name: table\ndescription: x\nallowed-tools:\n  - Read\n", ["allowed-tools"]),
        ("name: table\ndescription: Use when: x\n", ["SKILL.md"]),
        ("name: [table]\ndescription: x\n", ["SKILL.md"]),
        ("name: other\ndescription: ''\n", ["name", "description"]),
    ],
)
def test_each_problem_names_its_field(tmp_path: Path, front: str, fields: list[str]) -> None:
    assert _fields(tmp_path, f"---\n{front}---\nDo it.\n") == fields


@pytest.mark.parametrize(
    ("front", "message", "step"),
    [
        ("name: table\ndescription: Use when: x", "in line 3", "quotes"),
        (
            "name: table\ndescription: x\nmetadata: {a: b}",
            "line 4 begins with {",
            "one item a line",
        ),
        ("name: table\ndescription: x\nname: table", "'name' twice (line 4)", "Keep one"),
        ("name: table\ndescription: *x", "line 3", "quotes"),
    ],
)
def test_problems_say_the_line_and_the_step(
    tmp_path: Path, front: str, message: str, step: str
) -> None:
    where = tmp_path / "table"
    where.mkdir()
    (where / "SKILL.md").write_text(f"---\n{front}\n---\nx\n", encoding="utf-8")
    (problem,) = validate(where).problems
    assert message in problem.message
    assert step in problem.next


def test_what_is_no_skill_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def message(path: Path) -> str:
        (problem,) = validate(path).problems
        assert problem.next
        return problem.message

    assert "does not exist" in message(tmp_path / "gone")
    (tmp_path / "file").write_text("x")
    assert "is a file" in message(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "no SKILL.md" in message(tmp_path / "empty")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    assert "not a file" in message(tmp_path / "folder")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes(b"---\nname: latin\ndescription: caf\xe9\n---\n")
    assert "not UTF-8: byte 32 is 0xe9" in message(tmp_path / "latin")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    assert "not a file" in message(tmp_path / "pipe")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "SKILL.md").symlink_to("SKILL.md")
    assert message(tmp_path / "loop")


def test_the_current_folder_and_the_file_itself_are_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "table"
    where.mkdir()
    (where / "SKILL.md").write_text("---\nname: table\ndescription: x\n---\n")
    monkeypatch.chdir(where)
    for given in (Path("."), Path("SKILL.md"), where / "SKILL.md", Path("../table/")):
        found = validate(given)
        assert found.valid, found
        assert found.path == str(where)
        assert found.name == "table"


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
        "a:\n" + "".join(" " * (n + 1) + "a:\n" for n in range(3000)),
        "- " * 20_000 + "x\n",
        "a: " + "[" * 5000 + "\n",
        "? " * 3000 + "a\n",
        "a: !!python/object/apply:os.system ['true']\n",
        "x" * 300_000 + ": y\n",
    ],
    ids=["aliases", "deep maps", "deep lists", "brackets", "keys", "object", "long key"],
)
def test_hostile_front_matter_is_a_problem_not_a_crash(tmp_path: Path, bomb: str) -> None:
    assert _fields(tmp_path, f"---\nname: table\ndescription: x\n{bomb}---\n")


def test_remarks_do_not_make_a_skill_invalid(tmp_path: Path) -> None:
    where = tmp_path / "table"
    where.mkdir()
    text = "---\nname: table\ndescription: x\nlicense:\nallowed-tools: Read, Bash(a, b)\n---\n"
    (where / "SKILL.md").write_text(text)
    found: Any = validate(where)
    assert found.valid
    assert [remark.field for remark in found.remarks] == ["license", "allowed-tools"]
