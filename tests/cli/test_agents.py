"""`lorimer agents`: what there is, what is wrong with it, and a new one to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lorimer.cli.app import app
from lorimer.cli.terminal import Screen
from lorimer.core.watch import SubagentEnded


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


def test_show_of_an_untrusted_one_says_where_it_is_and_how_to_trust_it(places: Path) -> None:
    from lorimer.core.errors import LorimerError
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust

    run("new", "reviewer", "Reviews a change")
    with pytest.raises(LorimerError) as fault:
        run("show", "reviewer")
    assert ".agents/agents/reviewer.md" in fault.value.message
    assert "not trusted yet" in fault.value.message
    assert "lorimer trust folder" in fault.value.next
    FolderTrust(home()).trust(places)
    file = places / ".agents/agents/reviewer.md"
    file.write_text(file.read_text() + "More.\n")
    with pytest.raises(LorimerError, match="has changed since it was trusted"):
        run("show", "reviewer")


@pytest.mark.parametrize(
    "text",
    [
        "Review it.",
        "",
        "---\n---\nReview it.",
        "# Title\n\n---\nname: x\ndescription: d\ntools: read_file\n---\nReview it.",
        "---\nname: x\ndescription: d\n\ntools: read_file\n\nReview it.",
    ],
    ids=["none", "nothing", "empty", "too late", "without an end"],
)
def test_a_file_without_whole_front_matter_is_no_agent(places: Path, text: str) -> None:
    from lorimer.core.errors import LorimerError
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust

    file = places / ".agents/agents/x.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    FolderTrust(home()).trust(places)
    found = data("list")
    assert "x" not in {one["name"] for one in found["agents"]}
    assert any("x.md" in notice and "no agent" in notice for notice in found["notices"])
    (one,) = data("validate", code=1)["files"]
    assert one["problems"]
    with pytest.raises(LorimerError, match="is no agent"):
        run("show", "x")


def test_tools_and_models_that_do_not_exist_are_said(places: Path) -> None:
    from lorimer.core.home import home
    from lorimer.safety.injection.trust_folder import FolderTrust

    folder = places / ".agents/agents"
    folder.mkdir(parents=True)
    front = "---\nname: {0}\ndescription: d\ntools: {1}\nmodel: {2}\n---\nDo it."
    files = {"typo": ("read_fil", "inherit"), "gone": ("read_file", "no-such-model"),
             "odd": ("read_file", "nobody:big"), "good": ("read_file", "openai:gpt-5")}  # fmt: skip
    for name, (tools, model) in files.items():
        (folder / f"{name}.md").write_text(front.format(name, tools, model))
    FolderTrust(home()).trust(places)
    listed = {one["name"]: one for one in data("list")["agents"]}
    assert "read_file" in listed["typo"]["tool_notes"][0]
    assert listed["good"]["tool_notes"] == []
    assert "note: typo: no tool is called 'read_fil'" in run("list")
    assert data("show", "typo")["tool_notes"] and "no tool is called" in run("show", "typo")
    found = {one["name"]: one["problems"] for one in data("validate", code=1)["files"]}
    assert {name for name, problems in found.items() if problems} == {"typo", "gone", "odd"}
    assert "no-such-model" in found["gone"][0] and "inherit" in found["gone"][0]


def test_validate_of_a_file_that_is_not_there_says_what_to_name() -> None:
    from lorimer.core.errors import LorimerError

    with pytest.raises(LorimerError) as fault:
        run("validate", "gone.md")
    assert fault.value.next


def test_the_end_of_a_sub_agent_is_a_line_on_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Screen()(SubagentEnded("s_1.2", "explore\x1b[2J", "over_budget"))
    told = capsys.readouterr().err
    assert "sub-agent explore\\x1b[2J: over_budget (s_1.2)" in told and "\x1b[2J" not in told
