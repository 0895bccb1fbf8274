"""`lorimer agents`: what there is, what is wrong with it, and a new one to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lorimer.cli.app import app


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def run(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, ["agents", *arguments], standalone_mode=False)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    got = ended.return_value if isinstance(ended.return_value, int) else ended.exit_code
    assert got == code, ended.output
    return ended.output


def data(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "--json", code=code))


def test_list_shows_the_bundled_ones_and_why_a_projects_are_left_out(places: Path) -> None:
    run("new", "reviewer", "Reviews a change")
    found = data("list")
    assert {"explore", "general"} <= {one["name"] for one in found["agents"]}
    assert "reviewer" not in {one["name"] for one in found["agents"]}
    assert "not trusted" in found["notices"][0]
    text = run("list")
    assert "explore" in text and "not trusted" in " ".join(text.split())


def test_new_writes_a_file_that_validates_and_counts_once_trusted(places: Path) -> None:
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust

    run("new", "reviewer", "Reviews a change", "--tools", "read_file,grep_file")
    assert data("validate") == {
        "valid": True,
        "files": [
            {"file": ".agents/agents/reviewer.md", "name": "reviewer", "problems": [],
             "notices": []}
        ],
    }  # fmt: skip
    FolderTrust(home()).trust(places)
    shown = data("show", "reviewer")
    assert shown["tools"] == ["read_file", "grep_file"] and "Reviews" in shown["description"]
    assert "tools: read_file, grep_file" in run("show", "reviewer")


def test_new_does_not_write_over_a_file(places: Path) -> None:
    from lorimer.core.errors import LorimerError

    run("new", "reviewer", "Reviews a change", "--user")
    with pytest.raises(LorimerError, match="exists already"):
        run("new", "reviewer", "Something else", "--user")
    with pytest.raises(LorimerError, match="cannot be the name"):
        run("new", "Re Viewer", "x")


def test_validate_names_misspelt_tools_and_unusable_files(places: Path) -> None:
    folder = places / "mine"
    folder.mkdir()
    (folder / "typo.md").write_text(
        "---\nname: typo\ndescription: d\ntools: read_fil, my_own\n---\nx"
    )
    (folder / "empty.md").write_text("")
    found = data("validate", str(folder), code=1)
    assert not found["valid"]
    by_file = {Path(one["file"]).name: one for one in found["files"]}
    assert "read_file" in by_file["typo.md"]["problems"][0]
    assert "my_own" in by_file["typo.md"]["notices"][0]
    assert by_file["empty.md"]["name"] is None and by_file["empty.md"]["problems"]
    assert "✗" in run("validate", str(folder), code=1)


def test_show_of_an_unknown_one_names_those_that_are_like_it() -> None:
    from lorimer.core.errors import LorimerError

    with pytest.raises(LorimerError) as fault:
        run("show", "explorer")
    assert "explore" in fault.value.next
