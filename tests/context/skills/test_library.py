"""Which skills there are, where they come from, which of equal names counts, and who looked at
them."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lorimer.context.skills.files import digests, survey
from lorimer.context.skills.library import SkillLibrary
from lorimer.context.skills.record import Listed, Source, State
from lorimer.context.skills.reviews import ReviewFault, Reviews, difference
from lorimer.context.skills.sources import SkillSources, is_path
from lorimer.core.home import home
from lorimer.testing import ManualClock

MakeSkill = Callable[..., Path]
NOTHING = SkillSources(project=False, user=False, packages=False, bundled=False)


def library(
    workspace: Path, sources: SkillSources | None = None, *, trusted: bool = True
) -> SkillLibrary:
    sources = sources or SkillSources(packages=False, bundled=False)
    found = SkillLibrary(sources, workspace, Reviews(home()), lambda _: trusted)
    found.refresh()
    return found


def pin(folder: Path, name: str = "counting") -> None:
    contents = digests(survey(folder.resolve()))
    Reviews(home()).pin(name, contents, folder=folder, by="tester", clock=ManualClock())


def states(found: SkillLibrary) -> list[tuple[str, str, State]]:
    return [(one.skill.name, str(one.skill.source), one.state) for one in found.listed]


def test_all_six_folders_are_looked_into(
    workspace: Path, own_home: Path, make_skill: MakeSkill
) -> None:
    for number, name in enumerate((".agents", ".lorimer", ".claude")):
        make_skill(workspace / name / "skills", f"project-{number}")
        pin(make_skill(own_home / name / "skills", f"user-{number}"), f"user-{number}")
    found = library(workspace)
    assert {one.skill.name for one in found.listed} == {
        f"{where}-{number}" for where in ("project", "user") for number in range(3)
    }
    assert all(one.state is State.AVAILABLE for one in found.listed)
    untrusted = library(workspace, trusted=False)
    assert [skill.name for skill in untrusted.available] == ["user-0", "user-1", "user-2"]


def test_the_nearest_of_equal_names_counts_and_that_is_said(
    workspace: Path, own_home: Path, tmp_path: Path, make_skill: MakeSkill
) -> None:
    near = make_skill(workspace / ".agents/skills", "counting", description="near")
    make_skill(workspace / ".claude/skills", "Counting", folder="c", description="second")
    far = make_skill(own_home / ".agents/skills", "counting", description="far")
    pin(far)
    found = library(workspace)
    one = found.find("counting")
    assert one is not None
    assert one.skill.description == "near"
    assert [state for _, _, state in states(found)] == [
        State.AVAILABLE, State.SHADOWED, State.SHADOWED,
    ]  # fmt: skip
    assert any(str(near) in notice and "is nearer" in notice for notice in found.notices)
    other = library(workspace, trusted=False)
    one = other.find("counting")
    assert one is not None
    assert one.skill.description == "far", "what may not be used does not hide what may"


def test_the_same_folder_by_two_ways_is_one_skill(
    own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    real = make_skill(own_home / ".agents/skills", "counting")
    (own_home / ".claude/skills").mkdir(parents=True)
    (own_home / ".claude/skills/counting").symlink_to(real)
    assert len(library(workspace).listed) == 1


def test_a_workspace_that_is_the_home_is_a_project(own_home: Path, make_skill: MakeSkill) -> None:
    make_skill(own_home / ".agents/skills", "counting")
    assert states(library(own_home)) == [("counting", "project", State.AVAILABLE)]
    assert states(library(own_home, trusted=False)) == [("counting", "project", State.NOT_TRUSTED)]


def test_skills_in_groups_are_found_and_empty_folders_are_named(
    own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    top = own_home / ".agents/skills"
    make_skill(top / "office" / "documents", "letters")
    make_skill(top / "node_modules", "hidden")
    (top / "empty").mkdir()
    (top / "README.md").write_text("x")
    found = library(workspace)
    assert [one.skill.name for one in found.listed] == ["letters"]
    assert [(one.folder.name, one.code) for one in found.not_loaded] == [("empty", "no_skill_file")]


def test_a_skill_from_elsewhere_waits_for_its_review_and_again_after_a_change(
    own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    folder = make_skill(own_home / ".agents/skills", "counting", {"scripts/a.py": "1"})
    found = library(workspace)
    assert states(found) == [("counting", "user", State.UNREVIEWED)]
    assert found.readable() == ()
    pin(folder)
    found.refresh()
    assert found.readable() == (folder.resolve(),)

    def changed() -> Listed:
        found.refresh()
        (one,) = found.listed
        assert one.state is State.CHANGED, one
        assert found.readable() == ()
        return one

    (folder / "scripts/a.py").write_text("2")
    assert changed().changed == {"scripts/a.py": "changed"}
    assert "2026-01-01" in changed().why
    (folder / "scripts/a.py").write_text("1")
    (folder / "scripts/a.py").chmod(0o755)
    found.refresh()
    assert found.available, "the content is what was reviewed"
    (folder / "scripts/b.py").write_text("")
    assert changed().changed == {"scripts/b.py": "added"}
    (folder / "scripts/b.py").unlink()
    (folder / "scripts/a.py").chmod(0o644)
    assert changed().changed == {"scripts/a.py": "changed"}, "whether it may be run counts, too"
    (folder / "scripts/a.py").unlink()
    assert changed().changed == {"scripts/a.py": "removed"}


def test_a_change_of_the_same_size_and_time_is_seen(
    own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    folder = make_skill(own_home / ".agents/skills", "counting", {"a.txt": "one"})
    pin(folder)
    found = library(workspace)
    assert found.available
    before = os.stat(folder / "a.txt")
    (folder / "a.txt").write_text("two")
    os.utime(folder / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    found.refresh()
    assert not found.available


def test_what_did_not_change_is_not_read_again(
    own_home: Path, workspace: Path, make_skill: MakeSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(make_skill(own_home / ".agents/skills", "counting"))
    found = library(workspace)
    (one,) = found.available

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("lorimer.context.skills.files._pieces", fails)
    found.refresh()
    assert found.available == [one]


def test_names_and_folders_choose_skills(
    own_home: Path, workspace: Path, tmp_path: Path, make_skill: MakeSkill
) -> None:
    for name in ("one", "two", "three"):
        make_skill(workspace / ".agents/skills", name)
    mine = make_skill(tmp_path / "mine", "four")
    by_name = SkillSources.of(["one", "Three", "thre", mine])
    assert by_name is not None
    found = library(workspace, by_name)
    names = {one.skill.name: str(one.state) for one in found.listed}
    assert names == {"one": "available", "three": "available", "four": "unreviewed"}
    assert "There is no skill 'thre'; near it: three." in found.faults
    only_paths = SkillSources.of([str(tmp_path / "mine")])
    assert only_paths is not None
    assert [one.skill.name for one in library(workspace, only_paths).listed] == ["four"]
    gone = library(workspace, SkillSources.of([tmp_path / "gone"]))
    assert gone.not_loaded[0].code == "no_folder"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(None, None), (False, None), (True, SkillSources()), (NOTHING, NOTHING)],
)
def test_what_the_option_means(wanted: object, expected: object) -> None:
    assert SkillSources.of(wanted) == expected  # type: ignore[arg-type]


def test_a_word_is_a_name_and_a_path_is_a_path() -> None:
    assert [is_path(one) for one in ("pdf", "./pdf", "a/b", "~", "..", Path("pdf"))] == [
        False, True, True, True, True, True,
    ]  # fmt: skip


def test_installed_packages_bring_skills_without_being_imported(
    workspace: Path, tmp_path: Path, make_skill: MakeSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    make_skill(site / "their_tools/skills", "packaged")
    (site / "their_tools/__init__.py").write_text("raise SystemExit('imported')\n")
    info = site / "their_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[lorimer.skills]\ntheirs = their_tools.skills\nbroken = gone_package.skills\n"
    )
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    sources = SkillSources(project=False, user=False, bundled=False)
    found = library(workspace, sources)
    assert states(found) == [("packaged", "package", State.UNREVIEWED)]
    assert any("'broken'" in fault for fault in found.faults)
    pin(site / "their_tools/skills/packaged", "packaged")
    found.refresh()
    assert [skill.source for skill in found.available] == [Source.PACKAGE]


def test_what_lorimer_brings_is_valid_and_there(workspace: Path) -> None:
    from lorimer.context.skills.validate import validate

    found = library(workspace, SkillSources(project=False, user=False, packages=False))
    for skill in found.available:
        assert validate(skill.folder).valid, skill.name
        assert not skill.forgiven


def test_odd_things_among_the_skills_do_not_stop_a_session(
    own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    top = own_home / ".agents/skills"
    pin(make_skill(top, "counting"))
    (top / "loop").symlink_to("loop")
    (top / "gone").symlink_to("nowhere")
    (top / "up").symlink_to("..")
    (top / "file").write_text("x")
    os.mkfifo(top / "pipe")
    os.mkdir(os.fsencode(top) + b"/odd-\xff")
    found = library(workspace)
    assert [skill.name for skill in found.available] == ["counting"]
    codes = {one.folder.name: one.code for one in found.not_loaded}
    assert codes == {"up": "no_skill_file", "odd-\udcff": "no_skill_file"}
    assert all(isinstance(notice, str) for notice in found.notices)


@pytest.mark.skipif(os.geteuid() == 0, reason="root looks into every folder")
def test_folders_that_are_closed_are_passed_over(own_home: Path, workspace: Path) -> None:
    (own_home / ".agents/skills").mkdir(parents=True)
    (own_home / ".agents").chmod(0)
    try:
        assert library(workspace).listed == ()
    finally:
        (own_home / ".agents").chmod(0o755)


# --- the record of reviews ---


def _pin_one(name: str) -> None:
    Reviews(home()).pin(
        name, {"SKILL.md": "sha256:x"}, folder=Path("/x"), by="t", clock=ManualClock()
    )


def test_reviews_at_the_same_moment_are_all_kept() -> None:
    names = [f"skill-{number}" for number in range(24)]
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(_pin_one, names)
    reviews = Reviews(home())
    assert all(reviews.of(name) for name in names)
    assert sorted(p.name for p in home().iterdir()) == ["skills.json", "skills.json.lock"]


def test_the_record_is_for_its_owner_only() -> None:
    _pin_one("a")
    assert (home() / "skills.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"skills": []}', '{"skills": {"a": [{}]}}', '{"skills": {"a": 1}}']
)
def test_a_broken_record_trusts_nothing_and_says_so(
    text: str, own_home: Path, workspace: Path, make_skill: MakeSkill
) -> None:
    make_skill(own_home / ".agents/skills", "counting")
    home().mkdir()
    (home() / "skills.json").write_text(text)
    with pytest.raises(ReviewFault, match="not a record"):
        Reviews(home()).of("counting")
    with pytest.raises(ReviewFault, match="not a record"):
        _pin_one("b")
    assert (home() / "skills.json").read_text() == text, "it was not overwritten"
    found = library(workspace)
    assert not found.available
    assert any("not a record of reviewed skills" in fault for fault in found.faults)


def test_a_write_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _pin_one("a")
    before = (home() / "skills.json").read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(ReviewFault, match="No space left"):
        _pin_one("b")
    assert (home() / "skills.json").read_bytes() == before
    assert not [p for p in home().iterdir() if p.name.startswith(".skills-")]


def test_the_newest_twenty_reviews_of_a_name_are_kept_and_can_be_forgotten() -> None:
    reviews = Reviews(home())
    for number in range(25):
        reviews.pin("a", {"f": str(number)}, folder=Path("/x"), by="t", clock=ManualClock())
    assert [one.files["f"] for one in reviews.of("a")] == [str(n) for n in range(5, 25)]
    assert reviews.forget("a")
    assert not reviews.forget("a")
    assert reviews.of("a") == []
    assert json.loads(reviews.path.read_text())["version"] == 1


def test_difference_names_every_file_once() -> None:
    assert difference({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"}) == {
        "a": "removed", "c": "changed", "d": "added",
    }  # fmt: skip
